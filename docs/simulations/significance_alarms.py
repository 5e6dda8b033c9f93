"""How often SignificanceMonitor's test alarms when nothing changes, against three references.

Every validation draws fresh outcomes of N samples whose chances of being right never move. A test at alpha = 0.05
should alarm in at most 5 % of validations. Against the best validation it alarms far more often: that one was selected
for its luck. So the monitor gives no p-value there.

Run: python docs/simulations/significance_alarms.py [--runs 300] [--validations 40] [--samples 1000] [--seed 0]
    [--write]
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from trust import Table, main

from polyweave_torch.functional import mcnemar

REFERENCES = ("previous", "first", "best")
ALPHA = 0.05


class Alarms(NamedTuple):
    """Shares of alarms with their Monte Carlo errors, a run being one observation."""

    validations: float
    """Share of validations that alarm."""
    validations_error: float
    runs: float
    """Share of runs in which at least one does."""
    runs_error: float


def alarm_rates(*, runs: int, validations: int, samples: int, seed: int, alpha: float = ALPHA) -> dict[str, Alarms]:
    """Shares of p < alpha by reference."""
    generator = torch.Generator().manual_seed(seed)
    alarms = {name: torch.zeros(runs, validations - 1, dtype=torch.bool) for name in REFERENCES}
    for run in range(runs):
        # Hard and easy samples, as in real data: outcomes of one sample are alike over validations.
        chance = torch.rand(samples, generator=generator) ** 0.5
        right = torch.rand(validations, samples, generator=generator) < chance
        accuracy = right.sum(1)
        best_so_far = torch.stack([accuracy[: k + 1].argmax() for k in range(validations - 1)])
        references = {
            "previous": right[:-1],
            "first": right[:1].expand(validations - 1, -1),
            "best": right[best_so_far],
        }
        for name, before in references.items():
            lost, gained = (before & ~right[1:]).sum(1), (~before & right[1:]).sum(1)
            alarms[name][run] = mcnemar(lost, gained).p_value < alpha
    return {
        name: Alarms(*_mean(found.double().mean(1)), *_mean(found.any(1).double())) for name, found in alarms.items()
    }


def _mean(of_runs: Tensor) -> tuple[float, float]:
    """The mean over runs, and its standard error."""
    return float(of_runs.mean()), float(of_runs.std()) / len(of_runs) ** 0.5


def tables(*, runs: int, validations: int, samples: int, seed: int) -> Iterator[Table]:
    """The table of the page."""
    found = alarm_rates(runs=runs, validations=validations, samples=samples, seed=seed)
    rows = [
        (
            name,
            f"{100 * alarms.validations:.1f} ± {100 * alarms.validations_error:.1f}",
            f"{100 * alarms.runs:.1f} ± {100 * alarms.runs_error:.1f}",
        )
        for name, alarms in found.items()
    ]
    columns = ("against", "validations with p < 0.05, %", "runs with at least one, %")
    caption = (
        f"Simulated, {runs} runs of {validations} validations of {samples:,} samples, nothing changing; ± one Monte "
        "Carlo error."
    )
    yield Table("alarms", "alarms.md", columns, rows, caption)


if __name__ == "__main__":
    main(__file__, __doc__, tables, runs=300, validations=40, samples=1000, seed=0)
