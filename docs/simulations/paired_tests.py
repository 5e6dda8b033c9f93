"""How often the paired tests reject: without a difference, at the margin, and with one of known size.

McNemar's and the equivalence tests are enumerated: every table that N pairs can give, its probability, and whether the
library's own p-value rejects it. Beside it outcomes are drawn, counted and tested as a user would. Cochran's Q, the
clustered tests, the heterogeneity of strata and the families of slices are simulated only.

Run: python docs/simulations/paired_tests.py [--sets 20000] [--seed 0] [--write]
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor
from trust import Floats, Table, enumerated_tables, main, percent, simulated_tables

from polyweave_torch.functional import (
    ChiSquareResult,
    CochranQResult,
    McNemarResult,
    benjamini_hochberg,
    clustered_mcnemar,
    cochran_q,
    equivalence_test,
    holm_bonferroni,
    mcnemar,
    non_inferiority_test,
    stratum_heterogeneity,
)
from polyweave_torch.functional.mcnemar import Method

ALPHA = 0.05
METHODS: tuple[Method, ...] = get_args(Method)
DISCORDANCES, SIZES = (0.05, 0.1, 0.2, 0.4, 0.6), (20, 50, 100, 200, 500, 1000)
EQUAL, TWICE, THRICE = 1 / 2, 2 / 3, 3 / 4
"""Shares of the gains among the discordant pairs."""
PAGE = "tests.md"
Test: TypeAlias = McNemarResult | CochranQResult | ChiSquareResult
ENUMERATED = "Enumerated; in brackets simulated, {sets:,} data sets a row."


@cache
def _rejected(method: Method) -> NDArray[np.bool_]:
    """Whether the library's p-value is below alpha, [m, b]: b losses of m discordant pairs, m to the largest N."""
    m, b = np.tril_indices(max(SIZES) + 1)
    rejected = np.zeros((max(SIZES) + 1,) * 2, dtype=bool)
    rejected[m, b] = mcnemar(torch.from_numpy(b), torch.from_numpy(m - b), method=method).p_value.numpy() < ALPHA
    return rejected


@cache
def _rejection_of_discordants(method: Method, share: float) -> Floats:
    """The probability of rejection given m discordant pairs, for every m."""
    m, b = np.nonzero(_rejected(method))
    return np.bincount(m, binom.pmf(b, m, 1.0 - share), minlength=max(SIZES) + 1).astype(np.float64)


def mcnemar_rejection(method: Method, discordance: float, n: int, *, share: float = EQUAL) -> float:
    """The exact probability that McNemar's test on n pairs gives p < alpha; at the share 1/2 its error rate."""
    return float(binom.pmf(np.arange(n + 1), n, discordance) @ _rejection_of_discordants(method, share)[: n + 1])


def _mcnemar_cells(discordance: float, n: int, share: float, sets: int, rng: np.random.Generator) -> list[str]:
    counts = simulated_tables(discordance * (1.0 - share), discordance * share, n, sets=sets, rng=rng)
    return [
        percent(
            mcnemar_rejection(method, discordance, n, share=share), _rejections(mcnemar(counts=counts, method=method))
        )
        for method in METHODS
    ]


def _rejections(result: Test) -> float:
    return float((result.p_value < ALPHA).double().mean())


def mcnemar_worst() -> Table:
    """The largest error of each method: over the grid, and given the number of discordant pairs, whatever the grid."""
    rows = []
    for method in METHODS:
        errors = {(d, n): mcnemar_rejection(method, d, n) for d in DISCORDANCES for n in SIZES}
        worst = max(errors, key=errors.__getitem__)
        given = _rejection_of_discordants(method, EQUAL)
        rows.append(
            (
                method,
                percent(errors[worst], decimals=2),
                f"{worst[1]} pairs, discordance {worst[0]}",
                percent(given.max(), decimals=2),
                f"{given.argmax()}",
            )
        )
    columns = (
        "method",
        "largest error of the table below",
        "there",
        "largest for a fixed number of discordants",
        "so many",
    )
    return Table("mcnemar-worst", PAGE, columns, rows, f"Enumerated; %, up to {max(SIZES):,} discordants.")


def mcnemar_error(*, sets: int, rng: np.random.Generator) -> Table:
    """Error rates of each method over the grid."""
    rows = [
        (f"{discordance}", f"{n}", f"{discordance * n:g}", *_mcnemar_cells(discordance, n, EQUAL, sets, rng))
        for discordance in DISCORDANCES
        for n in SIZES
    ]
    columns = ("discordance", "pairs", "expected discordants", *METHODS)
    return Table("mcnemar-error", PAGE, columns, rows, ENUMERATED.format(sets=sets))


