"""What runs on the ranks of the pool. Functions of plain arguments, found by name."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from polyweave_torch import OutcomeMemory, padding_mask
from tests.contract import broken, ranks
from tests.contract.cases import expect
from tests.contract.entries import BY_NAME, Entry, N, part, value

# Samples of each rank: uneven, in several batches, one rank with none, one with all.
SHARES: dict[str, dict[int, list[list[int]]]] = {
    "uneven": {2: [[20, 3], [14]], 4: [[10], [1, 1, 1], [20], [4]]},
    "one empty": {2: [[], [30, 7]], 4: [[12], [], [5, 5], [15]]},
    "an empty batch": {2: [[0], [37]], 4: [[0], [37], [0], []]},
}


def find(name: str) -> Entry:
    """An entry of the contract, or of the broken copies."""
    return BY_NAME[name] if name in BY_NAME else broken.BY_NAME[name]


def split_value(name: str, share: str) -> dict[str, Any]:
    """Everything read off a metric whose samples are spread over the ranks; twice, since reading changes nothing."""
    entry, world, rank = find(name), ranks.world_size(), ranks.rank()
    expect(world == len(SHARES[share][world]), f"the case runs on {world} ranks")
    mine = SHARES[share][world]
    start = sum(sum(sizes) for sizes in mine[:rank])
    metric = entry.build(process_group=ranks.group())
    for size in mine[rank]:
        metric.update(**part(entry.stream(0), slice(start, start + size)))
        start += size
    local = {state: tensor.clone() for state, tensor in metric.metric_state.items() if isinstance(tensor, Tensor)}
    first = value(entry, metric) if metric.update_count else _quiet_value(entry, metric)
    metric._computed = None
    second = value(entry, metric) if metric.update_count else _quiet_value(entry, metric)
    for state, tensor in local.items():
        expect(
            bool(torch.equal(getattr(metric, state), tensor)), f"reading leaves rank {rank} with the state of others"
        )
    return {"first": first, "second": second}


def _quiet_value(entry: Entry, metric: Any) -> dict[str, Any]:
    # torchmetrics warns that a rank without data computes before its first update.
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return value(entry, metric)


def padded_value(name: str, samples: int) -> Any:
    """A masked metric fed by a padded DistributedSampler."""
    entry, stream = find(name), part(find(name).stream(0), slice(0, samples))
    sampler = _sampler(samples)
    rows = torch.tensor(list(sampler))
    metric = entry.build(process_group=ranks.group())
    metric.update(**part(stream, rows), mask=padding_mask(sampler))
    return metric.compute()


def padded_memory(samples: int, epochs: int) -> list[Any]:
    """The channel of each epoch of a memory fed by a padded, shuffled DistributedSampler."""
    sampler = _sampler(samples)
    memory = OutcomeMemory(samples, slices=2, track_events=True, process_group=ranks.group())
    read = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for index in torch.split(torch.tensor(list(sampler)), 4):
            memory.update(index, epoch_outcomes(samples, epoch)[index], index % 2)
        read.append([memory.channel("previous"), memory.channel("first"), memory.channel("best")])
        memory.advance()
        read.append([memory.channel("previous"), memory.outcomes("best"), memory.forgetting_events()])
    return read


def _sampler(samples: int) -> DistributedSampler[Any]:
    indices: Any = range(samples)
    return DistributedSampler(indices, ranks.world_size(), ranks.rank(), shuffle=True, seed=3)


def epoch_outcomes(samples: int, epoch: int) -> Tensor:
    """Outcomes that every rank knows."""
    return torch.randint(2, (samples,), generator=torch.Generator().manual_seed(epoch)).bool()


def forward_value(name: str) -> Any:
    """The batch values that forward gives on one rank, and the synced value afterwards."""
    entry, rank = find(name), ranks.rank()
    metric = entry.build(process_group=ranks.group())
    batch = part(entry.stream(0), slice(rank, N, ranks.world_size()))
    return metric(**batch), metric.compute()


def raising_readout() -> Any:
    """A read-out that raises on all ranks, then further updates."""
    memory = OutcomeMemory(8, process_group=ranks.group())
    memory.update(torch.tensor([ranks.rank()]), torch.tensor([True]))
    try:
        memory.channel("last")  # type: ignore[arg-type]
    except ValueError:
        pass
    else:
        raise AssertionError("an unknown reference was taken")
    memory.update(torch.tensor([4 + ranks.rank()]), torch.tensor([False]))
    return memory.outcomes("current")
