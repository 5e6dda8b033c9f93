"""The report of the release verdict in words and tables, for a terminal and as markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from polyweave_torch.functional._tables import markdown_table, markdown_text, one_line, text_table
from polyweave_torch.functional.composite import RankedRun
from polyweave_torch.functional.verdict_results import LayerDifference, PairVerdict, ReportFields
from polyweave_torch.functional.verdict_words import Reason

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


def to_text(report: ReportFields) -> str:
    """The report for a terminal."""
    return _render(report, heading=lambda title: f"{title}\n{'=' * len(title)}", table=text_table, name=one_line)


def to_markdown(report: ReportFields) -> str:
    """The report as markdown."""
    return _render(
        report,
        heading=lambda title: f"## {title}",
        table=markdown_table,
        name=lambda name: markdown_text(one_line(name)),
    )


def _render(
    report: ReportFields, *, heading: Callable[[str], str], table: _Table, name: Callable[[object], str]
) -> str:
    estimator, settings = report.estimator, report.settings
    blocks = [heading(f"{report.label}: {report.action}")]
    for pair in report.pairs:
        blocks += [f"{name(pair.name)} against the control: {pair.label} ({pair.label.action})"]
        blocks += [table(("", "control", "treatment", "difference", "interval", "pairs"), _difference_rows(pair))]
        blocks += [_bullets(pair.reasons, pair.layers, {**settings._asdict(), **pair._asdict()}, name), _audit(pair)]
    if not report.pairs:
        blocks += [_bullets(report.reasons, {}, settings._asdict(), name)]
    blocks += [table(("run", "composite", "samples", *settings.layer_names, "gate"), _run_rows(report.runs))]
    if not all(run.comparable for run in report.runs):
        blocks += ["* has other layers than the control: its composite does not compare."]
    fields = sorted({field for declared in report.provenance.values() for field in declared})
    if fields:
        rows = [(run, *(str(declared.get(field, "-")) for field in fields)) for run, declared in _declared(report)]
        blocks += [table(("run", *fields), rows)]
    how = f"{settings.resamples} resamples, seed {settings.seed}, alpha {settings.alpha:g} over all treatments"
    return "\n\n".join([*blocks, f"{estimator.id} v{estimator.version}: {how}."]) + "\n"


def _declared(report: ReportFields) -> list[tuple[str, Mapping[str, Any]]]:
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


def _bullets(
    reasons: Sequence[Reason],
    layers: Mapping[str, LayerDifference],
    values: Mapping[str, Any],
    name: Callable[[object], str],
) -> str:
    lines = []
    for reason in reasons:
        sentence = _SENTENCES[reason].format_map(values)
        named = [name(title) for title, layer in layers.items() if reason in _NAMED and _NAMED[reason](layer)]
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
