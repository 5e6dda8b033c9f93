"""Power of McNemar's test and the sizes that reach it, from the shares of the two kinds of discordant pairs.

The two accuracies do not determine the power: .70 -> .80 takes 296 pairs when the arms are independent and 124 when
16 % of the pairs are discordant. So these functions take p10 (right, then wrong) and p01 (wrong, then right), which
:func:`discordance_from_phi` gives where only accuracies and their correlation are known.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from scipy.stats import binom
from torch import Tensor

from polyweave_torch.functional._checks import Numbers, check_open_unit
from polyweave_torch.functional._discordants import discordant_blocks
from polyweave_torch.functional.mcnemar import FEW_DISCORDANTS, Method

PowerMethod = Literal[Method, "connor"]
Floats = NDArray[np.float64]

# Expected numbers of discordant pairs: up to the first every size is enumerated, up to the second some.
_MOST_ENUMERATED, _MOST_BISECTED = 200_000, 1_000_000
_MOST_PAIRS = 10**15
# What rounding may do to a share that comes from a subtraction, and to a sum of probabilities.
_ROUNDING = 1e-12


def mcnemar_power(
    p10: Numbers, p01: Numbers, n: Numbers, *, alpha: float = 0.05, method: PowerMethod = "auto"
) -> Tensor:
    r"""The probability that McNemar's test on n pairs gives p < alpha, in either direction.

    Enumerated under the test itself: with :math:`\psi = p_{10} + p_{01}`, the number of discordant pairs m is
    binomial(n, psi), the gains among them are binomial(m, p01 / psi), and the test rejects where the smaller of the two
    counts is at most :math:`k_\alpha(m)`:

    .. math:: power = \sum_m \binom{n}{m} \psi^m (1-\psi)^{n-m}\;
        P(X \le k_\alpha(m) \text{ or } X \ge m - k_\alpha(m) \mid m)

    Accurate to about 1e-12; time and memory grow with the square root of n.

    Args:
        p10: probability that a pair is right before and wrong after, any shape.
        p01: probability that it is wrong before and right after; all three are broadcast.
        n: number of pairs, whole numbers.
        alpha: error rate of the test, two-sided.
        method: the test, as in :func:`~polyweave_torch.functional.mcnemar.mcnemar`: ``"auto"``, ``"exact"``,
            ``"midp"``, ``"asymptotic"`` or ``"edwards"``; or ``"connor"``, the normal approximation that
            :func:`target_per_stratum` inverts,
            :math:`\Phi((|p_{01}-p_{10}|\sqrt n - z_{\alpha/2}\sqrt\psi) / \sqrt{\psi - (p_{01}-p_{10})^2})`.

    Returns:
        float64, the broadcast shape, on the CPU. At p10 = p01 it is the test's true error rate.

    Raises:
        ValueError: where a share is outside [0, 1], the two exceed 1, n is negative or not whole, ``alpha`` is outside
            (0, 1), or ``method`` is unknown.

    Source: R. J. Connor, Biometrics 43 (1987) 207; S. W. Duffy, Biometrics 40 (1984) 1005.

    Example:
        >>> from polyweave_torch.functional import mcnemar_power
        >>> print(f"{mcnemar_power(0.03, 0.13, 120):.3f}")
        0.758
    """
    check_open_unit(alpha, name="alpha")
    lost, gained = _shares(p10, p01)
    pairs = _as_array(n)
    if ((pairs < 0.0) | (pairs != np.floor(pairs))).any():
        raise ValueError("n must hold whole numbers of pairs, at least 0; round a planned size up")
    lost, gained, pairs = np.broadcast_arrays(lost, gained, pairs)
    if method == "connor":
        return torch.as_tensor(_connor_power(lost, gained, pairs, alpha))
    psi, share = _discordance(lost.ravel(), gained.ravel())
    power = np.empty(pairs.size)
    for rows, m, probability in discordant_blocks(pairs.ravel(), psi):
        power[rows] = (probability * _rejection(m, share[rows, None], alpha, method)).sum(-1)
    return torch.from_numpy(power.reshape(pairs.shape))


def mcnemar_sample_size(
    p10: float, p01: float, *, alpha: float = 0.05, power: float = 0.8, method: Method = "auto"
) -> int:
    r"""The smallest number of pairs from which on the power of McNemar's test stays reached.

    The power of :func:`mcnemar_power` rises in saw teeth, since the test's own error rate jumps with m. The size is
    therefore not the first n that reaches ``power`` but the one after the last that does not: from an n whose power is
    ensured by the lower envelope of the teeth, which only rises, the search walks down to that one.

    Exact up to 200,000 expected discordant pairs (a second or two; milliseconds for a thousand). Above, where a tooth
    moves the size by a few parts per million, the n where bisection finds the power reached. Above 1,000,000 an
    approximation, right to a few parts per million too: the normal law of c - b, with the continuity correction
    that "edwards" makes and "exact" amounts to.

    Args:
        p10: probability that a pair is right before and wrong after.
        p01: probability that it is wrong before and right after.
        alpha: error rate of the test, two-sided.
        power: probability of p < alpha to reach.
        method: the test, as in :func:`~polyweave_torch.functional.mcnemar.mcnemar`.

    Returns:
        The number of pairs, concordant ones included.

    Raises:
        ValueError: where p10 = p01 (no size detects no difference), a share is outside [0, 1], the two exceed 1,
            ``alpha`` or ``power`` is outside (0, 1), ``method`` is unknown, or the size is above 1e15 pairs.

    Example:
        >>> from polyweave_torch.functional import mcnemar_sample_size
        >>> mcnemar_sample_size(0.1, 0.3), mcnemar_sample_size(0.1, 0.3, method="midp")
        (84, 76)
    """
    lost, gained = _unequal_shares(p10, p01)
    check_open_unit(power, name="power")
    check_open_unit(alpha, name="alpha")
    # No sum of probabilities reaches 1 to the last bit.
    wanted = min(power, 1.0 - _ROUNDING)
    psi, share = _discordance(lost, gained)
    reached = math.ceil(_connor_size(lost, gained, alpha, wanted))
    if reached > _MOST_PAIRS:
        raise ValueError(f"p10 = {lost} and p01 = {gained} need {reached:.1e} pairs; sizes above 1e15 are not computed")
    _check_method(method)
    if reached * psi > _MOST_BISECTED:
        return _smallest(lambda n: _normal_power(lost, gained, n, alpha, method) >= wanted, 4 * reached)
    if reached * psi > _MOST_ENUMERATED:
        return _smallest(
            lambda n: bool(mcnemar_power(lost, gained, n, alpha=alpha, method=method) >= wanted), 4 * reached
        )
    ensured_power = 0.0
    while ensured_power < wanted:
        reached *= 2
        most = reached - binom.ppf(1e-17, reached, 1.0 - psi)
        # One slow beat of the teeth, sqrt(m) long, beyond the last m in use: there the envelope can still be lower.
        m = np.arange(most + 32.0 + 4.0 * math.sqrt(most))
        rejection = _rejection(m, share, alpha, method)
        ensured = np.minimum.accumulate(rejection[::-1])[::-1]
        ensured_power = _averages(np.array([reached]), psi, ensured)[0]
    reached = _smallest(lambda n: bool(_averages(np.array([n]), psi, ensured)[0] >= wanted), reached)
    # Over a 64th of the standard deviation of m the power is all but a straight line.
    stride = max(1, int(math.sqrt(reached * psi * (1.0 - psi)) / (64.0 * psi)))
    step = max(16 + math.ceil(4.0 / psi), 16 * stride)
    while True:
        sizes = np.arange(max(0, reached - step), reached, stride)
        below = np.flatnonzero(_averages(sizes, psi, rejection) < wanted)
        if below.size:
            missed = int(sizes[below[-1]])
            return _smallest(
                lambda n: bool(_averages(np.array([n]), psi, rejection)[0] >= wanted),
                min(missed + stride, reached),
                missed,
            )
        reached = int(sizes[0])


def target_per_stratum(p10: float, p01: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    r"""The number of cases to plan for each stratum.

    The larger of Connor's size, rounded up, and the smallest size that is expected to give 25 discordant pairs (25.0,
    to a tenth of a pair), since a stratum with fewer can only be called underpowered:

    .. math:: n = \left(\frac{z_{\alpha/2}\sqrt\psi + z_{power}\sqrt{\psi - d^2}}{d}\right)^2, \qquad
        n_{25} \psi \ge 24.95, \qquad \psi = p_{10} + p_{01},\ d = p_{01} - p_{10}

    The common figure of 120 presumes .70 -> .80 at 80 % power with about .16 discordant pairs (power .789 by the same
    formula); 25 discordants then take 156 cases, and independent arms 296.

    Args:
        p10: probability that a case is right before and wrong after.
        p01: probability that it is wrong before and right after.
        alpha: error rate of the test, two-sided.
        power: probability of p < alpha to reach.

    Returns:
        The number of cases. :func:`mcnemar_sample_size` gives the exact size for a given test, without the floor.

    Raises:
        ValueError: where p10 = p01 (no size detects no difference), a share is outside [0, 1], the two exceed 1, or
            ``alpha`` or ``power`` is outside (0, 1).

    Source: R. J. Connor, Biometrics 43 (1987) 207.

    Example:
        >>> from polyweave_torch.functional import target_per_stratum
        >>> target_per_stratum(0.03, 0.13), target_per_stratum(0.14, 0.24)
        (156, 296)
    """
    lost, gained = _unequal_shares(p10, p01)
    check_open_unit(power, name="power")
    check_open_unit(alpha, name="alpha")
    enough = (FEW_DISCORDANTS - 0.05) / (lost + gained)
    return max(math.ceil(_connor_size(lost, gained, alpha, power)), math.ceil(enough))


def discordance_from_phi(p0: Numbers, p1: Numbers, phi: Numbers) -> tuple[Tensor, Tensor]:
    r"""The shares of discordant pairs that two accuracies and the correlation of their outcomes imply.

    .. math:: p_{11} = p_0 p_1 + \varphi \sqrt{p_0 (1-p_0) p_1 (1-p_1)}, \qquad
        p_{10} = p_0 - p_{11},\ p_{01} = p_1 - p_{11}

    Args:
        p0: accuracy before, any shape.
        p1: accuracy after; all three are broadcast.
        phi: correlation of the two outcomes of a pair; 0 where the arms are independent.

    Returns:
        (p10, p01), float64, the broadcast shape, on the CPU.

    Raises:
        ValueError: where an accuracy is outside [0, 1], or phi is one that these two accuracies cannot have.

    Example:
        >>> from polyweave_torch.functional import discordance_from_phi
        >>> p10, p01 = discordance_from_phi(0.7, 0.8, 0.6)
        >>> print(f"{p10:.4f} {p01:.4f}")
        0.0300 0.1300
    """
    before, after, correlation = np.broadcast_arrays(_as_array(p0), _as_array(p1), _as_array(phi))
    for name, value in (("p0", before), ("p1", after)):
        if not ((value >= 0.0) & (value <= 1.0)).all():
            raise ValueError(f"{name} must hold accuracies in [0, 1], but spans {value.min()} to {value.max()}")
    both = before * after + correlation * np.sqrt(before * (1.0 - before) * after * (1.0 - after))
    least, most = np.maximum(0.0, before + after - 1.0), np.minimum(before, after)
    possible = (both >= least - _ROUNDING) & (both <= most + _ROUNDING)
    if not possible.all():
        where = tuple(np.argwhere(~possible)[0])
        raise ValueError(
            f"phi = {correlation[where]} is impossible for accuracies {before[where]} and {after[where]}: the share "
            f"right in both would be {both[where]:.6g}, but must lie in [{least[where]:.6g}, {most[where]:.6g}]"
        )
    both = np.clip(both, least, most)
    return torch.as_tensor(before - both), torch.as_tensor(after - both)


def _as_array(value: Numbers) -> Floats:
    return torch.as_tensor(value, dtype=torch.float64, device="cpu").numpy()


def _shares(p10: Numbers, p01: Numbers) -> tuple[Floats, Floats]:
    lost, gained = np.broadcast_arrays(_as_array(p10), _as_array(p01))
    valid = (lost >= 0.0) & (gained >= 0.0) & (lost + gained <= 1.0 + _ROUNDING)
    if not valid.all():
        raise ValueError(
            "p10 and p01 must be shares of all pairs, at least 0 and together at most 1, but are "
            f"{lost[~valid][0]} and {gained[~valid][0]}; discordance_from_phi makes them from two accuracies"
        )
    # scipy's binomial overflows on probabilities next to the smallest float.
    return np.where(lost < 1e-300, 0.0, lost), np.where(gained < 1e-300, 0.0, gained)


def _unequal_shares(p10: float, p01: float) -> tuple[float, float]:
    lost, gained = (float(share) for share in _shares(p10, p01))
    if lost == gained:
        raise ValueError(f"p10 and p01 are both {lost}: no number of pairs detects a difference of 0")
    return lost, gained


def _discordance(lost: Any, gained: Any) -> tuple[Any, Any]:
    """The share of discordant pairs, and among them the share of gains (1/2 where there is none)."""
    psi = np.minimum(lost + gained, 1.0)
    return psi, np.where(psi > 0.0, gained, 0.5) / np.where(psi > 0.0, psi, 1.0)


def _rejection(m: Floats, share: Any, alpha: float, method: str) -> Floats:
    """The probability of p < alpha given m discordant pairs of which ``share`` are expected to be gains."""
    critical = _critical_count(m, alpha, method)
    return np.asarray(binom.cdf(critical, m, share) + binom.sf(m - critical - 1.0, m, share))


def _critical_count(m: Floats, alpha: float, method: str) -> Floats:
    """The largest smaller count of m discordant pairs at which p < alpha; -1 where there is none."""
    _check_method(method)
    if method in ("asymptotic", "edwards"):
        correction = 1.0 if method == "edwards" else 0.0
        return np.ceil((m - correction + special.ndtri(alpha / 2.0) * np.sqrt(m)) / 2.0) - 1.0
    exact = np.asarray(binom.ppf(alpha / 2.0, m, 0.5)) - 1.0
    if method == "midp":
        # Its p lies between the exact ones of this count and the count before.
        return exact + (binom.cdf(exact, m, 0.5) + binom.cdf(exact + 1.0, m, 0.5) < alpha)
    if method == "exact":
        return exact
    return np.where(m < FEW_DISCORDANTS, exact, _critical_count(m, alpha, "edwards"))


def _check_method(method: str) -> None:
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}, but is {method!r}")


def _averages(sizes: NDArray[np.int64], psi: float, conditional: Floats) -> Floats:
    """The mean of ``conditional[m]`` over the number m of discordant pairs, for each size."""
    means = np.empty(len(sizes))
    for rows, m, probability in discordant_blocks(sizes.astype(np.float64), np.full(len(sizes), psi)):
        means[rows] = (probability * conditional[np.minimum(m, len(conditional) - 1).astype(np.int64)]).sum(-1)
    return means


def _smallest(reaches: Callable[[int], bool], reached: int, missed: int = 0) -> int:
    """The smallest n that reaches it, by bisection between one that does not and one that does."""
    while reached - missed > 1:
        middle = (missed + reached) // 2
        if reaches(middle):
            reached = middle
        else:
            missed = middle
    return reached


def _normal_power(lost: float, gained: float, n: int, alpha: float, method: str) -> float:
    """The probability that a normal c - b lies beyond the critical difference of n·psi discordant pairs."""
    psi, difference = lost + gained, gained - lost
    # The largest smaller count that an exact test rejects is, over the teeth, half a pair below the normal one.
    correction = 0.0 if method in ("asymptotic", "midp") else 1.0
    critical = correction - special.ndtri(alpha / 2.0) * math.sqrt(n * psi)
    spread = math.sqrt(n * (psi - difference**2))
    return float(sum(special.ndtr((side * n * difference - critical) / spread) for side in (-1.0, 1.0)))


def _connor_power(lost: Floats, gained: Floats, n: Floats, alpha: float) -> Floats:
    psi, difference = lost + gained, np.abs(gained - lost)
    excess = difference * np.sqrt(n) + special.ndtri(alpha / 2.0) * np.sqrt(psi)
    spread = np.sqrt(np.maximum(psi - difference**2, 0.0))
    certain = spread == 0.0
    return np.where(certain, excess > 0.0, special.ndtr(excess / np.where(certain, 1.0, spread)))


def _connor_size(lost: float, gained: float, alpha: float, power: float) -> float:
    psi, difference = lost + gained, abs(gained - lost)
    spread = math.sqrt(max(psi - difference**2, 0.0))
    return float((special.ndtri(power) * spread - special.ndtri(alpha / 2.0) * math.sqrt(psi)) / difference) ** 2
