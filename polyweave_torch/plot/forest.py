"""A forest plot: paired differences with their intervals, one below the other."""

from collections.abc import Mapping

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from polyweave_torch.functional.difference import PairedDifference
from polyweave_torch.plot.style import FONT, HARM, HELP, NEUTRAL, shorten


def forest(
    differences: Mapping[str, PairedDifference], *, margin: float | None = None, ax: Axes | None = None
) -> tuple[Figure | SubFigure, Axes]:
    """Draw differences of accuracy (after minus before) with their intervals.

    An interval wholly above 0 is a gain, wholly below 0 a loss, else open: three colours and three markers.

    Args:
        differences: by name, each of one table, from
            :func:`~polyweave_torch.functional.paired_difference_interval`.
        margin: an equivalence margin to draw as a band around 0.
        ax: axes to draw on; by default a new figure whose height follows the number of rows.

    Returns:
        The figure and its axes.

    Raises:
        ValueError: where a name holds several differences.

    Example:
        >>> from polyweave_torch.functional import paired_difference_interval
        >>> figure, axes = forest({"all": paired_difference_interval([[49, 32], [114, 305]])})
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['all']
    """
    names = list(differences)
    if ax is None:
        ax = plt.subplots(figsize=(5, 1.4 + 0.3 * len(names)), layout="constrained")[1]
    if margin is not None:
        ax.axvspan(-margin, margin, color=NEUTRAL, alpha=0.15, linewidth=0)
    ax.axvline(0.0, color="black", linewidth=1, linestyle="--")
    for row, name in enumerate(names):
        difference = differences[name]
        if difference.estimate.dim():
            raise ValueError(f"{name!r} holds {difference.estimate.numel()} differences; pass one a name")
        estimate, low, high = (float(value) for value in (difference.estimate, difference.low, difference.high))
        colour, marker = (HELP, "^") if low > 0 else (HARM, "v") if high < 0 else (NEUTRAL, "o")
        ax.plot([low, high], [row, row], color=colour, linewidth=1.5)
        ax.plot([estimate], [row], color=colour, marker=marker, markersize=7)
    ax.set_yticks(range(len(names)), [shorten(name) for name in names], fontsize=FONT - 2)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    levels = {difference.level for difference in differences.values()}
    said = f", {100 * levels.pop():g} % interval" if len(levels) == 1 else ""
    ax.set_xlabel(f"difference of accuracy{said}", fontsize=FONT)
    ax.tick_params(axis="x", labelsize=FONT - 2)
    return ax.figure, ax
