"""Totals of N units drawn from N with replacement, for about four random bits and a nanosecond a unit.

How often each unit is drawn is multinomial. So are independent Poisson counts, given their sum, whatever their rate:
a resample is Poisson counts of a rate so far below 1 that their sum S seldom exceeds N, and N - S single draws on top.
The rare resample with S > N is thrown away, which leaves the law of the others as it is.

The counts of a group of four units are looked up at once, by a random number of 16 bits in a table that holds each
outcome as often as its probability is worth. What is left over, since no probability is a whole number of 65,536ths,
is looked up in a second table like it, and what that leaves over is found by bisection.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

_GROUP = 4
_SLOTS = 2**16
# Random numbers of 16 bits in a word of the generator.
_WORD = 4
# A resample uses whole words, so that the size of the blocks doesn't change a draw.
_UNITS_A_WORD = _WORD * _GROUP
# Units counted at once, in one resample or many: a byte each, and eight as a number.
_CELLS_AT_ONCE = 3 * 2**17
# Single draws at once.
_SINGLES_AT_ONCE = 2**18
# Standard deviations by which the expected sum of the counts stays below N: more means more single draws, and fewer
# resamples thrown away, which now is one in twenty-two.
_MARGIN = 1.7
# The counts of a group sum to so much with a probability of 1e-16.
_ENDLESS = 30


class Outcomes(NamedTuple):
    """All that can come of a group, [K]."""

    packed: NDArray[np.uint32]
    """The counts of its units, a byte each."""
    total: NDArray[np.uint8]
    """Their sum."""
    log_factorials: NDArray[np.float64]
    """Logarithm of the product of their factorials."""


class GroupTables(NamedTuple):
    """How random bits become the counts of a group."""

    first: NDArray[np.uint32]
    """By 16 bits, [65536]."""
    decided: int
    """How many entries of it are of use: a greater number goes on to the second."""
    second: NDArray[np.uint32]
    """By 16 more bits, as long as it goes: a greater number goes on to the remainder."""
    remainder: NDArray[np.float64]
    """Cumulative probabilities of the outcomes that are left over, [K]."""


@lru_cache(1)
def outcomes() -> Outcomes:
    """The likely ones first."""
    counts = np.indices((_ENDLESS,) * _GROUP, np.uint8).reshape(_GROUP, -1)
    counts = counts[:, counts.sum(0) < _ENDLESS]
    log_factorials = gammaln(np.arange(_ENDLESS) + 1.0)[counts].sum(0)
    counts = np.ascontiguousarray(counts[:, np.argsort(log_factorials)].T)
    return Outcomes(counts.view(np.uint32).ravel(), counts.sum(1, dtype=np.uint8), np.sort(log_factorials))


@lru_cache(4)
def group_tables(rate: float) -> GroupTables:
    """Every outcome gets as many whole entries as its probability is worth."""
    packed, total, log_factorials = outcomes()
    worth = _SLOTS * np.exp(total * math.log(rate) - _GROUP * rate - log_factorials)
    first, worth = _fill(worth, packed)
    second, worth = _fill(worth * (_SLOTS / worth.sum()), packed)
    remainder = np.cumsum(worth)
    return GroupTables(np.resize(first, _SLOTS), len(first), second, remainder / remainder[-1])


def _fill(worth: NDArray[np.float64], packed: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """The outcomes as often as they are worth, and what each is worth beyond that."""
    whole = np.floor(worth)
    return np.repeat(packed, whole.astype(np.int64)), worth - whole


def poisson_totals(columns: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Totals [C, B] of columns [C, N] whose sums are exact. All columns share their resamples."""
    units = columns.shape[1]
    # A stream for each purpose, so that what one of them takes doesn't move the others.
    streams = [np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(purpose,))) for purpose in range(4)]
    counted = _counted_totals(columns, resamples, *streams[:2])
    totals, missing = counted[:-1], (units - counted[-1]).astype(np.int64)
    rows = max(1, int(_SINGLES_AT_ONCE / (2.0 * _MARGIN * math.sqrt(units))))
    for start in range(0, resamples, rows):
        some = slice(start, start + rows)
        ends = np.cumsum(missing[some])
        unit = draw_units(units, ends[-1], *streams[2:])
        drawn = csr_array((np.ones(len(unit)), unit, np.append(0, ends)), shape=(len(ends), units))
        totals[:, some] += (drawn @ columns.T).T
    return totals


def _counted_totals(
    columns: NDArray[np.float64], resamples: int, for_groups: np.random.SFC64, for_leftovers: np.random.SFC64
) -> NDArray[np.float64]:
    """Totals [C + 1, B] by Poisson counts whose sum, in the last row, is N at most."""
    units = columns.shape[1]
    tables = group_tables(max(0.5, 1.0 - _MARGIN / math.sqrt(units)))
    cells = -(-units // _UNITS_A_WORD) * _UNITS_A_WORD
    padded = np.zeros((len(columns) + 1, cells))
    padded[:-1, :units], padded[-1, :units] = columns, 1.0
    width = min(cells, max(_CELLS_AT_ONCE // _UNITS_A_WORD, 1) * _UNITS_A_WORD)
    most = min(max(_CELLS_AT_ONCE // cells, 1), math.ceil(1.1 * resamples))
    # Kept over the blocks, since fresh memory costs page faults.
    groups = np.empty(most * width // _GROUP, np.uint32)
    numbers = np.empty(most * width)
    totals = np.empty((len(padded), resamples))
    done = 0
    while done < resamples:
        rows = min(most, math.ceil(1.1 * (resamples - done)))
        drawn = np.zeros((len(padded), rows))
        for start in range(0, cells, width):
            part = padded[:, start : start + width]
            size = rows * part.shape[1]
            counts = draw_counts(tables, for_groups, for_leftovers, groups[: size // _GROUP])
            np.copyto(numbers[:size], counts)
            with np.errstate(invalid="ignore"):  # Nothing times infinity is undefined, and so is the interval.
                drawn += part @ numbers[:size].reshape(rows, -1).T
        drawn = drawn[:, drawn[-1] <= units][:, : resamples - done]
        totals[:, done : done + drawn.shape[1]] = drawn
        done += drawn.shape[1]
    return totals


def draw_counts(
    tables: GroupTables, for_groups: np.random.SFC64, for_leftovers: np.random.SFC64, groups: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """Independent counts, four times as many as ``groups``, which holds them: a whole number of words."""
    bits = for_groups.random_raw(len(groups) // _WORD).view(np.uint16)
    tables.first.take(bits, out=groups, mode="wrap")
    (left,) = (bits >= tables.decided).nonzero()
    more = for_leftovers.random_raw(len(left))
    entry = (more % _SLOTS).astype(np.intp)
    found = tables.second.take(entry, mode="wrap")
    over = entry >= len(tables.second)
    found[over] = outcomes().packed[np.searchsorted(tables.remainder, (more[over] >> 16) * 2.0**-48, side="right")]
    groups[left] = found
    return groups.view(np.uint8)


def draw_units(units: int, count: int, stream: np.random.SFC64, again: np.random.SFC64) -> NDArray[np.int64 | np.int32]:
    """Numbers below ``units``, from 16 bits each where that is enough; 16 bits that exceed its multiple are redrawn."""
    redraw = np.random.Generator(again)
    if units > _SLOTS:
        return redraw.integers(0, units, count)
    unit = stream.random_raw(-(-count // _WORD)).view(np.uint16)[:count] // (_SLOTS // units)
    (over,) = (unit >= units).nonzero()
    unit[over] = redraw.integers(0, units, len(over))
    return unit.astype(np.int32)
