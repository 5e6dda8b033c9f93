import math
from decimal import Decimal, localcontext
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from polyweave_torch.functional.difference import IntervalMethod, paired_difference_interval, score_statistic
from polyweave_torch.functional.mcnemar import mcnemar
from tests.functional.reference import SIZES, close, printed, section

METHODS: tuple[IntervalMethod, ...] = get_args(IntervalMethod)
COLUMNS: dict[IntervalMethod, str] = {
    "tango": "tango",
    "newcombe": "newcombe10",
    "wald": "wald",
    "agresti-min": "agresti_min",
    "bonett-price": "bonett_price",
}
cells = st.tuples(*[st.integers(0, 60)] * 4).filter(lambda cell: sum(cell) > 0)


def table_of(row: Any) -> list[list[int]]:
    """The reference's A is the arm after: its b, right in A and wrong in B, is a gain."""
    return [[row["d"], row["b"]], [row["c"], row["a"]]]


def as_table(cell: tuple[int, ...]) -> list[list[int]]:
    return [[cell[0], cell[1]], [cell[2], cell[3]]]


def scalar(value: float) -> torch.Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


@pytest.mark.parametrize("method", METHODS)
def test_every_row_of_the_reference(method: IntervalMethod) -> None:
    run = 0
    for row in section("paired_diff_ci"):
        difference = paired_difference_interval(table_of(row), level=row["conf"], method=method)
        low, high = row[COLUMNS[method]]
        assert difference.estimate.item() == close(row["diff"])
        assert difference.low.item() == close(low)
        assert difference.high.item() == close(high)
        for column, ends in row.get("published", {}).items():
            if column == COLUMNS[method]:
                assert [difference.low.item(), difference.high.item()] == [printed(end) for end in ends]
        run += 1
    assert run == SIZES["paired_diff_ci"]


@given(cells, st.floats(-0.95, 0.95))
@settings(max_examples=60, deadline=None)
def test_score_statistic_takes_its_variance_at_the_constrained_maximum_of_the_likelihood(
    cell: tuple[int, ...], difference: float
) -> None:
    both_wrong, gained, lost, both_right = cell
    n = sum(cell)
    least = max(0.0, -difference)
    most = (1.0 - difference) / 2.0

    def loss(share: float) -> float:
        def term(count: int, probability: float) -> float:
            return -count * math.log(max(probability, 1e-300)) if count else 0.0

        concordant = 1.0 - 2.0 * share - difference
        return term(gained, share + difference) + term(lost, share) + term(both_wrong + both_right, concordant)

    inside = minimize_scalar(loss, bounds=(least, most), method="bounded", options={"xatol": 1e-12}).x
    # The bounded search never quite reaches a maximum at the border.
    best = min((least, float(inside), most), key=loss)
    variance = 2.0 * best + difference - difference**2
    z = score_statistic(scalar(gained), scalar(lost), scalar(n), scalar(difference)).item()
    if variance > 1e-9:
        assert z == pytest.approx((gained - lost - n * difference) / math.sqrt(n * variance), rel=1e-4, abs=1e-6)


@given(cells, st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=60, deadline=None)
def test_tango_ends_are_where_the_score_test_rejects_at_its_level(cell: tuple[int, ...], level: float) -> None:
    difference = paired_difference_interval(as_table(cell), level=level)
    z = norm.isf((1.0 - level) / 2.0)
    gained, lost, n = scalar(cell[1]), scalar(cell[2]), scalar(sum(cell))
    if difference.low > -1.0:
        assert score_statistic(gained, lost, n, difference.low).item() == pytest.approx(z, rel=1e-6)
    if difference.high < 1.0:
        assert score_statistic(gained, lost, n, difference.high).item() == pytest.approx(-z, rel=1e-6)


@given(cells, st.sampled_from([0.9, 0.95, 0.99]))
@settings(max_examples=80, deadline=None)
def test_tango_excludes_zero_exactly_where_the_uncorrected_chi_square_rejects(
    cell: tuple[int, ...], level: float
) -> None:
    difference = paired_difference_interval(as_table(cell), level=level)
    excludes = bool((difference.low > 0.0) | (difference.high < 0.0))
    assert excludes == bool(mcnemar(counts=as_table(cell), method="asymptotic").p_value < 1.0 - level)


