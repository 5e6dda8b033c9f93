"""The outcome memory against Python dicts by sample index."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch import OutcomeMemory

_BATCH = 65_536
_DATA_SET = 1_000_000
_DICT = "Python dict"


class DictMemory:
    """Outcomes by sample index, as Python would hold them."""

    def __init__(self) -> None:
        self.previous: dict[int, bool] = {}
        self.current: dict[int, bool] = {}
        self.counts = [[0, 0], [0, 0]]

    def write(self, sample_index: Tensor, correct: Tensor) -> None:
        """Keep a batch: the least that Python can do."""
        self.current.update(zip(sample_index.tolist(), correct.tolist(), strict=True))

    def update(self, sample_index: Tensor, correct: Tensor) -> None:
        """Keep a batch, and count its transitions."""
        for index, outcome in zip(sample_index.tolist(), correct.tolist(), strict=True):
            before = self.previous.get(index)
            if before is not None:
                self.counts[before][outcome] += 1
            self.current[index] = outcome

    def advance(self) -> None:
        self.previous, self.current, self.counts = self.current, {}, [[0, 0], [0, 0]]


class Epoch(NamedTuple):
    """Outcomes of a second epoch, and memories that hold a first one of the same data set."""

    sample_index: Tensor
    correct: Tensor
    copy: Tensor
    ours: OutcomeMemory
    theirs: DictMemory

    @property
    def batches(self) -> list[tuple[Tensor, Tensor]]:
        """The epoch in batches."""
        return list(zip(torch.split(self.sample_index, _BATCH), torch.split(self.correct, _BATCH), strict=True))


def _epoch(device: torch.device, samples: int, *, shuffled: bool) -> Epoch:
    """N outcomes of a data set of a million, or of N if that is more."""
    generator, data_set = seeded(device), max(samples, min(_DATA_SET, 16 * samples))
    before, after = torch.rand((2, data_set), generator=generator, device=device) < 0.7
    everything = torch.arange(data_set, device=device)
    order = torch.randperm(data_set, generator=generator, device=device) if shuffled else everything
    ours, theirs = OutcomeMemory(data_set, validate_args=False).to(device), DictMemory()
    for memory in (ours, theirs):
        memory.update(everything, before)
        memory.advance()
    index = order[:samples].clone()
    return Epoch(index, after[index], torch.empty(samples, dtype=torch.bool, device=device), ours, theirs)


def _all_batches(epoch: Epoch) -> Tensor:
    for sample_index, correct in epoch.batches:
        epoch.ours.update(sample_index, correct)
    counts = epoch.ours.channel()
    epoch.ours.advance()
    return counts


def _all_batches_in_dicts(epoch: Epoch) -> list[list[int]]:
    for sample_index, correct in epoch.batches:
        epoch.theirs.update(sample_index, correct)
    counts = epoch.theirs.counts
    epoch.theirs.advance()
    return counts


def _outcomes(epoch: Epoch, _: Any) -> Tensor:
    return epoch.ours.outcomes()[epoch.sample_index]


def _dict_outcomes(epoch: Epoch, _: Any) -> Tensor:
    return torch.tensor([int(epoch.theirs.current[index]) for index in epoch.sample_index.tolist()])


def _batch_workload(order: str) -> Workload[Epoch]:
    return Workload(
        name=f"memory-{order}",
        about=f"OutcomeMemory.update of a batch of {_BATCH:,}, {order} indices of {_DATA_SET:,} samples",
        samples=_BATCH,
        make=lambda device, samples: _epoch(device, samples, shuffled=order == "random"),
        ours=Contestant(lambda epoch: epoch.ours.update(epoch.sample_index, epoch.correct), _outcomes),
        peers={_DICT: Contestant(lambda epoch: epoch.theirs.write(epoch.sample_index, epoch.correct), _dict_outcomes)},
        floor=Contestant(lambda epoch: epoch.copy.copy_(epoch.correct)),
        goals=(Goal("times", 15.0, _DICT),),
    )


def _epoch_workload(order: str) -> Workload[Epoch]:
    return Workload(
        name=f"memory-epoch-{order}",
        about=f"OutcomeMemory over an epoch of {_DATA_SET:,} samples, {order}, by {_BATCH:,}: update, channel, advance",
        samples=_DATA_SET,
        make=lambda device, samples: _epoch(device, samples, shuffled=order == "random"),
        ours=Contestant(_all_batches),
        peers={_DICT: Contestant(_all_batches_in_dicts)},
        floor=Contestant(lambda epoch: epoch.copy.copy_(epoch.correct)),
        goals=(Goal("times", 15.0, _DICT),),
    )


class DataSet(NamedTuple):
    """The size of a data set, and one batch of it."""

    samples: int
    sample_index: Tensor
    correct: Tensor
    cells: Tensor


def _data_set(device: torch.device, samples: int) -> DataSet:
    generator = seeded(device)
    index = torch.randint(samples, (_BATCH,), generator=generator, device=device)
    correct = torch.rand(_BATCH, generator=generator, device=device) < 0.7
    return DataSet(samples, index, correct, torch.empty(samples, dtype=torch.int8, device=device))


def _first_epoch(data: DataSet) -> OutcomeMemory:
    memory = OutcomeMemory(data.samples).to(data.cells.device)
    memory.update(data.sample_index, data.correct)
    memory.advance()
    return memory


WORKLOADS: list[Workload[Any]] = [
    *(_batch_workload(order) for order in ("random", "sequential")),
    *(_epoch_workload(order) for order in ("random", "sequential")),
    Workload(
        name="memory-50-million",
        about="OutcomeMemory(50,000,000): construction, one update, advance",
        samples=50_000_000,
        make=_data_set,
        ours=Contestant(_first_epoch, lambda data, memory: memory.outcomes("previous")),
        peers={},
        floor=Contestant(lambda data: data.cells.fill_(-1)),
        floor_name="filling 1 byte a sample",
    ),
]
