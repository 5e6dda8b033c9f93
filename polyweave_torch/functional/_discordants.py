"""How many of n pairs are discordant: the binomial that power and the exact bootstrap average over."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

_LEFT_OUT = 1e-17
_CELLS_AT_ONCE = 2**19


def discordant_blocks(
    n: NDArray[np.float64], discordance: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield rows, numbers of discordant pairs [rows, W] and their probabilities, for n [B] and discordances [B].

    Each row's window holds all of Binomial(n, discordance) but 1e-17 in either tail, so W grows with the square root
    of n, and so do time and memory of whoever averages over it.
    """
    first = np.asarray(binom.ppf(_LEFT_OUT, n, discordance), dtype=np.float64)
    # The upper end by symmetry: scipy's isf of a discrete law goes through 1 - q, which is 1 here.
    last = n - binom.ppf(_LEFT_OUT, n, 1.0 - discordance)
    width = int((last - first).max(initial=0.0)) + 1
    rows = max(1, _CELLS_AT_ONCE // width)
    for start in range(0, len(n), rows):
        block = slice(start, start + rows)
        discordant = first[block, None] + np.arange(width, dtype=np.float64)
        yield block, discordant, np.asarray(binom.pmf(discordant, n[block, None], discordance[block, None]))
