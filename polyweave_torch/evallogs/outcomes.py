"""Runs whose outcomes are right or wrong, compared: every number of the report, from 2x2 tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyweave_torch.evallogs.alignment import Aligned
from polyweave_torch.evallogs.verdicts import judge
from polyweave_torch.functional.channel import (
    channel_counts,
    channel_intervals,
    estimate_channel,
)
from polyweave_torch.functional.cochran import cochran_q
from polyweave_torch.functional.difference import IntervalMethod, paired_difference_interval
from polyweave_torch.functional.equivalence import equivalence_test, non_inferiority_test
from polyweave_torch.functional.flips import answer_churn, flip_rates
from polyweave_torch.functional.gating import phase_plane_diagnosis, quadrant_names, should_activate_step
from polyweave_torch.functional.gram import outcome_gram, paired_tables
from polyweave_torch.functional.intervals import wilson_interval
from polyweave_torch.functional.mcnemar import Method, mcnemar, mcnemar_pairs
from polyweave_torch.functional.multiplicity import holm_bonferroni
from polyweave_torch.functional.strata import stratum_heterogeneity
from polyweave_torch.layout import clipped

_MOST_SLICES = 10_000
_DIFFERENCES: tuple[IntervalMethod, ...] = ("tango", "newcombe", "wald")
_REFERENCE_TESTS: dict[str, Method] = {"p_exact": "exact", "p_midp": "midp", "p_chi2": "asymptotic"}


class Settings(NamedTuple):
    """What the user chose of a comparison."""

    margin: float | None
    level: float
    alpha: float
    method: Method
    prompts_may_differ: bool = False


def compare_correct(aligned: Aligned, settings: Settings) -> dict[str, Any]:
    """The numbers of a comparison: tensors, texts, lists and dicts under the keys of the report.

    Everything on top is the first run against the last. ``c``, ``gamma`` and ``break_even`` are raw rates, to which the
    intervals belong; quadrant and gating follow the rates smoothed by half an item, as everywhere in the library.
    """
    correct = torch.as_tensor(aligned.correct)
    before, after = correct[:, 0], correct[:, -1]
    table = channel_counts(before, after)
    slices, heterogeneity = _slices(before, after, aligned.slices, settings)
    overall, churn = _overall(table, settings), _answers(aligned, before, after)
    test, equivalence = overall["mcnemar"], overall["equivalence"]
    judgement = judge(
        significant=bool(test["p_value"] < settings.alpha),
        delta=float(overall["delta"]),
        discordant=int(test["discordant"]),
        underpowered=bool(test["underpowered"]),
        slices_down=[name for name, row in slices.items() if row["p_adjusted"] < settings.alpha and row["delta"] < 0],
        prompts_differ=aligned.prompts_differ > 0 and not settings.prompts_may_differ,
        equivalent=None if equivalence is None else bool(equivalence["equivalent"]),
    )
    accuracy = wilson_interval(correct.sum(0), len(correct), level=settings.level)
    return {
        "runs": run_entries(aligned, accuracy.p, accuracy.low, accuracy.high),
        **overall,
        "answers": churn,
        "scores": None,
        "verdict": judgement._asdict(),
        "slices": slices,
        "heterogeneity": heterogeneity,
        **_several(aligned, correct, settings),
        "warnings": [] if churn is None else _churn_warnings(churn),
    }


def run_entries(aligned: Aligned, accuracy: Tensor, low: Tensor, high: Tensor) -> list[dict[str, Any]]:
    """What is said of each run: its name and file, and its accuracy over the aligned items with the interval."""
    return [
        {
            "name": run.name,
            "path": run.path,
            "format": run.format,
            "n": len(aligned.ids),
            "accuracy": accuracy[column],
            "low": low[column],
            "high": high[column],
            "items": len(run.ids),
            "details": run.details,
        }
        for column, run in enumerate(aligned.runs)
    ]


def _overall(table: Tensor, settings: Settings) -> dict[str, Any]:
    channel, bounds = estimate_channel(table, smoothing=0), channel_intervals(table, level=settings.level)
    smoothed = estimate_channel(table)
    diagnosis = phase_plane_diagnosis(smoothed)
    test = mcnemar(counts=table, method=settings.method)
    differences = {
        method: paired_difference_interval(table, level=settings.level, method=method) for method in _DIFFERENCES
    }
    return {
        "counts": _counts(table),
        "c": channel.c,
        "gamma": channel.gamma,
        "delta": channel.delta,
        "break_even": channel.break_even_correction,
        "smoothed": {"c": smoothed.c, "gamma": smoothed.gamma},
        "surplus": diagnosis.surplus,
        "quadrant": quadrant_names(diagnosis.quadrant),
        "intervals": {
            "c": list(bounds.c),
            "gamma": list(bounds.gamma),
            "delta": [differences["tango"].low, differences["tango"].high],
        },
        "difference": {method: [interval.low, interval.high] for method, interval in differences.items()},
        "flip_rates": flip_rates(table)._asdict(),
        "mcnemar": {
            "method": test.method,
            "discordant": test.discordant,
            "statistic": test.statistic,
            "p_value": test.p_value,
            **{name: mcnemar(counts=table, method=method).p_value for name, method in _REFERENCE_TESTS.items()},
            "smallest_p": test.smallest_p,
            "underpowered": test.underpowered,
        },
        **_margin(table, settings),
    }


def _margin(table: Tensor, settings: Settings) -> dict[str, Any]:
    if settings.margin is None:
        return {"equivalence": None, "non_inferiority": None}
    equivalence = equivalence_test(table, settings.margin, alpha=settings.alpha)
    wald = equivalence_test(table, settings.margin, alpha=settings.alpha, method="wald")
    one_sided = non_inferiority_test(table, settings.margin, alpha=settings.alpha)
    return {
        "equivalence": {
            "margin": settings.margin,
            "p_value": equivalence.p_value,
            "equivalent": equivalence.equivalent,
            "method": equivalence.method,
            "p_lower": equivalence.p_lower,
            "p_upper": equivalence.p_upper,
            "wald": {"p_lower": wald.p_lower, "p_upper": wald.p_upper},
        },
        "non_inferiority": {
            "margin": settings.margin,
            "p_value": one_sided.p_value,
            "non_inferior": one_sided.equivalent,
        },
    }


def _slices(
    before: Tensor, after: Tensor, labels: list[str] | None, settings: Settings
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The slices by name, and whether they share one balance of gains and losses."""
    if not labels:
        return {}, None
    names, index = slice_index(labels)
    tables = channel_counts(before, after, slice_index=index, num_slices=len(names))
    channel, smoothed = estimate_channel(tables, smoothing=0), estimate_channel(tables)
    quadrants = quadrant_names(phase_plane_diagnosis(smoothed).quadrant)
    activate = should_activate_step(smoothed.p0, smoothed).activate
    test = mcnemar(counts=tables, method=settings.method)
    exact, adjusted = mcnemar(counts=tables, method="exact").p_value, holm_bonferroni(test.p_value)
    rows = {
        name: {
            "counts": _counts(tables[row]),
            "n": channel.total[row],
            "accuracy_before": channel.p0[row],
            "accuracy_after": channel.p1[row],
            "c": channel.c[row],
            "gamma": channel.gamma[row],
            "delta": channel.delta[row],
            "method": test.method[row],
            "discordant": test.discordant[row],
            "underpowered": test.underpowered[row],
            "p_value": test.p_value[row],
            "p_adjusted": adjusted[row],
            "p_exact": exact[row],
            "quadrant": quadrants[row],
            "activate": activate[row],
        }
        for row, name in enumerate(names)
    }
    return rows, stratum_heterogeneity(test.b, test.c)._asdict()


