"""Draws with replacement by Poisson counts, against the multinomial law that they must have."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from polyweave_torch.functional import _poisson_draws
from polyweave_torch.functional._poisson_draws import byte_table, draw_counts, poisson_totals


def drawn(units: int, resamples: int, seed: int = 0) -> NDArray[np.int64]:
    """How often each unit was drawn [B, N]: a column that is 1 for one unit alone counts it."""
    return poisson_totals(np.eye(units), resamples, seed).T.astype(np.int64)


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.83, 0.9, 0.983, 0.9983, 0.99999])
def test_a_byte_and_its_remainder_have_the_poisson_law(rate: float) -> None:
    table = byte_table(rate)
    counts = np.arange(len(table.remainder))
    whole = np.diff([0, *table.thresholds])
    decided = np.zeros(len(counts))
    decided[: len(whole)] = whole / 256.0
    share = 1.0 - table.thresholds[-1] / 256.0
    law = decided + share * np.diff(table.remainder, prepend=0.0)
    assert law == pytest.approx(stats.poisson.pmf(counts, rate), rel=1e-9, abs=1e-15)
    assert table.remainder[-1] == 1.0
    assert 0.0 < share < 0.03


def test_counts_of_many_cells_have_the_poisson_law() -> None:
    counts, spare = np.empty((2, 2**20), np.uint8)
    draw_counts(byte_table(0.983), np.random.default_rng(1), np.random.default_rng(2), counts, spare)
    seen = np.bincount(counts, minlength=8)
    law = stats.poisson.pmf(np.arange(7), 0.983)
    expected = len(counts) * np.append(law, 1.0 - law.sum())
    assert stats.chisquare([*seen[:7], seen[7:].sum()], expected).pvalue > 1e-3


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
