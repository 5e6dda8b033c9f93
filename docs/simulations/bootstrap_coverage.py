"""How often the verdict's interval of the composite is wrong: too narrow for few pairs, right for many.

Each data set scores N samples in three layers (fact: 4 checks, behavior: 3 checks, judge: a mark from 1 to 5) under a
control and a treatment; samples are hard or easy for both. Without a change, an interval that excludes 0 is an error;
with one of known size, an interval that holds it covers. They should be 5 % and 95 %. In brackets: what the percentile
interval would give on normal differences, from Student's t on N - 1 degrees of freedom.

Run: python docs/simulations/bootstrap_coverage.py [--sets 10000] [--resamples 1000] [--seed 0] [--write]
"""

import math
from collections.abc import Iterator

import torch
from scipy import stats
from torch import Tensor
from trust import Table, main, percent

from polyweave_torch.functional.bootstrap import paired_bootstrap
from polyweave_torch.functional.composite import composite_score, layer_score

LEVEL, GAIN = 0.95, 0.1
HARD, EASY = 2.0, 3.0
# Data sets that share resamples also share their Monte Carlo error, so only few do.
_SETS_A_SEED = 10


def composites(chance: Tensor, generator: torch.Generator) -> Tensor:
    """Composites of samples whose checks pass, and whose marks rise, with these chances."""

    def passed(checks: int) -> Tensor:
        return (torch.rand(checks, *chance.shape, generator=generator, dtype=torch.float64) < chance).double().sum(0)

    layers = [layer_score(passed(4), torch.tensor(4.0)), layer_score(passed(3), torch.tensor(3.0)), 1.0 + passed(4)]
    return composite_score(torch.stack(layers, -1)).score


def error_and_coverage(*, pairs: int, sets: int, resamples: int, seed: int) -> tuple[float, float]:
    """Share of data sets of so many pairs whose interval excludes 0 under no change, and holds the true change."""
    generator = torch.Generator().manual_seed(seed)
    # By Joehnk's rule a ratio of gammas is a beta: chances of Beta(EASY, HARD), whose mean is known.
    easy, hard = (torch.zeros(pairs, sets, dtype=torch.float64) for _ in range(2))
    for shape, total in ((EASY, easy), (HARD, hard)):
        for _ in range(int(shape)):
            total -= torch.rand(pairs, sets, generator=generator, dtype=torch.float64).log()
    chance = easy / (easy + hard)
    control, same = composites(chance, generator), composites(chance, generator)
    better = composites(chance + GAIN * (1.0 - chance), generator)
    # Every layer's score is 1 + 4·chance on average.
    truth = 4.0 * GAIN * HARD / (EASY + HARD)
    wrong = covered = 0
    for start in range(0, sets, _SETS_A_SEED):
        before, alike, after = (arm[:, start : start + _SETS_A_SEED] for arm in (control, same, better))
        null = paired_bootstrap(before, alike, resamples=resamples, level=LEVEL, seed=seed + start)
        change = paired_bootstrap(before, after, resamples=resamples, level=LEVEL, seed=seed + start)
        wrong += int(null.significant.sum())
        covered += int(((change.low <= truth) & (truth <= change.high)).sum())
    return wrong / sets, covered / sets


def expected_error(pairs: int) -> float:
    """Error of the percentile interval of normal differences: its half-width is z·s·sqrt((N - 1)/N)/sqrt(N)."""
    z = stats.norm.ppf(0.5 + LEVEL / 2.0)
    return float(2.0 * stats.t.sf(z * math.sqrt((pairs - 1) / pairs), pairs - 1))


def tables(*, sets: int, resamples: int, seed: int) -> Iterator[Table]:
    """The table of the page."""
    rows = []
    for pairs in (5, 10, 20, 50, 100):
        error, coverage = error_and_coverage(pairs=pairs, sets=sets, resamples=resamples, seed=seed)
        expected = expected_error(pairs)
        rows.append((f"{pairs}", percent(error, expected), percent(coverage, 1.0 - expected)))
    columns = ("pairs", "error under no change, %", "coverage of a change, %")
    caption = (
        f"Simulated, {sets:,} data sets a row, {resamples:,} resamples, level {LEVEL}; in brackets what normal "
        "differences would give."
    )
    yield Table("verdict-bootstrap", "intervals.md", columns, rows, caption)


if __name__ == "__main__":
    main(__file__, __doc__, tables, sets=10_000, resamples=1000, seed=0)
