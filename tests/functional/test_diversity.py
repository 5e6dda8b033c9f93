"""Diversity measures against the formulas of Kuncheva and Whitaker, term by term in plain Python."""

import math
from fractions import Fraction
from itertools import combinations

import pytest
import torch
from torch import Tensor

from polyweave_torch.functional.diversity import Diversity, diversity
from polyweave_torch.functional.ensemble import oracle_disagreement
from polyweave_torch.functional.gram import outcome_gram


def random_outcomes(samples: int, members: int) -> Tensor:
    generator = torch.Generator().manual_seed(samples * members)
    return (torch.rand(samples, members, generator=generator) < 0.7).to(torch.int64)


def by_hand(rows: list[list[int]]) -> dict[str, float]:
    n, k = len(rows), len(rows[0])
    q, phi, fault, disagreement = [], [], [], []
    for i, j in combinations(range(k), 2):
        n11 = sum(row[i] and row[j] for row in rows)
        n00 = sum(not row[i] and not row[j] for row in rows)
        n10, n01 = sum(row[i] > row[j] for row in rows), sum(row[i] < row[j] for row in rows)
        if n11 * n00 + n10 * n01:
            q.append((n11 * n00 - n10 * n01) / (n11 * n00 + n10 * n01))
        margins = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
        if margins:
            phi.append((n11 * n00 - n10 * n01) / math.sqrt(margins))
        fault.append(n00 / n)
        disagreement.append((n10 + n01) / n)
    variance = Fraction(sum(sum(row) * (k - sum(row)) for row in rows), n * k * k)
    p = Fraction(sum(map(sum, rows)), n * k)
    kappa = 1 - variance * k / ((k - 1) * p * (1 - p))
    return {
        "q_statistic": sum(q) / len(q),
        "correlation": sum(phi) / len(phi),
        "double_fault": sum(fault) / len(fault),
        "oracle_disagreement": sum(disagreement) / len(disagreement),
        "kohavi_wolpert": float(variance),
        "kappa": float(kappa),
    }


@pytest.mark.parametrize(("samples", "members"), [(40, 2), (25, 5), (200, 9)])
def test_measures_are_those_of_the_formulas(samples: int, members: int) -> None:
    correct = random_outcomes(samples, members)
    measures = diversity(correct.T @ correct, samples)
    for name, wanted in by_hand(correct.tolist()).items():
        assert getattr(measures, name).item() == pytest.approx(wanted, abs=1e-12), name


def test_kohavi_wolpert_is_a_multiple_of_the_disagreement() -> None:
    # Kuncheva and Whitaker (2003): KW = (K - 1) / (2K) · mean disagreement.
    correct = random_outcomes(60, 7)
    measures = diversity(correct.T @ correct, 60)
    assert measures.kohavi_wolpert.item() == pytest.approx(6 / 14 * measures.oracle_disagreement.item(), abs=1e-12)


def test_its_disagreement_is_the_ensembles() -> None:
    correct = random_outcomes(60, 7)
    wanted = oracle_disagreement(correct.T, torch.ones(60, dtype=torch.int64))
    assert diversity(outcome_gram(correct)).oracle_disagreement.item() == pytest.approx(wanted.item(), abs=1e-12)


def test_a_gram_comes_in_three_ways() -> None:
    correct = random_outcomes(30, 4)
    gram = outcome_gram(correct)
    wanted = diversity(correct.T @ correct, 30)
    for measures in (diversity(gram), diversity(gram.gram, gram.n), diversity(gram.gram, torch.tensor(30))):
        assert all(torch.equal(a, b) for a, b in zip(measures, wanted, strict=True))


def test_missing_outcomes_leave_complete_rows() -> None:
    correct = random_outcomes(30, 3)
    mask = torch.ones_like(correct, dtype=torch.bool)
    mask[::4, 1] = False
    gram = outcome_gram(correct, mask=mask)
    complete = correct[mask.all(1)]
    wanted = diversity(complete.T @ complete, len(complete))
    assert all(torch.equal(a, b) for a, b in zip(diversity(gram), wanted, strict=True))
    with pytest.raises(ValueError, match="outcomes are missing; pass the OutcomeGram"):
        diversity(gram.gram, gram.n)


def test_leading_dimensions_are_ensembles_of_their_own() -> None:
    first, second = random_outcomes(30, 4), random_outcomes(50, 4)
    both = diversity(torch.stack((first.T @ first, second.T @ second)), torch.tensor([30, 50]))
    for index, one in enumerate((diversity(first.T @ first, 30), diversity(second.T @ second, 50))):
        assert all(torch.allclose(a[index], b, rtol=1e-14, atol=0) for a, b in zip(both, one, strict=True))


def test_an_undefined_pair_is_left_out_and_none_defined_is_nan() -> None:
    perfect = torch.ones(10, 1, dtype=torch.int64)
    two = random_outcomes(10, 2)
    with_perfect = torch.cat((two, perfect), dim=1)
    assert torch.equal(diversity(with_perfect.T @ with_perfect, 10).correlation, diversity(two.T @ two, 10).correlation)
    all_right = diversity(torch.full((3, 3), 10), 10)
    assert all_right.q_statistic.isnan()
    assert all_right.correlation.isnan()
    assert all_right.kappa.isnan()
    assert all_right.double_fault.item() == all_right.kohavi_wolpert.item() == 0.0


@pytest.mark.parametrize("gram", [torch.tensor([[3]]), torch.zeros(1, 1, dtype=torch.int64)])
def test_one_member_has_no_pairs(gram: Tensor) -> None:
    measures = diversity(gram, 4)
    assert all(getattr(measures, name).isnan() for name in Diversity._fields if name != "kohavi_wolpert")


def test_no_sample_is_nan() -> None:
    assert all(measure.isnan() for measure in diversity(torch.zeros(3, 3, dtype=torch.int64), 0))


def test_an_impossible_matrix_is_an_error() -> None:
    with pytest.raises(ValueError, match="XᵀX of n rows"):
        diversity(torch.tensor([[3, 4], [4, 5]]), 10)
    with pytest.raises(TypeError, match="n, the number of rows"):
        diversity(torch.tensor([[3, 2], [2, 5]]))
