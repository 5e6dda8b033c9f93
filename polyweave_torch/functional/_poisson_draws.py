"""Totals of N units drawn from N with replacement, for about a random byte and a nanosecond a unit.

How often each unit is drawn is multinomial. So are independent Poisson counts, given their sum, whatever their rate:
a resample is Poisson counts of a rate so far below 1 that their sum S seldom exceeds N, and N - S single draws on top.
The rare resample with S > N is thrown away, which leaves the law of the others as it is.

A Poisson count is read off one byte by comparisons, which vectorise. The few bytes that don't decide it, since no
probability is a whole number of 256ths, are settled by another random number.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

# Units counted at once, in one resample or many: three bytes each, and eight as a number.
_CELLS_AT_ONCE = 2**18
# Standard deviations by which the expected sum of the counts stays below N: more means more single draws, and fewer
# resamples thrown away, which now is one in twenty-two.
_MARGIN = 1.7
# Counts from here on have a probability below 1e-30.
_ENDLESS = 30
_WORD = 8


class ByteTable(NamedTuple):
    """How a byte becomes a Poisson count."""

    thresholds: list[int]
    """The count is how many of them the byte reaches; a byte that reaches the last is undecided."""
    remainder: NDArray[np.float64]
    """Cumulative probabilities of the counts 0, 1, ... of an undecided byte."""


def byte_table(rate: float) -> ByteTable:
    """Every count gets as many whole bytes as its probability is worth; what is left over is the remainder's."""
    counts = np.arange(_ENDLESS)
    worth = 256.0 * np.exp(counts * math.log(rate) - rate - gammaln(counts + 1.0))
    whole = np.floor(worth)
    remainder = np.cumsum(worth - whole)
    return ByteTable(np.unique(np.cumsum(whole).astype(int)).tolist(), remainder / remainder[-1])


def poisson_totals(columns: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Totals [C, B] of columns [C, N] whose sums are exact. All columns share their resamples."""
    units = columns.shape[1]
    table = byte_table(max(0.5, 1.0 - _MARGIN / math.sqrt(units)))
    # Streams of their own, whole words for each resample: so the size of the blocks doesn't change a draw.
    for_bytes, for_undecided, for_missing = (
        np.random.Generator(np.random.SFC64(stream)) for stream in np.random.SeedSequence(seed).spawn(3)
    )
    cells = -(-units // _WORD) * _WORD
    # A column of ones tells how many units were drawn.
    padded = np.zeros((len(columns) + 1, cells))
    padded[:-1, :units], padded[-1, :units] = columns, 1.0
    width = min(cells, max(_CELLS_AT_ONCE // _WORD, 1) * _WORD)
    most = min(max(_CELLS_AT_ONCE // cells, 1), math.ceil(1.1 * resamples))
    # Kept over the blocks, since fresh memory costs page faults.
    counts, spare = np.empty((2, most * width), np.uint8)
    numbers = np.empty(most * width)
    totals = np.empty((len(columns), resamples))
    done = 0
    while done < resamples:
        rows = min(most, math.ceil(1.1 * (resamples - done)))
        drawn = np.zeros((len(padded), rows))
        for start in range(0, cells, width):
            part = padded[:, start : start + width]
            some = slice(rows * part.shape[1])
            draw_counts(table, for_bytes, for_undecided, counts[some], spare[some])
            np.copyto(numbers[some], counts[some])
            with np.errstate(invalid="ignore"):  # Nothing times infinity is undefined, and so is the interval.
                drawn += part @ numbers[some].reshape(rows, -1).T
        drawn = drawn[:, drawn[-1] <= units][:, : resamples - done]
        missing = (units - drawn[-1]).astype(np.int64)
        resample = np.repeat(np.arange(len(missing)), missing)
        unit = for_missing.integers(0, units, len(resample), np.int32 if units < 2**31 else np.int64)
        for total, few, values in zip(totals, drawn, columns, strict=False):
            total[done : done + len(few)] = few + np.bincount(resample, values[unit], len(few))
        done += len(missing)
    return totals


def draw_counts(
    table: ByteTable,
    for_bytes: np.random.Generator,
    for_undecided: np.random.Generator,
    counts: NDArray[np.uint8],
    spare: NDArray[np.uint8],
) -> None:
    """Fill ``counts``, a whole number of words, with independent counts; ``spare`` is working memory of its size."""
    byte = for_bytes.integers(0, 2**64 - 1, len(counts) // _WORD, np.uint64, endpoint=True).view(np.uint8)
    reached = spare.view(bool)
    first, *others, last = table.thresholds
    np.greater_equal(byte, first, out=counts.view(bool))
    for threshold in others:
        np.greater_equal(byte, threshold, out=reached)
        np.add(counts, spare, out=counts)
    (undecided,) = np.greater_equal(byte, last, out=reached).nonzero()
    counts[undecided] = np.searchsorted(table.remainder, for_undecided.random(len(undecided)), side="right")
