"""All pairs of K conditions: who is ahead, by how much, and whether that is more than chance."""

import math

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure, SubFigure

from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional.mcnemar import PairwiseMcNemar
from polyweave_torch.plot.style import FONT, shorten


def significance_matrix(
    pairs: PairwiseMcNemar, *, n: int | None = None, alpha: float = 0.05, ax: Axes | None = None
) -> tuple[Figure | SubFigure, Axes]:
    """Draw the matrix of paired differences: row minus column, ``*`` where the adjusted p is below alpha.

    Args:
        pairs: of one family, from :func:`~polyweave_torch.functional.mcnemar_pairs`.
        n: number of samples; with it cells show differences of accuracy in percentage points, without it samples.
        alpha: error rate of the marks.
        ax: axes to draw on; by default a new figure.

    Returns:
        The figure and its axes.

    Raises:
        ValueError: where the pairs are of several families, or ``alpha`` is outside (0, 1).

    Example:
        >>> import torch
        >>> from polyweave_torch.functional import mcnemar_pairs, outcome_gram
        >>> pairs = mcnemar_pairs(outcome_gram(torch.tensor([[1, 0, 0]]).repeat(12, 1)), names=["new", "old", "older"])
        >>> figure, axes = significance_matrix(pairs)
        >>> [text.get_text() for text in axes.texts][:2]
        ['+12*', '-12*']
    """
    check_open_unit(alpha, name="alpha")
    if pairs.adjusted_p.dim() != 1:
        raise ValueError(f"pairs must be of one family, but its p-values have shape {list(pairs.adjusted_p.shape)}")
    count = len(pairs.adjusted_p)
    conditions = (1 + math.isqrt(1 + 8 * count)) // 2
    first, second = np.triu_indices(conditions, 1)
    ahead = (pairs.result.b - pairs.result.c).numpy().astype(float)
    difference = np.zeros((conditions, conditions))
    difference[first, second], difference[second, first] = ahead, -ahead
    if n is not None:
        difference *= 100 / n
    if ax is None:
        ax = plt.subplots(figsize=(5, 5), layout="constrained")[1]
    largest = max(float(np.abs(difference).max(initial=0)), 1e-9)
    ax.imshow(difference, cmap="PuOr_r", norm=TwoSlopeNorm(0, -largest, largest))
    size = min(FONT - 2, 90 // conditions)
    for i, j, p in zip(first.tolist(), second.tolist(), pairs.adjusted_p.tolist(), strict=True):
        mark = "*" if p < alpha else ""
        for row, column in ((i, j), (j, i)):
            value = float(difference[row, column]) or 0.0  # no minus before a zero
            shown = f"{value:+.0f}{mark}" if n is None else f"{value:+.1f}{mark}"
            dark = abs(value) > 0.6 * largest
            ax.text(column, row, shown, ha="center", va="center", fontsize=size, color="white" if dark else "black")
    names = _names(pairs, conditions)
    ax.set_xticks(range(conditions), names, rotation=45, ha="right", fontsize=size)
    ax.set_yticks(range(conditions), names, fontsize=size)
    unit = "samples" if n is None else "percentage points"
    ax.set_title(f"row minus column, {unit}\n* p < {alpha:g}, adjusted over {pairs.family}", fontsize=FONT - 3)
    return ax.figure, ax


def _names(pairs: PairwiseMcNemar, conditions: int) -> list[str]:
    if not isinstance(pairs.first, list) or not pairs.first:
        return [str(index) for index in range(conditions)]
    return [shorten(name, 12) for name in [pairs.first[0], *pairs.second[: conditions - 1]]]
