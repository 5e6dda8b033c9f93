import itertools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from torch import Tensor

from polyweave_torch.functional.multiplicity import (
    benjamini_hochberg,
    discrete_holm,
    holm_bonferroni,
    shaffer,
    shaffer_factors,
)
from tests.functional.reference import SIZES, close, section

families = st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 1.0]) | st.floats(0, 1), min_size=1, max_size=6)


def with_nan(p: list[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in p]


@pytest.mark.parametrize("name", ["holm", "textbook.holm"])
def test_every_holm_row_of_the_reference(name: str) -> None:
    run = 0
    for row in section(name):
        assert holm_bonferroni(row["p"]).tolist() == [close(value) for value in row["adj"]]
        run += 1
    assert run == SIZES[name]


def test_an_undefined_p_value_stays_undefined_and_is_not_counted() -> None:
    run = 0
    for row in section("holm_nan_conventions"):
        # R and pingouin leave NaN out of the count; statsmodels counts it.
        expected = pytest.approx(with_nan(row["R"]), rel=1e-9, nan_ok=True)
        assert holm_bonferroni(with_nan(row["p"])).tolist() == expected
        run += 1
    assert run == SIZES["holm_nan_conventions"]
    adjusted = benjamini_hochberg([0.01, math.nan, 0.03])
    assert adjusted.tolist() == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
    for adjust in (holm_bonferroni, benjamini_hochberg):
        assert adjust([math.nan, math.nan]).isnan().all()


def test_every_shaffer_row_of_the_reference() -> None:
    run = 0
    for conditions, factors in section("shaffer_static").items():
        assert shaffer_factors(int(conditions)) == factors
        run += 1
    assert run == SIZES["shaffer_static"]


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for i, group in enumerate(rest):
            yield [*rest[:i], [items[0], *group], *rest[i + 1 :]]


@pytest.mark.parametrize("conditions", [1, 2, 3, 7])
def test_shaffer_factors_are_the_most_equalities_that_can_hold_together(conditions: int) -> None:
    true_pairs = {sum(math.comb(len(g), 2) for g in groups) for groups in partitions(list(range(conditions)))}
    pairs = math.comb(conditions, 2)
    expected = [max(s for s in true_pairs if s <= pairs - rejected) for rejected in range(pairs)]
    assert shaffer_factors(conditions) == expected


@given(families)
@settings(deadline=None, max_examples=60)
def test_holm_is_the_closed_test_by_bonferroni(p: list[float]) -> None:
    # A hypothesis is rejected when every intersection that contains it is: the largest Bonferroni p over all of them.
    subsets = [s for size in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), size)]
    bonferroni = {s: min(1.0, len(s) * min(p[i] for i in s)) for s in subsets}
    expected = [max(value for s, value in bonferroni.items() if i in s) for i in range(len(p))]
    assert holm_bonferroni(p).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(families)
@settings(deadline=None, max_examples=60)
def test_benjamini_hochberg_is_the_smallest_rate_that_rejects(p: list[float]) -> None:
    m, adjusted = len(p), benjamini_hochberg(p).tolist()
    for value, q in zip(p, adjusted, strict=True):
        # At rate q the procedure rejects everything up to the largest p_(i) <= q·i/m.
        rates = [min(1.0, m * other / sum(x <= other for x in p)) for other in p if other >= value]
        assert q == pytest.approx(min(rates), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.2, 0.2, 1e-9, 0.0, 1.0, 0.04], [0.3]])
def test_agrees_with_statsmodels(p: list[float]) -> None:
    for adjust, method in ((holm_bonferroni, "holm"), (benjamini_hochberg, "fdr_bh")):
        assert adjust(p).tolist() == pytest.approx(multipletests(p, method=method)[1].tolist(), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
@settings(deadline=None, max_examples=40)
def test_shaffer_lies_between_the_raw_values_and_holm(p: list[float]) -> None:
    raw, adjusted, holm = torch.tensor(p, dtype=torch.float64), shaffer(p), holm_bonferroni(p)
    assert ((raw <= adjusted) & (adjusted <= holm)).all()


@pytest.mark.parametrize("adjust", [holm_bonferroni, benjamini_hochberg, shaffer])
def test_the_last_dimension_is_the_family(adjust: Callable[[Tensor], Tensor]) -> None:
    p = torch.rand(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) ** 3
    together = adjust(p)
    assert together.shape == p.shape
    assert all(torch.equal(together[i, j], adjust(p[i, j])) for i in range(2) for j in range(4))
    assert adjust(torch.zeros(3, 0)).shape == (3, 0)


def test_ties_share_their_adjusted_value() -> None:
    assert holm_bonferroni([0.02, 0.01, 0.02, 0.01]).tolist() == pytest.approx([0.04, 0.04, 0.04, 0.04])


def test_discrete_holm_with_continuous_tests_is_holm() -> None:
    p = torch.tensor([0.01, 0.04, 0.03, 0.5], dtype=torch.float64)
    assert torch.allclose(discrete_holm(p, lambda t: t.expand(*t.shape[:-1], 4)), holm_bonferroni(p))


@pytest.mark.parametrize("p", [[0.2, 1.5], [-0.1, 0.2]])
def test_values_that_are_no_probabilities_are_refused(p: list[float]) -> None:
    for adjust in (holm_bonferroni, benjamini_hochberg, shaffer):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            adjust(p)


def test_shaffer_refuses_what_is_not_a_family_of_all_pairs() -> None:
    with pytest.raises(ValueError, match="2 defined of 2 came; use holm_bonferroni"):
        shaffer([0.1, 0.2])
    with pytest.raises(ValueError, match="2 defined of 3 came"):
        shaffer([0.1, math.nan, 0.2])


def test_a_single_number_is_not_a_family() -> None:
    with pytest.raises(ValueError, match=r"pass \[p\]"):
        holm_bonferroni(torch.tensor(0.1))
