"""The release verdict: may a treatment ship, judged against a control on the same samples?"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from polyweave_torch.functional._checks import Values, check_open_unit
from polyweave_torch.functional._verdict_pairs import Arm, compare_arms, in_order, outside_scale
from polyweave_torch.functional.composite import (
    ROUNDING,
    Standardize,
    check_layer_names,
    check_layers,
    passes_gate,
    rank_runs,
    usable_scores,
    weights_in_order,
)
from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.functional.verdict_results import Estimator, PairVerdict, VerdictSettings
from polyweave_torch.functional.verdict_words import Reason, Verdict

CONTROL = "control"
_UNNAMED = "treatment"
ESTIMATOR = Estimator("mean composite, paired percentile bootstrap", 1)


def verdict(
    control: Values,
    treatments: Mapping[str, Values] | Values | None,
    *,
    layer_names: Sequence[str],
    gate: float = 3.5,
    trivial_difference: float = 0.1,
    min_pairs: int = 20,
    dissent: float = 0.4,
    alpha: float = 0.05,
    resamples: int = 1000,
    seed: int = 0,
    weights: Mapping[str, float] | Values | None = None,
    standardize: Standardize | None = None,
    control_marks: Values | None = None,
    treatment_marks: Mapping[str, Values] | Values | None = None,
    human_marks: Mapping[str, Values] | Values | None = None,
    wished_power: float | None = None,
    top: float = 5.0,
    provenance: Mapping[str, Any] | None = None,
) -> VerdictReport:
    r"""Say in one of six words whether treatments may ship, with every reason that held.

    The composites of both arms, and each layer, are compared by :func:`paired_bootstrap` over the samples that have
    them. With K treatments and L layers the composite's interval has level :math:`1 - \alpha/K` and a layer's
    :math:`1 - \alpha/(KL)`. The first of these that fits decides for a treatment, the worst treatment for the report:

    1. no treatment: SOLO, with the gate passed or failed;
    2. the composite is wholly below 0, or a layer is and fell under the gate which the control passes: REGRESS;
    3. neither the composite nor a layer moved (excludes 0): UNDERPOWERED with too few pairs or every layer saturated,
       else NOISE;
    4. the composite is wholly above 0: PROGRESS, unless there are too few pairs, a layer is under the gate or wholly
       below 0, the difference is trivial, or judges disagree: CAUTIOUS;
    5. a layer moved, the composite did not: CAUTIOUS.

    From worst to best: REGRESS, CAUTIOUS, UNDERPOWERED, NOISE, PROGRESS. Fewer than 20 pairs never give PROGRESS since
    the interval is too narrow there: of 95 % intervals under no change 16 % exclude 0 at N = 5, 5 % at N = 50.

    Swapping control and treatment mirrors the intervals: exactly where differences take many values, within the Monte
    Carlo error of the resamples where they take few (marks from 1 to 5, say). Of many values the seed draws positions,
    so another order of samples is another draw, within the same error; keep samples in the order of their ids.

    Args:
        control: ``[N, L]`` scores from 1 to ``top``, NaN where a layer is missing. A mark of 0 or below is a judgement
            that failed, and missing; marks between 0 and 1 or above ``top`` are taken as they are, and reported.
        treatments: ``[N, L]`` of the same samples by name, or of a single one (named "treatment"), or None.
        layer_names: L names.
        gate: what the mean of each present layer has to reach.
        trivial_difference: a gain of composites below this is practically none; a fall never is.
        min_pairs: with fewer pairs there is no PROGRESS and no NOISE.
        dissent: the inter-judge Pearson correlation below which judges disagree.
        alpha: error rate over all treatments: the chance that any is called changed though none is.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        weights: of the layers in the composite, by name or in their order.
        standardize: as in :func:`composite_score`, over both arms of each pair, once for all resamples. Layers and
            gates stay on the raw scores; ``trivial_difference`` is then in standard deviations.
        control_marks: ``[N, J]``, each judge's own mark.
        treatment_marks: ``[N, J]`` by treatment, or of a single one.
        human_marks: ``[N]`` or ``[N, H]`` people's marks of the samples, or such by run ("control" and the treatments).
            Correlated with the judges' mean mark (without marks: with the layer "judge"), which decides nothing.
        wished_power: ask for :math:`((z_{1-\alpha/2K} + z_{power})\, \sigma / \text{trivial\_difference})^2` pairs,
            with :math:`\sigma` the standard deviation of the differences; fewer count as too few.
        top: the highest mark; a layer with over 90 % of both arms there is saturated.
        provenance: what is declared of the scoring (hash of the judge's prompt, length debiasing, ...): one dict for
            all runs, or one by run. Arms that differ in it are flagged.

    Returns:
        :class:`VerdictReport`; print it, or take ``.to_markdown()`` or ``.to_dict()``.

    Raises:
        ValueError: where arms have different lengths or other columns than layers, names don't match, or an option is
            out of range.

    Source: the documentation of omk, page "composite", section 4.

    Example:
        >>> from polyweave_torch.functional import verdict
        >>> control = [[4.0, 4.0], [3.0, 4.0], [4.0, 5.0], [5.0, 3.0]] * 6
        >>> treatment = [[5.0, 4.0], [4.0, 5.0], [4.0, 5.0], [5.0, 4.0]] * 6
        >>> report = verdict(control, treatment, layer_names=("fact", "judge"))
        >>> print(report.label, "->", report.action, report.exit_code)
        PROGRESS -> ship 0
        >>> pair = report.pairs[0]
        >>> print(f"{pair.estimate:.2f} [{pair.low:.2f}, {pair.high:.2f}] from {pair.pairs} pairs")
        0.50 [0.35, 0.62] from 24 pairs
    """
    names = check_layer_names(layer_names)
    settings = VerdictSettings(
        layer_names=names,
        gate=gate,
        trivial_difference=trivial_difference,
        min_pairs=min_pairs,
        dissent=dissent,
        alpha=alpha,
        resamples=resamples,
        seed=seed,
        weights=weights_in_order(weights, names),
        standardize=standardize,
        wished_power=wished_power,
        top=top,
    )
    _check_settings(settings)
    control_arm, *treated = _arms(
        control, treatments, names, control_marks, treatment_marks, human_marks, provenance or {}
    )
    pairs: tuple[PairVerdict, ...] = ()
    if treated:
        pairs = compare_arms(control_arm, treated, settings)
        reasons = in_order({reason: True for pair in pairs for reason in pair.reasons})
        label = max((pair.label for pair in pairs), key=lambda word: word.code)
    else:
        reasons, label = _solo(control_arm, settings), Verdict.SOLO
    passed = label is Verdict.PROGRESS or Reason.GATE_PASSED in reasons
    runs = {arm.name: arm.scores for arm in (control_arm, *treated)}
    return VerdictReport(
        label=label,
        exit_code=0 if passed else 1,
        action=label.action,
        reasons=reasons,
        pairs=pairs,
        estimator=ESTIMATOR,
        runs=rank_runs(runs, layer_names=names, weights=settings.weights, gate=gate),
        settings=settings,
        provenance={arm.name: arm.provenance for arm in (control_arm, *treated)},
    )


def _solo(arm: Arm, settings: VerdictSettings) -> tuple[Reason, ...]:
    means = arm.scores.nanmean(0)
    passed = bool(passes_gate(means, settings.gate))
    return in_order(
        {
            Reason.LAYER_UNDER_GATE: bool((means < settings.gate - ROUNDING).any()),
            Reason.NO_LAYERS: bool(means.isnan().all()),
            Reason.OUTSIDE_SCALE: outside_scale([arm], settings.top),
            Reason.GATE_PASSED: passed,
            Reason.GATE_FAILED: not passed,
        }
    )


def _check_settings(settings: VerdictSettings) -> None:
    check_open_unit(settings.alpha, name="alpha")
    for name in ("gate", "trivial_difference", "dissent", "top"):
        if not math.isfinite(getattr(settings, name)):
            raise ValueError(f"{name} must be a finite number, but is {getattr(settings, name)}")
    if settings.min_pairs < 0 or settings.trivial_difference < 0.0:
        raise ValueError(
            "min_pairs and trivial_difference must not be negative, "
            f"but are {settings.min_pairs} and {settings.trivial_difference}"
        )
    if settings.wished_power is not None:
        check_open_unit(settings.wished_power, name="wished_power")
        if settings.trivial_difference == 0.0:
            raise ValueError("no number of pairs shows a difference of 0; give a trivial_difference for wished_power")


def _arms(
    control: Values,
    treatments: Mapping[str, Values] | Values | None,
    layer_names: Sequence[str],
    control_marks: Values | None,
    treatment_marks: Mapping[str, Values] | Values | None,
    human_marks: Mapping[str, Values] | Values | None,
    provenance: Mapping[str, Any],
) -> list[Arm]:
    """Control first, then the treatments, each with its marks, all on the same N samples."""
    treated = {} if treatments is None else _named(treatments, [_UNNAMED], what="treatments")
    if CONTROL in treated:
        raise ValueError(f"no treatment can be named {CONTROL!r}, which is the control's name")
    scores = {name: usable_scores(arm) for name, arm in {CONTROL: control, **treated}.items()}
    # A list without rows has lost its columns.
    scores = {name: arm.reshape(0, len(layer_names)) if arm.shape == (0,) else arm for name, arm in scores.items()}
    for name, arm in scores.items():
        check_layers(arm, layer_names, name=name)
        _check_length(arm, samples := len(scores[CONTROL]), what=name)
    marks = {} if control_marks is None else {CONTROL: control_marks}
    if treatment_marks is not None:
        marks |= _named(treatment_marks, [*treated], what="treatment_marks")
    if human_marks is not None and not isinstance(human_marks, Mapping):
        human_marks = dict.fromkeys(scores, human_marks)
    # A field of provenance that isn't declared by run holds for all.
    shared = {field: value for field, value in provenance.items() if not isinstance(value, Mapping)}
    by_run = {name: fields for name, fields in provenance.items() if isinstance(fields, Mapping)}
    given = {"treatment_marks": marks, "human_marks": human_marks or {}, "provenance": by_run}
    for what, named in given.items():
        if unknown := [name for name in named if name not in scores]:
            raise ValueError(f"{what} names {unknown}, but the runs are {list(scores)}")
    return [
        Arm(
            name=name,
            scores=scores[name],
            marks=_marks(marks, name, samples),
            people=_marks(human_marks or {}, name, samples),
            provenance={**shared, **by_run.get(name, {})},
        )
        for name in scores
    ]


def _named(values: Mapping[str, Values] | Values, names: Sequence[str], *, what: str) -> Mapping[str, Values]:
    """Values by treatment; those without a name belong to the only one."""
    if isinstance(values, Mapping):
        return values
    if len(names) != 1:
        raise ValueError(f"{what} must be a dict by treatment, since the treatments are {list(names)}")
    return {names[0]: values}


def _marks(values: Mapping[str, Values], name: str, samples: int) -> Tensor | None:
    """A run's marks ``[N, J]``, one column where there is one mark a sample."""
    if name not in values:
        return None
    marks = usable_scores(values[name])
    if marks.dim() == 1:
        marks = marks.unsqueeze(1)
    if marks.dim() != 2:
        raise ValueError(f"the marks of {name!r} must have shape [N, J], but came with shape {list(marks.shape)}")
    _check_length(marks, samples, what=f"the marks of {name!r}")
    return marks


def _check_length(values: Tensor, samples: int, *, what: str) -> None:
    if len(values) != samples:
        raise ValueError(
            f"{what} came with {len(values)} samples, but the control with {samples}; all runs must be scored on the "
            "same samples in the same order, with NaN where a score is missing"
        )
