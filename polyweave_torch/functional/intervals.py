"""Confidence intervals of one proportion: Wilson's score interval and Jeffreys' equal-tailed interval."""

import math
from typing import NamedTuple

import torch
from scipy import special
from torch import Tensor

from polyweave_torch.functional._checks import Numbers, check_open_unit, rate_dtype


class ConfidenceInterval(NamedTuple):
    """The two ends of an interval, each of the shape of the estimate that it belongs to."""

    low: Tensor
    """Lower end, in the estimate's unit."""
    high: Tensor
    """Upper end, likewise."""


class WilsonInterval(NamedTuple):
    """A proportion with Wilson's interval; tensors of the shape of the counts."""

    p: Tensor
    """The proportion itself, successes / n; NaN where n is 0."""
    low: Tensor
    """Lower end, at least 0; 0 where n is 0."""
    high: Tensor
    """Upper end, at most 1; 1 where n is 0."""
    level: float
    """Confidence level of the interval, in (0, 1)."""


def wilson_interval(successes: Numbers, n: Numbers, *, level: float = 0.95, z: float | None = None) -> WilsonInterval:
    r"""Wilson's score interval of a proportion: every rate that a two-sided score test does not reject.

    The ends are the roots of :math:`(s/n - p)^2 = z^2 p (1-p) / n`,

    .. math:: high = \frac{2s + z^2 + z\sqrt{z^2 + 4 s (n-s)/n}}{2 (n + z^2)}, \qquad
        low = \frac{2 s^2 / n}{2s + z^2 + z\sqrt{z^2 + 4 s (n-s)/n}}.

    They stay inside [0, 1], and the interval keeps a width where nothing or everything succeeded.

    Args:
        successes: number of successes, any shape.
        n: number of trials, broadcast against ``successes``.
        level: coverage of the interval.
        z: standard normal quantile to use in place of the one of ``level``.

    Returns:
        :class:`WilsonInterval`, float64 on the input's device (float32 on MPS); its level is the one that ``z`` implies
        where ``z`` is given. Where n = 0 the point is NaN and the interval all of [0, 1].

    Raises:
        ValueError: where successes lie outside [0, n], ``level`` outside (0, 1), or ``z`` is not positive.

    Source: E. B. Wilson, JASA 22 (1927) 209; the lower end is written without its cancellation.

    Example:
        >>> from polyweave_torch.functional import wilson_interval
        >>> interval = wilson_interval(7, 10)
        >>> print(f"{interval.p:.3f} [{interval.low:.6f}, {interval.high:.6f}]")
        0.700 [0.396778, 0.892209]
    """
    if z is None:
        z = normal_quantile(level)
    elif z > 0.0 and math.isfinite(z):
        level = math.erf(z / math.sqrt(2.0))
    else:
        raise ValueError(f"z must be a positive number of standard deviations, but is {z}; 1.96 gives about 95 %")
    s, n = _successes_and_trials(successes, n)
    failures = n - s
    upper_sum = 2.0 * s + z * z + z * torch.sqrt(z * z + 4.0 * s * (failures / n))
    # The ends are exact where nothing or everything succeeded, which also makes [0, 1] of no trials at all.
    low = torch.where(s == 0.0, 0.0, 2.0 * s * (s / n) / upper_sum)
    high = torch.where(failures == 0.0, 1.0, upper_sum / (2.0 * (n + z * z)))
    return WilsonInterval(s / n, low.clamp(0.0, 1.0), high.clamp(0.0, 1.0), level)


def jeffreys_interval(successes: Numbers, n: Numbers, *, level: float = 0.95) -> ConfidenceInterval:
    r"""Jeffreys' interval of a proportion: equal tails of the posterior under the prior Beta(1/2, 1/2).

    The ends are the :math:`(1 - level)/2` and :math:`(1 + level)/2` quantiles of Beta(s + 1/2, n - s + 1/2), also at
    s = 0 and s = n, where Brown, Cai and DasGupta move the outer end to 0 or 1. With n = 0 the posterior is the prior,
    and so is the interval.

    Args:
        successes: number of successes, any shape.
        n: number of trials, broadcast against ``successes``.
        level: probability inside the interval.

    Returns:
        :class:`ConfidenceInterval`, computed on the CPU, returned on the input's device as float64 (float32 on MPS).

    Raises:
        ValueError: where successes lie outside [0, n], or ``level`` outside (0, 1).

    Source: L. D. Brown, T. T. Cai, A. DasGupta, Statistical Science 16 (2001) 101.

    Example:
        >>> from polyweave_torch.functional import jeffreys_interval
        >>> interval = jeffreys_interval(81, 263)
        >>> print(f"[{interval.low:.4f}, {interval.high:.4f}]")
        [0.2545, 0.3656]
    """
    check_open_unit(level, name="level")
    s, n = _successes_and_trials(successes, n)
    a, b = (s + 0.5).double().cpu().numpy(), (n - s + 0.5).double().cpu().numpy()
    tail = 0.5 - level / 2.0
    low = torch.as_tensor(special.betaincinv(a, b, tail))
    # The upper quantile by its complement: 1 - tail would round the tail away at high levels.
    high = torch.as_tensor(special.betainccinv(a, b, tail))
    return ConfidenceInterval(low.to(s), high.to(s))


def normal_quantile(level: float) -> float:
    """The z of a two-sided interval of ``level``: 1.959963984540054 for 0.95."""
    check_open_unit(level, name="level")
    return float(special.ndtri(0.5 + level / 2.0))


def _successes_and_trials(successes: Numbers, n: Numbers) -> tuple[Tensor, Tensor]:
    """Both as floats on the device of the tensor among them."""
    device = next((value.device for value in (successes, n) if isinstance(value, Tensor)), torch.device("cpu"))
    dtype = rate_dtype(device)
    s = torch.as_tensor(successes, dtype=dtype, device=device)
    trials = torch.as_tensor(n, dtype=dtype, device=device)
    wrong = (s < 0.0) | (s > trials)
    if bool(wrong.any()):
        first_s, first_n = (value.expand_as(wrong)[wrong][0].item() for value in (s, trials))
        raise ValueError(f"successes must lie between 0 and n, but came as {first_s:g} of {first_n:g}")
    return s, trials
