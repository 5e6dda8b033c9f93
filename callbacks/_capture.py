"""One capture of an evaluation's outcomes, shared by all monitors that read them in the same way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from polyweave_torch.callbacks._epoch import Epoch, Rows, join
from polyweave_torch.callbacks._ids import IdFunction, as_ids, as_labels, crossing, read_key, replay
from polyweave_torch.callbacks._lightning import (
    LightningModule,
    Trainer,
    evaluation_loaders,
    running,
    splits_over_ranks,
)
from polyweave_torch.callbacks._observe import Observed, listen, stop_listening
from polyweave_torch.callbacks._outcomes import (
    PREDICTION_NAMES,
    BatchOutcomes,
    OwnSource,
    Source,
    batch_target,
    from_function,
    from_observed,
    from_outputs,
    named,
    nothing_found,
)
from polyweave_torch.callbacks._tap import Call, MetricTap, choose_metric, read_metric

Slices = str | Sequence[Any] | Callable[[Any], Any] | None
# So many first batches are compared with what the step made of them.
_COMPARED = 2


@dataclass(frozen=True)
class Watch:
    """What to watch: where outcomes and ids come from."""

    outcomes: Source
    ids: str | IdFunction | None
    threshold: float | None
    ignore_index: int | None


@dataclass
class _Stream:
    """The rows of one dataloader."""

    order: Iterator[list[int]] | Exception | None
    """Sample indices of the batches to come; or why they are not known."""
    split: bool
    """Whether each rank sees its own part of the samples."""
    rows: list[Rows] = field(default_factory=list)
    batches: int = 0


@dataclass
class _Open:
    """A batch between its start and its end."""

    loader: int
    batch: int
    observed: list[Observed]
    ids: Any
    labels: list[list[str] | None]
    """The slice labels in the batch, of each kind of slices that is watched."""
    target: Tensor | None
    """A copy of the batch's targets, for the first batches."""


