"""Tails of the binomial with probability 1/2 in constant time, for any number of trials."""

import math

import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor

_NODES, _WEIGHTS = (torch.from_numpy(values) for values in leggauss(22))
_SMALL = torch.tensor(
    [math.lgamma(x + 1.0) - (x * math.log(x) - x if x else 0.0) for x in range(16)], dtype=torch.float64
)
_ROWS_AT_ONCE = 2**13

EXACT_TRIALS = 53
"""Up to so many trials the sums of binomial coefficients are whole numbers that float64 holds."""
# [n, k]: coefficients and their sums up to k.
_COEFFICIENTS = torch.tensor(
    [[math.comb(n, k) for k in range(EXACT_TRIALS // 2 + 1)] for n in range(EXACT_TRIALS + 1)], dtype=torch.float64
)
_SUMS = _COEFFICIENTS.cumsum(1)


def exact_pmf_and_tail(k: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """P(X = k) and P(X <= k) for X binomial(n, 1/2), k <= n/2 and n <= EXACT_TRIALS, without any rounding."""
    scale = torch.exp2(-n.double())
    return _COEFFICIENTS[n, k] * scale, _SUMS[n, k] * scale


def log_pmf(k: Tensor, n: Tensor) -> Tensor:
    """log P(X = k) for X binomial(n, 1/2), n >= 1, int64 tensors of one shape.

    Loader's saddle-point form: the Stirling remainders of n!, k! and (n-k)!, and a deviance that is one sum of positive
    terms, so that nothing of the size of n log n has to cancel.
    """
    lower, upper, trials = k.double(), (n - k).double(), n.double()
    u = (n - 2 * k).double() / trials
    # Near the middle the two terms of the deviance cancel; there it is a series in u. In the tails it is not.
    central = 0.5 * trials * (torch.log1p(-u * u) + 2.0 * u * torch.atanh(u))
    outer = torch.xlogy(lower, 2.0 * lower / trials) + torch.xlogy(upper, 2.0 * upper / trials)
    deviance = torch.where(u.abs() < 0.5, central, outer)
    return _stirling_remainder(n) - _stirling_remainder(k) - _stirling_remainder(n - k) - deviance


def tail_ratio(k: Tensor, n: Tensor) -> Tensor:
    r"""P(X <= k) / P(X = k) for X binomial(n, 1/2) and k <= n/2, int64 tensors [m].

    :math:`(n-k) \int_0^1 (1-v)^{n-k-1} (1+v)^k dv`, by Gauss-Legendre nodes on the part of [0, 1] where the integrand
    is above exp(-42) of its maximum.
    """
    blocks = zip(torch.split(k, _ROWS_AT_ONCE), torch.split(n, _ROWS_AT_ONCE), strict=True)
    return torch.cat([_tail_ratio(*block) for block in blocks])


def _tail_ratio(k: Tensor, n: Tensor) -> Tensor:
    lower, upper, excess = k.double(), (n - k).double(), (n - 2 * k - 1).double()
    end = (84.0 / (excess + torch.sqrt(excess * excess + 84.0 * n.double()))).clamp(max=1.0)
    v = torch.outer(end, 0.5 * (1.0 + _NODES))
    log_integrand = lower.unsqueeze(-1) * torch.log1p(-v * v) + excess.unsqueeze(-1) * torch.log1p(-v)
    return upper * 0.5 * end * (torch.exp(log_integrand) @ _WEIGHTS)


def _stirling_remainder(x: Tensor) -> Tensor:
    """log x! - (x log x - x): tabulated up to 15, then its asymptotic series."""
    y = x.double().clamp(min=1.0)
    z = 1.0 / (y * y)
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / y
    return torch.where(x < 16, _SMALL[x.clamp(max=15)], 0.5 * torch.log(2.0 * math.pi * y) + series)
