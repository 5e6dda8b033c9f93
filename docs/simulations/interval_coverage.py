"""How often the intervals hold the truth, and how wide they are.

Coverage and mean width are enumerated: every table that N pairs can give, its probability, and the library's interval
of it. Beside it outcomes are drawn, counted and put into the intervals as a user would. The resampling bootstrap has
nothing else beside it than `exact_binary_bootstrap`, its limit for ever more resamples.

Run: python docs/simulations/interval_coverage.py [--sets 20000] [--seed 0] [--write]
"""

from collections.abc import Iterator
from functools import cache
from typing import get_args

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor
from trust import (
    RIGHT,
    Enumeration,
    Integers,
    Table,
    enumerated_tables,
    likely_counts,
    main,
    percent,
    simulated_tables,
    tables_of,
)

from polyweave_torch.functional import (
    channel_intervals,
    exact_binary_bootstrap,
    jeffreys_interval,
    paired_bootstrap,
    paired_difference_interval,
    wilson_interval,
)
from polyweave_torch.functional.difference import IntervalMethod
from polyweave_torch.functional.intervals import normal_quantile

LEVEL = 0.95
PAGE = "intervals.md"
METHODS: tuple[IntervalMethod, ...] = get_args(IntervalMethod)
SHARES = ((0.005, 0.005), (0.002, 0.012), (0.05, 0.05), (0.04, 0.12), (0.2, 0.2))
"""p10 and p01."""
SIZES = (20, 50, 200, 1000)
_TABLES_AT_ONCE = 2**19
# The bootstrap's ends are differences that a table can have, and so may be the truth; but for rounding they are equal.
_ROUNDING = 1e-9


def split_unchanged(tables: Enumeration, n: int, discordance: float) -> Iterator[Enumeration]:
    """The tables with every likely split of the unchanged pairs into wrong and right ones, some at a time."""
    right = likely_counts(n, RIGHT * (1.0 - discordance))
    at_once = _TABLES_AT_ONCE // len(right)
    for start in range(0, len(tables.probability), at_once):
        gained, lost, unchanged = (
            tables.counts[start : start + at_once, i, j, None].numpy() for i, j in ((0, 1), (1, 0), (1, 1))
        )
        n00 = unchanged - right
        probability = tables.probability[start : start + at_once, None] * binom.pmf(right, unchanged, RIGHT)
        kept = n00 >= 0
        cells = (np.broadcast_to(cell, kept.shape)[kept] for cell in (n00, gained, lost, right))
        yield Enumeration(tables_of(*cells), probability[kept])


@cache
def difference_coverage(method: IntervalMethod, p10: float, p01: float, n: int) -> tuple[float, float]:
    """Exact coverage and mean width of the interval of p01 - p10."""
    tables = enumerated_tables(p10, p01, n)
    # Only Newcombe's method looks at the unchanged pairs.
    parts = split_unchanged(tables, n, p10 + p01) if method == "newcombe" else [tables]
    coverage = width = 0.0
    for part in parts:
        interval = paired_difference_interval(part.counts, level=LEVEL, method=method)
        coverage += part.mean(_holds(interval.low, interval.high, p01 - p10))
        width += part.mean(interval.high - interval.low)
    return coverage, width


def _holds(low: Tensor, high: Tensor, truth: float) -> Tensor:
    return (low <= truth + _ROUNDING) & (truth - _ROUNDING <= high)


def _share(held: Tensor) -> float:
    return float(held.double().mean())


def difference_coverages(*, sets: int, rng: np.random.Generator) -> Table:
    """Coverage of the intervals of a paired difference."""
    rows = []
    for p10, p01 in SHARES:
        for n in SIZES:
            drawn = simulated_tables(p10, p01, n, sets=sets, rng=rng)
            cells = []
            for method in METHODS:
                interval = paired_difference_interval(drawn, level=LEVEL, method=method)
                simulated = _share(_holds(interval.low, interval.high, p01 - p10))
                cells.append(percent(difference_coverage(method, p10, p01, n)[0], simulated))
            rows.append((f"{p10}", f"{p01}", f"{n}", *cells))
    caption = f"Enumerated; in brackets simulated, {sets:,} data sets a row."
    return Table("difference-coverage", PAGE, ("p10", "p01", "pairs", *METHODS), rows, caption)


