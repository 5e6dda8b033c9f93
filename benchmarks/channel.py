"""Updates of the channel table against torchmetrics, and a million channels against a Python loop."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics.classification import BinaryConfusionMatrix

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch import ChannelCounts
from polyweave_torch.functional import estimate_channel

Slice = dict[str, int]

_TORCHMETRICS = "torchmetrics BinaryConfusionMatrix"


class Batch(NamedTuple):
    """Outcomes, and the metrics that count them."""

    before: Tensor
    after: Tensor
    slice_index: Tensor
    copy: Tensor
    ours: ChannelCounts
    theirs: BinaryConfusionMatrix


class Slices(NamedTuple):
    """The tables of N slices, as a tensor and as records."""

    counts: Tensor
    records: dict[str, Slice]
    copy: Tensor


def _batch(device: torch.device, samples: int, *, slices: int | None, validate: bool) -> Batch:
    generator = seeded(device)
    before, after = torch.rand((2, samples), generator=generator, device=device) < 0.7
    if validate:  # integers, since there is nothing to validate in a bool
        before, after = before.long(), after.long()
    return Batch(
        before=before,
        after=after,
        slice_index=torch.randint(slices or 1, (samples,), generator=generator, device=device),
        copy=torch.empty((2, samples), dtype=before.dtype, device=device),
        ours=ChannelCounts(slices, validate_args=validate).to(device),
        theirs=BinaryConfusionMatrix(validate_args=validate).to(device),
    )


def _update(batch: Batch) -> None:
    batch.ours.update(batch.before, batch.after)


def _update_slices(batch: Batch) -> None:
    batch.ours.update(batch.before, batch.after, batch.slice_index)


def _update_torchmetrics(batch: Batch) -> None:
    batch.theirs.update(batch.after, batch.before)


def _bincount(batch: Batch) -> Tensor:
    cells = batch.slice_index * 4 + batch.before * 2 + batch.after
    return torch.bincount(cells, minlength=4 * len(batch.ours.slice_names or ()))


def _copy_batch(batch: Batch) -> None:
    batch.copy[0].copy_(batch.before)
    batch.copy[1].copy_(batch.after)


def _confusion_matrix(batch: Batch, _: Any) -> Tensor:
    return batch.theirs.compute()


def _update_workload(name: str, samples: int, *, validate: bool = False, goal: float | None = None) -> Workload[Batch]:
    values = "validated, int64" if validate else "not validated, bool"
    return Workload(
        name=name,
        about=f"ChannelCounts.update of a batch of {samples:,}, {values}",
        samples=samples,
        make=lambda device, size: _batch(device, size, slices=None, validate=validate),
        ours=Contestant(_update, lambda batch, _: batch.ours.compute()),
        peers={_TORCHMETRICS: Contestant(_update_torchmetrics, _confusion_matrix)},
        floor=Contestant(_copy_batch),
        goals=() if goal is None else (Goal("times", goal, _TORCHMETRICS),),
    )


def _slices_workload(name: str, samples: int, slices: int) -> Workload[Batch]:
    return Workload(
        name=name,
        about=f"ChannelCounts.update of a batch of {samples:,} in {slices:,} slices, not validated, bool",
        samples=samples,
        make=lambda device, size: _batch(device, size, slices=slices, validate=False),
        ours=Contestant(_update_slices, lambda batch, _: batch.ours.compute().flatten()),
        peers={"torch.bincount, no metric": Contestant(_bincount)},
        floor=Contestant(_copy_batch),
    )


def _slices(device: torch.device, slices: int) -> Slices:
    counts = torch.randint(0, 200, (slices, 2, 2), generator=seeded(device), device=device)
    keys = ("n00", "n01", "n10", "n11")
    records = {str(index): dict(zip(keys, row, strict=True)) for index, row in enumerate(counts.flatten(1).tolist())}
    return Slices(counts, records, torch.empty_like(counts))


def _estimate_by_record(slices: Slices) -> dict[str, dict[str, float]]:
    """The document's estimate, slice by slice."""
    smoothing, estimates = 0.5, {}
    for name, record in slices.records.items():
        n0, n1 = record["n00"] + record["n01"], record["n10"] + record["n11"]
        total = n0 + n1
        p0 = n1 / total if total else float("nan")
        p1 = (record["n01"] + record["n11"]) / total if total else float("nan")
        c = (record["n01"] + smoothing) / (n0 + 2 * smoothing)
        gamma = (record["n10"] + smoothing) / (n1 + 2 * smoothing)
        estimates[name] = {
            "p0": p0,
            "p1": p1,
            "c": c,
            "gamma": gamma,
            "delta": p1 - p0,
            "predicted_delta": (1 - p0) * c - p0 * gamma,
            "break_even_correction": p0 / (1 - p0) * gamma if p0 < 1 else float("inf"),
        }
    return estimates


def _estimate_values(_: Slices, channel: Any) -> Tensor:
    return torch.stack([getattr(channel, field) for field in _FIELDS], -1)


def _record_values(_: Slices, estimates: dict[str, dict[str, float]]) -> Tensor:
    return torch.tensor([[one[field] for field in _FIELDS] for one in estimates.values()], dtype=torch.float64)


_FIELDS = ("p0", "p1", "c", "gamma", "delta", "predicted_delta", "break_even_correction")
# Ratios below 1 of "not slower" and "0.75 of it", as how many times as fast.
WORKLOADS: list[Workload[Any]] = [
    _update_workload("update-1024", 1024, goal=1.0),
    _update_workload("update-65536", 65536, goal=1 / 0.75),
    _update_workload("update-1024-validated", 1024, validate=True),
    _update_workload("update-65536-validated", 65536, validate=True),
    _slices_workload("update-1024-1000-slices", 1024, 1000),
    _slices_workload("update-65536-1000-slices", 65536, 1000),
    Workload(
        name="estimate-million-slices",
        about="estimate_channel of 1,000,000 tables in one call",
        samples=1_000_000,
        make=_slices,
        ours=Contestant(lambda slices: estimate_channel(slices.counts), _estimate_values),
        peers={"Python loop over a dict": Contestant(_estimate_by_record, _record_values)},
        floor=Contestant(lambda slices: slices.copy.copy_(slices.counts)),
        tolerance=1e-12,
    ),
]
