"""The phase plane: corruption across, correction up, and the line on which they pay for each other."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox, BboxBase

from polyweave_torch.functional.channel import ChannelEstimate, channel_intervals
from polyweave_torch.functional.gating import Quadrant, phase_plane_diagnosis
from polyweave_torch.plot.style import CAUTION, FONT, HARM, HELP, NEUTRAL, shorten

STYLE = {
    Quadrant.HELPFUL: (HELP, "^", "helpful"),
    Quadrant.MARGINAL: (CAUTION, "o", "marginal"),
    Quadrant.HARMFUL: (HARM, "v", "harmful"),
    Quadrant.UNKNOWN: (NEUTRAL, "x", "unknown"),
}
_LABELLED = 12
# Where a name may stand beside its point, in points from it, the best first.
_PLACES = [(x, y, side) for away in range(6, 70, 14) for x, side in ((6, "left"), (-6, "right")) for y in (away, -away)]


def phase_plane(
    channels: Mapping[str, ChannelEstimate] | ChannelEstimate,
    *,
    p0: float | None = None,
    trail: Sequence[tuple[float, float]] = (),
    level: float = 0.95,
    ax: Axes | None = None,
) -> tuple[Figure | SubFigure, Axes]:
    """Draw channels in the plane of corruption (across) and correction (up), with the break-even line.

    One point a slice, its area the share of samples, its colour and marker the quadrant at the slice's own accuracy,
    and the Wilson intervals of its counts a cross. The point stands at the estimate as it was given: a smoothed one is
    a little nearer to 1/2 than the raw rates, and inside its cross. The line is c = p0 / (1 - p0)·gamma: above it a
    population of accuracy p0 gains. Both axes start at 0 and reach as far as the points, their crosses and the trail.

    Args:
        channels: estimates by name, each of one table, or a single estimate.
        p0: accuracy of the break-even line; by default that of all samples together.
        trail: earlier points ``(gamma, c)`` to draw as a path, the oldest first; undefined ones are passed over.
        level: confidence level of the crosses.
        ax: axes to draw on; by default a new figure.

    Returns:
        The figure and its axes.

    Raises:
        ValueError: where a channel holds several tables.

    Example:
        >>> from polyweave_torch.functional import estimate_channel
        >>> figure, axes = phase_plane({"all": estimate_channel([[49, 32], [114, 305]])})
        >>> axes.get_xlabel()
        'corruption rate γ (right → wrong)'
    """
    named = {"": channels} if isinstance(channels, ChannelEstimate) else dict(channels)
    if ax is None:
        ax = plt.subplots(figsize=(5, 5), layout="constrained")[1]
    counts = torch.stack([channel.counts for channel in named.values()]).cpu() if named else torch.zeros(0, 2, 2)
    if counts.dim() != 3:
        raise ValueError(f"each channel must hold one table [2, 2], but they have shape {list(counts.shape[1:])}")
    total = counts.sum()
    if p0 is None and total > 0:
        # Every table counts once: "all" beside its slices doubles both sums and leaves their ratio.
        p0 = float(counts[:, 1].sum() / total)
    seen = {name: channel for name, channel in named.items() if int(channel.total)}
    largest = max((int(channel.total) for channel in seen.values()), default=0)
    path = [point for point in trail if all(map(math.isfinite, point))]
    corners = [*(_point(ax, channel, largest, level) for channel in seen.values()), *path]
    right, top = (max(ends) for ends in zip(*corners, strict=True)) if corners else (1.0, 1.0)
    for limit, reach in ((ax.set_xlim, right), (ax.set_ylim, top)):
        edge = min(max(1.05 * reach, 0.01), 1.02)
        limit(-0.02 * edge, edge)
    if p0 is not None:
        _break_even_line(ax, p0)
    for step, (start, end) in enumerate(itertools.pairwise(path), start=1):
        fade = step / len(path)
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": NEUTRAL, "alpha": fade, "linewidth": 1.5})
    if len(seen) <= _LABELLED:
        _label(ax, {name: (float(channel.gamma), float(channel.c)) for name, channel in seen.items() if name})
    ax.set_xlabel("corruption rate γ (right → wrong)", fontsize=FONT)
    ax.set_ylabel("correction rate c (wrong → right)", fontsize=FONT)
    ax.locator_params(axis="x", nbins=5)  # small rates have long labels
    ax.tick_params(labelsize=FONT - 2)
    _legend(ax)
    return ax.figure, ax


def _break_even_line(ax: Axes, p0: float) -> None:
    label = f"break-even at accuracy {p0:.3g}"
    if p0 >= 1:
        ax.axvline(0.0, color="black", linewidth=1, linestyle="--", label=label)
        return
    gamma = np.linspace(0, 1, 201)
    needed = np.minimum(p0 / (1 - p0) * gamma, 1)
    ax.plot(gamma, needed, color="black", linewidth=1, linestyle="--", label=label)
    ax.fill_between(gamma, needed, 1, color=STYLE[Quadrant.HELPFUL][0], alpha=0.07, linewidth=0)


def _point(ax: Axes, channel: ChannelEstimate, largest: int, level: float) -> tuple[float, float]:
    """Draw one channel; returns how far it reaches: its point, and an interval where there is data."""
    colour, marker, quadrant = STYLE[Quadrant(int(phase_plane_diagnosis(channel).quadrant))]
    bounds = channel_intervals(channel.counts, level=level)
    gamma, c = float(channel.gamma), float(channel.c)
    ax.plot([float(bounds.gamma.low), float(bounds.gamma.high)], [c, c], color=colour, linewidth=1, alpha=0.6)
    ax.plot([gamma, gamma], [float(bounds.c.low), float(bounds.c.high)], color=colour, linewidth=1, alpha=0.6)
    size = 20 + 160 * int(channel.total) / largest
    ax.scatter([gamma], [c], s=size, color=colour, marker=marker, label=quadrant, zorder=3)
    groups = ((gamma, bounds.gamma, channel.n1), (c, bounds.c, channel.n0))
    right, top = (max(rate, float(bound.high)) if int(group) else rate for rate, bound, group in groups)
    return right, top


def _label(ax: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Write each name beside its point: inside of the axes, and off the points and the names before it."""
    inside = ax.get_window_extent()
    pixels = ax.transData.transform(list(points.values())) if points else ()
    taken: list[BboxBase] = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in pixels]
    for name, point in points.items():
        text = ax.annotate(shorten(name), point, xytext=(0, 0), textcoords="offset points", fontsize=FONT - 2)
        boxes = [_put(text, place) for place in _PLACES]
        spoilt = [_area(box) - _shared(box, inside) + sum(_shared(box, other) for other in taken) for box in boxes]
        taken.append(_put(text, _PLACES[spoilt.index(min(spoilt))]))


def _put(text: Annotation, place: tuple[int, int, str]) -> BboxBase:
    """Move a name; returns the box that it fills there."""
    x, y, alignment = place
    text.set(position=(x, y), horizontalalignment=alignment, verticalalignment="bottom" if y > 0 else "top")
    return text.get_window_extent()


def _area(box: BboxBase) -> float:
    return float(box.width * box.height)


def _shared(first: BboxBase, second: BboxBase) -> float:
    """Area of what two boxes have in common."""
    common = Bbox.intersection(first, second)
    return 0.0 if common is None else _area(common)


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        ax.legend(once.values(), once.keys(), loc="best", fontsize=FONT - 3, framealpha=0.9)
