"""Bootstrap means of columns of paired differences, exact to the last bit whatever is computed beside them.

Drawing N units with replacement and averaging is a weighted mean, whose weights are the counts of how often each unit
was drawn. So B resamples of all columns are one product of counts and differences (``_poisson_draws``); and where a
column holds few distinct values, how often each of those was drawn is multinomial, and N doesn't matter.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyweave_torch.functional._poisson_draws import poisson_totals

# Differences of columns computed at once, where there are more columns than one.
_DIFFERENCES_AT_ONCE = 2**16
# Counts held at once, int64.
_CELLS_AT_ONCE = 2**19
# A multinomial draw of one distinct value costs about as much as drawing this many units.
_DRAWS_PER_VALUE = 48
# Comparing all values with one costs about a twentieth of sorting them.
_COUNTED_IN_TURN = 9


class ResamplingUnits(NamedTuple):
    """What is drawn, pairs or clusters of pairs, by its sums over C columns.

    The sums are of the differences less the centre of their column's range, rounded to whole numbers of quanta, so
    large that every total of as many units stays below 2^53. Such totals are exact: neither the columns beside one nor
    the blocks of a matrix product can change them. The rounding moves a mean by half a quantum at most.
    """

    sums: NDArray[np.float64]
    """[C, U]."""
    sizes: NDArray[np.int64] | None
    """[U], the pairs of each unit; None where each is one pair."""
    centre: NDArray[np.float64]
    """[C, 1]."""
    quantum: NDArray[np.float64]
    """[C, 1], powers of 2; 0 for a constant column, whose sums are all 0."""
    mean: NDArray[np.float64]
    """[C, 1], of the differences themselves."""


def resampling_units(
    before: NDArray[Any],
    after: NDArray[Any],
    columns: list[int],
    complete: NDArray[np.bool_],
    labels: NDArray[np.int64] | None,
) -> ResamplingUnits:
    """The complete pairs of some columns of the arms [N, L], or the clusters that their labels make of them."""
    pairs = units = int(np.count_nonzero(complete))
    unit, sizes = None, None
    if labels is not None:
        _, unit, sizes = np.unique(labels[complete], return_inverse=True, return_counts=True)
        units = len(sizes)
    sums = np.empty((len(columns), units))
    centre, quantum, mean = np.empty((3, len(columns), 1))
    # Some columns at a time, which keeps the temporaries small. What is not finite is left to give NaN.
    per = max(1, _DIFFERENCES_AT_ONCE // len(complete))
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(columns), per):
            some = slice(start, start + per)
            arms = (arm[:, columns[some]].T for arm in (after, before))
            difference = np.subtract(*arms, dtype=np.float64)
            # Row by row in memory, or the sum of a row would depend on how many there are.
            difference = np.ascontiguousarray(difference if pairs == len(complete) else difference[:, complete])
            low, high = difference.min(1, keepdims=True), difference.max(1, keepdims=True)
            centre[some] = low / 2.0 + high / 2.0
            # A sum may overflow where the mean doesn't, and a constant is its own mean.
            average = difference.mean(1, keepdims=True)
            average = np.where(np.isfinite(average), average, (difference / pairs).sum(1, keepdims=True))
            mean[some] = np.where(low == high, low, average)
            deviation = difference - centre[some]
            step = _quantum_of_totals(deviation)
            if unit is not None:
                deviation = np.stack([np.bincount(unit, row, units) for row in deviation])
                # Not below that of the pairs: what is left of sums that cancel is rounding.
                step = np.maximum(step, _quantum_of_totals(deviation))
            quantum[some] = np.where(low == high, 0.0, step)
            sums[some] = np.rint(deviation / step)
    return ResamplingUnits(sums, None if pairs == units else sizes, centre, quantum, mean)


def _quantum_of_totals(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The power of 2 [C, 1] of which N draws from N values [C, N] are less than 2^53; NaN where one is not finite."""
    largest = np.abs(values).max(1, keepdims=True)
    bits = 52 - math.ceil(math.log2(values.shape[1]))
    # No power of 2 is smaller than 2^-1074, which is that of zeros too.
    exponent = np.where(largest > 0.0, np.maximum(np.frexp(largest)[1] - bits, -1074), -1074)
    return np.where(np.isfinite(largest), np.ldexp(1.0, exponent), np.nan)


def resampled_deviations(units: ResamplingUnits, resamples: int, seed: int) -> NDArray[np.float64]:
    """Mean differences [C, B] of resamples of as many units as there are, less the centre of their column.

    A column's depend on nothing but itself.
    """
    if units.sizes is not None:
        totals = poisson_totals(np.vstack((units.sums, units.sizes)), resamples, seed)
        return np.asarray(totals[:-1] / totals[-1] * units.quantum)
    totals = np.empty((len(units.sums), resamples))
    drawn = []
    for column, few in enumerate(_few_values(units.sums)):
        if few is None:
            drawn.append(column)
        else:
            totals[column] = multinomial_totals(*few, resamples, seed)
    if drawn:
        totals[drawn] = poisson_totals(units.sums[drawn], resamples, seed)
    return np.asarray(totals / units.sums.shape[1] * units.quantum)


def _few_values(columns: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]] | None]:
    """The distinct values and how often each occurs, where they are few enough to be drawn instead of the units."""
    most = columns.shape[1] // _DRAWS_PER_VALUE
    # Twice as many of the values as may be distinct tell real numbers apart without sorting all of them.
    first = np.sort(columns[:, : 2 * most], axis=1)
    promising = np.count_nonzero(first[:, 1:] != first[:, :-1], axis=1) < most
    for values, few in zip(columns, promising, strict=True):
        if not few:
            yield None
            continue
        distinct = np.unique(values[: 2 * most])
        multiplicity = np.zeros(1, np.int64)
        # Nor do the outcomes of 0 and 1 need sorting, or marks from 1 to 5.
        if len(distinct) <= _COUNTED_IN_TURN:
            multiplicity = np.array([np.count_nonzero(values == value) for value in distinct])
        if multiplicity.sum() < len(values):
            distinct, multiplicity = np.unique(values, return_counts=True)
        yield (distinct, multiplicity) if len(distinct) <= most else None


def multinomial_totals(
    values: NDArray[np.float64], multiplicity: NDArray[np.int64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """The same for one column of few distinct values, from how often each was drawn: totals [B], whatever N."""
    generator = np.random.default_rng(seed)
    draws = multiplicity.sum()
    rows = max(1, _CELLS_AT_ONCE // len(values))
    sizes = (min(rows, resamples - start) for start in range(0, resamples, rows))
    return np.concatenate([generator.multinomial(draws, multiplicity / draws, size) @ values for size in sizes])
