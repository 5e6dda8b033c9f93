import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import cochrans_q
from torch import Tensor

from polyweave_torch.functional.cochran import cochran_q
from polyweave_torch.functional.gram import gram_update, outcome_gram
from polyweave_torch.functional.mcnemar import mcnemar
from tests.functional.reference import SIZES, close, printed, section

small = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=4)
)


def gram_of(patterns: list[list[int]], k: int) -> list[list[int]]:
    """The Gram matrix of [bitmask, rows] pairs, in Python's integers."""
    return [[sum(rows for mask, rows in patterns if mask >> i & mask >> j & 1) for j in range(k)] for i in range(k)]


def rows_of(patterns: list[list[int]], k: int) -> Tensor:
    return torch.tensor([[mask >> j & 1 for j in range(k)] for mask, rows in patterns for _ in range(rows)])


def test_every_row_of_the_reference() -> None:
    run = 0
    for row in section("cochran_q"):
        k, gram = row["k"], gram_of(row["patterns"], row["k"])
        results = [cochran_q(gram=gram, n=row["n"]), cochran_q(gram=gram, row_totals=row["row_total_hist"])]
        if row["n"] <= 2000:
            results.append(cochran_q(rows_of(row["patterns"], k)))
        defined = row["q"] is not None
        for result in results:
            assert result.statistic.item() == close(row["q" if defined else "q_convention"])
            assert result.p_value.item() == close(row["p" if defined else "p_convention"])
            if defined:
                assert math.log(result.p_value.item()) == pytest.approx(row["log_p"], rel=1e-9, abs=1e-12)
            assert (result.df.item(), result.k.item(), result.n.item()) == (row["df"], k, row["n"])
        if "published" in row:
            assert results[0].statistic.item() == printed(row["published"]["Q"])
            assert "p" not in row["published"] or results[0].p_value.item() == printed(row["published"]["p"])
        run += 1
    assert run == SIZES["cochran_q"]


def test_every_permutation_row_of_the_reference() -> None:
    run = 0
    by_name = {row["name"]: row for row in section("cochran_q")}
    for row in section("permutation_cochran"):
        if "rows" in row:
            correct = torch.tensor([[int(bit) for bit in bits] for bits in row["rows"]])
        else:
            source = next(found for name, found in by_name.items() if name.startswith("Cochran 1950"))
            correct = rows_of(source["patterns"], source["k"])
        gram = outcome_gram(correct)
        assert gram.row_totals.tolist() == row["row_total_hist"]
        assert gram.gram.diagonal().tolist() == row["col_sums"]
        for result in (
            cochran_q(correct, permutation=True),
            cochran_q(gram=gram, permutation=True),
            cochran_q(gram=gram.gram, row_totals=row["row_total_hist"], permutation=True),
        ):
            assert result.p_value.item() == pytest.approx(float(Fraction(row["perm_p_fraction"])), rel=1e-12)
            assert result.statistic.item() == close(row["q"] or 0.0)
        run += 1
    assert run == SIZES["permutation_cochran"]


@given(small)
@settings(deadline=None, max_examples=60)
def test_the_permutation_p_is_the_share_of_all_rearrangements(rows: list[list[bool]]) -> None:
    k = len(rows[0])
    arrangements = [list(set(itertools.permutations(row))) for row in rows]
    spreads = [
        sum(sum(column) ** 2 for column in zip(*drawn, strict=True)) for drawn in itertools.product(*arrangements)
    ]
    observed = sum(sum(column) ** 2 for column in zip(*rows, strict=True))
    p = cochran_q(torch.tensor(rows), permutation=True).p_value.item()
    if k == 1:
        assert math.isnan(p)
    else:
        assert p == pytest.approx(sum(spread >= observed for spread in spreads) / len(spreads), rel=1e-12)


def test_permutations_of_many_conditions_meet_the_birthday_problem() -> None:
    # One right condition a row: a sum of squares above the number of rows is a coincidence of birthdays.
    rows, k = 12, 20
    correct = torch.zeros(rows, k, dtype=torch.bool)
    correct[torch.arange(rows), torch.arange(rows).clamp(max=rows - 2)] = True
    coincidence = 1 - math.perm(k, rows) / k**rows
    assert cochran_q(correct, permutation=True).p_value.item() == pytest.approx(coincidence, rel=1e-12)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
@settings(deadline=None, max_examples=40)
def test_two_conditions_are_mcnemars_test(b: int, c: int, both: int) -> None:
    correct = torch.tensor([[1, 0]] * b + [[0, 1]] * c + [[1, 1]] * both + [[0, 0]])
    chi_square, exact = mcnemar(b, c, method="asymptotic"), mcnemar(b, c, method="exact")
    result = cochran_q(correct)
    assert result.statistic.item() == pytest.approx(chi_square.statistic.item(), rel=1e-12)
    assert result.p_value.item() == pytest.approx(chi_square.p_value.item(), rel=1e-12)
    assert cochran_q(correct, permutation=True).p_value.item() == pytest.approx(exact.p_value.item(), rel=1e-12)


