"""Runs whose outcomes are scores, not right or wrong, compared by the paired bootstrap of the mean difference.

An item that was asked several times comes as the mean of its epochs: items are resampled, never epochs, so that the
answers to one item may depend on each other in any way.
"""

import math
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from polyweave_torch.evallogs.alignment import Aligned
from polyweave_torch.evallogs.outcomes import Settings, run_entries, slice_index
from polyweave_torch.evallogs.verdicts import judge
from polyweave_torch.functional.bootstrap import BootstrapInterval, paired_bootstrap
from polyweave_torch.functional.mcnemar import FEW_DISCORDANTS

_RESAMPLES = 2000
_FEW_ITEMS = 20
_UNDEFINED_COUNTS = dict.fromkeys(("n00", "n01", "n10", "n11"))
_NO_INTERVAL = [None, None]


def compare_scores(aligned: Aligned, settings: Settings) -> dict[str, Any]:
    """The numbers of a comparison of scores, under the keys of one of outcomes; what scores don't have is None.

    The deciding interval has the level 1 - alpha; over S slices, or P pairs of three or more runs, each has the level
    1 - alpha/S, or 1 - alpha/P. Equivalence at a margin: the interval of level 1 - 2·alpha lies inside it.

    Raises:
        ValueError: where the margin is not positive and finite.
    """
    values = torch.as_tensor(aligned.scores)
    before, after = values[:, 0], values[:, -1]
    bootstrap = cache(partial(paired_bootstrap, before, after, resamples=_RESAMPLES))
    interval, deciding = bootstrap(level=settings.level), bootstrap(level=1.0 - settings.alpha)
    changed = int((before != after).sum())
    slices = _slices(before, after, aligned.slices, settings.alpha)
    margin = _margin(bootstrap, settings)
    judgement = judge(
        significant=bool(deciding.significant),
        delta=float(interval.estimate),
        discordant=changed,
        underpowered=changed < FEW_DISCORDANTS,
        slices_down=[name for name, row in slices.items() if row["significant"] and row["delta"] < 0],
        prompts_differ=aligned.prompts_differ > 0 and not settings.prompts_may_differ,
        equivalent=None if margin["equivalence"] is None else bool(margin["equivalence"]["equivalent"]),
    )
    # Against zeros the paired bootstrap of a difference is that of the mean itself.
    means = paired_bootstrap(torch.zeros_like(values), values, resamples=_RESAMPLES, level=settings.level)
    return {
        "runs": run_entries(aligned, means.estimate, means.low, means.high),
        "counts": _UNDEFINED_COUNTS,
        **dict.fromkeys(("c", "gamma", "break_even", "smoothed", "surplus", "flip_rates", "answers")),
        "delta": interval.estimate,
        "quadrant": "UNKNOWN",
        "intervals": {"c": _NO_INTERVAL, "gamma": _NO_INTERVAL, "delta": [interval.low, interval.high]},
        "difference": {"bootstrap": [interval.low, interval.high]},
        "mcnemar": {
            **dict.fromkeys(("method", "statistic", "p_value", "p_exact", "p_midp", "p_chi2", "smallest_p")),
            "discordant": changed,
            "underpowered": changed < FEW_DISCORDANTS,
        },
        "scores": {
            "estimate": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "standard_error": interval.standard_error,
            "significant": deciding.significant,
            "resamples": _RESAMPLES,
            "up": (after > before).sum(),
            "down": (after < before).sum(),
            "t_test": _paired_t(before, after, settings.level),
        },
        **margin,
        "verdict": judgement._asdict(),
        "slices": slices,
        "heterogeneity": None,
        "cochran_q": None,
        "pairs": _pairs(aligned, values, settings.alpha),
        "warnings": [*_few_items(len(values)), *_no_test(settings.method)],
    }


def _margin(bootstrap: Callable[..., BootstrapInterval], settings: Settings) -> dict[str, Any]:
    margin = settings.margin
    if margin is None:
        return {"equivalence": None, "non_inferiority": None}
    if not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be a positive, finite difference of mean scores, but is {margin}")
    interval = bootstrap(level=1.0 - 2.0 * settings.alpha)
    above, below = bool(interval.low > -margin), bool(interval.high < margin)
    return {
        "equivalence": {"margin": margin, "p_value": None, "equivalent": above and below, "method": "bootstrap"},
        "non_inferiority": {"margin": margin, "p_value": None, "non_inferior": above},
    }


def _slices(before: Tensor, after: Tensor, labels: list[str] | None, alpha: float) -> dict[str, dict[str, Any]]:
    if not labels:
        return {}
    names, index = slice_index(labels)
    level = 1.0 - alpha / len(names)
    rows = {}
    for row, name in enumerate(names):
        inside = index == row
        difference = _difference(before[inside], after[inside], level)
        rows[name] = {
            "counts": _UNDEFINED_COUNTS,
            **dict.fromkeys(("c", "gamma", "p_value", "p_adjusted")),
            "quadrant": "UNKNOWN",
            "activate": bool(difference["delta"] > 0),
            "n": int(inside.sum()),
            **difference,
        }
    return rows


def _pairs(aligned: Aligned, values: Tensor, alpha: float) -> list[dict[str, Any]] | None:
    runs = aligned.runs
    if len(runs) < 3:
        return None
    level = 1.0 - alpha / math.comb(len(runs), 2)
    return [
        {
            "first": runs[first].name,
            "second": runs[second].name,
            "first_index": first,
            "second_index": second,
            **dict.fromkeys(("p_value", "p_adjusted")),
            **_difference(values[:, first], values[:, second], level),
        }
        for first, second in combinations(range(len(runs)), 2)
    ]


def _difference(before: Tensor, after: Tensor, level: float) -> dict[str, Any]:
    interval = paired_bootstrap(before, after, resamples=_RESAMPLES, level=level)
    return {
        "delta": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "significant": interval.significant,
    }


def _paired_t(before: Tensor, after: Tensor, level: float) -> dict[str, float]:
    """Student's paired t, as a second opinion on the bootstrap; undefined where all differences are one number."""
    differences = (after - before).numpy()
    if len(differences) < 2 or bool((differences == differences[0]).all()):
        return dict.fromkeys(("statistic", "df", "p_value", "low", "high"), math.nan)
    with warnings.catch_warnings():
        # Differences that are almost one number: the result stands, with fewer digits.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(level)
    return {
        "statistic": float(test.statistic),
        "df": float(test.df),
        "p_value": float(test.pvalue),
        "low": float(low),
        "high": float(high),
    }


def _few_items(items: int) -> list[str]:
    if items >= _FEW_ITEMS:
        return []
    return [f"{items} items are too few for the bootstrap: its interval excludes 0 by chance too often below 20"]


def _no_test(method: str) -> list[str]:
    return [] if method == "auto" else [f"method={method} means nothing for scores, where the bootstrap decides"]
