"""Metrics that break one rule each. The contract must catch every one of them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from polyweave_torch import ChannelCounts, Churn
from polyweave_torch.functional.channel import count_transitions
from polyweave_torch.metrics.base import TableMetric
from tests.contract.entries import Entry, N, Stream, outcomes


class _Churn(Metric):
    """Churn as it is often written: straight on torchmetrics' base class."""

    changed: Tensor
    total: Tensor
    full_state_update = False
    dtype_of_counts = torch.int64

    def __init__(self, *, validate_args: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validate_args = validate_args
        self.add_state("changed", torch.zeros((), dtype=self.dtype_of_counts), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros((), dtype=self.dtype_of_counts), dist_reduce_fx="sum")

    def update(self, before: Tensor, after: Tensor) -> None:
        if self.validate_args and not bool(((after == 0) | (after == 1)).all()):
            raise ValueError("not binary")
        self.changed = self.changed + (before != after).sum()
        self.total = self.total + before.numel()

    def compute(self) -> Tensor:
        return self.changed.double() / self.total


class InPlace(TableMetric):
    """Writes into its states."""

    counts: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.declare("counts", torch.zeros(1, 2, 2, dtype=torch.int64))

    def update(self, before: Tensor, after: Tensor) -> None:
        counts = self.counts
        counts += count_transitions(before, after, None, 1, None)

    def compute(self) -> Tensor:
        return self.counts[0].clone()


class FloatState(_Churn):
    """Counts in float32, which Lightning casts to bf16."""

    dtype_of_counts = torch.float32


class RatioOfBatches(_Churn):
    """Averages the ratios of batches."""

    def update(self, before: Tensor, after: Tensor) -> None:
        share = (before != after).double().mean().nan_to_num()
        self.changed = self.changed.double() + share
        self.total = self.total + 1


class Bincount(ChannelCounts):
    """Counts with bincount, which waits for the device."""

    def update(self, before: Tensor, after: Tensor) -> None:  # type: ignore[override]
        counts = torch.bincount(before.long() * 2 + after.long(), minlength=4)
        setattr(self, self._state, getattr(self, self._state) + counts)


def bincount_core(before: Tensor, after: Tensor) -> Tensor:
    """Reads a value to decide."""
    counts = torch.bincount(before.long() * 2 + after.long(), minlength=4)
    return counts if counts[0].item() > 0 else counts + 0


class ListState(Metric):
    """Keeps every outcome."""

    changed: list[Tensor]
    full_state_update = False

    def __init__(self, *, validate_args: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("changed", [], dist_reduce_fx="cat")

    def update(self, before: Tensor, after: Tensor) -> None:
        self.changed.append(before != after)

    def compute(self) -> Tensor:
        return torch.cat(self.changed).double().mean()


class CountsFirst(TableMetric):
    """Changes state before it looks at its input."""

    counts: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.declare("counts", torch.zeros(2, dtype=torch.int64))

    def update(self, before: Tensor, after: Tensor) -> None:
        self.counts = self.counts + torch.stack([torch.tensor(before.numel()), before.sum()])
        if bool((after > 1).any()):
            raise ValueError("not binary")

    def compute(self) -> Tensor:
        return self.counts[1].double() / self.counts[0]


class ZeroForNothing(Churn):
    """Says 0 where there is no data."""

    def compute(self) -> Tensor:
        return super().compute().nan_to_num(nan=0.0)


class SameNameOtherRule(TableMetric):
    """One state name for two update rules."""

    changed: Tensor

    def __init__(self, *, squared: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.squared = squared
        self.declare("changed", torch.zeros(2, dtype=torch.int64))

    def update(self, before: Tensor, after: Tensor) -> None:
        changed = (before != after).sum()
        if self.squared:
            changed = changed**2
        self.changed = self.changed + torch.stack([changed, torch.tensor(before.numel(), device=changed.device)])

    def compute(self) -> Tensor:
        return self.changed[0].double() / self.changed[1]


class Remembers(Churn):
    """Keeps something outside its states, which no reset, copy or checkpoint knows."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seen = [0]

    def update(self, before: Tensor, after: Tensor, **kwargs: Any) -> None:  # type: ignore[override]
        super().update(before, after, **kwargs)
        self.seen[0] += len(before)

    def compute(self) -> Tensor:
        return super().compute() + self.seen[0]


class SharedMemory(Remembers):
    """Copies share what it keeps outside its states."""

    _all = [0]  # noqa: RUF012

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seen = self._all

    def reset(self) -> None:
        super().reset()
        self.seen[0] = 0


class MemberFirst(Churn):
    """Takes its samples in dimension 1."""

    def update(self, before: Tensor, after: Tensor, **kwargs: Any) -> None:  # type: ignore[override]
        super().update(before[0], after[0])


def members_first(seed: int) -> Stream:
    """Samples in dimension 1."""
    return {name: values[None] for name, values in outcomes(seed).items()}


class IgnoresMask(Churn):
    """Takes a mask and doesn't look at it."""

    def update(self, before: Tensor, after: Tensor, mask: Tensor | None = None) -> None:  # type: ignore[override]
        super().update(before, after)


class UnsyncedReadout(Churn):
    """Reads its table without the other ranks."""

    def table(self) -> Tensor:
        return self._counts()


class NarrowCounts(_Churn):
    """Counts in int32."""

    dtype_of_counts = torch.int32

    def update(self, before: Tensor, after: Tensor) -> None:
        super().update(before, after)
        self.changed, self.total = self.changed.int(), self.total.int()


def _entry(metric_class: Callable[..., Metric], **options: Any) -> Entry:
    defaults: dict[str, Any] = {"wrong": {"after": torch.full((N,), 2)}, "stream": outcomes}
    return Entry(f"broken {metric_class.__name__}", metric_class, **{**defaults, **options})


# Each broken copy, and the cases that catch it; "ranks" and "readouts on ranks" are in test_ranks.
BROKEN: Sequence[tuple[Entry, tuple[str, ...]]] = [
    (_entry(InPlace, empty="zero"), ("inference_mode_and_after",)),
    (_entry(FloatState), ("precision_of_the_model_changes_no_count", "counts_beyond_float_precision")),
    (_entry(RatioOfBatches), ("batches_and_order",)),
    (_entry(Bincount, empty="zero", core=bincount_core), ("updates_read_no_value", "the_core_compiles_to_one_graph")),
    (_entry(ListState), ("no_data_is_undefined", "failure_changes_nothing")),
    (_entry(CountsFirst), ("failure_changes_nothing",)),
    (_entry(ZeroForNothing), ("no_data_is_undefined",)),
    (
        _entry(SameNameOtherRule, other=lambda **options: SameNameOtherRule(squared=True, **options)),
        ("collections_group_what_agrees",),
    ),
    (
        _entry(Remembers),
        ("forward_is_update_and_compute", "reset_is_a_fresh_start", "checkpoints_round_trip", "files_round_trip"),
    ),
    (_entry(SharedMemory), ("copies_are_independent",)),
    (_entry(MemberFirst, stream=members_first), ("wrappers_of_torchmetrics_work",)),
    (_entry(IgnoresMask, mask=True), ("masked_samples_do_not_count",)),
    (_entry(_Churn), ("merging_adds",)),
    (_entry(NarrowCounts), ("counts_beyond_float_precision",)),
    (_entry(UnsyncedReadout, readouts={"table": lambda metric: metric.table()}), ()),
]
BY_NAME = {entry.name: entry for entry, _ in BROKEN}
