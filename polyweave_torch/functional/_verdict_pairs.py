"""What holds between treatments and their control, and the verdict that follows from it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from scipy import special
from torch import Tensor

from polyweave_torch.functional.bootstrap import BootstrapInterval, paired_bootstrap
from polyweave_torch.functional.composite import ROUNDING, composite_score, inter_judge_pearson
from polyweave_torch.functional.correlation import pearson
from polyweave_torch.functional.intervals import normal_quantile
from polyweave_torch.functional.verdict_results import AuditMarks, LayerDifference, PairVerdict, VerdictSettings
from polyweave_torch.functional.verdict_words import Reason, Verdict

_JUDGE = "judge"
# Any of these turns PROGRESS into CAUTIOUS.
_DOUBTS = {
    Reason.FEW_PAIRS,
    Reason.BELOW_POWER,
    Reason.LAYER_UNDER_GATE,
    Reason.NO_LAYERS,
    Reason.LAYER_DOWN,
    Reason.TRIVIAL,
    Reason.JUDGES_DISAGREE,
}


class Arm(NamedTuple):
    """A run on the samples that all share."""

    name: str
    scores: Tensor
    """Usable scores ``[N, L]``."""
    marks: Tensor | None
    """``[N, J]``, each judge's."""
    people: Tensor | None
    """``[N, H]``, people's."""
    provenance: dict[str, Any]
    """How it was scored."""


def compare_arms(control: Arm, treatments: Sequence[Arm], settings: VerdictSettings) -> tuple[PairVerdict, ...]:
    """Each treatment against the control. All are resampled at once: the same pairs share their resamples."""
    layers = control.scores.shape[1]
    alpha = settings.alpha / len(treatments)
    composites = [_composites(control, treatment, settings) for treatment in treatments]
    intervals = paired_bootstrap(
        *torch.stack(composites, -1), resamples=settings.resamples, level=1.0 - alpha, seed=settings.seed
    )
    layer_intervals = paired_bootstrap(
        control.scores.repeat(1, len(treatments)),
        torch.cat([treatment.scores for treatment in treatments], 1),
        resamples=settings.resamples,
        level=1.0 - alpha / layers,
        seed=settings.seed,
    )
    pairs = []
    for place, treatment in enumerate(treatments):
        by_layer = {
            name: _layer_difference(
                control.scores[:, column],
                treatment.scores[:, column],
                _column(layer_intervals, place * layers + column),
                settings,
            )
            for column, name in enumerate(settings.layer_names)
        }
        pairs.append(
            _pair((control, treatment), composites[place], _column(intervals, place), by_layer, alpha, settings)
        )
    return tuple(pairs)


def decide(held: set[Reason]) -> Verdict:
    """The verdict of one treatment, from what held: the first rule that fits."""
    if held & {Reason.COMPOSITE_DOWN, Reason.LAYER_FELL}:
        return Verdict.REGRESS
    if not held & {Reason.COMPOSITE_UP, Reason.LAYER_UP, Reason.LAYER_DOWN}:
        weak = held & {Reason.FEW_PAIRS, Reason.BELOW_POWER, Reason.ALL_SATURATED}
        return Verdict.UNDERPOWERED if weak else Verdict.NOISE
    if Reason.COMPOSITE_UP in held and not held & _DOUBTS:
        return Verdict.PROGRESS
    return Verdict.CAUTIOUS


def in_order(holds: Mapping[Reason, bool]) -> tuple[Reason, ...]:
    """The reasons that held, in the order in which they are declared."""
    return tuple(reason for reason in Reason if holds.get(reason))


def outside_scale(arms: Iterable[Arm], top: float) -> bool:
    """Whether a score lies below 1 or above the top mark."""
    return any(bool(((arm.scores < 1.0 - ROUNDING) | (arm.scores > top + ROUNDING)).any()) for arm in arms)


