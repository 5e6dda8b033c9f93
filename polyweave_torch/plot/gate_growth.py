"""How the gates of Sigma-Pi blocks grow or shrink over training."""

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from polyweave_torch.plot.style import FONT, shorten

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_LINES = ("-", "--", ":", "-.")
_LABELLED = 12


def gate_growth(history: Sequence[Mapping[str, float]], *, ax: Axes | None = None) -> tuple[Figure | SubFigure, Axes]:
    """Draw the growth of every gate against the training step.

    Recruitment is not accuracy: a growing gate says that a block leans on its product, not that it gains by it.

    Args:
        history: of a :class:`~polyweave_torch.callbacks.PiScaleMonitor`: dicts with ``step`` and ``<block>/growth``.
        ax: axes to draw on; by default a new figure.

    Returns:
        The figure and its axes.

    Example:
        >>> figure, axes = gate_growth([{"step": 9, "hidden/growth": 0.01}, {"step": 19, "hidden/growth": 0.02}])
        >>> axes.get_xlabel()
        'training step'
    """
    if ax is None:
        ax = plt.subplots(figsize=(5, 4), layout="constrained")[1]
    blocks = list(dict.fromkeys(key.removesuffix("/growth") for entry in history for key in entry if "/growth" in key))
    ax.axhline(0.0, color="black", linewidth=1, linestyle="--")
    for index, block in enumerate(blocks):
        seen = [entry for entry in history if f"{block}/growth" in entry]
        ax.plot(
            [entry["step"] for entry in seen],
            [entry[f"{block}/growth"] for entry in seen],
            color=_COLOURS[index % len(_COLOURS)],
            linestyle=_LINES[index // len(_COLOURS) % len(_LINES)],
            label=shorten(block),
        )
    ax.set_xlabel("training step", fontsize=FONT)
    ax.set_ylabel("growth of mean exp(gate)", fontsize=FONT)
    ax.tick_params(labelsize=FONT - 2)
    if 0 < len(blocks) <= _LABELLED:
        ax.legend(loc="best", fontsize=FONT - 3, framealpha=0.9)
    return ax.figure, ax