def tango_low_in_fifty_digits(gained: int, lost: int, n: int, z: str) -> Decimal:
    """Bisection of the score equation as printed in the paper, where cancellation costs nothing."""
    with localcontext(prec=50):
        low, high = Decimal(-1), Decimal(gained - lost) / n
        for _ in range(150):
            middle = (low + high) / 2
            linear = (2 * n - gained + lost) * middle - gained - lost
            root = (linear * linear + 8 * n * lost * middle * (1 - middle)).sqrt()
            share = (root - linear) / (4 * n)
            score = (gained - lost - n * middle) / (n * (2 * share + middle * (1 - middle))).sqrt()
            low, high = (middle, high) if score > Decimal(z) else (low, middle)
        return low


@pytest.mark.parametrize(
    ("gained", "lost", "concordant"),
    [
        (10**12, 10**12 + 5 * 10**6, 10**12),
        (3 * 10**9, 10**9, 10**12),
        (1, 0, 10**12),
        (0, 7, 10**12),
        (400_000, 398_000, 10**9),
        (10**12, 0, 0),
    ],
)
def test_tango_holds_its_digits_for_counts_to_1e12(gained: int, lost: int, concordant: int) -> None:
    difference = paired_difference_interval([[concordant, gained], [lost, 0]])
    expected = tango_low_in_fifty_digits(gained, lost, gained + lost + concordant, "1.959963984540054")
    assert difference.low.item() == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 100, 10**6, 10**12])
def test_without_discordant_pairs_tango_has_width_and_wald_has_none(n: int) -> None:
    tango, wald = (paired_difference_interval([[0, 0], [0, n]], method=method) for method in ("tango", "wald"))
    reach = 1.959963984540054**2 / (n + 1.959963984540054**2)
    assert [tango.low.item(), tango.high.item()] == pytest.approx([-reach, reach], rel=1e-12)
    assert [wald.low.item(), wald.high.item()] == [0.0, 0.0]


@pytest.mark.parametrize("method", METHODS)
def test_no_data_rules_nothing_out(method: IntervalMethod) -> None:
    difference = paired_difference_interval(torch.zeros(2, 2, dtype=torch.int64), method=method)
    assert difference.estimate.isnan()
    assert [difference.low.item(), difference.high.item()] == [-1.0, 1.0]


@given(cells, st.sampled_from(METHODS))
@settings(max_examples=100, deadline=None)
def test_swapping_the_arms_mirrors_the_interval(cell: tuple[int, ...], method: IntervalMethod) -> None:
    table = torch.tensor(as_table(cell))
    forward = paired_difference_interval(table, method=method)
    backward = paired_difference_interval(table.T, method=method)
    assert backward.estimate.item() == -forward.estimate.item()
    assert backward.low.item() == pytest.approx(-forward.high.item(), rel=1e-12, abs=1e-15)
    assert backward.high.item() == pytest.approx(-forward.low.item(), rel=1e-12, abs=1e-15)


@given(cells, st.sampled_from(METHODS))
@settings(max_examples=100, deadline=None)
def test_interval_lies_in_range_and_grows_with_the_level(cell: tuple[int, ...], method: IntervalMethod) -> None:
    narrow, wide = (paired_difference_interval(as_table(cell), level=level, method=method) for level in (0.9, 0.99))
    assert -1.0 <= wide.low <= narrow.low <= narrow.high <= wide.high <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_leading_dimensions_are_tables(method: IntervalMethod) -> None:
    counts = torch.randint(0, 50, (3, 4, 2, 2), generator=torch.Generator().manual_seed(0))
    together = paired_difference_interval(counts, level=0.9, method=method)
    for i, j in ((0, 0), (2, 3)):
        alone = paired_difference_interval(counts[i, j], level=0.9, method=method)
        for field in ("estimate", "low", "high"):
            assert getattr(together, field).shape == (3, 4)
            assert torch.equal(getattr(together, field)[i, j], getattr(alone, field))
    assert (together.level, together.method) == (0.9, method)
    assert together.low.dtype == torch.float64


def test_bad_arguments_name_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="counts must be integers"):
        paired_difference_interval([[0.5, 1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="must not be negative"):
        paired_difference_interval([[-1, 1], [2, 3]])
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        paired_difference_interval([[1, 1], [2, 3]], level=95)
    with pytest.raises(ValueError, match="method must be tango, newcombe"):
        paired_difference_interval([[1, 1], [2, 3]], method="score")  # type: ignore[arg-type]
