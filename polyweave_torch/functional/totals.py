"""What published totals imply: bounds of the channel from two accuracies alone, and a lint of reported flips."""

from typing import NamedTuple

import torch
from torch import Tensor


class Bounds(NamedTuple):
    """The smallest and the largest value that the totals allow."""

    low: Tensor
    """Smallest, in the quantity's unit; broadcast over the totals' shapes."""
    high: Tensor
    """Largest, likewise."""


class ChannelBounds(NamedTuple):
    """What two accuracies over the same N samples leave open."""

    n01: Bounds
    """int64, corrections."""
    n10: Bounds
    """int64, corruptions."""
    c: Bounds
    """Correction rate n01 / n0; NaN where no sample can have been wrong before."""
    gamma: Bounds
    """Corruption rate n10 / n1; NaN where no sample can have been right before."""


def check_accounting(
    accuracy_before: float | Tensor,
    accuracy_after: float | Tensor,
    share_corrected: float | Tensor,
    share_corrupted: float | Tensor,
    *,
    tolerance: float = 0.0005,
) -> Tensor:
    r"""Check published figures against the identity that they must obey.

    .. math:: |\mathrm{acc}_1 - (\mathrm{acc}_0 + \text{corrected} - \text{corrupted})| \le \text{tolerance}

    Args:
        accuracy_before: accuracy before, in [0, 1].
        accuracy_after: accuracy after, likewise.
        share_corrected: n01 / N, of all samples.
        share_corrupted: n10 / N, of all samples.
        tolerance: largest difference that rounding explains; figures of three decimals need 0.002 in the worst case.

    Returns:
        bool tensor, broadcast, on the CPU; False also for NaN.

    Raises:
        ValueError: where a figure lies outside [0, 1].

    Example:
        >>> bool(check_accounting(0.838, 0.674, 0.064, 0.228)), bool(check_accounting(0.838, 0.674, 0.064, 0.128))
        (True, False)
    """
    before, after = _as_share(accuracy_before, "accuracy_before"), _as_share(accuracy_after, "accuracy_after")
    corrected, corrupted = _as_share(share_corrected, "share_corrected"), _as_share(share_corrupted, "share_corrupted")
    # The slack of 1e-12 keeps a difference of exactly the tolerance from failing by a bit of float rounding.
    return (after - (before + corrected - corrupted)).abs() <= tolerance + 1e-12


def bounds_from_totals(
    n: int | Tensor,
    accuracy_before: float | Tensor,
    accuracy_after: float | Tensor,
    *,
    decimals: int | None = None,
) -> ChannelBounds:
    r"""Bounds of corrections and corruptions when only the two accuracies are known.

    With n1 = N·acc0, m1 = N·acc1 and D = n1 - m1: corruptions lie in [max(0, D), min(n1, N - m1)] and corrections are
    corruptions minus D. Accuracies published with ``decimals`` digits stand for every whole number of right answers
    that rounds to them, and the bounds widen accordingly.

    Args:
        n: number of samples N, at least 1.
        accuracy_before: accuracy before, in [0, 1].
        accuracy_after: accuracy after.
        decimals: digits after the point of the accuracies (as shares, so 71.4 % has 3); None if they are exact.

    Returns:
        :class:`ChannelBounds` on the CPU.

    Raises:
        ValueError: where an accuracy lies outside [0, 1], or no whole number of right answers gives it.

    Example:
        >>> bounds = bounds_from_totals(200, 191 / 200, 183 / 200)
        >>> int(bounds.n10.low), int(bounds.n10.high), round(float(bounds.gamma.high), 4)
        (8, 17, 0.089)
    """
    size = torch.as_tensor(n, dtype=torch.float64, device="cpu")
    if bool((size < 1).any()) or bool((size != size.round()).any()):
        raise ValueError(f"n must be a whole number of samples of at least 1, but is {n}")
    before_low, before_high = _right_answers(size, accuracy_before, decimals, "accuracy_before")
    after_low, after_high = _right_answers(size, accuracy_after, decimals, "accuracy_after")
    wrong_low, wrong_high = size - before_high, size - before_low
    n10 = Bounds((before_low - after_high).clamp(min=0), torch.minimum(before_high, size - after_low))
    n01 = Bounds((after_low - before_high).clamp(min=0), torch.minimum(wrong_high, after_high))
    # A rate is monotone in both totals, so its extremes stand at corners; an empty group has no rate, so one sample.
    least_right = torch.where(before_high > 0, before_low.clamp(min=1), torch.nan)
    least_wrong = torch.where(wrong_high > 0, wrong_low.clamp(min=1), torch.nan)
    gamma = Bounds(
        (least_right - after_high).clamp(min=0) / least_right, ((size - after_low) / least_right).clamp(max=1)
    )
    c = Bounds((after_low - size + least_wrong).clamp(min=0) / least_wrong, (after_high / least_wrong).clamp(max=1))
    return ChannelBounds(n01=_whole(n01), n10=_whole(n10), c=c, gamma=gamma)


def _whole(bounds: Bounds) -> Bounds:
    return Bounds(bounds.low.to(torch.int64), bounds.high.to(torch.int64))


def _as_share(value: float | Tensor, name: str) -> Tensor:
    """A published share as float64 on the CPU; NaN passes."""
    share = torch.as_tensor(value, dtype=torch.float64, device="cpu")
    if bool(((share < 0) | (share > 1)).any()):
        raise ValueError(f"{name} must lie in [0, 1], but is {value}; divide percentages by 100")
    return share


def _right_answers(size: Tensor, accuracy: float | Tensor, decimals: int | None, name: str) -> tuple[Tensor, Tensor]:
    value = _as_share(accuracy, name)
    if bool(value.isnan().any()):
        raise ValueError(f"{name} must lie in [0, 1], but is {accuracy}")
    # The slack keeps whole numbers whole: an exact accuracy was rounded to its dtype when it was computed.
    dtype = accuracy.dtype if isinstance(accuracy, Tensor) else torch.float64
    slack = 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    half = slack if decimals is None else 0.5 * 10.0**-decimals + slack
    low = (size * (value - half)).ceil().clamp(min=0)
    high = torch.minimum((size * (value + half)).floor(), size)
    if bool((low > high).any()):
        raise ValueError(
            f"{name} {accuracy} is no whole number of right answers out of {size.tolist()}; "
            "pass decimals=, the number of digits it was rounded to"
        )
    return low, high