def difference_widths() -> Table:
    """Mean width of the same intervals."""
    rows = [
        (f"{p10}", f"{p01}", f"{n}", *(percent(difference_coverage(method, p10, p01, n)[1]) for method in METHODS))
        for p10, p01 in SHARES
        for n in SIZES
    ]
    return Table("difference-width", PAGE, ("p10", "p01", "pairs", *METHODS), rows, "Enumerated.")


BOOTSTRAP_ROWS = [((0.002, 0.012), n) for n in SIZES[:3]] + [((0.04, 0.12), n) for n in SIZES[:3]]
BOOTSTRAP_SETS, RESAMPLES = 10_000, 1000
# Data sets that share resamples also share their Monte Carlo error, so only few do.
_SETS_A_SEED = 10


def exact_bootstrap_coverage(p10: float, p01: float, n: int) -> float:
    """Exact coverage of the bootstrap's limit."""
    tables = enumerated_tables(p10, p01, n)
    interval = exact_binary_bootstrap(tables.counts, level=LEVEL)
    return tables.mean(_holds(interval.low, interval.high, p01 - p10))


def simulated_bootstrap_coverage(p10: float, p01: float, n: int, *, sets: int, rng: np.random.Generator) -> float:
    """Coverage of the resampling bootstrap of right and wrong outcomes."""
    held = 0
    for start in range(0, sets, _SETS_A_SEED):
        difference = rng.choice(3, (n, min(_SETS_A_SEED, sets - start)), p=(p10, 1.0 - p10 - p01, p01)) - 1.0
        # Only the differences of the pairs matter to the bootstrap: which of the unchanged pairs are right does not.
        before, after = (torch.from_numpy((sign * difference > 0.0).astype(np.float64)) for sign in (-1, 1))
        interval = paired_bootstrap(before, after, resamples=RESAMPLES, level=LEVEL, seed=int(rng.integers(2**31)))
        held += int(_holds(interval.low, interval.high, p01 - p10).sum())
    return held / sets


def binary_bootstrap(*, sets: int, rng: np.random.Generator) -> Table:
    """Coverage of the percentile bootstrap of right and wrong outcomes."""
    rows = []
    for (p10, p01), n in BOOTSTRAP_ROWS:
        drawn = simulated_bootstrap_coverage(p10, p01, n, sets=min(sets, BOOTSTRAP_SETS), rng=rng)
        exact = exact_bootstrap_coverage(p10, p01, n)
        rows.append(
            (f"{p10}", f"{p01}", f"{n}", percent(exact, drawn), percent(difference_coverage("tango", p10, p01, n)[0]))
        )
    columns = ("p10", "p01", "pairs", "bootstrap", "tango")
    caption = (
        "Enumerated, `exact_binary_bootstrap`; in brackets simulated, `paired_bootstrap`, "
        f"{min(sets, BOOTSTRAP_SETS):,} data sets a row, B = {RESAMPLES:,}."
    )
    return Table("binary-bootstrap", PAGE, columns, rows, caption)


def wald_interval(s: Integers, n: int) -> tuple[Tensor, Tensor]:
    """The textbook's s/n ± z·sqrt(p(1 - p)/n), which the library does not offer."""
    p = s / n
    reach = normal_quantile(LEVEL) * np.sqrt(p * (1.0 - p) / n)
    return torch.from_numpy(p - reach), torch.from_numpy(p + reach)


def proportion_intervals(s: Integers, n: int) -> list[tuple[Tensor, Tensor]]:
    """Low and high by Wilson, Jeffreys and Wald."""
    successes = torch.from_numpy(s)
    wilson = wilson_interval(successes, n, level=LEVEL)
    return [(wilson.low, wilson.high), (*jeffreys_interval(successes, n, level=LEVEL),), wald_interval(s, n)]


def proportion_coverage(*, sets: int, rng: np.random.Generator) -> Table:
    """Coverage and mean width of the intervals of one proportion."""
    rows = []
    for p in (0.5, 0.9, 0.98):
        for n in (10, 20, 50, 200, 1000):
            possible, drawn = np.arange(n + 1), rng.binomial(n, p, sets)
            probability = binom.pmf(possible, n, p)
            exact, simulated = proportion_intervals(possible, n), proportion_intervals(drawn, n)
            coverage = [
                percent(float(probability @ _holds(*every, p).double().numpy()), _share(_holds(*some, p)))
                for every, some in zip(exact, simulated, strict=True)
            ]
            widths = [percent(float(probability @ (high - low).numpy())) for low, high in exact[:2]]
            rows.append((f"{p}", f"{n}", *coverage, *widths))
    columns = ("true rate", "n", "wilson", "jeffreys", "wald (not offered)", "width, wilson", "width, jeffreys")
    caption = f"Enumerated; in brackets simulated, {sets:,} data sets a row."
    return Table("proportion-coverage", PAGE, columns, rows, caption)


