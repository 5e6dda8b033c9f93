"""Several attempts at an item become one outcome of the item: attempts are not items."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

EPOCHS = ("first", "mean", "majority", "any", "all")
_FEW = 0.05
"""A share of fractional items below which they are taken for an accident."""


def epoch_order(epochs: Sequence[float | str | None]) -> NDArray[np.int64]:
    """A rank for each row: by number where epochs are numbers, else by appearance; unnumbered rows by their order."""
    if all(epoch is None for epoch in epochs):
        return np.arange(len(epochs))
    try:
        numbers = np.array([float(epoch) if epoch is not None else -1.0 for epoch in epochs])
    except (ValueError, OverflowError):
        places: dict[float | str | None, int] = {}
        return np.array([places.setdefault(epoch, len(places)) for epoch in epochs])
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def reduce_epochs(
    items: NDArray[np.int64],
    order: NDArray[np.int64],
    values: NDArray[np.float64],
    failed: NDArray[np.bool_],
    how: str,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Values and failures of the items, and the row of each item's first epoch.

    Failed and unscored attempts have no part in means, majorities, any and all. An item failed where its first attempt
    did (``first``) or where all did. An even split has no majority and counts as wrong.

    Args:
        items: the item of each row, from 0 on.
        order: the rank of each row's epoch.
        values: outcomes, NaN unscored or failed.
        failed: where the run failed.
        how: first, mean, majority, any or all.
    """
    by_item = np.lexsort((order, items))
    starts = np.flatnonzero(np.diff(items[by_item], prepend=-1))
    rows = by_item[starts]
    if how == "first":
        return values[rows], failed[rows], rows
    scored = ~np.isnan(values)
    number = np.bincount(items, scored).astype(np.float64)
    total = np.bincount(items, np.where(scored, values, 0.0))
    with np.errstate(invalid="ignore"):
        mean = total / number
    decided = {"mean": mean, "majority": mean > 0.5, "any": total > 0, "all": total == number}[how]
    return (
        np.where(number > 0, decided, np.nan),
        np.bincount(items, failed) == np.bincount(items),
        rows,
    )


def epoch_warnings(items: NDArray[np.int64], values: NDArray[np.float64], how: str) -> list[str]:
    """What should be known of a reduction."""
    warnings = []
    number = np.bincount(items)
    if number.min() != number.max():
        warnings.append(f"items have {number.min()} to {number.max()} epochs each")
    if how == "first":
        return warnings
    lost = np.isnan(values)
    if lost.any():
        warnings.append(
            f"{int(lost.sum())} of {len(values)} attempts failed or are unscored, and have no part in {how}"
        )
    scored, total = np.bincount(items, ~lost), np.bincount(items, np.where(lost, 0.0, values))
    if how == "mean" and bool(np.isin(values[~lost], (0.0, 1.0)).all()):
        between = int(((total > 0) & (total < scored)).sum())
        if 0 < between < _FEW * len(number):
            warnings.append(
                f"{between} of {len(number)} items {'has' if between == 1 else 'have'} a score between 0 and 1, so the "
                "bootstrap decides and not McNemar's test; --epochs majority keeps McNemar"
            )
    if how == "majority":
        ties = (2 * total == scored) & (scored > 0)
        if ties.any():
            warnings.append(f"{int(ties.sum())} items are an even split of their epochs, which counts as wrong")
    return warnings
