"""Composition, transfer and mixtures against loops, published gaps and the pooled truth."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polyweave_torch.functional import (
    channel_counts,
    channel_matrix,
    composition_gap,
    composition_test,
    estimate_channel,
    mixture_shift_bias,
    predict_transfer,
    transfer_residual,
)
from tests.quantization import letters, published_rows

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


def test_transfer_residual_by_hand() -> None:
    calibration = estimate_channel([[40, 10], [5, 45]], smoothing=0)  # c = .2, gamma = .1
    residual = transfer_residual(calibration, [[30, 20], [5, 45]])  # p0 = .5, p1 = .65; predicted .55
    assert float(residual.predicted) == pytest.approx(0.55)
    assert float(residual.residual) == pytest.approx(0.10)
    assert float(residual.standardized_residual) == pytest.approx(0.10 / math.sqrt(0.55 * 0.45 / 100))
    within = (0.5 * 0.2 * 0.8 + 0.5 * 0.1 * 0.9) / 100
    calibrated = 0.25 * 0.2 * 0.8 / 50 + 0.25 * 0.1 * 0.9 / 50
    assert float(residual.paired_standardized_residual) == pytest.approx(0.10 / math.sqrt(within + calibrated))
    assert [int(residual.target_n), float(residual.target_p0), float(residual.target_p1)] == [100, 0.5, 0.65]
    assert [float(residual.calib_c), float(residual.calib_gamma)] == [0.2, 0.1]


def test_a_certain_prediction_has_no_standard_error() -> None:
    certain = estimate_channel([[0, 5], [0, 5]], smoothing=0)  # predicts accuracy 1
    met = transfer_residual(certain, [[0, 3], [0, 3]])
    assert (float(met.standardized_residual), float(met.paired_standardized_residual)) == (0.0, 0.0)
    missed = transfer_residual(certain, [[1, 2], [0, 3]])
    assert float(missed.standardized_residual) == -math.inf
    nothing = transfer_residual(certain, [[0, 0], [0, 0]])
    assert nothing.standardized_residual.isnan()
    assert nothing.paired_standardized_residual.isnan()


def test_an_empty_calibration_group_matters_only_with_weight() -> None:
    only_wrong = estimate_channel([[5, 5], [0, 0]])
    assert transfer_residual(only_wrong, [[1, 2], [1, 2]]).paired_standardized_residual.isnan()
    assert not transfer_residual(only_wrong, [[2, 4], [0, 0]]).paired_standardized_residual.isnan()


def test_predict_transfer_of_the_calibration_is_its_own_accuracy() -> None:
    channel = estimate_channel([[49, 32], [114, 305]], smoothing=0)
    assert float(predict_transfer(channel, channel.p0)) == pytest.approx(float(channel.p1), abs=1e-15)


def qwen_slices() -> dict[str, Any]:
    rows = [r for r in published_rows() if r.model == "Qwen2.5-1.5B-Instruct" and r.after == "int4"]
    return {r.benchmark: estimate_channel([r.counts[:2], r.counts[2:]], smoothing=0) for r in rows}


@pytest.mark.parametrize(
    ("support", "weights", "expected"),
    [
        ("group", None, -0.03407),
        ("total", None, -0.03601),
        ("group", "by count", -0.03411),
        ("total", "by count", -0.03604),
    ],
)
def test_pooling_qwen_int4(support: Any, weights: str | None, expected: float) -> None:
    channels = qwen_slices()
    sizes = {name: float(channel.total) for name, channel in channels.items()}
    bias = mixture_shift_bias(channels, None if weights is None else sizes, support=support)
    share = {name: (1 / 3 if weights is None else size / sum(sizes.values())) for name, size in sizes.items()}
    p0 = sum(share[name] * float(channel.p0) for name, channel in channels.items())
    delta = (1 - p0) * float(bias.slice_conditioned_c) - p0 * float(bias.slice_conditioned_gamma)
    assert round(delta, 5) == expected
    if support == "group" and weights == "by count":
        assert delta == pytest.approx(float(Fraction(-101, 2961)), abs=1e-15)
        # Deployment mixes as calibration did, so there is no bias.
        assert float(bias.bias_c) == pytest.approx(0.0, abs=1e-15)


def test_mixture_means_by_hand() -> None:
    channels = {"b": estimate_channel([[6, 2], [1, 1]]), "a": estimate_channel([[1, 1], [4, 14]])}
    c, gamma = ([float(channels[k].c), float(channels[k].gamma)] for k in ("a", "b"))
    bias = mixture_shift_bias(channels, {"a": 3.0, "b": 1.0})
    assert bias.slice_keys == ["a", "b"]
    assert float(bias.pooled_c) == pytest.approx((20 * c[0] + 10 * gamma[0]) / 30)
    assert float(bias.slice_conditioned_c) == pytest.approx((3 * c[0] + gamma[0]) / 4)
    assert float(bias.bias_gamma) == pytest.approx(float(bias.pooled_gamma) - float(bias.slice_conditioned_gamma))
    weighed = mixture_shift_bias(channels, {"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    assert float(weighed.pooled_c) == pytest.approx((c[0] + gamma[0]) / 2)


def test_an_empty_slice_has_no_weight_unless_given() -> None:
    channels = {"full": estimate_channel([[2, 2], [2, 2]]), "empty": estimate_channel([[0, 0], [0, 0]])}
    bias = mixture_shift_bias(channels)
    assert float(bias.pooled_c) == float(bias.slice_conditioned_c) == float(channels["full"].c)
    with pytest.raises(ValueError, match="without samples: \\['empty'\\]"):
        mixture_shift_bias(channels, {"full": 1.0, "empty": 1.0})


def test_group_pooling_of_raw_rates_is_the_pooled_table() -> None:
    generator = torch.Generator().manual_seed(3)
    before, after = (torch.randint(2, (400,), generator=generator).bool() for _ in range(2))
    index = torch.randint(5, (400,), generator=generator)
    tables = channel_counts(before, after, slice_index=index)
    pooled = estimate_channel(tables.sum(0), smoothing=0)
    channels = {str(k): estimate_channel(table, smoothing=0) for k, table in enumerate(tables)}
    bias = mixture_shift_bias(channels, support="group")
    assert float(bias.pooled_c) == pytest.approx(float(pooled.c), rel=1e-12)
    assert float(bias.pooled_gamma) == pytest.approx(float(pooled.gamma), rel=1e-12)


@pytest.mark.parametrize(
    "weights",
    [
        {"a": 1.0},
        {"a": 1.0, "b": 1.0, "x": 1.0},
        {"a": -1.0, "b": 2.0},
        {"a": 0.0, "b": 0.0},
        {"a": math.nan, "b": 1.0},
    ],
)
def test_bad_weights_are_named(weights: dict[str, float]) -> None:
    channels = {"a": estimate_channel([[1, 1], [1, 1]]), "b": estimate_channel([[1, 1], [1, 1]])}
    with pytest.raises(ValueError, match="deployment_weights"):
        mixture_shift_bias(channels, weights)
    with pytest.raises(ValueError, match="calibration_weights"):
        mixture_shift_bias(channels, None, weights)


def test_bad_input_is_named() -> None:
    identity = [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="row-stochastic"):
        composition_gap([[3, 1], [1, 1]], identity, identity)
    with pytest.raises(ValueError, match="first must have shape"):
        composition_gap(identity, [1.0, 0.0], identity)
    step = estimate_channel(identity_counts())
    with pytest.raises(TypeError, match=r"second must be a matrix .* pass channel_matrix\(second\)"):
        composition_gap(channel_matrix(step), identity, step)
    with pytest.raises(ValueError, match="the channel of slice 'a' holds 2 tables"):
        mixture_shift_bias({"a": estimate_channel([identity_counts()] * 2)})
    with pytest.raises(ValueError, match="support"):
        composition_gap(identity, identity, identity, support=[0.0, 0.0])
    with pytest.raises(ValueError, match="counts3"):
        composition_test([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="at least one slice"):
        mixture_shift_bias({})
    with pytest.raises(ValueError, match="support must be"):
        mixture_shift_bias({"a": estimate_channel(identity_counts())}, support="all")  # type: ignore[arg-type]


def identity_counts() -> list[list[int]]:
    return [[1, 0], [0, 1]]
