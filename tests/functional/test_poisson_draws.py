"""Draws with replacement by Poisson counts, against the multinomial law that they must have."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from polyweave_torch.functional import _poisson_draws
from polyweave_torch.functional._poisson_draws import draw_counts, draw_units, group_tables, outcomes, poisson_totals


def drawn(units: int, resamples: int, seed: int = 0) -> NDArray[np.int64]:
    """How often each unit was drawn [B, N]: a column that is 1 for one unit alone counts it."""
    return poisson_totals(np.eye(units), resamples, seed).T.astype(np.int64)


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.83, 0.9, 0.983, 0.9983, 0.99999])
def test_the_tables_and_what_they_leave_over_have_the_poisson_law(rate: float) -> None:
    packed, tables = outcomes().packed, group_tables(rate)
    place = {outcome: index for index, outcome in enumerate(packed.tolist())}
    assert len(place) == len(packed) == math.comb(33, 4)

    def shares(entries: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Of the 65,536 numbers, how many stand for each outcome."""
        found = np.bincount([place[outcome] for outcome in entries.tolist()], minlength=len(packed))
        return np.asarray(found / 2**16)

    once, twice = (1.0 - used / 2**16 for used in (tables.decided, len(tables.second)))
    law = shares(tables.first[: tables.decided]) + once * shares(tables.second)
    law += once * twice * np.diff(tables.remainder, prepend=0.0)
    each = packed[:, None].view(np.uint8)
    assert law == pytest.approx(stats.poisson.pmf(each, rate).prod(1), rel=1e-7, abs=1e-18)
    assert len(tables.first) == 2**16
    assert tables.remainder[-1] == 1.0
    assert 0.0 < once < 0.015
    assert 0.0 < twice < 0.03


def test_counts_of_many_cells_have_the_poisson_law() -> None:
    groups = np.empty(2**18, np.uint32)
    counts = draw_counts(group_tables(0.983), np.random.SFC64(1), np.random.SFC64(2), groups)
    law = stats.poisson.pmf(np.arange(7), 0.983)
    for of_one_place in counts.reshape(-1, 4).T:
        seen = np.bincount(of_one_place, minlength=8)
        expected = len(of_one_place) * np.append(law, 1.0 - law.sum())
        assert stats.chisquare([*seen[:7], seen[7:].sum()], expected).pvalue > 1e-3
    # Four of a group are independent: so is the sum of two from that of the others.
    first, second = counts.reshape(-1, 2, 2).sum(2).clip(max=4).T
    assert stats.chi2_contingency(stats.contingency.crosstab(first, second).count).pvalue > 1e-3


def test_what_both_tables_leave_over_is_drawn_by_its_own_law() -> None:
    tables = group_tables(0.983)
    # Tables that decide nothing: every group is found by bisection.
    undecided = tables._replace(decided=0, second=tables.second[:1])
    groups = np.empty(2**14, np.uint32)
    draw_counts(undecided, np.random.SFC64(1), np.random.SFC64(2), groups)
    order = np.argsort(outcomes().packed)
    place = order[np.searchsorted(outcomes().packed[order], groups)]
    # All but one of 65,536 come from the remainder.
    assert (
        stats.kstest((tables.remainder[place] + np.append(0.0, tables.remainder)[place]) / 2, "uniform").pvalue > 1e-3
    )


@pytest.mark.parametrize("units", [2, 3, 1000, 40_000, 2**16, 2**16 + 1, 10**6])
def test_single_units_are_drawn_uniformly(units: int) -> None:
    drawn_units = draw_units(units, 200_000, np.random.SFC64(1), np.random.SFC64(2))
    assert len(drawn_units) == 200_000
    assert 0 <= drawn_units.min() <= drawn_units.max() < units
    # A test for each bit of where in the range they fall, and of the last units against the first.
    parts = min(units, 50)
    seen = np.bincount(drawn_units * parts // units, minlength=parts)
    sizes = np.bincount(np.arange(units) * parts // units, minlength=parts)
    assert stats.chisquare(seen, 200_000 * sizes / units).pvalue > 1e-3


def test_no_single_unit_is_no_draw() -> None:
    assert len(draw_units(5, 0, np.random.SFC64(1), np.random.SFC64(2))) == 0


@pytest.mark.parametrize("units", [2, 3, 4])
def test_resamples_have_the_law_of_all_index_tuples(units: int) -> None:
    resamples = 200_000
    every = Counter(tuple(np.bincount(index, minlength=units)) for index in product(range(units), repeat=units))
    seen = Counter(map(tuple, drawn(units, resamples)))
    assert set(seen) <= set(every)
    expected = [resamples * ways / units**units for ways in every.values()]
    assert stats.chisquare([seen[outcome] for outcome in every], expected).pvalue > 1e-3


@pytest.mark.parametrize("units", [7, 50, 1000])
def test_every_resample_draws_as_many_units_as_there_are(units: int) -> None:
    counts = drawn(units, 2000)
    assert (counts >= 0).all()
    assert (counts.sum(1) == units).all()
    # One unit's count is binomial, and so is that of two together.
    seen = np.bincount(counts[:, 0], minlength=4)
    law = stats.binom.pmf(np.arange(3), units, 1 / units)
    assert stats.chisquare([*seen[:3], seen[3:].sum()], 2000 * np.append(law, 1.0 - law.sum())).pvalue > 1e-3
    assert np.corrcoef(counts[:, 0], counts[:, -1])[0, 1] == pytest.approx(-1 / (units - 1), abs=3.5 / math.sqrt(2000))


def test_resamples_are_independent_of_each_other() -> None:
    means = poisson_totals(np.arange(100.0)[None] - 49.5, 20_000, 4)[0]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 3.5 / math.sqrt(20_000)
    assert means.std() == pytest.approx(math.sqrt(100 * np.var(np.arange(100))), rel=0.02)


def test_totals_are_those_of_the_drawn_units() -> None:
    columns = np.random.default_rng(0).integers(-(2**40), 2**40, (3, 37)).astype(np.float64)
    together = poisson_totals(np.concatenate((np.eye(37), columns)), 50, 9)
    assert (together[37:] == columns @ together[:37]).all()
    assert (poisson_totals(columns[1:2], 50, 9) == together[38:39]).all()


@pytest.mark.parametrize("cells", [1, 8, 100, 1000])
def test_the_size_of_blocks_does_not_change_a_draw(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(150, 40)
    monkeypatch.setattr(_poisson_draws, "_CELLS_AT_ONCE", cells)
    assert (drawn(150, 40) == whole).all()


def test_more_resamples_go_on_where_fewer_end() -> None:
    assert (drawn(20, 300)[:100] == drawn(20, 100)).all()
