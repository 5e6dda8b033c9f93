"""Pearson's correlation with its interval, for judges, scores and whatever else should agree."""

import math
from typing import NamedTuple

import torch
from scipy import special
from torch import Tensor

from polyweave_torch.functional._checks import Values
from polyweave_torch.functional.intervals import normal_quantile


class PearsonResult(NamedTuple):
    """A correlation; 0-d tensors on the CPU."""

    r: Tensor
    """float64, in [-1, 1]; NaN where undefined."""
    low: Tensor
    """Lower end of the interval."""
    high: Tensor
    """Upper end."""
    p_value: Tensor
    """Two-sided, of H0: the values are uncorrelated (normal)."""
    n: Tensor
    """int64, pairs in which neither value is missing."""
    level: float
    """Coverage of the interval."""


def pearson(x: Values, y: Values, *, level: float = 0.95) -> PearsonResult:
    r"""Pearson's correlation of two marks per sample.

    .. math:: r = \frac{\sum (x_i - \bar x)(y_i - \bar y)}{\sqrt{\sum (x_i - \bar x)^2 \sum (y_i - \bar y)^2}}

    The interval is Fisher's, :math:`\tanh(\operatorname{artanh} r \pm z / \sqrt{n - 3})`; the p-value that of
    :math:`t = r \sqrt{(n - 2) / (1 - r^2)}` on n - 2 degrees of freedom. An r within rounding of 1 or -1 is that.

    Args:
        x: ``[N]`` numbers; a NaN leaves its pair out.
        y: ``[N]`` numbers, likewise.
        level: coverage of the interval.

    Returns:
        :class:`PearsonResult`. Fewer than 2 pairs, or one side constant: undefined, so all NaN, without a warning. With
        2 or 3 pairs the interval is all of [-1, 1].

    Raises:
        ValueError: where the shapes are not one ``[N]``, or ``level`` is outside (0, 1).

    Source: R. A. Fisher, Metron 1 (1921) 3; p as ``scipy.stats.pearsonr``.

    Example:
        >>> from polyweave_torch.functional import pearson
        >>> result = pearson([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
        >>> print(f"r {result.r:.2f} [{result.low:.2f}, {result.high:.2f}], p {result.p_value:.3f}")
        r 0.80 [-0.28, 0.99], p 0.104
    """
    z = normal_quantile(level)
    first, second = (torch.as_tensor(values, dtype=torch.float64, device="cpu").detach() for values in (x, y))
    if first.dim() != 1 or first.shape != second.shape:
        raise ValueError(
            f"x and y must have one shape [N], but came with shapes {list(first.shape)} and {list(second.shape)}; "
            "correlate two columns at a time"
        )
    present = ~(first.isnan() | second.isnan())
    first, second = first[present], second[present]
    n = len(first)
    r = _correlation(first, second)
    if math.isnan(r):
        low, high, p_value = math.nan, math.nan, math.nan
    else:
        low, high = _fisher_interval(r, n, z)
        # The null distribution of r is a beta on [-1, 1]; with 2 pairs, where r is always 1 or -1, p is 1.
        p_value = 2.0 * float(special.betainc(n / 2.0 - 1.0, n / 2.0 - 1.0, (1.0 - abs(r)) / 2.0)) if n > 2 else 1.0
    r, low, high, p_value = torch.tensor([r, low, high, p_value], dtype=torch.float64)
    return PearsonResult(r, low, high, p_value, torch.tensor(n), level)


def _correlation(x: Tensor, y: Tensor) -> float:
    # Constant is what holds one value: the deviations from a rounded mean need not be 0.
    if len(x) < 2 or bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return math.nan
    r = float(_direction(x) @ _direction(y))
    # On a line it is 1 or -1 but for the rounding of sums of n terms.
    return math.copysign(1.0, r) if abs(r) > 1.0 - 2.0**-50 * math.sqrt(len(x)) else r


def _direction(values: Tensor) -> Tensor:
    deviations = values - values.mean()
    # Scaled first, so that no square over- or underflows.
    deviations = deviations / deviations.abs().max()
    return deviations / deviations.square().sum().sqrt()


def _fisher_interval(r: float, n: int, z: float) -> tuple[float, float]:
    if n <= 3:
        return -1.0, 1.0
    if abs(r) == 1.0:
        return r, r
    reach = z / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