def _pair(
    arms: tuple[Arm, Arm],
    composites: Tensor,
    interval: BootstrapInterval,
    layers: dict[str, LayerDifference],
    alpha: float,
    settings: VerdictSettings,
) -> PairVerdict:
    control, treatment = arms
    needed = _pairs_needed(composites[1] - composites[0], alpha, settings)
    agreement = [_undefined() if arm.marks is None else inter_judge_pearson(arm.marks) for arm in arms]
    unlike = _unlike_pairs(control.scores, treatment.scores, composites, settings)
    holds = {
        Reason.COMPOSITE_UP: bool(interval.low > 0.0),
        Reason.COMPOSITE_DOWN: bool(interval.high < 0.0),
        Reason.COMPOSITE_UNCLEAR: not bool(interval.significant),
        **_layer_reasons(layers.values()),
        Reason.FEW_PAIRS: bool(interval.pairs < settings.min_pairs),
        Reason.BELOW_POWER: bool(interval.pairs < needed),
        Reason.TRIVIAL: bool(interval.low > 0.0) and bool(interval.estimate < settings.trivial_difference - ROUNDING),
        Reason.JUDGES_DISAGREE: any(bool(r < settings.dissent) for r in agreement),
        Reason.JUDGES_UNDEFINED: any(
            arm.marks is not None and bool(r.isnan()) for arm, r in zip(arms, agreement, strict=True)
        ),
        Reason.INCOMPLETE_PAIRS: bool(interval.pairs < len(control.scores)),
        Reason.LAYERS_DIFFER: bool(unlike > 0),
        Reason.PROVENANCE_DIFFERS: control.provenance != treatment.provenance,
        Reason.OUTSIDE_SCALE: outside_scale(arms, settings.top),
    }
    reasons = in_order(holds)
    return PairVerdict(
        name=treatment.name,
        label=decide({*reasons}),
        reasons=reasons,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        layers=layers,
        pairs=interval.pairs,
        incomplete=len(control.scores) - interval.pairs,
        pearson=torch.stack(agreement),
        level=interval.level,
        unlike=unlike,
        pairs_needed=needed,
        audit=AuditMarks(
            judges_agree=None if all(r.isnan() for r in agreement) else not holds[Reason.JUDGES_DISAGREE],
            significant=bool(interval.significant),
            saturated=holds[Reason.SATURATED],
            agrees_with_people=torch.stack([_agreement_with_people(arm, settings) for arm in arms]),
        ),
    )


def _composites(control: Arm, treatment: Arm, settings: VerdictSettings) -> Tensor:
    both = torch.stack([control.scores, treatment.scores])
    return composite_score(both, weights=settings.weights, standardize=settings.standardize).score


def _layer_difference(
    control: Tensor, treatment: Tensor, interval: BootstrapInterval, settings: VerdictSettings
) -> LayerDifference:
    paired = ~(control.isnan() | treatment.isnan())
    arms = torch.stack([control[paired], treatment[paired]])
    before, after = arms.mean(1).cpu()
    before_passes, under = bool(before >= settings.gate - ROUNDING), bool(after < settings.gate - ROUNDING)
    at_top = (arms >= settings.top - ROUNDING).sum(1).cpu()
    return LayerDifference(
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        level=interval.level,
        control=before,
        treatment=after,
        pairs=interval.pairs,
        under_gate=under,
        fell=under and before_passes and bool(interval.high < 0.0),
        # Over 90 %, in whole numbers.
        saturated=bool((10 * at_top > 9 * interval.pairs).all()),
    )


def _layer_reasons(layers: Iterable[LayerDifference]) -> dict[Reason, bool]:
    present = [layer for layer in layers if layer.pairs > 0]
    saturated = [layer.saturated for layer in present]
    return {
        Reason.LAYER_UP: any(bool(layer.low > 0.0) for layer in present),
        Reason.LAYER_DOWN: any(bool(layer.high < 0.0) for layer in present),
        Reason.LAYER_FELL: any(layer.fell for layer in present),
        Reason.LAYER_UNDER_GATE: any(layer.under_gate for layer in present),
        Reason.NO_LAYERS: not present,
        Reason.SATURATED: any(saturated),
        Reason.ALL_SATURATED: bool(present) and all(saturated),
    }


def _pairs_needed(differences: Tensor, alpha: float, settings: VerdictSettings) -> Tensor:
    differences = differences[~differences.isnan()]
    if settings.wished_power is None or len(differences) < 2:
        return _undefined()
    z = normal_quantile(1.0 - alpha) + float(special.ndtri(settings.wished_power))
    return ((z * differences.std() / settings.trivial_difference) ** 2).ceil().cpu()


def _unlike_pairs(control: Tensor, treatment: Tensor, composites: Tensor, settings: VerdictSettings) -> Tensor:
    """Pairs that have composites, but of other layers; layers without weight are in none."""
    unlike = control.isnan() != treatment.isnan()
    if settings.weights is not None:
        unlike = unlike & (torch.tensor(settings.weights, device=unlike.device) > 0.0)
    return (unlike.any(1) & ~composites.isnan().any(0)).sum().cpu()


def _agreement_with_people(arm: Arm, settings: VerdictSettings) -> Tensor:
    if arm.people is None:
        return _undefined()
    if arm.marks is not None:
        judged = composite_score(arm.marks).score
    elif _JUDGE in settings.layer_names:
        judged = arm.scores[:, settings.layer_names.index(_JUDGE)]
    else:
        return _undefined()
    return pearson(judged, composite_score(arm.people).score).r


def _column(interval: BootstrapInterval, column: int) -> BootstrapInterval:
    estimate, low, high, error, significant, pairs = (field[column] for field in interval if isinstance(field, Tensor))
    return BootstrapInterval(estimate, low, high, error, significant, interval.level, pairs)


def _undefined() -> Tensor:
    return torch.tensor(math.nan, dtype=torch.float64)
