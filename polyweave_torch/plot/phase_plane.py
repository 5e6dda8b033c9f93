"""The phase plane: corruption across, correction up, and the line on which they pay for each other."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

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


def phase_plane(
    channels: Mapping[str, ChannelEstimate] | ChannelEstimate,
    *,
    p0: float | None = None,
    trail: Sequence[tuple[float, float]] = (),
    ax: Axes | None = None,
) -> tuple[Figure | SubFigure, Axes]:
    """Draw channels in the plane of corruption (across) and correction (up), with the break-even line.

    One point a slice, its area the share of samples, its colour and marker the quadrant at the slice's own accuracy,
    its Wilson interval a cross. The line is c = p0 / (1 - p0)·gamma: above it a population of accuracy p0 gains.

    Args:
        channels: estimates by name, each of one table, or a single estimate.
        p0: accuracy of the break-even line; by default that of all samples together.
        trail: earlier points ``(gamma, c)`` to draw as a path, the oldest first.
        ax: axes to draw on; by default a new figure.

    Returns:
        The figure and its axes.

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
    right = max((_point(ax, name, seen[name], largest, label=len(seen) <= _LABELLED) for name in seen), default=1.0)
    ax.set(xlim=(-0.02 * right, min(max(1.05 * right, 0.1), 1.02)), ylim=(-0.02, 1.02))
    if p0 is not None:
        _break_even_line(ax, p0)
    for step, (start, end) in enumerate(itertools.pairwise(trail), start=1):
        fade = step / len(trail)
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": NEUTRAL, "alpha": fade, "linewidth": 1.5})
    ax.set_xlabel("corruption rate γ (right → wrong)", fontsize=FONT)
    ax.set_ylabel("correction rate c (wrong → right)", fontsize=FONT)
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


def _point(ax: Axes, name: str, channel: ChannelEstimate, largest: int, *, label: bool) -> float:
    """Draw one channel; returns how far to the right it matters: its point, and its interval where there is data."""
    colour, marker, quadrant = STYLE[Quadrant(int(phase_plane_diagnosis(channel).quadrant))]
    bounds = channel_intervals(channel.counts)
    gamma, c = float(channel.gamma), float(channel.c)
    ax.plot([float(bounds.gamma.low), float(bounds.gamma.high)], [c, c], color=colour, linewidth=1, alpha=0.6)
    ax.plot([gamma, gamma], [float(bounds.c.low), float(bounds.c.high)], color=colour, linewidth=1, alpha=0.6)
    size = 20 + 160 * int(channel.total) / largest
    ax.scatter([gamma], [c], s=size, color=colour, marker=marker, label=quadrant, zorder=3)
    if label and name:
        ax.annotate(shorten(name), (gamma, c), xytext=(6, 6), textcoords="offset points", fontsize=FONT - 2)
    return max(gamma, float(bounds.gamma.high) if int(channel.n1) else 0.0)


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        ax.legend(once.values(), once.keys(), loc="best", fontsize=FONT - 3, framealpha=0.9)
