"""Bootstrap means of columns of paired differences, exact to the last bit whatever is computed beside them.

Drawing N units with replacement and averaging is a weighted mean, whose weights are the counts of how often each unit
was drawn. So B resamples of all columns are one product of counts and differences (``_poisson_draws``); and where a
column holds few distinct values, how often each of those was drawn is multinomial, and N doesn't matter.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyweave_torch.functional._poisson_draws import poisson_totals

# Counts held at once, int64.
_CELLS_AT_ONCE = 2**19
# A multinomial draw of one distinct value costs about as much as drawing this many units.
_DRAWS_PER_VALUE = 48
# Comparing all values with one costs about a twentieth of sorting them.
_COUNTED_IN_TURN = 9


class ResamplingUnits(NamedTuple):
    """What is drawn, pairs or clusters of pairs, by its sums over C columns.

    The sums are of the differences less the centre of their column's range, as whole numbers of quanta, so large that
    every total of as many units stays below 2^53. Such totals are exact: neither the columns beside one nor the blocks
    of a matrix product can change them.
    """

    sums: Tensor
    """float64 [C, U]."""
    sizes: Tensor | None
    """int64 [U], the pairs of each unit; None where each is one pair."""
    centre: Tensor
    """float64 [C]."""
    quantum: Tensor
    """float64 [C], powers of 2; 0 for a constant column, whose sums are all 0."""


def resampling_units(
    before: Tensor, after: Tensor, columns: list[int], complete: Tensor, labels: Tensor | None
) -> ResamplingUnits:
    """The complete pairs of some columns of the arms [N, L], or the clusters that their labels make of them."""
    units = most = int(complete.sum())
    unit, sizes = None, None
    everything = most == len(complete)
    if labels is not None:
        _, unit, sizes = torch.unique(labels[complete], return_inverse=True, return_counts=True)
        units, most = len(sizes), len(sizes) * int(sizes.max())
    bits = 52 - math.ceil(math.log2(most))
    sums = torch.zeros(len(columns), units, dtype=torch.float64)
    centre, quantum = sums.new_empty(2, len(columns))
    # One column at a time, which keeps the temporaries small.
    for row, (column, total) in enumerate(zip(columns, sums, strict=True)):
        difference = after[:, column].to(torch.float64) - before[:, column].to(torch.float64)
        difference = difference if everything else difference[complete]
        low, high = torch.aminmax(difference)
        centre[row] = low / 2.0 + high / 2.0
        largest = float(torch.maximum(high - centre[row], centre[row] - low))
        # No power of 2 is smaller than 2^-1074. What is not finite is left to give NaN.
        step = math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1074)) if math.isfinite(largest) else math.nan
        quantum[row] = step if largest else 0.0
        whole = difference.sub_(centre[row]).div_(step).round_()
        if unit is None:
            total.copy_(whole)
        else:
            total.index_add_(0, unit, whole)
    return ResamplingUnits(sums, None if most == units else sizes, centre, quantum)


def mean_deviations(units: ResamplingUnits) -> Tensor:
    """The mean difference of each column [C] less its centre."""
    pairs = units.sums.shape[1] if units.sizes is None else units.sizes.sum()
    return units.sums.sum(1) / pairs * units.quantum


def resampled_deviations(units: ResamplingUnits, resamples: int, seed: int) -> Tensor:
    """The same [C, B] of resamples of as many units as there are. A column's depend on nothing but itself."""
    count = units.sums.shape[1]
    if units.sizes is not None:
        columns = torch.cat((units.sums, units.sizes.unsqueeze(0)))
        totals = torch.from_numpy(poisson_totals(columns.numpy(), resamples, seed))
        return totals[:-1] / totals[-1] * units.quantum.unsqueeze(1)
    totals = units.sums.new_empty(len(units.sums), resamples)
    drawn = []
    for column, values in enumerate(units.sums):
        few = _few_values(values.numpy())
        if few is None:
            drawn.append(column)
        else:
            totals[column] = torch.from_numpy(multinomial_totals(*few, resamples, seed))
    if drawn:
        totals[drawn] = torch.from_numpy(poisson_totals(units.sums[drawn].numpy(), resamples, seed))
    return totals / count * units.quantum.unsqueeze(1)


def _few_values(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """The distinct values and how often each occurs, where they are few enough to be drawn instead of the units."""
    most = len(values) // _DRAWS_PER_VALUE
    # Twice as many of the values as may be distinct tell real numbers apart without sorting all of them.
    distinct = np.unique(values[: 2 * most])
    if not 0 < len(distinct) <= most:
        return None
    multiplicity = np.zeros(1, np.int64)
    # Nor do the outcomes of 0 and 1 need sorting, or marks from 1 to 5.
    if len(distinct) <= _COUNTED_IN_TURN:
        multiplicity = np.array([np.count_nonzero(values == value) for value in distinct])
    if multiplicity.sum() < len(values):
        distinct, multiplicity = np.unique(values, return_counts=True)
    return (distinct, multiplicity) if len(distinct) <= most else None


def multinomial_totals(
    values: NDArray[np.float64], multiplicity: NDArray[np.int64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """The same for one column of few distinct values, from how often each was drawn: totals [B], whatever N."""
    generator = np.random.default_rng(seed)
    draws = multiplicity.sum()
    rows = max(1, _CELLS_AT_ONCE // len(values))
    sizes = (min(rows, resamples - start) for start in range(0, resamples, rows))
    return np.concatenate([generator.multinomial(draws, multiplicity / draws, size) @ values for size in sizes])
