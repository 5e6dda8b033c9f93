import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from polyweave_torch.functional.difference import paired_difference_interval
from polyweave_torch.functional.equivalence import EquivalenceMethod, equivalence_test, non_inferiority_test
from tests.functional.reference import SIZES, close, printed, section
from tests.functional.test_difference import as_table, cells, table_of

margins = st.floats(0.01, 0.9)


def test_every_row_of_the_reference() -> None:
    run = 0
    for row in section("tost_paired"):
        score = equivalence_test(table_of(row), row["delta"])
        assert score.p_lower.item() == close(row["score_pL"])
        assert score.p_upper.item() == close(row["score_pU"])
        assert score.p_value.item() == close(row["score_p"])
        assert score.statistic.item() == pytest.approx(min(row["score_zL"], -row["score_zU"]), rel=1e-9, abs=1e-12)
        assert bool(score.equivalent) == (row["score_p"] < 0.05)
        wald = equivalence_test(table_of(row), row["delta"], method="wald")
        if row["wald_p"] is None:
            assert wald.p_value.isnan()
            assert not wald.equivalent
        else:
            assert wald.p_lower.item() == close(row["wald_pL"])
            assert wald.p_upper.item() == close(row["wald_pU"])
            assert wald.p_value.item() == close(row["wald_p"])
        one_sided = non_inferiority_test(table_of(row), row["delta"])
        assert one_sided.p_value.item() == close(row["score_pL"])
        assert one_sided.statistic.item() == pytest.approx(row["score_zL"], rel=1e-9, abs=1e-12)
        if "published" in row:
            assert one_sided.statistic.item() == printed(row["published"]["score_zL"])
            assert one_sided.p_value.item() == printed(row["published"]["score_pL"])
        run += 1
    assert run == SIZES["tost_paired"]


@given(cells, margins, st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=100, deadline=None)
def test_equivalent_means_that_tangos_interval_lies_inside_the_margin(
    cell: tuple[int, ...], margin: float, alpha: float
) -> None:
    result = equivalence_test(as_table(cell), margin, alpha=alpha)
    difference = paired_difference_interval(as_table(cell), level=1.0 - 2.0 * alpha)
    inside = bool((difference.low > -margin) & (difference.high < margin))
    assert bool(result.equivalent) == inside or result.p_value.item() == pytest.approx(alpha, rel=1e-9)


@given(cells, margins)
@settings(max_examples=60, deadline=None)
def test_swapping_the_arms_swaps_the_sides(cell: tuple[int, ...], margin: float) -> None:
    table = torch.tensor(as_table(cell))
    forward, backward = equivalence_test(table, margin), equivalence_test(table.T, margin)
    assert torch.equal(forward.p_lower, backward.p_upper)
    assert torch.equal(forward.p_value, backward.p_value)


@given(cells, margins)
@settings(max_examples=60, deadline=None)
def test_non_inferiority_is_the_lower_side_alone(cell: tuple[int, ...], margin: float) -> None:
    both, lower = equivalence_test(as_table(cell), margin), non_inferiority_test(as_table(cell), margin)
    assert torch.equal(lower.p_value, both.p_lower)
    assert torch.equal(lower.p_lower, both.p_lower)
    assert lower.p_upper.isnan()
    assert bool(lower.equivalent) == bool(both.p_lower < 0.05)


def test_p_value_is_the_tail_of_the_statistic_however_small() -> None:
    result = equivalence_test([[10**6, 1200], [1000, 10**6]], 0.02)
    assert result.p_value.item() == pytest.approx(norm.sf(result.statistic.item()), rel=1e-12, abs=0.0)
    deep = equivalence_test([[0, 0], [0, 1340]], 0.5)
    assert 0.0 < deep.p_value.item() == pytest.approx(norm.sf(1340**0.5), rel=1e-9)


def test_wald_without_discordant_pairs_calls_nothing_equivalent_where_the_score_form_counts_the_pairs() -> None:
    few, many = [[3, 0], [0, 2]], [[300, 0], [0, 200]]
    assert equivalence_test(few, 0.05, method="wald").p_value.isnan()
    assert not equivalence_test(many, 0.05, method="wald").equivalent
    assert not equivalence_test(few, 0.05).equivalent
    assert equivalence_test(many, 0.05).equivalent


@pytest.mark.parametrize("method", ["score", "wald"])
def test_no_data_is_undefined_and_not_equivalent(method: str) -> None:
    result = equivalence_test(torch.zeros(2, 2, dtype=torch.int64), 0.1, method=method)  # type: ignore[arg-type]
    assert result.p_value.isnan()
    assert not result.equivalent
    one_sided = non_inferiority_test(torch.zeros(2, 2, dtype=torch.int64), 0.1)
    assert one_sided.p_value.isnan()
    assert not one_sided.equivalent


def test_leading_dimensions_are_tables() -> None:
    counts = torch.tensor([[[40, 2], [3, 50]], [[4, 2], [3, 5]], [[0, 0], [0, 0]]])
    result = equivalence_test(counts, 0.1, alpha=0.1)
    assert result.equivalent.tolist() == [True, False, False]
    assert (result.margin, result.alpha, result.method) == (0.1, 0.1, "score")
    assert result.p_value.shape == result.statistic.shape == (3,)


def test_bad_arguments_name_what_is_wrong() -> None:
    table = [[1, 2], [3, 4]]
    for margin in (0.0, -0.1, 1.0, 5.0):
        with pytest.raises(ValueError, match="margin must lie strictly between 0 and 1"):
            non_inferiority_test(table, margin)
    with pytest.raises(ValueError, match="alpha must lie"):
        equivalence_test(table, 0.1, alpha=0.0)
    with pytest.raises(ValueError, match="method must be score or wald"):
        equivalence_test(table, 0.1, method="tango")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="counts must be integers"):
        equivalence_test([[0.1, 0.2], [0.3, 0.4]], 0.1)


@pytest.mark.parametrize(
    ("method", "pairs", "losses", "most"),
    [("score", 21, 2.4, 7.8), ("score", 50, 2.58, 7.1), ("wald", 100, 2.64, 19.0)],
)
def test_the_worst_errors_that_the_docstring_names(
    method: EquivalenceMethod, pairs: int, losses: float, most: float
) -> None:
    # Nothing is ever gained, and the loss is the margin: the number of losses is binomial.
    margin, lost = losses / pairs, torch.arange(pairs + 1)
    tables = torch.stack((torch.zeros(pairs + 1, 2, dtype=torch.int64), torch.stack((lost, pairs - lost), -1)), -2)
    chance = binom.pmf(lost.numpy(), pairs, margin)
    shown = equivalence_test(tables, margin, method=method).equivalent.numpy()
    assert most - 0.4 < 100 * chance[shown].sum() <= most + 0.05
    if method == "score":
        assert (non_inferiority_test(tables, margin).equivalent.numpy() == shown).all()
