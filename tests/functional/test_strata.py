import math
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from polyweave_torch.functional.mcnemar import mcnemar
from polyweave_torch.functional.strata import clustered_mcnemar, stratum_heterogeneity
from tests.functional.reference import SIZES, close, printed, section

strata = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8)
clusters = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


def test_clusters_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("clustered_mcnemar"):
        for method in ("obuchowski", "durkalski"):
            result = clustered_mcnemar(row["b_k"], row["c_k"], row["n_k"], method=method)
            assert result.statistic.item() == close(row[method])
            assert result.p_value.item() == close(row[f"{method}_p"])
            assert result.df.item() == 1
            if "published" in row:
                assert result.statistic.item() == printed(row["published"][method])
        run += 1
    assert run == SIZES["clustered_mcnemar"]


@given(strata)
@settings(max_examples=80, deadline=None)
def test_heterogeneity_is_the_strata_chi_squares_less_the_pooled_one(pairs: list[tuple[int, int]]) -> None:
    b, c = ([pair[side] for pair in pairs] for side in (0, 1))
    informative = sum(losses + gains > 0 for losses, gains in pairs)
    parts = mcnemar(b, c, method="asymptotic").statistic.sum()
    pooled = mcnemar(sum(b), sum(c), method="asymptotic").statistic
    result = stratum_heterogeneity(b, c)
    assert result.df.item() == max(informative - 1, 0)
    if informative > 1:
        assert result.statistic.item() == pytest.approx((parts - pooled).item(), rel=1e-9, abs=1e-9)
        assert result.p_value.item() == pytest.approx(chi2.sf(result.statistic.item(), informative - 1), rel=1e-9)


def test_heterogeneity_keeps_its_digits_where_the_chi_squares_nearly_cancel() -> None:
    # Strata of 1e12 discordants whose balances differ by 1e-6; by hand, 2e12·(1/2·1e-6)².
    result = stratum_heterogeneity([6 * 10**11, 6 * 10**11 + 5 * 10**5], [4 * 10**11, 4 * 10**11 - 5 * 10**5])
    assert result.statistic.item() == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("pairs", [([0, 3], [0, 1]), ([5], [1]), ([0, 0], [0, 0]), ([], [])])
def test_fewer_than_two_strata_with_discordants_cannot_differ(pairs: tuple[list[int], list[int]]) -> None:
    result = stratum_heterogeneity(*pairs)
    assert (result.statistic.item(), result.df.item(), result.p_value.item()) == (0.0, 0, 1.0)


@given(strata, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_heterogeneity_ignores_the_order_of_strata_and_the_direction(
    pairs: list[tuple[int, int]], random: Random
) -> None:
    shuffled = random.sample(pairs, len(pairs))
    first = stratum_heterogeneity(*torch.tensor(pairs).T)
    second = stratum_heterogeneity(*torch.tensor(shuffled).T.flip(0))
    assert first.statistic.item() == pytest.approx(second.statistic.item(), rel=1e-9, abs=1e-12)
    assert first.df.item() == second.df.item()


@given(clusters)
@settings(max_examples=60, deadline=None)
def test_clustered_statistics_by_hand(rows: list[tuple[int, int, int]]) -> None:
    b, c, sizes = zip(*((losses, gains, losses + gains + same) for losses, gains, same in rows), strict=True)
    present = [(losses - gains, size) for losses, gains, size in zip(b, c, sizes, strict=True) if size]
    k = len(present)
    for method, leans in (
        ("obuchowski", [float(lean) for lean, _ in present]),
        ("durkalski", [lean / size for lean, size in present]),
    ):
        result = clustered_mcnemar(b, c, sizes, method=method)  # type: ignore[arg-type]
        spread = sum(lean * lean for lean in leans)
        if k < 2:
            assert result.statistic.isnan()
            assert result.p_value.isnan()
            continue
        expected = sum(leans) ** 2 / spread if spread else 0.0
        expected *= (k - 1) / k if method == "obuchowski" else 1.0
        assert result.statistic.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert result.p_value.item() == pytest.approx(math.erfc(math.sqrt(result.statistic.item() / 2)), rel=1e-9)


def test_clusters_of_one_pair_are_mcnemar_but_for_the_variance_correction() -> None:
    b, c = [1, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0, 0, 0]
    plain = mcnemar(sum(b), sum(c), method="asymptotic").statistic.item()
    assert clustered_mcnemar(b, c, [1] * 8).statistic.item() == pytest.approx(plain * 7 / 8)
    assert clustered_mcnemar(b, c, [1] * 8, method="durkalski").statistic.item() == pytest.approx(plain)


def test_copies_of_a_pair_add_no_evidence_when_they_are_one_cluster() -> None:
    b, c = torch.tensor([1, 1, 0, 1, 1, 0]), torch.tensor([0, 0, 1, 0, 0, 0])
    once = clustered_mcnemar(b, c, torch.ones_like(b))
    many = clustered_mcnemar(10 * b, 10 * c, torch.full_like(b, 10))
    assert many.statistic.item() == pytest.approx(once.statistic.item())


def test_clusters_that_lean_nowhere_give_no_evidence() -> None:
    result = clustered_mcnemar([[0, 0], [2, 1]], [[0, 0], [2, 1]], [[3, 3], [4, 4]])
    assert result.statistic.tolist() == [0.0, 0.0]
    assert result.p_value.tolist() == [1.0, 1.0]


def test_leading_dimensions_are_separate_tests() -> None:
    generator = torch.Generator().manual_seed(0)
    b, c = torch.randint(0, 5, (2, 3, 6), generator=generator)
    result, alone = stratum_heterogeneity(b, c), stratum_heterogeneity(b[1], c[1])
    assert result.statistic.shape == result.df.shape == (3,)
    assert result.p_value[1].item() == alone.p_value.item()
    assert clustered_mcnemar(b, c, b + c + 1).p_value.shape == (3,)


def test_bad_arguments_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="b, c must have one shape"):
        stratum_heterogeneity([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="its last dimension the groups"):
        clustered_mcnemar(torch.tensor(1), torch.tensor(1), torch.tensor(2))
    with pytest.raises(TypeError, match="b must be integers"):
        stratum_heterogeneity([0.5], [1.0])
    with pytest.raises(ValueError, match="smaller than its b \\+ c"):
        clustered_mcnemar([2, 1], [1, 1], [2, 2])
    with pytest.raises(ValueError, match="method must be obuchowski or durkalski"):
        clustered_mcnemar([1], [1], [2], method="yang")  # type: ignore[arg-type]


def test_counts_of_different_integer_types_are_counts() -> None:
    b, c = [2, 10, 15], [8, 10, 5]
    expected = stratum_heterogeneity(b, c)
    assert stratum_heterogeneity(torch.tensor(b, dtype=torch.uint16), torch.tensor(c)) == expected
    with pytest.raises(TypeError, match="b must be integers"):
        stratum_heterogeneity([True, False], [3, 4])