class Capture:
    """Collects the rows of each batch between the start and the end of one evaluation.

    Several monitors drive it through the same hooks; the first to come does the work. Each may have slices of its own.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.source: Source | None = None
        self.texts: dict[int, str] = {}
        """Ids that came as text, by the number that stands for them; of all ranks, once the evaluation has ended."""
        self._slices: list[Slices] = []
        self._metric = ""
        self._tap: MetricTap | None = None
        self._callers: set[int] = set()
        self._streams: list[_Stream] = []
        self._open: _Open | None = None
        self._epochs: list[list[Epoch]] | None = None
        self._compared = 0

    def start(self, caller: object, slices: Slices, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin an evaluation, or join the others that have."""
        loaders = evaluation_loaders(trainer)
        if not self._callers or id(caller) in self._callers:
            self.close()
            self._slices, self._epochs = [], None
            self._streams = [_Stream(self._order(loader), splits_over_ranks(loader)) for loader in loaders]
            if self.source == "metric" or (self.source is None and self.watch.outcomes in ("auto", "metric")):
                self._tap = MetricTap(pl_module)
        self._callers.add(id(caller))
        if slices not in self._slices:
            self._slices.append(slices)
        for loader, stream in zip(loaders, self._streams, strict=True):
            if isinstance(slices, tuple) and isinstance(stream.order, Iterator) and len(slices) != len(loader.dataset):
                stage = "test" if running(trainer) == "test" else "validation"
                raise ValueError(
                    f"slices has {len(slices)} labels, but the {stage} set has {len(loader.dataset)} samples; pass one "
                    "label for each, in the data set's order (for a Subset: labels[subset.indices]), or "
                    f'slices="<batch key>"{crossing(slices)}'
                )

    def before_batch(self, loader: int, batch_idx: int, batch: Any) -> None:
        """Open a batch and read what its step might take out of it."""
        if self._open is not None and (self._open.loader, self._open.batch) == (loader, batch_idx):
            return
        ids, order = self.watch.ids, self._streams[loader].order
        known = None
        if isinstance(order, Iterator):
            known = next(order, None)
        elif ids is not None:
            known = read_key(batch, ids, what="ids") if isinstance(ids, str) else ids(batch)
        labels = [_labels_in(batch, slices) for slices in self._slices]
        target = batch_target(batch) if self._compared < _COMPARED else None
        self._open = _Open(loader, batch_idx, listen(), known, labels, None if target is None else target.clone())

    def after_batch(self, loader: int, batch_idx: int, pl_module: LightningModule, batch: Any, outputs: Any) -> None:
        """Read the outcomes of the open batch and close it."""
        if self._open is None or (self._open.loader, self._open.batch) != (loader, batch_idx):
            return
        opened, self._open = self._open, None
        stop_listening()
        observed, labels = opened.observed, opened.labels
        outcomes = self._read(observed, pl_module, batch_idx, batch, outputs)
        known, stream = self._known_ids(opened), self._streams[loader]
        ids = as_ids(known)
        if observed and observed[0].slices is not None:
            said = as_labels(observed[0].slices)
            labels = [said if own is None else own for own in labels]
        sizes = [
            ("outcomes", len(outcomes.correct)),
            *(("slice labels", len(own)) for own in labels if own is not None),
        ]
        for what, size in sizes:
            if size != len(ids):
                raise ValueError(
                    f"batch {batch_idx} has {len(ids)} samples, but {size} {what}; the step must give one row for "
                    "every sample of its batch, in the batch's order (leave samples out with ignore_index)"
                )
        self._check_order(opened.target, outcomes.target)
        positions = isinstance(known, Tensor) or isinstance(stream.order, Iterator)
        stream.rows.append(Rows(ids, outcomes, labels, () if positions else list(known)))
        stream.batches += 1

    def batches(self) -> list[int]:
        """Batches read so far of each dataloader."""
        return [stream.batches for stream in self._streams]

    def finish(self, slices: Slices, trainer: Trainer) -> list[Epoch]:
        """The whole evaluation of each dataloader, of all ranks. Collective, once; further monitors get the same."""
        if self._epochs is None:
            self._epochs = [
                join(
                    stream.rows,
                    slices=[self._slice_rule(stream, kind) for kind in range(len(self._slices))],
                    texts=self.texts,
                    positions=isinstance(stream.order, Iterator),
                    split=stream.split,
                    distributed=trainer.world_size > 1,
                    device=trainer.strategy.root_device,
                )
                for stream in self._streams
            ]
            self.close()
        kind = self._slices.index(slices)
        return [epochs[kind] for epochs in self._epochs]

    def close(self) -> None:
        """Stop listening, let go of what is on the device, and give the module's metrics their own updates back."""
        stop_listening()
        self._open = None
        self._callers = set()
        for stream in self._streams:
            stream.rows = []
        if self._tap is not None:
            self._tap.close()
            self._tap = None

    def _order(self, loader: Any) -> Iterator[list[int]] | Exception | None:
        if self.watch.ids is not None:
            return None
        try:
            return replay(loader)
        except (TypeError, ValueError) as reason:  # raised at the first batch, unless its step observes ids
            return reason

    def _read(
        self, observed: list[Observed], pl_module: LightningModule, batch_idx: int, batch: Any, outputs: Any
    ) -> BatchOutcomes:
        calls = self._tap.take() if self._tap is not None else {}
        if self.source is None:
            self.source = self._decide(observed, outputs, calls)
            if self.source == "metric":
                self._metric = choose_metric(calls)
            elif self._tap is not None:
                self._tap.close()
                self._tap = None
        options: dict[str, Any] = {"threshold": self.watch.threshold, "ignore_index": self.watch.ignore_index}
        if isinstance(self.source, OwnSource):
            return self.source.read(pl_module, batch, outputs, observed)
        if callable(self.source):
            return from_function(self.source(pl_module, batch, outputs), **options)
        if self.source == "observe":
            if not observed:
                raise ValueError(
                    f"batch {batch_idx} did not call observe, though an earlier one did; call it in every batch"
                )
            return from_observed(observed, **options)
        if self.source == "metric":
            return read_metric(self._metric, calls, **options)
        return from_outputs(outputs, batch, **options)

    def _decide(self, observed: list[Observed], outputs: Any, calls: dict[str, list[Call]]) -> Source:
        """Pin ``"auto"`` to a source, on the first batch."""
        wanted = self.watch.outcomes
        if wanted == "observe" and not observed:
            raise ValueError("outcomes='observe', but the step did not call observe(preds, target); add that line")
        if wanted != "auto":
            return wanted
        if any(call.correct is not None or call.preds is not None for call in observed):
            return "observe"
        if named(outputs, PREDICTION_NAMES) is not None:
            return "outputs"
        if any(calls.values()):
            return "metric"
        raise ValueError(nothing_found(outputs, "outcomes"))

    def _known_ids(self, opened: _Open) -> Any:
        if opened.ids is not None:
            return opened.ids
        if opened.observed and opened.observed[0].ids is not None:
            return opened.observed[0].ids
        order = self._streams[opened.loader].order
        if isinstance(order, Exception):
            raise order
        raise ValueError("there are more batches than the loader's sampler has; pass ids=")

    def _check_order(self, of_batch: Tensor | None, of_step: Tensor | None) -> None:
        """Catch a step that reorders its batch, which ids read off the loader would not follow."""
        if of_batch is None:
            return
        self._compared += 1
        if of_step is None or of_batch.shape != of_step.shape or of_batch.is_floating_point():
            return
        before, after = of_batch.to(of_step), of_step
        if not torch.equal(before, after) and torch.equal(before.sort().values, after.sort().values):
            raise ValueError(
                "the step gave its targets in another order than the batch has them (a sorted batch?), so outcomes and "
                "samples do not match; give them in the batch's order, or observe(..., ids=...)"
            )

    def _slice_rule(self, stream: _Stream, kind: int) -> Sequence[Any] | str | None:
        slices = self._slices[kind]
        if callable(slices) or (slices is None and any(rows.labels[kind] is not None for rows in stream.rows)):
            return "from the batches"
        return slices


def _labels_in(batch: Any, slices: Slices) -> list[str] | None:
    if isinstance(slices, str) and slices != "target":
        return as_labels(read_key(batch, slices, what="slices"))
    return as_labels(slices(batch)) if callable(slices) else None


_captures: WeakKeyDictionary[Any, list[Capture]] = WeakKeyDictionary()


def shared_capture(trainer: Trainer, watch: Watch) -> Capture:
    """The capture of this trainer that watches in this way."""
    captures = _captures.setdefault(trainer, [])
    for capture in captures:
        if capture.watch == watch:
            return capture
    captures.append(Capture(watch))
    return captures[-1]
