"""Gates of sharded models: the value of the whole gate, on every rank."""

import pytest

from tests.contract.ranks import RankPool
from tests.functional import gate_ranks

RANKS = 4


@pytest.mark.parametrize("width", [8, 5, 2])
def test_fsdp2_gates_are_gathered(pool: RankPool, width: int) -> None:
    results = pool.run(RANKS, gate_ranks.fully_sharded, width, RANKS)
    assert sum(held for _, _, held in results) == width
    for whole, sharded, _ in results:
        assert sharded == pytest.approx(whole)
        assert set(sharded) == {"1", "2", "first"}


@pytest.mark.parametrize("use_orig_params", [True, False])
def test_fsdp1_gates_are_gathered(pool: RankPool, use_orig_params: bool) -> None:
    for whole, sharded in pool.run(RANKS, gate_ranks.flat_sharded, 5, use_orig_params):
        assert sharded == pytest.approx(whole)


def test_ddp_gates_have_the_models_names(pool: RankPool) -> None:
    for whole, wrapped in pool.run(RANKS, gate_ranks.replicated, 5):
        assert wrapped == whole