def mcnemar_power() -> Table:
    """Power of the default over the grid."""
    rows = [
        (name, f"{discordance}", *(percent(mcnemar_rejection("auto", discordance, n, share=share)) for n in SIZES))
        for name, share in (("1 : 2", TWICE), ("1 : 3", THRICE))
        for discordance in DISCORDANCES
    ]
    columns = ("losses : gains", "discordance", *(f"{n} pairs" for n in SIZES))
    return Table("mcnemar-power", PAGE, columns, rows, "Enumerated, method auto.")


def mcnemar_choice(*, sets: int, rng: np.random.Generator) -> Table:
    """What the choice of the method costs in power."""
    rows = [
        (name, f"{n}", f"{0.2 * n:g}", *_mcnemar_cells(0.2, n, share, sets, rng))
        for name, share in (("1 : 2", TWICE), ("1 : 3", THRICE))
        for n in SIZES
    ]
    columns = ("losses : gains", "pairs", "expected discordants", *METHODS)
    return Table("mcnemar-choice", PAGE, columns, rows, ENUMERATED.format(sets=sets))


EQUIVALENCE_ROWS = [(0.05, d, n) for d in (0.05, 0.1, 0.3) for n in (100, 300, 1000)] + [
    (0.02, d, n) for d in (0.02, 0.1) for n in (300, 1000, 3000)
]


