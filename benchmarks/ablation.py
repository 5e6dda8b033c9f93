"""The analysis of an ablation against pandas and statsmodels."""

from functools import partial
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch.ablation import Analysis, Outcome, analyze_outcomes

_PANDAS = "pandas and statsmodels"
_CONDITIONS, _STRATA = 10, ("simple", "media", "compleja")


def _outcomes(device: torch.device, samples: int) -> list[Outcome]:
    """Conditions of accuracies from .65 to .75; the outcomes of a case depend on each other."""
    generator = seeded(torch.device("cpu"))
    accuracy = torch.linspace(0.65, 0.75, _CONDITIONS)
    ease = torch.randn((samples, 1), generator=generator)
    noise = torch.randn((samples, _CONDITIONS), generator=generator)
    right = ((ease + noise) / 2**0.5 < torch.special.ndtri(accuracy)).tolist()
    return [
        Outcome(f"case-{row}", _STRATA[row % 3], f"condition-{column}", first, True, 1 + (row + column) % 3)
        for row, outcomes in enumerate(right)
        for column, first in enumerate(outcomes)
    ]


def _numbers(_: list[Outcome], analysis: Analysis) -> Tensor:
    overall = [pair for pair in analysis.pairwise if not pair.stratum]
    strata = [pair for pair in analysis.pairwise if pair.stratum]
    q = None if analysis.cochran is None else [float(analysis.cochran.statistic), float(analysis.cochran.p_value)]
    p_values = [value for family in (overall, strata) for value in _raw_and_adjusted(family)]
    rates = [(s.p_sem, s.wilson_lo, s.wilson_hi, s.mean_iter) for s in analysis.per_condition]
    return torch.tensor([*(q or []), *p_values, *(value for row in rates for value in row)], dtype=torch.float64)


def _raw_and_adjusted(family: list[Any]) -> list[float]:
    return [*(float(pair.result.p_value) for pair in family), *(pair.holm_p for pair in family)]


def _pandas(outcomes: list[Outcome]) -> Tensor:
    # pandas has stubs of its own, which are not installed.
    pd: Any = import_module("pandas")
    from statsmodels.stats.contingency_tables import cochrans_q

    frame = pd.DataFrame(outcomes, columns=list(Outcome._fields))
    frame["first_try"] = frame["first_try"] & ~frame["refused"] & frame["error"].isna()
    wide = frame.pivot(index="case_id", columns="condition", values="first_try")
    strata = frame.drop_duplicates("case_id").set_index("case_id")["stratum"]
    pairs = [(wide[first], wide[second]) for first, second in combinations(wide.columns, 2)]
    ends = [(wide[wide.columns[0]][strata == name], wide[wide.columns[-1]][strata == name]) for name in _STRATA]
    q = cochrans_q(wide.to_numpy().astype(int))
    parts = [[q.statistic, q.pvalue], _family(pairs), _family(ends), _rates(frame)]
    parts += [_rates(frame[frame["stratum"] == name]) for name in _STRATA]
    return torch.from_numpy(np.concatenate(parts))


def _family(pairs: list[tuple[Any, Any]]) -> Any:
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    p_values = []
    for first, second in pairs:
        b, c = int((first & ~second).sum()), int((~first & second).sum())
        # statsmodels' corrected test takes 1 off a difference of 0, too.
        p_values.append(1.0 if b == c else mcnemar([[0, b], [c, 0]], exact=b + c < 25, correction=True).pvalue)
    return np.concatenate([p_values, multipletests(p_values, method="holm")[1]])


def _rates(frame: Any) -> Any:
    from statsmodels.stats.proportion import proportion_confint

    groups = frame.groupby("condition")
    right, n = groups["first_try"].sum(), groups["first_try"].size()
    low, high = proportion_confint(right, n, method="wilson")
    iterations = frame[frame["converged"]].groupby("condition")["iterations"].mean()
    return np.stack([right / n, low, high, iterations], axis=1).ravel()


WORKLOADS: list[Workload[Any]] = [
    Workload(
        name="ablation-100000x10",
        about="analysis of 100,000 cases under 10 conditions in 3 strata: 48 tests, 40 intervals, from outcomes",
        samples=100_000,
        make=_outcomes,
        ours=Contestant(partial(analyze_outcomes, strata=_STRATA), _numbers),
        peers={_PANDAS: Contestant(_pandas, needs="statsmodels")},
        goals=(Goal("times", 1.5, _PANDAS), Goal("peak", 128.0)),
        tolerance=1e-9,
        devices=("cpu",),
    ),
]
