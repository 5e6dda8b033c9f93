"""The figure of a release verdict: what moved, by how much, and what it would have had to reach."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.functional.verdict_results import LayerDifference, PairVerdict
from polyweave_torch.plot.style import CAUTION, FONT, HARM, HELP, NEUTRAL, shorten

_UP, _DOWN, _UNCLEAR = (HELP, "^", "above 0"), (HARM, "v", "below 0"), (NEUTRAL, "o", "contains 0")


def verdict_plot(report: VerdictReport, *, ax: Axes | None = None) -> tuple[Figure | SubFigure, Axes]:
    """Draw the differences of a verdict with their intervals, one row for the composite and each layer.

    The colour and marker of a row say whether its interval lies above 0, below it, or contains it. Around 0 of a
    composite the band of trivial differences is shaded. A black bar in a layer's row is its gate: left of it the
    treatment's mean is under the gate.

    Args:
        report: from :func:`~polyweave_torch.functional.verdict`, of one treatment or more.
        ax: axes to draw on; by default a new figure.

    Returns:
        The figure and its axes.

    Raises:
        ValueError: where the report has no treatment, so that there is no difference.

    Example:
        >>> from polyweave_torch.functional import verdict
        >>> report = verdict([[3.0], [4.0]] * 10, [[4.0], [4.0]] * 10, layer_names=["judge"])
        >>> figure, axes = verdict_plot(report)
        >>> axes.get_title()
        'PROGRESS: ship'
    """
    if not report.pairs:
        raise ValueError(f"a {report.label} report has no difference to draw; compare a treatment with the control")
    rows = [row for pair in report.pairs for row in _rows(pair, report)]
    if ax is None:
        ax = plt.subplots(figsize=(6, 1.5 + 0.45 * len(rows)), layout="constrained")[1]
    settings = report.settings
    for y, (_, difference) in enumerate(rows):
        if isinstance(difference, PairVerdict):
            trivial = settings.trivial_difference
            ax.fill_betweenx(
                [y - 0.4, y + 0.4], -trivial, trivial, color=CAUTION, alpha=0.2, linewidth=0, label="trivial"
            )
        elif difference.pairs > 0:
            gate = settings.gate - float(difference.control)
            ax.plot([gate, gate], [y - 0.35, y + 0.35], color="black", linewidth=2.5, label=f"gate {settings.gate:g}")
        _draw(ax, y, difference)
    ax.axvline(0.0, color="black", linewidth=1, linestyle="--")
    ax.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=FONT - 2)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    unit = "" if settings.standardize is None else "; composites in standard deviations"
    ax.set_xlabel(f"treatment − control{unit}", fontsize=FONT)
    ax.tick_params(axis="x", labelsize=FONT - 2)
    ax.set_title(f"{report.label}: {report.action}", fontsize=FONT)
    _legend(ax)
    return ax.figure, ax


def _rows(pair: PairVerdict, report: VerdictReport) -> list[tuple[str, PairVerdict | LayerDifference]]:
    several = len(report.pairs) > 1
    composite = f"{shorten(pair.name)}: {pair.label}" if several else "composite"
    return [(composite, pair), *((shorten(layer), found) for layer, found in pair.layers.items())]


def _draw(ax: Axes, y: int, difference: PairVerdict | LayerDifference) -> None:
    estimate, low, high = (float(value) for value in (difference.estimate, difference.low, difference.high))
    if difference.pairs == 0:
        ax.annotate("missing", (0.0, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=FONT - 3)
        return
    colour, marker, label = _UP if low > 0.0 else _DOWN if high < 0.0 else _UNCLEAR
    # Without an interval, NaN, only the point is drawn.
    ax.plot([low, high], [y, y], color=colour, linewidth=2)
    ax.scatter([estimate], [y], color=colour, marker=marker, s=60, label=label, zorder=3)


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    ax.legend(once.values(), once.keys(), loc="best", fontsize=FONT - 4, framealpha=0.9)