def slice_index(labels: Sequence[str]) -> tuple[list[str], Tensor]:
    """The names of the slices, ascending, and the number of each item's slice among them."""
    names = sorted(set(labels))
    if len(names) > _MOST_SLICES:
        raise ValueError(
            f"{len(labels)} items have {len(names)} slices, such as {clipped(names[0])!r}; at most {_MOST_SLICES} are "
            "compared. Choose what has fewer values with slice= (--slice)"
        )
    position = {name: number for number, name in enumerate(names)}
    return names, torch.from_numpy(np.fromiter(map(position.__getitem__, labels), np.int64, len(labels)))


def _several(aligned: Aligned, correct: Tensor, settings: Settings) -> dict[str, Any]:
    if len(aligned.runs) < 3:
        return {"cochran_q": None, "pairs": None}
    gram = outcome_gram(correct)
    pairs = mcnemar_pairs(gram, method=settings.method)
    tables = paired_tables(gram)[pairs.first, pairs.second]
    delta = estimate_channel(tables).delta
    names = [run.name for run in aligned.runs]
    return {
        "cochran_q": cochran_q(gram=gram)._asdict(),
        "pairs": [
            {
                "first": names[first],
                "second": names[second],
                "first_index": first,
                "second_index": second,
                "counts": _counts(tables[row]),
                "delta": delta[row],
                "method": pairs.result.method[row],
                "discordant": pairs.result.discordant[row],
                "underpowered": pairs.result.underpowered[row],
                "p_value": pairs.result.p_value[row],
                "p_adjusted": pairs.adjusted_p[row],
            }
            for row, (first, second) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        ],
    }


def _answers(aligned: Aligned, before: Tensor, after: Tensor) -> dict[str, Any] | None:
    """Churn of the answers where both arms' are known. All right answers to an item count as one answer."""
    if aligned.answers is None:
        return None
    first, last = aligned.answers[0], aligned.answers[-1]
    known = [
        item for item, (one, other) in enumerate(zip(first, last, strict=True)) if not (one is None or other is None)
    ]
    if not known:
        return None
    codes: dict[str | None, int] = {}
    for arm in (first, last):
        for answer in dict.fromkeys(arm):
            codes.setdefault(answer, len(codes) + 1)
    coded_arms = [np.fromiter(map(codes.__getitem__, arm), np.int64, len(arm))[known] for arm in (first, last)]
    given = torch.from_numpy(np.stack(coded_arms))
    right = torch.stack((before, after))[:, known]
    coded = given.masked_fill(right, 0)
    churn = answer_churn(coded[0], coded[1], torch.zeros_like(coded[0]))
    return {
        "n": len(known),
        **churn._asdict(),
        "same_answer_scored_differently": ((given[0] == given[1]) & (right[0] != right[1])).sum(),
    }


def _churn_warnings(churn: dict[str, Any]) -> list[str]:
    contradictions = int(churn["same_answer_scored_differently"])
    if not contradictions:
        return []
    return [
        f"{contradictions} of {churn['n']} items have one answer in both runs, right in one and wrong in the other: "
        "the runs were not scored alike"
    ]


def _counts(table: Tensor) -> dict[str, Tensor]:
    return {"n00": table[0, 0], "n01": table[0, 1], "n10": table[1, 0], "n11": table[1, 1]}
