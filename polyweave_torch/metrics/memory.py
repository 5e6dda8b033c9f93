"""Outcomes of every sample of a data set, kept across epochs and addressed by sample index."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch import distributed as dist
from torchmetrics.utilities.distributed import gather_all_tensors

from polyweave_torch.functional._checks import (
    check_at_least_one,
    check_binary,
    check_index,
    check_outcome_dtype,
    check_range,
    check_same_length,
    check_tensor,
)
from polyweave_torch.functional.channel import count_transitions
from polyweave_torch.kernels.flags import LANE_SAMPLES, row_sums
from polyweave_torch.metrics.base import TableMetric, collective, slice_names, wanted_slices

Reference = Literal["previous", "first", "best"]
REFERENCES: tuple[Reference, ...] = get_args(Reference)
UNSEEN = -1
_CHUNK = 512 * LANE_SAMPLES


def write_outcomes(cells: Tensor, sample_index: Tensor, values: Tensor) -> Tensor:
    """Raise each addressed cell to its value, in place; of several values for one cell the largest stays."""
    return cells.scatter_reduce_(0, sample_index.to(torch.int64), values.to(cells.dtype), "amax")


class OutcomeMemory(TableMetric):
    r"""The channel between epochs, exact under shuffling, padding and any number of ranks.

    Each sample's outcome of the current epoch is one int8 cell (-1 not seen, 0 wrong, 1 right) addressed by its index
    in the data set. Ranks are joined by the maximum, so a sample that a padded ``DistributedSampler`` repeats writes
    the same cell twice; a sample with two different outcomes counts as right.

    As input to ``update``:

    - ``sample_index``: ``[N]`` int in [0, num_samples)
    - ``correct``: ``[N]`` whether each sample is right (bool, or 0 and 1)
    - ``slice_index``: ``[N]`` int in [0, S); needed with ``slices``, not looked at without

    As output of ``compute``: int64 ``[2, 2]``, or ``[S, 2, 2]`` with ``slices``: the channel from the previous epoch to
    the current one over the samples seen in both. Between :meth:`advance` and the next ``update`` it is that of the
    epoch which just ended.

    Memory on the device is 4 bytes a sample (current, previous, first and best epoch), 1, 2 or 4 more with ``slices``
    and 4 more with ``track_events``. States are in checkpoints by default, since they are a memory;
    ``persistent(False)`` leaves them out.

    Args:
        num_samples: size of the data set.
        slices: None, a number of slices or their names (kept as ``slice_names``).
        track_events: also count forgetting and learning events by sample.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where lengths differ, an outcome is not binary or an index is out of range.

    Example:
        >>> import torch
        >>> memory = OutcomeMemory(num_samples=3)
        >>> memory.update(torch.tensor([0, 1, 2]), torch.tensor([True, False, False]))
        >>> memory.advance()
        >>> memory.update(torch.tensor([2, 1, 0]), torch.tensor([True, False, True]))
        >>> memory.compute()
        tensor([[1, 1],
                [0, 1]])
    """

    memory_current: Tensor
    memory_previous: Tensor
    memory_first: Tensor
    memory_best: Tensor
    memory_transitions: Tensor
    memory_slice: Tensor

    def __init__(
        self,
        num_samples: int,
        slices: int | Sequence[str] | None = None,
        *,
        track_events: bool = False,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_samples, name="num_samples")
        self.num_samples = num_samples
        self.slice_names = slice_names(slices)
        self.track_events = track_events
        rows = 1 if self.slice_names is None else len(self.slice_names)
        unseen = torch.tensor(UNSEEN, dtype=torch.int8).expand(num_samples)
        for name in ("memory_current", *(f"memory_{reference}" for reference in REFERENCES)):
            self.declare(name, unseen, reduce="max", persistent=True)
        transitions = torch.zeros(len(REFERENCES), rows, 2, 2, dtype=torch.int64)
        self.declare("memory_transitions", transitions, reduce="max", persistent=True)
        if self.slice_names is not None:
            dtype = next(t for t in (torch.int8, torch.int16, torch.int32) if rows - 1 <= torch.iinfo(t).max)
            unknown = torch.tensor(-1, dtype=dtype).expand(num_samples)
            self.declare("memory_slice", unknown, reduce="max", persistent=True)
        if track_events:
            for name in ("memory_forgetting", "memory_learning"):
                never = torch.tensor(0, dtype=torch.int16).expand(num_samples)
                self.declare(name, never, reduce="max", persistent=True)

    def update(self, sample_index: Tensor, correct: Tensor, slice_index: Tensor | None = None) -> None:
        """Write the outcomes of a batch into the current epoch."""
        slice_index = wanted_slices(slice_index, self.slice_names)
        self._check(sample_index, correct, slice_index)
        # Written in place, since a copy of the memory for every batch would cost more than the batch.
        write_outcomes(self._writable("memory_current"), sample_index, correct.to(torch.bool))
        if slice_index is not None:
            write_outcomes(self._writable("memory_slice"), sample_index, slice_index)

    def compute(self) -> Tensor:
        """The channel from the previous epoch."""
        return self._channel("previous")

    @collective
    def channel(self, reference: Reference = "previous") -> Tensor:
        """Transitions from a reference epoch to the current one, over the samples seen in both.

        Between :meth:`advance` and the next ``update`` they are those of the epoch which just ended, against the
        references as they stood before it. All ranks must call this.

        Args:
            reference: "previous", "first", or "best" (the epoch of highest accuracy over its seen samples, the earliest
                of equals).

        Returns:
            int64 ``[2, 2]`` or ``[S, 2, 2]``, ``[before, after]``.
        """
        return self._channel(reference)

    @collective
    def outcomes(self, epoch: Literal["current", "previous", "first", "best"] = "current") -> Tensor:
        """Outcomes of one epoch: int8 ``[num_samples]``, 1 right, 0 wrong, -1 not seen. All ranks must call this.

        Args:
            epoch: the epoch in progress, or one of the references.

        Raises:
            ValueError: where the epoch is none of these.
        """
        if epoch not in ("current", *REFERENCES):
            raise ValueError(f'epoch must be "current" or one of {list(REFERENCES)}, but is {epoch!r}')
        cells: Tensor = getattr(self, f"memory_{epoch}")
        return cells.clone()

    def advance(self) -> None:
        """End the epoch: it becomes the previous one, the first if it is that, and the best if it is better.

        All ranks must call this. An epoch in which no sample was seen on any rank changes nothing.
        """
        current, transitions, slice_of = self._ended_epoch()
        previous, best = self.memory_previous, self.memory_best
        current_seen, current_right = _seen_and_right(current)
        best_seen, best_right = _seen_and_right(best)
        seen = current_seen > 0
        if self.track_events:
            both = (previous >= 0) & (current >= 0)
            for name, change in (("memory_forgetting", previous > current), ("memory_learning", previous < current)):
                events: Tensor = getattr(self, name)
                setattr(
                    self, name, (events + (both & change & (events < torch.iinfo(events.dtype).max))).to(events.dtype)
                )
        # Accuracies are compared as fractions of integers, so that equals are equal.
        better = seen & ((best_seen == 0) | (current_right * best_seen > best_right * current_seen))
        first_seen, _ = _seen_and_right(self.memory_first)
        self.memory_transitions = torch.where(seen, transitions, self.memory_transitions)
        self.memory_first = _choose(first_seen == 0, current, self.memory_first)
        self.memory_best = _choose(better, current, best)
        self.memory_previous = _choose(seen, current, previous)
        self.memory_current = torch.full_like(current, UNSEEN)
        if slice_of is not None:
            self.memory_slice = slice_of
        self._computed = None

    @collective
    def forgetting_events(self) -> Tensor:
        """How often each sample went from right to wrong between consecutive epochs that both saw it.

        Counted by :meth:`advance` (Toneva et al., "An Empirical Study of Example Forgetting", ICLR 2019).

        Returns:
            int64 ``[num_samples]``; the counters stop at 32,767.

        Raises:
            RuntimeError: where the memory was built without ``track_events=True``.
        """
        return self._events("memory_forgetting")

    @collective
    def learning_events(self) -> Tensor:
        """How often each sample went from wrong to right between consecutive epochs that both saw it.

        Returns:
            int64 ``[num_samples]``; the counters stop at 32,767.

        Raises:
            RuntimeError: where the memory was built without ``track_events=True``.
        """
        return self._events("memory_learning")

    def _check(self, sample_index: Tensor, correct: Tensor, slice_index: Tensor | None) -> None:
        check_tensor(sample_index, name="sample_index")
        check_tensor(correct, name="correct")
        if sample_index.dim() != 1:
            raise ValueError(f"sample_index must have shape [N], but came with shape {list(sample_index.shape)}")
        check_same_length(len(sample_index), correct, name="sample_index", other_name="correct")
        check_outcome_dtype(correct, name="correct")
        indices = [("sample_index", sample_index, self.num_samples, "the memory's num_samples")]
        if slice_index is not None and self.slice_names is not None:
            indices.append(("slice_index", slice_index, len(self.slice_names), "the memory's slices"))
        for name, index, size, what in indices:
            check_index(index, len(correct), name=name, like="correct")
            if self.validate_args:
                check_range(index, size, name=name, what=what)
        if self.validate_args:
            check_binary(correct, name="correct")

    @collective
    def _ended_epoch(self) -> tuple[Tensor, Tensor, Tensor | None]:
        transitions = torch.stack([self._live(reference) for reference in REFERENCES])
        return self.memory_current, transitions, getattr(self, "memory_slice", None)

    def _channel(self, reference: Reference) -> Tensor:
        if reference not in REFERENCES:
            raise ValueError(f"reference must be one of {list(REFERENCES)}, but is {reference!r}")
        ended = self.memory_transitions[REFERENCES.index(reference)]
        counts = torch.where((self.memory_current >= 0).any(), self._live(reference), ended)
        return counts[0] if self.slice_names is None else counts

    def _live(self, reference: Reference) -> Tensor:
        before: Tensor = getattr(self, f"memory_{reference}")
        after: Tensor = self.memory_current
        rows = self.memory_transitions.shape[1]
        if self.slice_names is None:
            return _table(before, after).view(1, 2, 2)
        counts = torch.zeros(rows, 2, 2, dtype=torch.int64, device=after.device)
        # By chunks: counting needs 16 bytes a sample of scratch memory, the memory itself one.
        for start in range(0, self.num_samples, _CHUNK):
            part = slice(start, start + _CHUNK)
            seen = (before[part] >= 0) & (after[part] >= 0)
            of = self.memory_slice[part].clamp(min=0)
            counts = counts + count_transitions(before[part] > 0, after[part] > 0, of, rows, seen)
        return counts

    def _events(self, name: str) -> Tensor:
        if not self.track_events:
            raise RuntimeError("events were not counted; build the memory with track_events=True")
        events: Tensor = getattr(self, name)
        return events.to(torch.int64)

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any | None = None
    ) -> None:
        # The references are the same on all ranks since advance() set them; only this epoch's cells have to travel.
        for name in [name for name in ("memory_current", "memory_slice") if name in self._defaults]:
            state: Tensor = getattr(self, name)
            group = process_group or self.process_group
            if dist_sync_fn is gather_all_tensors:
                joined = state.clone()
                dist.all_reduce(joined, dist.ReduceOp.MAX, group=group)
            else:
                joined = torch.stack(list(dist_sync_fn(state, group=group))).amax(0)
            setattr(self, name, joined)


def _table(before: Tensor, after: Tensor) -> Tensor:
    """Transitions of cells in -1, 0 and 1, int64 ``[4]``, without leaving bytes, which are ten times as fast."""
    counts = torch.zeros(4, dtype=torch.int64, device=after.device)
    for start in range(0, len(after), _CHUNK):
        part = slice(start, start + _CHUNK)
        # 0, 1, 4 and 5 where both epochs saw the sample; negative or 3 elsewhere.
        code = torch.add(after[part], before[part], alpha=4)
        flags = torch.empty((4, len(code)), dtype=torch.int8, device=code.device)
        for row, value in zip(flags.unbind(0), (0, 1, 4, 5), strict=True):
            torch.eq(code, value, out=row)
        counts = counts + row_sums(flags)
    return counts


def _seen_and_right(cells: Tensor) -> tuple[Tensor, Tensor]:
    """How many samples an epoch saw, and how many of them were right, 0-d int64."""
    counts = torch.zeros(2, dtype=torch.int64, device=cells.device)
    for start in range(0, len(cells), _CHUNK):
        part = cells[start : start + _CHUNK]
        flags = torch.empty((2, len(part)), dtype=torch.int8, device=part.device)
        torch.ge(part, 0, out=flags[0])
        torch.eq(part, 1, out=flags[1])
        counts = counts + row_sums(flags)
    return counts[0], counts[1]


def _choose(flag: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """``new`` where a 0-d flag is true, else ``old``: bitwise, nine times as fast as ``torch.where`` on bytes."""
    return old ^ ((new ^ old) & -flag.to(torch.int8))
