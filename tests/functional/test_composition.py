"""Composition of steps against loops, published gaps and scipy."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polyweave_torch.functional import channel_matrix, composition_gap, composition_test, estimate_channel
from tests.quantization import letters

rates = st.floats(0, 1)
# Model: e0e1e2 counts over fp16 -> int8 -> int4, and the published gaps (mean, max).
CHAINS = {
    "Qwen2.5-1.5B-Instruct": ([719, 79, 32, 19, 14, 22, 185, 1891], 0.0367, 0.0523),
    "Qwen2.5-3B-Instruct": ([557, 67, 40, 26, 32, 52, 135, 2052], 0.0687, 0.1054),
    "gemma-2-2b-it": ([800, 77, 28, 17, 18, 27, 100, 1894], 0.0371, 0.0511),
}


def chain_counts(model: str) -> torch.Tensor:
    right = [letters(f"{model}/{precision}") == letters("answer") for precision in ("fp16", "int8", "int4")]
    return torch.bincount(right[0] * 4 + right[1] * 2 + right[2], minlength=8).view(2, 2, 2)


@pytest.mark.parametrize("model", CHAINS)
def test_published_composition_gaps(model: str) -> None:
    counts, mean, largest = CHAINS[model]
    table = chain_counts(model)
    assert table.flatten().tolist() == counts
    kernels = [channel_matrix(estimate_channel(table.sum(axis), smoothing=0)) for axis in (1, 2, 0)]
    gap = composition_gap(*kernels)
    assert [round(float(gap.mean), 4), round(float(gap.max), 4)] == [mean, largest]
    test = composition_test(table)
    assert int(test.df) == 2
    assert float(test.p_value) < 1e-28


def test_weighted_gap_equals_the_written_sum() -> None:
    table = chain_counts("gemma-2-2b-it")
    direct, first, second = (
        channel_matrix(estimate_channel(table.sum(axis), smoothing=0)).tolist() for axis in (1, 2, 0)
    )
    support = table.sum((1, 2)).tolist()
    composed = [[sum(first[i][k] * second[k][j] for k in (0, 1)) for j in (0, 1)] for i in (0, 1)]
    by_row = [sum(abs(composed[i][j] - direct[i][j]) for j in (0, 1)) / 2 for i in (0, 1)]
    expected = sum(w * d for w, d in zip(support, by_row, strict=True)) / sum(support)
    gap = composition_gap(direct, first, second, support=support)
    assert float(gap.weighted) == pytest.approx(expected, rel=1e-12)
    uniform = composition_gap(direct, first, second)
    assert float(uniform.weighted) == pytest.approx(float(uniform.mean))


@given(rates, rates)
def test_composing_with_the_identity_changes_nothing(c: float, gamma: float) -> None:
    kernel = [[1 - c, c], [gamma, 1 - gamma]]
    identity = [[1.0, 0.0], [0.0, 1.0]]
    assert float(composition_gap(kernel, kernel, identity).max) == 0.0
    assert float(composition_gap(kernel, identity, kernel).max) == 0.0


@given(st.lists(st.integers(0, 50), min_size=8, max_size=8))
def test_g2_equals_a_sum_over_strata_by_scipy(cells: list[int]) -> None:
    table = torch.tensor(cells).view(2, 2, 2)
    statistic, df = 0.0, 0
    for e1 in (0, 1):
        stratum = table[:, e1, :].numpy()
        if stratum.sum(0).all() and stratum.sum(1).all():
            statistic += stats.chi2_contingency(stratum, correction=False, lambda_="log-likelihood").statistic
            df += 1
    test = composition_test(table)
    assert float(test.statistic) == pytest.approx(statistic, rel=1e-9, abs=1e-9)
    assert int(test.df) == df
    assert float(test.p_value) == pytest.approx(stats.chi2.sf(statistic, df) if df else 1.0, rel=1e-9)


def test_bad_input_is_named() -> None:
    identity = [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="row-stochastic"):
        composition_gap([[3, 1], [1, 1]], identity, identity)
    with pytest.raises(ValueError, match="first must have shape"):
        composition_gap(identity, [1.0, 0.0], identity)
    step = estimate_channel([[1, 0], [0, 1]])
    with pytest.raises(TypeError, match=r"second must be a matrix .* pass channel_matrix\(second\)"):
        composition_gap(channel_matrix(step), identity, step)
    with pytest.raises(ValueError, match="support"):
        composition_gap(identity, identity, identity, support=[0.0, 0.0])
    with pytest.raises(ValueError, match="counts3"):
        composition_test([[1, 2], [3, 4]])
