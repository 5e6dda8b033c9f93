import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from polyweave_torch.functional.correlation import pearson
from tests.functional.reference import SIZES, close, section

marks = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30)


def test_every_row_of_the_reference() -> None:
    run = 0
    for row in section("pearson"):
        result = pearson(row["x"], row["y"])
        assert result.r.item() == close(row["r"])
        assert result.low.item() == close(row["lo95"])
        assert result.high.item() == close(row["hi95"])
        assert result.p_value.item() == close(row["p"])
        assert result.n.item() == row["n"]
        run += 1
    assert run == SIZES["pearson"]


@given(marks, st.sampled_from([0.8, 0.95]))
@settings(max_examples=80, deadline=None)
def test_agrees_with_scipy_and_is_undefined_where_scipy_warns(pairs: list[tuple[int, int]], level: float) -> None:
    x, y = zip(*pairs, strict=True)
    result = pearson(x, y, level=level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        peer = stats.pearsonr(x, y)
    # With three pairs or fewer scipy's interval is (-1, 1) too, or NaN with a warning.
    ends = peer.confidence_interval(level) if len(pairs) > 3 else (-1.0, 1.0)
    expected = [peer.statistic, *ends, peer.pvalue]
    values = [field.item() for field in (result.r, result.low, result.high, result.p_value)]
    if math.isnan(peer.statistic):
        assert all(math.isnan(value) for value in values)
    else:
        # Near r = ±1 the ends and p are functions of the last bit of r.
        assert values == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0]),
        ([0.1] * 7, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
        ([1.0, math.nan, 2.0], [math.nan, 2.0, 3.0]),
        ([1.0, math.inf, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_undefined_is_nan_without_a_warning(x: list[float], y: list[float]) -> None:
    result = pearson(x, y)
    assert all(field.isnan() for field in (result.r, result.low, result.high, result.p_value))


def test_missing_marks_leave_their_pair_out() -> None:
    x, y = [1.0, 2.0, math.nan, 4.0, 5.0, 1.0], [2.0, 1.0, 5.0, 4.0, math.nan, 1.0]
    with_gaps, without = pearson(x, y), pearson([1.0, 2.0, 4.0, 1.0], [2.0, 1.0, 4.0, 1.0])
    assert with_gaps[:4] == without[:4]
    assert with_gaps.n.item() == 4


@given(marks)
@settings(max_examples=40, deadline=None)
def test_symmetric_and_blind_to_scale_and_order(pairs: list[tuple[int, int]]) -> None:
    x, y = torch.tensor(pairs, dtype=torch.float64).T
    r = pearson(x, y).r
    for other in (
        pearson(y, x).r,
        pearson(1e3 * x - 7.0, y / 64.0).r,
        pearson(x.flip(0), y.flip(0)).r,
        -pearson(x, -y).r,
    ):
        assert other.item() == pytest.approx(r.item(), abs=1e-12, nan_ok=True)


def test_two_pairs_are_always_on_a_line_and_prove_nothing() -> None:
    result = pearson([1.0, 2.0], [5.0, 3.0])
    assert result.r.item() == pytest.approx(-1.0)
    assert (result.low.item(), result.high.item(), result.p_value.item()) == (-1.0, 1.0, 1.0)


def test_a_perfect_line_has_an_interval_of_width_zero() -> None:
    result = pearson([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])
    assert (result.r.item(), result.low.item(), result.high.item()) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("n", [3, 7, 100, 100_000])
@pytest.mark.parametrize("slope", [1.0, -3.0, 0.1])
def test_a_perfect_line_of_three_pairs_and_more_has_p_zero(n: int, slope: float) -> None:
    x = torch.arange(n, dtype=torch.float64)
    result = pearson(x, slope * x + 2.0)
    assert (result.r.item(), result.p_value.item()) == (math.copysign(1.0, slope), 0.0)


def test_what_is_all_but_a_line_has_a_p_value() -> None:
    x = torch.arange(3, dtype=torch.float64)
    result, peer = pearson(x, [0.0, 1.0, 2.0 + 1e-6]), stats.pearsonr(x.numpy(), [0.0, 1.0, 2.0 + 1e-6])
    assert 0.0 < result.p_value.item() == pytest.approx(peer.pvalue, rel=1e-2)
    assert result.r.item() < 1.0


def test_values_of_any_size_do_not_overflow() -> None:
    x, y = [1.0, 2.0, 4.0, -1.0], [1.0, 3.0, 4.0, 2.0]
    huge, tiny = [value * 1e200 for value in x], [value * 1e-200 for value in y]
    assert pearson(huge, tiny).r.item() == pytest.approx(pearson(x, y).r.item())


def test_bad_arguments_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"x and y must have one shape \[N\]"):
        pearson([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="two columns at a time"):
        pearson(torch.zeros(3, 2), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="level must lie"):
        pearson([1.0, 2.0], [1.0, 2.0], level=95)