def equivalence_rejections(counts: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Whether each table is called non-inferior, equivalent by the score test, and equivalent by Wald's."""
    return (
        non_inferiority_test(counts, margin, alpha=ALPHA).equivalent,
        equivalence_test(counts, margin, alpha=ALPHA).equivalent,
        equivalence_test(counts, margin, alpha=ALPHA, method="wald").equivalent,
    )


def equivalence_error(*, sets: int, rng: np.random.Generator) -> Table:
    """Errors where the true loss is the margin exactly, and how often equivalence is shown where nothing changed."""
    rows = []
    for margin, discordance, n in EQUIVALENCE_ROWS:
        lost, gained = (discordance + margin) / 2.0, (discordance - margin) / 2.0
        tables = enumerated_tables(lost, gained, n)
        drawn = simulated_tables(lost, gained, n, sets=sets, rng=rng)
        errors = [
            percent(tables.mean(exact), float(simulated.double().mean()))
            for exact, simulated in zip(
                equivalence_rejections(tables.counts, margin), equivalence_rejections(drawn, margin), strict=True
            )
        ]
        unchanged = enumerated_tables(discordance / 2.0, discordance / 2.0, n)
        shown = [percent(unchanged.mean(equal)) for equal in equivalence_rejections(unchanged.counts, margin)[:2]]
        rows.append((f"{margin}", f"{discordance}", f"{n}", *errors, *shown))
    columns = (
        "margin",
        "discordance",
        "pairs",
        "non-inferior, loss = margin",
        "equivalent (score), loss = margin",
        "equivalent (wald), loss = margin",
        "non-inferior, no change",
        "equivalent (score), no change",
    )
    return Table("equivalence-error", PAGE, columns, rows, ENUMERATED.format(sets=sets))


def equivalence_worst() -> Table:
    """The largest error of the non-inferiority test over the numbers of pairs, where gains are none and where some."""
    rows = []
    for margin in (0.01, 0.02, 0.05, 0.1):
        cells = []
        for gained in (0.0, margin / 2.0):
            errors = {}
            for n in range(20, 501):
                tables = enumerated_tables(margin + gained, gained, n)
                errors[n] = tables.mean(non_inferiority_test(tables.counts, margin, alpha=ALPHA).equivalent)
            worst = max(errors, key=errors.__getitem__)
            cells += [percent(errors[worst]), f"{worst}"]
        rows.append((f"{margin}", *cells))
    columns = ("margin", "largest error, no gains", "with so many pairs", "1 gain to 3 losses", "with so many")
    return Table("equivalence-worst", PAGE, columns, rows, "Enumerated over 20, 21, ..., 500 pairs; loss = margin.")


COCHRAN_ROWS = [(k, d, n) for k in (3, 5) for d in (0.1, 0.3) for n in (10, 20, 50, 200)]
# A permutation p-value takes milliseconds, where the others take microseconds, and more the more rows disagree.
PERMUTED_SETS = 2000
_MOST_PERMUTED = {3: 50, 5: 20}


def related_outcomes(shape: tuple[int, int, int], discordance: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Outcomes [sets, n, K] of equally accurate conditions; the chance of an item is Beta(2t, t), 2/3 on average."""
    t = 3.0 * discordance / (4.0 - 9.0 * discordance)
    chance = rng.beta(2.0 * t, t, (*shape[:2], 1))
    return np.asarray(rng.random(shape) < chance)


def cochran_error(*, sets: int, rng: np.random.Generator) -> Table:
    """Error rates of Cochran's Q by chi-square and by permutation."""
    rows = []
    for conditions, discordance, n in COCHRAN_ROWS:
        outcomes = related_outcomes((sets, n, conditions), discordance, rng).astype(np.float64)
        gram = torch.from_numpy(np.swapaxes(outcomes, 1, 2) @ outcomes).long()
        exact = float("nan")
        if n <= _MOST_PERMUTED[conditions]:
            totals = torch.from_numpy(outcomes[:PERMUTED_SETS].sum(2)).long()
            totals = torch.nn.functional.one_hot(totals, conditions + 1).sum(1)
            exact = _rejections(cochran_q(gram=gram[:PERMUTED_SETS], row_totals=totals, permutation=True))
        chi_square = percent(_rejections(cochran_q(gram=gram, n=n)))
        rows.append((f"{conditions}", f"{discordance}", f"{n}", chi_square, percent(exact)))
    columns = ("conditions", "discordance of any two", "samples", "chi-square", "permutation")
    caption = f"Simulated, {sets:,} data sets a row, {min(sets, PERMUTED_SETS):,} for the permutations."
    return Table("cochran-error", PAGE, columns, rows, caption)


CLUSTER_ROWS = [
    (clusters, pairs, likeness)
    for likeness in (0.0, 0.2, 0.5)
    for clusters, pairs in ((10, "5"), (50, "5"), (200, "5"), (50, "1 to 9"), (50, "20"))
]
DISCORDANT = 0.3


def clustered_error(*, sets: int, rng: np.random.Generator) -> Table:
    """Errors where the pairs of an item lean the same way, but no way on average."""
    rows = []
    for clusters, pairs, likeness in CLUSTER_ROWS:
        shape = (sets, clusters)
        sizes = rng.integers(1, 10, shape) if pairs == "1 to 9" else np.full(shape, int(pairs))
        # A Beta(a, a) share of gains makes discordant pairs of one cluster correlate with 1 / (2a + 1).
        a = (1.0 / likeness - 1.0) / 2.0 if likeness else math.inf
        share = rng.beta(a, a, shape) if likeness else np.full(shape, 0.5)
        discordant = rng.binomial(sizes, DISCORDANT)
        gained = rng.binomial(discordant, share)
        b, c, n = (torch.from_numpy(counts) for counts in (discordant - gained, gained, sizes))
        results = [mcnemar(b.sum(1), c.sum(1))] + [
            clustered_mcnemar(b, c, n, method=method) for method in ("obuchowski", "durkalski")
        ]
        rows.append((f"{likeness}", f"{clusters}", pairs, *(percent(_rejections(result)) for result in results)))
    columns = ("correlation", "items", "pairs of each", "mcnemar, pairs as independent", "obuchowski", "durkalski")
    return Table("clustered-error", PAGE, columns, rows, f"Simulated, {sets:,} data sets a row.")


def strata_error(*, sets: int, rng: np.random.Generator) -> Table:
    """Errors of the heterogeneity test where all strata share one balance."""
    rows = []
    for strata in (2, 5, 20):
        for expected in (5, 10, 25, 100):
            errors = []
            for share in (EQUAL, TWICE, THRICE):
                discordant = rng.binomial(5 * expected, 0.2, (sets, strata))
                gained = rng.binomial(discordant, share)
                result = stratum_heterogeneity(torch.from_numpy(discordant - gained), torch.from_numpy(gained))
                errors.append(percent(_rejections(result)))
            rows.append((f"{strata}", f"{expected}", *errors))
    columns = ("strata", "expected discordants of each", "losses : gains 1 : 1", "1 : 2", "1 : 3")
    return Table("strata-error", PAGE, columns, rows, f"Simulated, {sets:,} data sets a cell.")


def family_error(*, sets: int, rng: np.random.Generator) -> Table:
    """How often any of several unchanged slices is called changed."""
    rows = []
    for slices in (1, 5, 20, 50):
        for expected in (10, 40):
            discordant = rng.binomial(5 * expected, 0.2, (sets, slices))
            gained = rng.binomial(discordant, EQUAL)
            raw = mcnemar(torch.from_numpy(discordant - gained), torch.from_numpy(gained)).p_value
            found = [(p < ALPHA).any(-1).double().mean() for p in (raw, holm_bonferroni(raw), benjamini_hochberg(raw))]
            rows.append((f"{slices}", f"{expected}", *(percent(float(share)) for share in found)))
    columns = ("slices", "expected discordants of each", "raw p", "Holm", "Benjamini-Hochberg")
    return Table("family-error", PAGE, columns, rows, f"Simulated, {sets:,} data sets a row, method auto.")


SIMULATED = (
    mcnemar_error,
    mcnemar_choice,
    equivalence_error,
    cochran_error,
    clustered_error,
    strata_error,
    family_error,
)


def tables(*, sets: int, seed: int) -> Iterator[Table]:
    """All tables of the page; each has a generator of its own, so that none depends on those before it."""
    yield mcnemar_worst()
    yield mcnemar_power()
    yield equivalence_worst()
    for number, table in enumerate(SIMULATED):
        yield table(sets=sets, rng=np.random.default_rng([seed, number]))


if __name__ == "__main__":
    main(__file__, __doc__, tables, sets=20_000, seed=0)
