"""The words of the release verdict, its reasons, and its report as text, markdown and plain data."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from torch import Tensor

from polyweave_torch.functional._tables import markdown_table, one_line, plain, text_table
from polyweave_torch.functional.composite import RankedRun, Standardize


class Verdict(StrEnum):
    """May it ship? One of six words."""

    PROGRESS = "PROGRESS"
    CAUTIOUS = "CAUTIOUS"
    REGRESS = "REGRESS"
    NOISE = "NOISE"
    UNDERPOWERED = "UNDERPOWERED"
    SOLO = "SOLO"

    @property
    def action(self) -> str:
        """What to do."""
        return _ACTIONS[self]

    @property
    def code(self) -> int:
        """A number to log: 0 PROGRESS, 1 NOISE, 2 UNDERPOWERED, 3 CAUTIOUS, 4 REGRESS (worse is higher), -1 SOLO."""
        return _CODES.index(self) - 1


_CODES = (Verdict.SOLO, Verdict.PROGRESS, Verdict.NOISE, Verdict.UNDERPOWERED, Verdict.CAUTIOUS, Verdict.REGRESS)
_ACTIONS = {
    Verdict.PROGRESS: "ship",
    Verdict.CAUTIOUS: "investigate first",
    Verdict.REGRESS: "do not ship",
    Verdict.NOISE: "no call",
    Verdict.UNDERPOWERED: "add cases",
    Verdict.SOLO: "add a control",
}


class Reason(StrEnum):
    """What held. Some decide, the others are said so that nobody overlooks them."""

    COMPOSITE_UP = "composite-up"
    COMPOSITE_DOWN = "composite-down"
    COMPOSITE_UNCLEAR = "composite-unclear"
    LAYER_UP = "layer-up"
    LAYER_DOWN = "layer-down"
    LAYER_FELL = "layer-fell-under-gate"
    LAYER_UNDER_GATE = "layer-under-gate"
    NO_LAYERS = "no-layers"
    FEW_PAIRS = "few-pairs"
    BELOW_POWER = "below-wished-power"
    TRIVIAL = "trivial"
    SATURATED = "saturated"
    ALL_SATURATED = "all-saturated"
    JUDGES_DISAGREE = "judges-disagree"
    JUDGES_UNDEFINED = "judges-undefined"
    INCOMPLETE_PAIRS = "incomplete-pairs"
    LAYERS_DIFFER = "layers-differ"
    PROVENANCE_DIFFERS = "provenance-differs"
    OUTSIDE_SCALE = "outside-scale"
    GATE_PASSED = "gate-passed"
    GATE_FAILED = "gate-failed"


class Estimator(NamedTuple):
    """What computed a verdict. Another version may give other numbers for the same scores."""

    id: str
    """The method, in words."""
    version: int
    """Raised where its numbers change."""


class VerdictSettings(NamedTuple):
    """The options under which a verdict was computed, as :func:`verdict` describes them."""

    layer_names: tuple[str, ...]
    """The L layers."""
    gate: float
    """What the mean of each present layer has to reach."""
    trivial_difference: float
    """Below this a gain of composites is practically none."""
    min_pairs: int
    """With fewer pairs there is no PROGRESS and no NOISE."""
    dissent: float
    """The inter-judge Pearson correlation below which judges disagree."""
    alpha: float
    """Chance of a false alarm, over all treatments."""
    resamples: int
    """Of the bootstrap."""
    seed: int
    """Of the bootstrap."""
    weights: tuple[float, ...] | None
    """Of the layers in the composite, in their order; None: all equal."""
    standardize: Standardize | None
    """How layers were brought on one scale; None: they were not."""
    wished_power: float | None
    """The power that the pairs should have; None: none was asked for."""
    top: float
    """The highest mark."""


class LayerDifference(NamedTuple):
    """Treatment against control in one layer, over the pairs that have it; numbers are 0-d float64 on the CPU."""

    estimate: Tensor
    """Mean of treatment - control, on the layer's own scale."""
    low: Tensor
    """Lower end."""
    high: Tensor
    """Upper end."""
    level: float
    """Coverage of the interval, adjusted for all treatments and layers."""
    control: Tensor
    """Mean of the control."""
    treatment: Tensor
    """Mean of the treatment."""
    pairs: Tensor
    """int64, pairs; 0 where the layer is missing."""
    under_gate: bool
    """The treatment's mean is under the gate."""
    fell: bool
    """Wholly below 0, and under the gate where the control was not."""
    saturated: bool
    """Over 90 % of both arms at the top mark: there is no room to differ in."""