@pytest.mark.parametrize("conditions", [2, 3, 10, 30])
def test_agrees_with_statsmodels(conditions: int) -> None:
    correct = torch.rand(80, conditions, generator=torch.Generator().manual_seed(conditions)) < 0.7
    peer, result = cochrans_q(correct.numpy()), cochran_q(correct)
    assert result.statistic.item() == pytest.approx(peer.statistic, rel=1e-12)
    assert result.p_value.item() == pytest.approx(peer.pvalue, rel=1e-9)


def test_the_documents_target() -> None:
    result = cochran_q([[True, False, False], [True, True, False], [True, True, True], [False, False, True]])
    assert result.statistic.item() == pytest.approx(0.6666667, abs=1e-7)
    assert result.p_value.item() == pytest.approx(0.7165313, abs=1e-7)


@pytest.mark.parametrize("permutation", [False, True])
@pytest.mark.parametrize("correct", [torch.ones(6, 3), torch.zeros(6, 3), torch.tensor([[1, 1], [0, 0]])])
def test_rows_that_agree_throughout_are_no_evidence(correct: Tensor, permutation: bool) -> None:
    result = cochran_q(correct, permutation=permutation)
    assert (result.statistic.item(), result.p_value.item(), result.n.item()) == (0.0, 1.0, len(correct))


@pytest.mark.parametrize("permutation", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (5, 1), (5, 0)])
def test_no_rows_or_fewer_than_two_conditions_are_undefined(shape: tuple[int, int], permutation: bool) -> None:
    result = cochran_q(torch.ones(shape), permutation=permutation)
    assert result.statistic.isnan()
    assert result.p_value.isnan()


def test_counts_whose_squares_leave_int64_lose_nothing() -> None:
    # Q grows in proportion to the rows; a 10^10 times larger table has (k·N)^2 of 10^22.
    correct = torch.rand(50, 4, generator=torch.Generator().manual_seed(0)) < 0.9
    gram = outcome_gram(correct)
    large = cochran_q(gram=gram.gram * 10**10, n=50 * 10**10)
    assert large.statistic.item() == pytest.approx(1e10 * cochran_q(gram=gram).statistic.item(), rel=1e-13)


def test_concordant_rows_change_nothing_but_the_number_of_rows() -> None:
    correct = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 1]])
    padded = torch.cat((correct, torch.ones(4, 3), torch.zeros(3, 3)))
    for permutation in (False, True):
        first, second = (cochran_q(x, permutation=permutation) for x in (correct, padded))
        assert first.p_value.item() == pytest.approx(second.p_value.item(), rel=1e-12)
        assert (first.n.item(), second.n.item()) == (3, 10)


def test_rows_with_a_missing_outcome_are_left_out() -> None:
    correct = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[2, 0] = False
    result, complete = cochran_q(gram=outcome_gram(correct, mask=mask)), cochran_q(correct[[0, 1, 3]])
    assert (result.statistic, result.p_value, result.n) == (complete.statistic, complete.p_value, complete.n)


@pytest.mark.parametrize("permutation", [False, True])
def test_strata_are_tested_each_for_itself(permutation: bool) -> None:
    correct = torch.rand(30, 3, generator=torch.Generator().manual_seed(0)) < 0.6
    stratum = torch.arange(30) % 2
    gram = gram_update(correct, slice_index=stratum, num_slices=3)
    bare = cochran_q(gram=gram.gram, row_totals=gram.row_totals, permutation=permutation)
    together = cochran_q(gram=gram, permutation=permutation)
    for s in range(2):
        alone = cochran_q(correct[stratum == s], permutation=permutation)
        assert together.p_value[s].item() == pytest.approx(alone.p_value.item(), rel=1e-12)
        assert bare.p_value[s] == together.p_value[s]
    assert together.p_value[2].isnan()
    assert together.n.tolist() == [15, 15, 0]


def test_too_many_permutations_are_refused_with_the_bound() -> None:
    correct = torch.rand(200, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    with pytest.raises(ValueError, match=r"200 discordant rows of 12 conditions.*over 67108864.*permutation=False"):
        cochran_q(correct, permutation=True)


def test_bad_arguments_are_refused() -> None:
    gram = outcome_gram(torch.tensor([[1, 0], [1, 1], [0, 1]]))
    with pytest.raises(TypeError, match="either the outcomes"):
        cochran_q()
    with pytest.raises(TypeError, match="either the outcomes"):
        cochran_q(torch.ones(3, 2), gram=gram)
    with pytest.raises(TypeError, match="known from the outcomes"):
        cochran_q(torch.ones(3, 2), n=3)
    with pytest.raises(TypeError, match="n, the number of rows"):
        cochran_q(gram=gram.gram)
    with pytest.raises(TypeError, match="permutation=True needs"):
        cochran_q(gram=gram.gram, n=3, permutation=True)
    with pytest.raises(ValueError, match="do not belong to this Gram matrix"):
        cochran_q(gram=gram.gram, row_totals=[1, 1, 1])
    with pytest.raises(ValueError, match=r"row_totals must have shape \[\.\.\., 3\]"):
        cochran_q(gram=gram.gram, row_totals=[0, 2, 1, 0])
