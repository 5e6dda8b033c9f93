"""Channels of protocol steps, with text labels for the step and the slice."""

import json
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from polyweave_torch.functional._checks import as_counts, check_binary
from polyweave_torch.functional.channel import (
    ChannelEstimate,
    check_smoothing,
    check_transitions,
    count_transitions,
    estimate_channel,
)
from polyweave_torch.metrics.base import TableMetric, collective

Label = tuple[str, str]
Outcome = bool | int | np.bool_ | np.integer[Any] | Tensor


class ProtocolChannels(TableMetric):
    """One channel for each pair of a protocol step and a slice, both named by text that need not be known beforehand.

    As input to ``update``:

    - ``before``: ``[N]`` whether each sample was right before the step (bool, or 0 and 1)
    - ``after``: ``[N]`` whether it was right after
    - ``protocol_id``: the step that was taken
    - ``slices``: N labels, or None for ``default_slice``

    As output of ``compute``: int64 ``[B, 2, 2]``, a table for each bucket in the order of :attr:`labels`.

    Ranks may have seen other labels, in another order, or none: tables are joined by label. Labels and tables are in
    checkpoints by default; ``persistent(False)`` leaves them out. Memory is 32 bytes and the two names a bucket.

    Args:
        default_slice: slice of events that name none.
        smoothing: pseudo-count of the estimates, as in :func:`~polyweave_torch.functional.estimate_channel`.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        TypeError: where a name is not text; in ``record``, where an outcome is neither right nor wrong.
        ValueError: in ``update``, where lengths differ or an outcome is not binary; in ``merge_state`` and in loading,
            where the state is not that of this metric.

    Example:
        >>> metric = ProtocolChannels()
        >>> for before, after in ((False, True), (False, True), (True, True)):
        ...     easy = metric.record(before, after, "qa-step", "easy")
        >>> _ = metric.record(True, False, "qa-step", "hard")
        >>> round(float(easy.c), 4), round(float(easy.gamma), 4), round(float(easy.delta), 4)
        (0.8333, 0.25, 0.6667)
        >>> metric.labels
        [('qa-step', 'easy'), ('qa-step', 'hard')]
        >>> from polyweave_torch.functional import phase_plane_diagnosis, quadrant_names, slice_gating_decisions
        >>> quadrant_names(phase_plane_diagnosis(easy).quadrant)
        'HELPFUL'
        >>> gates = slice_gating_decisions(metric.estimates(protocol_id="qa-step"))
        >>> [(gate.slice, gate.activate) for gate in gates]
        [('easy', True), ('hard', False)]
    """

    def __init__(
        self, default_slice: str = "all", smoothing: float = 0.5, *, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        _check_label(default_slice, "default_slice")
        self.default_slice = default_slice
        check_smoothing(smoothing)
        self.smoothing = smoothing
        # Not declared as a state: its shape grows, and a MetricCollection must not share it without the labels.
        self._table = torch.zeros(0, 2, 2, dtype=torch.int64)
        self._labels: tuple[Label, ...] = ()
        self._persists = True

    def update(
        self, before: Tensor, after: Tensor, protocol_id: str = "default", slices: Sequence[str] | None = None
    ) -> None:
        """Count the events of one protocol step."""
        check_transitions(before, after, None, None)
        _check_label(protocol_id, "protocol_id")
        names = [self.default_slice] * len(before) if slices is None else list(slices)
        if len(names) != len(before):
            raise ValueError(f"slices must be one label a sample, but there are {len(names)} for {len(before)} samples")
        for name in dict.fromkeys(names):
            _check_label(name, "slices")
        if self.validate_args:
            check_binary(before, name="before")
            check_binary(after, name="after")
        present = list(dict.fromkeys(names))
        place = {name: index for index, name in enumerate(present)}
        index = torch.tensor([place[name] for name in names], dtype=torch.int64, device=before.device)
        batch = count_transitions(before, after, index, len(present), None)
        self._labels, self._table = _join(
            (self._labels, self._table), (tuple((protocol_id, name) for name in present), batch)
        )

    def record(
        self, before_correct: Outcome, after_correct: Outcome, protocol_id: str = "default", slice: str | None = None
    ) -> ChannelEstimate:
        """Count one event and return the estimate of its bucket, as this rank has seen it.

        Args:
            before_correct: whether the answer was right before the step (a bool, or 0 or 1, of Python, numpy or torch).
            after_correct: whether it was right after.
            protocol_id: the step.
            slice: its slice; None for ``default_slice``.

        Raises:
            TypeError: where an outcome is of another type.
            ValueError: where it is another number than 0 and 1.
        """
        for outcome in (before_correct, after_correct):
            if not isinstance(outcome, (int, np.bool_, np.integer, Tensor)):
                raise TypeError(f"an outcome must be True or False, but is {outcome!r} ({type(outcome).__name__})")
        before, after = (
            torch.as_tensor(outcome, device=self._table.device).reshape(1)
            for outcome in (before_correct, after_correct)
        )
        name = self.default_slice if slice is None else slice
        self.update(before, after, protocol_id, [name])
        return estimate_channel(self._bucket(protocol_id, name), smoothing=self.smoothing)

    def compute(self) -> Tensor:
        """The tables in the order of the labels."""
        order = sorted(range(len(self._labels)), key=lambda index: self._labels[index])
        return self._table[torch.tensor(order, dtype=torch.int64, device=self._table.device)]

    @property
    @collective
    def labels(self) -> list[Label]:
        """``(protocol_id, slice)`` of every bucket, sorted. All ranks must read this."""
        return sorted(self._labels)

    @collective
    def counts(self, protocol_id: str = "default", slice: str | None = None) -> Tensor:
        """The table of one bucket, int64 ``[2, 2]``; zeros where no event was recorded. All ranks must call this.

        Args:
            protocol_id: the step.
            slice: the slice; None for ``default_slice``.
        """
        return self._bucket(protocol_id, self.default_slice if slice is None else slice)

    @collective
    def estimate(self, protocol_id: str = "default", slice: str | None = None) -> ChannelEstimate:
        """The channel of one bucket; the empty estimate where no event was recorded. All ranks must call this.

        Args:
            protocol_id: the step.
            slice: the slice; None for ``default_slice``.
        """
        return estimate_channel(self.counts(protocol_id, slice), smoothing=self.smoothing)

    @overload
    def estimates(self, *, protocol_id: None = None) -> dict[Label, ChannelEstimate]: ...

    @overload
    def estimates(self, *, protocol_id: str) -> dict[str, ChannelEstimate]: ...

    def estimates(self, *, protocol_id: str | None = None) -> Any:
        """The channels of all buckets, sorted. All ranks must call this.

        Args:
            protocol_id: one step, to have its channels by slice, as
                :func:`~polyweave_torch.functional.slice_gating_decisions` takes them; None for all steps.

        Returns:
            A dict by ``(protocol_id, slice)``; with ``protocol_id`` a dict by slice, empty where no event of that step
            was recorded.
        """
        channels = self._estimates()
        if protocol_id is None:
            return channels
        return {name: channel for (step, name), channel in channels.items() if step == protocol_id}

    @collective
    def _estimates(self) -> dict[Label, ChannelEstimate]:
        return {label: self.estimate(*label) for label in self.labels}

    @property
    def metric_state(self) -> dict[str, Any]:
        """Labels and tables, as ``merge_state`` takes them."""
        return self._copy_state_dict()

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add another metric's tables by label, or those of a ``metric_state``."""
        if isinstance(incoming_state, Metric) and not isinstance(incoming_state, ProtocolChannels):
            raise ValueError(f"Expected another ProtocolChannels to merge, but got {type(incoming_state).__name__}")
        states = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        self._labels, self._table = _join((self._labels, self._table), _checked(states, self._table.device))
        self._computed = None
        self._update_count += incoming_state._update_count if isinstance(incoming_state, Metric) else 1

    def reset(self) -> None:
        """Forget all labels and tables."""
        super().reset()
        self._labels = ()
        self._table = self._table.new_zeros(0, 2, 2)

    def persistent(self, mode: bool = False) -> None:
        """Whether labels and tables are in ``state_dict``."""
        self._persists = mode

    def get_extra_state(self) -> dict[str, Any]:
        """Labels and tables for ``state_dict``, or nothing after ``persistent(False)``."""
        if not self._persists:
            return {}
        return {"_labels": [list(label) for label in self._labels], "_table": self._table.detach().clone()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load what :meth:`get_extra_state` gave."""
        if not state:
            return
        self._labels, self._table = _checked(state, self._table.device)
        self._computed = None
        self._update_count = max(self._update_count, 1)

    def _bucket(self, protocol_id: str, name: str) -> Tensor:
        if (protocol_id, name) not in self._labels:
            return self._table.new_zeros(2, 2)
        return self._table[self._labels.index((protocol_id, name))]

    def _copy_state_dict(self) -> dict[str, Any]:
        return {"_labels": self._labels, "_table": self._table}

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        earlier = (incoming_state["_labels"], incoming_state["_table"])
        self._labels, self._table = _join(earlier, (self._labels, self._table))

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> nn.Module:
        super()._apply(fn, exclude_state)
        self._table = self._table.to(self.device)
        return self

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any | None = None
    ) -> None:
        group = process_group or self.process_group
        text = torch.tensor(list(json.dumps(self._labels).encode()), dtype=torch.uint8, device=self._table.device)
        # A rank without labels still sends a row, since a gather of nothing is not the same on every backend.
        padded = torch.cat([self._table, self._table.new_zeros(1, 2, 2)])
        texts, tables = dist_sync_fn(text, group=group), dist_sync_fn(padded, group=group)
        joined: tuple[tuple[Label, ...], Tensor] = ((), self._table.new_zeros(0, 2, 2))
        for encoded, table in zip(texts, tables, strict=True):
            labels = tuple((step, name) for step, name in json.loads(bytes(encoded.tolist())))
            joined = _join(joined, (labels, table[: len(labels)]))
        self._labels, self._table = joined


def _join(
    first: tuple[tuple[Label, ...], Tensor], second: tuple[tuple[Label, ...], Tensor]
) -> tuple[tuple[Label, ...], Tensor]:
    """Add tables by label; labels keep the order in which they first came."""
    place = {label: index for index, label in enumerate(first[0])}
    for label in second[0]:
        place.setdefault(label, len(place))
    table = torch.cat([first[1], first[1].new_zeros(len(place) - len(first[0]), 2, 2)])
    rows = torch.tensor([place[label] for label in second[0]], dtype=torch.int64, device=table.device)
    return tuple(place), table.index_add(0, rows, second[1])


def _checked(state: dict[str, Any], device: torch.device) -> tuple[tuple[Label, ...], Tensor]:
    labels, table = state.get("_labels"), state.get("_table")
    if labels is None or table is None:
        raise ValueError(f"Expected labels and tables of a ProtocolChannels, but got only {sorted(state)}")
    pairs = tuple((step, name) for step, name in labels)
    for label in pairs:
        for text in label:
            _check_label(text, "labels")
    counts = as_counts(table, name="table").to(device)
    if counts.shape != (len(pairs), 2, 2) or len(set(pairs)) != len(pairs):
        raise ValueError(f"Expected one table for each of {len(pairs)} different labels, but got {list(counts.shape)}")
    return pairs, counts


def _check_label(label: object, name: str) -> None:
    if not isinstance(label, str):
        raise TypeError(f"{name} must be text, but holds {label!r} of type {type(label).__name__}")