class AuditMarks(NamedTuple):
    """Four independent checks of the evidence; None where there is nothing to check."""

    judges_agree: bool | None
    """Inter-judge Pearson of both arms (of the one that has marks) is at least ``dissent``."""
    significant: bool
    """The composite's interval excludes 0."""
    saturated: bool
    """Some layer is at its ceiling."""
    agrees_with_people: Tensor
    """float64 ``[2]``, control and treatment: Pearson of judge and people. Decides nothing."""


class PairVerdict(NamedTuple):
    """One treatment against the control; numbers are float64 on the CPU, 0-d but for ``pearson``."""

    name: str
    """The treatment."""
    label: Verdict
    """Its verdict."""
    reasons: tuple[Reason, ...]
    """All that held."""
    estimate: Tensor
    """Mean difference of the composites, treatment - control; standardised ones are in standard deviations."""
    low: Tensor
    """Lower end of its interval."""
    high: Tensor
    """Upper end."""
    layers: dict[str, LayerDifference]
    """Each layer by name."""
    pairs: Tensor
    """int64, samples with a composite in both arms."""
    incomplete: Tensor
    """int64, the other samples."""
    pearson: Tensor
    """``[2]``, control and treatment: :func:`inter_judge_pearson`; NaN where undefined or without marks."""
    level: float
    """Coverage of the composite's interval, adjusted for all treatments."""
    unlike: Tensor
    """int64, pairs whose composites have different layers behind them, and don't compare."""
    pairs_needed: Tensor
    """Pairs that the wished power needs; NaN where none was wished or the spread is unknown."""
    audit: AuditMarks
    """The four audit marks."""


