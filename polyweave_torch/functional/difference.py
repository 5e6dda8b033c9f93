"""Intervals of the difference of two paired accuracies, and the score statistic shared with the equivalence tests.

The tables are int64 ``[..., 2, 2]`` by ``[before, after]``; the difference is p1 - p0 = (n01 - n10) / N throughout, so
a positive one says that the step gained.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, as_counts
from polyweave_torch.functional.intervals import normal_quantile

IntervalMethod = Literal["tango", "newcombe", "wald", "agresti-min", "bonett-price"]


class PairedDifference(NamedTuple):
    """The difference of two paired accuracies with its interval."""

    estimate: Tensor
    """p1 - p0 = (n01 - n10) / N; NaN where N = 0."""
    low: Tensor
    """Lower end, at least -1."""
    high: Tensor
    """Upper end, at most 1."""
    level: float
    """Coverage of the interval."""
    method: str
    """Which interval it is."""


def paired_difference_interval(
    counts: Counts, *, level: float = 0.95, method: IntervalMethod = "tango"
) -> PairedDifference:
    r"""The interval of p1 - p0 between two arms that answered the same N samples.

    - ``"tango"``: every difference that the score test (:func:`score_statistic`) does not reject; at n01 = n10 = 0 that
      is :math:`\pm z^2/(N + z^2)`
    - ``"newcombe"``: square-and-add of the two Wilson intervals with their correlation, continuity-corrected
      (Newcombe's method 10)
    - ``"wald"``: :math:`\hat\delta \pm z \sqrt{(n_{01}+n_{10}-(n_{01}-n_{10})^2/N)} / N`, of width 0 without discordant
      pairs
    - ``"agresti-min"``: Wald after 1/2 is added to each cell
    - ``"bonett-price"``: Wald after 1 is added to n01 and n10

    Tango's interval leaves out 0 exactly where McNemar's chi-square without correction has p < 1 - level, so it can
    disagree with the exact, mid-p or Edwards p-value of the same table: a report that prints both should say which of
    the two decides.

    Args:
        counts: integers ``[..., 2, 2]`` by ``[before, after]``; up to 1e12 and beyond.
        level: coverage of the interval.
        method: one of the above.

    Returns:
        :class:`PairedDifference`, float64 ``[...]`` on the CPU, ends clamped to [-1, 1]. N = 0 leaves the estimate NaN
        and the interval all of [-1, 1], whatever the method: no data rules nothing out.

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative or not 2x2, ``level`` is outside (0, 1) or ``method`` is unknown.

    Source: T. Tango, Statistics in Medicine 17 (1998) 891; R. G. Newcombe, ibid. 2635; A. Agresti, Y. Min, ibid. 24
    (2005) 729; D. G. Bonett, R. M. Price, J. Educ. Behav. Stat. 37 (2012) 479.

    Example:
        >>> from polyweave_torch.functional import paired_difference_interval
        >>> difference = paired_difference_interval([[59, 6], [16, 80]])
        >>> print(f"{difference.estimate:.4f} [{difference.low:.4f}, {difference.high:.4f}]")
        -0.0621 [-0.1240, -0.0054]
    """
    table = as_counts(counts).cpu().to(torch.float64)
    z = normal_quantile(level)
    gained, lost, total = table[..., 0, 1], table[..., 1, 0], table.sum((-1, -2))
    if method == "tango":
        low, high = _tango_low(gained, lost, total, z), -_tango_low(lost, gained, total, z)
    elif method == "newcombe":
        low, high = _newcombe(table, z)
    elif method == "wald":
        low, high = wald_interval(gained, lost, total, z)
    elif method == "agresti-min":
        low, high = wald_interval(gained + 0.5, lost + 0.5, total + 2.0, z)
    elif method == "bonett-price":
        low, high = wald_interval(gained + 1.0, lost + 1.0, total + 2.0, z)
    else:
        raise ValueError(
            f"method must be tango, newcombe, wald, agresti-min or bonett-price, but is {method!r}; "
            "tango agrees with the score test of equivalence"
        )
    empty = total == 0.0
    return PairedDifference(
        estimate=(gained - lost) / total,
        low=low.clamp(-1.0, 1.0).masked_fill(empty, -1.0),
        high=high.clamp(-1.0, 1.0).masked_fill(empty, 1.0),
        level=level,
        method=method,
    )


def score_statistic(gained: Tensor, lost: Tensor, total: Tensor, difference: Tensor) -> Tensor:
    r"""Tango's score statistic of H0: p1 - p0 = difference, standard normal under H0 and decreasing in the difference.

    .. math:: z(\Delta) = \frac{n_{01} - n_{10} - N\Delta}{\sqrt{N (2q + \Delta(1 - \Delta))}}

    where q is the maximum-likelihood share of the losing cell under H0, a root of a quadratic. At difference 0 its
    square is McNemar's chi-square without correction. Unlike Wald's, its variance stays positive without discordants.

    Args:
        gained: float64 n01 of each table; the arguments are broadcast.
        lost: float64 n10.
        total: float64 N.
        difference: the difference under test, in (-1, 1).

    Returns:
        z, float64; NaN where N = 0, and at difference 0 where nothing is discordant.

    Source: T. Tango, Statistics in Medicine 17 (1998) 891, with the root written without its cancellation.
    """
    # Under the mirrored table a negative difference is a positive one, for which no term below loses digits.
    negative = difference < 0.0
    gain, loss = torch.where(negative, lost, gained) / total, torch.where(negative, gained, lost) / total
    size = difference.abs()
    product = loss * size * (1.0 - size)
    linear = (2.0 - gain + loss) * size - gain - loss
    root = torch.sqrt(linear * linear + 8.0 * product)
    share = torch.where(linear > 0.0, 2.0 * product / (linear + root), (root - linear) / 4.0)
    spread = torch.sqrt(2.0 * share + size * (1.0 - size))
    return torch.sqrt(total) * ((gained - lost) / total - difference) / spread


def wald_standard_error(gained: Tensor, lost: Tensor, total: Tensor) -> Tensor:
    """The standard error of (gained - lost) / total; the variance as a sum of positive terms, exact at its zeros."""
    concordant = total - gained - lost
    return torch.sqrt((4.0 * gained * lost + concordant * (gained + lost)) / total) / total


def wald_interval(gained: Tensor, lost: Tensor, total: Tensor, z: float) -> tuple[Tensor, Tensor]:
    """(gained - lost) / total ± z standard errors, not cut to [-1, 1]; NaN where total is 0."""
    centre, reach = (gained - lost) / total, z * wald_standard_error(gained, lost, total)
    return centre - reach, centre + reach


def _tango_low(gained: Tensor, lost: Tensor, total: Tensor, z: float) -> Tensor:
    """Where the score statistic crosses z, by bisection: the closed form of the quartic is wrong on many tables."""
    high = (gained - lost) / total
    low = torch.full_like(high, -1.0)
    for _ in range(128):
        middle = (low + high) / 2.0
        if not bool(((low < middle) & (middle < high)).any()):
            break
        rejected = score_statistic(gained, lost, total, middle) > z
        low, high = torch.where(rejected, middle, low), torch.where(rejected, high, middle)
    return low


def _newcombe(table: Tensor, z: float) -> tuple[Tensor, Tensor]:
    before, after, total = table.sum(-1), table.sum(-2), table.sum((-1, -2))
    agreement = table[..., 0, 0] * table[..., 1, 1] - table[..., 0, 1] * table[..., 1, 0]
    corrected = torch.where(agreement > 0.0, (agreement - total / 2.0).clamp(min=0.0), agreement)
    margins = (before.prod(-1) * after.prod(-1)).sqrt()
    correlation = torch.where(margins > 0.0, corrected / margins, 0.0)
    down0, up0 = _wilson_reach(before[..., 1], total, z)
    down1, up1 = _wilson_reach(after[..., 1], total, z)
    estimate = (table[..., 0, 1] - table[..., 1, 0]) / total
    return estimate - _add_reach(down1, up0, correlation), estimate + _add_reach(up1, down0, correlation)


def _add_reach(first: Tensor, second: Tensor, correlation: Tensor) -> Tensor:
    """sqrt(a² - 2·r·a·b + b²), kept exact where a and b nearly cancel."""
    return torch.sqrt((first - second) ** 2 + 2.0 * (1.0 - correlation) * first * second)


def _wilson_reach(successes: Tensor, total: Tensor, z: float) -> tuple[Tensor, Tensor]:
    """How far Wilson's interval reaches below and above the rate: as ends minus rate these would lose their digits."""
    half = z * torch.sqrt(successes * (total - successes) / total + z * z / 4.0) / (total + z * z)
    shift = z * z * (successes / total - 0.5) / (total + z * z)
    return (half + shift).clamp(min=0.0), (half - shift).clamp(min=0.0)