def proportion_worst() -> Table:
    """Mean and smallest coverage over true rates from 1 % to 99 %."""
    grid = np.arange(1, 100) / 100.0
    rows = []
    for n in (10, 20, 50, 200, 1000):
        possible = np.arange(n + 1)
        probability = binom.pmf(possible, n, grid[:, None])
        cells = []
        for low, high in proportion_intervals(possible, n):
            held = (low.numpy() <= grid[:, None]) & (grid[:, None] <= high.numpy())
            coverage = (probability * held).sum(1)
            cells.append(f"{percent(coverage.mean())}, {percent(coverage.min())} at {grid[coverage.argmin()]:.2f}")
        rows.append((f"{n}", *cells))
    columns = ("n", "wilson: mean, smallest", "jeffreys: mean, smallest", "wald (not offered): mean, smallest")
    return Table("proportion-worst", PAGE, columns, rows, "Enumerated over true rates .01, .02, ..., .99.")


CORRECTION, CORRUPTION = 0.3, 0.05


def channel_coverage(*, sets: int, rng: np.random.Generator) -> Table:
    """Coverage of the three intervals of a channel, whose denominators are themselves drawn."""
    rows = []
    for p0 in (0.7, 0.9):
        for n in SIZES:
            wrong = 1.0 - p0
            before = rng.binomial(n, p0, sets)
            lost, gained = rng.binomial(before, CORRUPTION), rng.binomial(n - before, CORRECTION)
            counts = tables_of(n - before - gained, gained, lost, before - lost)
            cells = []
            for method in ("wilson", "jeffreys"):
                intervals = channel_intervals(counts, level=LEVEL, method=method)
                for rate, share, interval in ((CORRECTION, wrong, intervals.c), (CORRUPTION, p0, intervals.gamma)):
                    exact = rate_coverage(method, rate, share, n)
                    cells.append(percent(exact, _share(_holds(interval.low, interval.high, rate))))
            lost_share, gained_share = p0 * CORRUPTION, wrong * CORRECTION
            held = _holds(intervals.delta.low, intervals.delta.high, gained_share - lost_share)
            cells.append(percent(difference_coverage("wald", lost_share, gained_share, n)[0], _share(held)))
            cells.append(percent(difference_coverage("tango", lost_share, gained_share, n)[0]))
            rows.append((f"{p0}", f"{n}", *cells))
    columns = (
        "accuracy before",
        "samples",
        "c, wilson",
        "gamma, wilson",
        "c, jeffreys",
        "gamma, jeffreys",
        "delta",
        "delta, tango",
    )
    caption = f"Enumerated; in brackets simulated, {sets:,} data sets a row. c is {CORRECTION}, gamma {CORRUPTION}."
    return Table("channel-coverage", PAGE, columns, rows, caption)


def rate_coverage(method: str, rate: float, share: float, n: int) -> float:
    """Exact coverage of the interval of a rate whose denominator is Binomial(n, share)."""
    trials, successes = np.tril_indices(n + 1)
    probability = binom.pmf(trials, n, share) * binom.pmf(successes, trials, rate)
    possible = probability > 0.0
    successes, trials, probability = successes[possible], trials[possible], probability[possible]
    form = wilson_interval if method == "wilson" else jeffreys_interval
    interval = form(torch.from_numpy(successes), torch.from_numpy(trials), level=LEVEL)
    return float(probability @ _holds(interval.low, interval.high, rate).double().numpy())


SIMULATED = (difference_coverages, binary_bootstrap, proportion_coverage, channel_coverage)


def tables(*, sets: int, seed: int) -> Iterator[Table]:
    """All tables of the page but the verdict's; each has a generator of its own."""
    yield difference_widths()
    yield proportion_worst()
    for number, table in enumerate(SIMULATED):
        yield table(sets=sets, rng=np.random.default_rng([seed, number]))


if __name__ == "__main__":
    main(__file__, __doc__, tables, sets=20_000, seed=0)