class VerdictReport(NamedTuple):
    """May it ship, why, and from what numbers. ``str()`` of it is the report for a terminal."""

    label: Verdict
    """The worst of the treatments' verdicts."""
    exit_code: int
    """0 for PROGRESS, and for SOLO with the gate passed; else 1."""
    action: str
    """What to do."""
    reasons: tuple[Reason, ...]
    """All that held for any treatment."""
    pairs: tuple[PairVerdict, ...]
    """One for each treatment; none for SOLO."""
    estimator: Estimator
    """What computed it."""
    runs: tuple[RankedRun, ...]
    """Control and treatments by composite, the highest first."""
    settings: VerdictSettings
    """The options under which it was computed."""
    provenance: dict[str, dict[str, Any]]
    """What was declared of each run."""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON; an undefined number is None."""
        report = plain(self)
        for entry, pair in zip(report["pairs"], self.pairs, strict=True):
            entry["action"] = pair.label.action
        return {"schema": 1, **report}

    def to_markdown(self) -> str:
        """The report as markdown."""
        return _render(self, heading=lambda title: f"## {title}", table=markdown_table)

    def __str__(self) -> str:
        """The report for a terminal."""
        return _render(self, heading=lambda title: f"{title}\n{'=' * len(title)}", table=text_table)


_Predicate = Callable[[LayerDifference], bool]
# Reasons that name layers, and which.
_NAMED: dict[Reason, _Predicate] = {
    Reason.LAYER_UP: lambda layer: bool(layer.low > 0.0),
    Reason.LAYER_DOWN: lambda layer: bool(layer.high < 0.0),
    Reason.LAYER_FELL: lambda layer: layer.fell,
    Reason.LAYER_UNDER_GATE: lambda layer: layer.under_gate,
    Reason.SATURATED: lambda layer: layer.saturated,
}
_SENTENCES = {
    Reason.COMPOSITE_UP: "the composite's interval lies above 0",
    Reason.COMPOSITE_DOWN: "the composite's interval lies below 0",
    Reason.COMPOSITE_UNCLEAR: "the composite's interval doesn't exclude 0",
    Reason.LAYER_UP: "the interval lies above 0",
    Reason.LAYER_DOWN: "the interval lies below 0",
    Reason.LAYER_FELL: "fell under the gate {gate:g}, which the control passes",
    Reason.LAYER_UNDER_GATE: "the mean is under the gate {gate:g}",
    Reason.NO_LAYERS: "no layer can be judged, so the gate fails",
    Reason.FEW_PAIRS: "fewer than {min_pairs} pairs, where the interval is too narrow to be trusted",
    Reason.BELOW_POWER: "fewer pairs than the {pairs_needed:.0f} that a power of {wished_power} needs",
    Reason.TRIVIAL: "the composite's gain of {estimate:.6g} is below trivial_difference, {trivial_difference:g}",
    Reason.SATURATED: "over 90 % of both arms are at the top mark {top:g}",
    Reason.ALL_SATURATED: "every layer is at its ceiling: these cases can't show a difference",
    Reason.JUDGES_DISAGREE: "the judges' correlation is below {dissent:g} in an arm: their layer is no signal",
    Reason.JUDGES_UNDEFINED: "the judges' correlation is undefined in an arm (one judge, constant or too few marks)",
    Reason.INCOMPLETE_PAIRS: "samples left out, since they lack a composite in either arm: {incomplete}",
    Reason.LAYERS_DIFFER: "pairs whose composites are of different layers, which do not compare: {unlike}",
    Reason.PROVENANCE_DIFFERS: "the arms were not scored in the same way, so they don't compare",
    Reason.OUTSIDE_SCALE: "scores outside 1 to {top:g} were taken as they are",
    Reason.GATE_PASSED: "every layer passes the gate {gate:g}; there is nothing to compare with",
    Reason.GATE_FAILED: "the gate {gate:g} is not passed, and there is nothing to compare with",
}
_Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def _render(report: VerdictReport, *, heading: Callable[[str], str], table: _Table) -> str:
    estimator, settings = report.estimator, report.settings
    blocks = [heading(f"{report.label}: {report.action}")]
    for pair in report.pairs:
        blocks += [f"{one_line(pair.name)} against the control: {pair.label} ({pair.label.action})"]
        blocks += [table(("", "control", "treatment", "difference", "interval", "pairs"), _difference_rows(pair))]
        blocks += [_bullets(pair.reasons, pair.layers, {**settings._asdict(), **pair._asdict()}), _audit(pair)]
    if not report.pairs:
        blocks += [_bullets(report.reasons, {}, settings._asdict())]
    blocks += [table(("run", "composite", "samples", *settings.layer_names, "gate"), _run_rows(report.runs))]
    if not all(run.comparable for run in report.runs):
        blocks += ["* has other layers than the control: its composite does not compare."]
    fields = sorted({field for declared in report.provenance.values() for field in declared})
    if fields:
        rows = [(name, *(str(declared.get(field, "-")) for field in fields)) for name, declared in _declared(report)]
        blocks += [table(("run", *fields), rows)]
    how = f"{settings.resamples} resamples, seed {settings.seed}, alpha {settings.alpha:g} over all treatments"
    return "\n\n".join([*blocks, f"{estimator.id} v{estimator.version}: {how}."]) + "\n"


def _declared(report: VerdictReport) -> list[tuple[str, Mapping[str, Any]]]:
    return [(run.name, report.provenance.get(run.name, {})) for run in report.runs]


def _difference_rows(pair: PairVerdict) -> list[tuple[str, ...]]:
    incomplete = f" ({int(pair.incomplete)} incomplete)" if pair.incomplete else ""
    rows: list[tuple[str, ...]] = [("composite", "", "", *_difference(pair), f"{int(pair.pairs)}{incomplete}")]
    for name, layer in pair.layers.items():
        means = (_number(layer.control), _number(layer.treatment))
        rows.append((name, *means, *_difference(layer), str(int(layer.pairs)) if layer.pairs else "missing"))
    return rows


def _difference(of: PairVerdict | LayerDifference) -> tuple[str, str]:
    interval = "-" if of.low.isnan() else f"[{float(of.low):+.3f}, {float(of.high):+.3f}] {100 * of.level:.4g} %"
    return ("-" if of.estimate.isnan() else f"{float(of.estimate):+.3f}"), interval


def _bullets(reasons: Sequence[Reason], layers: Mapping[str, LayerDifference], values: Mapping[str, Any]) -> str:
    lines = []
    for reason in reasons:
        sentence = _SENTENCES[reason].format_map(values)
        named = [one_line(name) for name, layer in layers.items() if reason in _NAMED and _NAMED[reason](layer)]
        lines.append(f"- {reason}: {', '.join(named)}{': ' if named else ''}{sentence}")
    return "\n".join(lines)


def _audit(pair: PairVerdict) -> str:
    words = {True: "yes", False: "no", None: "unknown"}
    audit = pair.audit
    judges = f"judges agree: {words[audit.judges_agree]} (r {_both(pair.pearson)})"
    people = f"agrees with people: r {_both(audit.agrees_with_people)}"
    marks = [f"difference significant: {words[audit.significant]}", f"saturated: {words[audit.saturated]}"]
    return "Audit: " + "; ".join([judges, *marks, people]) + "."


def _both(arms: Tensor) -> str:
    return " and ".join(_number(arm) for arm in arms)


def _run_rows(runs: Sequence[RankedRun]) -> list[tuple[str, ...]]:
    return [
        (
            run.name if run.comparable else f"{run.name} *",
            _number(run.composite),
            str(run.samples),
            *(_number(mean) for mean in run.layers.values()),
            "passed" if run.gate_passed else "failed",
        )
        for run in runs
    ]


def _number(value: Tensor) -> str:
    return "-" if value.isnan() else f"{float(value):.3f}"
