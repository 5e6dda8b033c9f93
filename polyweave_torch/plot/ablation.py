"""The figure of an ablation: how often each condition was right, overall and in each stratum."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from polyweave_torch.ablation.analysis import Analysis
from polyweave_torch.plot.style import CAUTION, FONT, HARM, HELP, NEUTRAL, shorten

_COLOURS, _MARKERS = (NEUTRAL, HELP, CAUTION, HARM), "osD^v"


def success_rates(analysis: Analysis, *, ax: Axes | None = None) -> tuple[Figure | SubFigure, Axes]:
    """Draw the share of cases that each condition has right at the first try, with its Wilson 95 % interval.

    One group of rows for all cases and one for each stratum; in it one row a condition, each with a colour and marker.

    Args:
        analysis: from :func:`~polyweave_torch.ablation.analyze_outcomes`.
        ax: axes to draw on; by default a new figure whose height follows the number of rows.

    Returns:
        The figure and its axes. The title says so where the outcomes are simulated.

    Example:
        >>> from polyweave_torch.ablation import Case, SimulatedEvaluator, analyze_outcomes, baseline_conditions
        >>> cases = [Case(str(number), "easy") for number in range(20)]
        >>> evaluate = SimulatedEvaluator()
        >>> outcomes = [outcome for arm in baseline_conditions() for outcome in evaluate(cases, arm)]
        >>> figure, axes = success_rates(analyze_outcomes(outcomes))
        >>> axes.get_title()
        'SIMULATED'
    """
    conditions = analysis.conditions
    groups = list(dict.fromkeys(stats.stratum for stats in analysis.per_condition))
    if ax is None:
        rows = len(groups) * (len(conditions) + 1)
        ax = plt.subplots(figsize=(5, 1.6 + 0.22 * rows), layout="constrained")[1]
    for stats in analysis.per_condition:
        arm = conditions.index(stats.condition)
        y = groups.index(stats.stratum) + (0.8 * (arm + 0.5) / len(conditions) - 0.4)
        colour, marker = _COLOURS[arm % len(_COLOURS)], _MARKERS[arm % len(_MARKERS)]
        label = shorten(stats.condition) if not stats.stratum else None
        ax.plot([stats.wilson_lo, stats.wilson_hi], [y, y], color=colour, linewidth=1.5)
        if stats.p_sem is not None:
            ax.plot([stats.p_sem], [y], color=colour, marker=marker, markersize=7, linestyle="", label=label)
    ax.set_yticks(range(len(groups)), [shorten(group or "all") for group in groups], fontsize=FONT - 2)
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("right at the first try, 95 % Wilson", fontsize=FONT)
    ax.tick_params(axis="x", labelsize=FONT - 2)
    if analysis.mode != "LIVE":
        ax.set_title(analysis.mode, color=HARM, fontsize=FONT, fontweight="bold")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=FONT - 3, frameon=False)
    return ax.figure, ax
