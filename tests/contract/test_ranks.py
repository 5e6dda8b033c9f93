"""The contract over 2 and 4 gloo ranks."""

import pytest
import torch

from polyweave_torch import OutcomeMemory
from tests.contract import rank_cases
from tests.contract.cases import fed
from tests.contract.entries import ENTRIES, Entry, N, part, same, value
from tests.contract.ranks import RankPool

named = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
masked = pytest.mark.parametrize("entry", [e for e in ENTRIES if e.mask], ids=lambda entry: entry.name)
worlds = pytest.mark.parametrize("world", [2, 4])


@named
@worlds
@pytest.mark.parametrize("share", rank_cases.SHARES)
def test_ranks_give_the_value_of_one_process(pool: RankPool, entry: Entry, world: int, share: str) -> None:
    alone = value(entry, fed(entry, entry.stream(0)))
    for result in pool.run(world, rank_cases.split_value, entry.name, share):
        assert same(result["first"], alone)
        assert same(result["second"], alone)


@masked
@worlds
@pytest.mark.parametrize("samples", [1, 5, 36, 37])
def test_padding_is_masked(pool: RankPool, entry: Entry, world: int, samples: int) -> None:
    alone = fed(entry, part(entry.stream(0), slice(0, samples))).compute()
    assert all(same(result, alone) for result in pool.run(world, rank_cases.padded_value, entry.name, samples))


@worlds
@pytest.mark.parametrize("samples", [1, 5, 37])
def test_the_memory_needs_no_mask(pool: RankPool, world: int, samples: int) -> None:
    memory = OutcomeMemory(samples, slices=2, track_events=True)
    index = torch.arange(samples)
    alone = []
    for epoch in range(4):
        memory.update(index, rank_cases.epoch_outcomes(samples, epoch), index % 2)
        alone.append([memory.channel("previous"), memory.channel("first"), memory.channel("best")])
        memory.advance()
        alone.append([memory.channel("previous"), memory.outcomes("best"), memory.forgetting_events()])
    for result in pool.run(world, rank_cases.padded_memory, samples, 4):
        assert same(result, alone)


@named
def test_forward_gives_the_ranks_own_batch(pool: RankPool, entry: Entry) -> None:
    stream = entry.stream(0)
    alone = fed(entry, stream).compute()
    for rank, (batch, whole) in enumerate(pool.run(2, rank_cases.forward_value, entry.name)):
        assert same(batch, fed(entry, part(stream, slice(rank, N, 2))).compute())
        assert same(whole, alone)


def test_a_raising_readout_leaves_the_local_state(pool: RankPool) -> None:
    for result in pool.run(4, rank_cases.raising_readout):
        assert result.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_the_pool_reports_what_a_rank_raises(pool: RankPool) -> None:
    with pytest.raises(AssertionError, match=r"(?s)rank 0 of 2: .*KeyError"):
        pool.run(2, rank_cases.find, "no such entry")
    assert pool.run(3, _world) == [3, 3, 3]


def _world() -> int:
    from tests.contract.ranks import world_size

    return world_size()
