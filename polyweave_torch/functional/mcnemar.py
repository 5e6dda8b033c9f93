"""McNemar's test of two paired conditions, in any number of tables at once, and of all pairs of K conditions."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from polyweave_torch.functional._binomial import EXACT_TRIALS, exact_pmf_and_tail, log_pmf, tail_ratio
from polyweave_torch.functional._checks import Counts, as_counts, as_tensor
from polyweave_torch.functional.gram import OutcomeGram, paired_tables
from polyweave_torch.functional.multiplicity import benjamini_hochberg, discrete_holm, holm_bonferroni, shaffer

Method = Literal["auto", "exact", "midp", "asymptotic", "edwards"]
Adjust = Literal["holm", "shaffer", "discrete-holm", "bh"]

FEW_DISCORDANTS = 25
"""With fewer discordant pairs the chi-square is not trusted and the test counts as underpowered."""

_NONE, _EXACT, _MID_P, _CHI2, _EDWARDS = range(5)
# Two p-values that are equal in exact arithmetic differ by less.
_TIE = 1.0 + 1e-12
_RESULT_NAMES = np.array(["no-discordants", "exact-binomial", "mid-p", "chi2", "chi2-edwards"], dtype=object)
_REQUESTS = {"exact": _EXACT, "midp": _MID_P, "asymptotic": _CHI2, "edwards": _EDWARDS}


class McNemarResult(NamedTuple):
    """McNemar's test, two-sided, of tables of any shape ``[...]``; on the CPU."""

    b: Tensor
    """int64, pairs right before and wrong after (n10)."""
    c: Tensor
    """int64, pairs wrong before and right after (n01)."""
    discordant: Tensor
    """int64, b + c: all that the test can learn from."""
    statistic: Tensor
    """Chi-square on one degree of freedom; 0 for the binomial methods, which have none."""
    p_value: Tensor
    """float64, two-sided; 1 without a discordant pair."""
    log_p_value: Tensor
    """Natural logarithm of the p-value, right also where ``p_value`` underflows to 0."""
    method: Any
    """The test of each table, a str or nested lists of str: "no-discordants" "exact-binomial" "mid-p" "chi2"
    "chi2-edwards"."""
    underpowered: Tensor
    """bool, fewer than 25 discordant pairs."""
    smallest_p: Tensor
    """The smallest p-value that this many discordant pairs can give under this method."""


class PairwiseMcNemar(NamedTuple):
    """McNemar's tests of all P = K(K-1)/2 pairs of conditions."""

    first: Any
    """Index of the first condition of each pair, int64 ``[P]``; a list of names where names were given."""
    second: Any
    """The second condition of each pair, likewise."""
    result: McNemarResult
    """The tests ``[..., P]``: b counts first right and second wrong, c the reverse."""
    adjusted_p: Tensor
    """``[..., P]``, adjusted over the last dimension: all pairs of one Gram matrix are one family."""
    family: str
    """What the adjustment covers: "all pairs", "all pairs of each stratum", or "none"."""


def mcnemar(
    b: Counts | int | None = None,
    c: Counts | int | None = None,
    *,
    counts: Counts | None = None,
    method: Method = "auto",
) -> McNemarResult:
    r"""Test whether two conditions on the same samples are equally accurate (two-sided).

    Only the n = b + c samples on which the conditions differ matter; under the null hypothesis b is binomial(n, 1/2).

    =============== ================ =======================================================
    ``method``      result's method  p-value
    =============== ================ =======================================================
    ``exact``       exact-binomial   :math:`\min(1, 2 P(X \le \min(b, c)))`
    ``midp``        mid-p            :math:`2 P(X \le \min(b, c)) - P(X = \min(b, c))`
    ``asymptotic``  chi2             chi-square of :math:`(b - c)^2 / n`
    ``edwards``     chi2-edwards     chi-square of :math:`\max(0, |b - c| - 1)^2 / n`
    ``auto``        the first/last   exact below 25 discordant pairs, Edwards from there on
    =============== ================ =======================================================

    Without a discordant pair every method gives p = 1, statistic 0 and "no-discordants". With b = c the mid-p is 1, one
    of two published conventions (Fagerland's supplement has 1 minus half the point probability).

    Args:
        b: pairs right before and wrong after (n10), integers of any shape.
        c: pairs wrong before and right after (n01), broadcast against ``b``.
        counts: in place of both, tables ``[..., 2, 2]`` indexed ``[before, after]``.
        method: one of the table's first column.

    Returns:
        A :class:`McNemarResult` of the tables' shape. The binomial methods take constant time for any counts; their
        p-values are exact up to 53 discordant pairs and where all of them lean one way, else right to 1e-12 of their
        value.

    Raises:
        TypeError: where counts are not integers, or neither or both of (b, c) and counts came.
        ValueError: where a count is negative, b + c is 2^63 or more, or the method is unknown.

    Source: Q. McNemar, Psychometrika 12 (1947) 153; A. L. Edwards, Psychometrika 13 (1948) 185; M. W. Fagerland,
    S. Lydersen, P. Laake, BMC Medical Research Methodology 13 (2013) 91.

    Example:
        >>> from polyweave_torch.functional import mcnemar
        >>> result = mcnemar(1, 9)
        >>> print(result.method, f"{result.p_value:.9f}", bool(result.underpowered))
        exact-binomial 0.021484375 True
        >>> pooled = [mcnemar(312, 264, method=m).p_value.item() for m in ("exact", "edwards", "midp")]
        >>> [round(p, 4) for p in pooled]  # five quantised models: here the method decides
        [0.0501, 0.0502, 0.0456]
    """
    right_wrong, wrong_right = _discordant_counts(b, c, counts)
    discordant = right_wrong + wrong_right
    if bool((discordant < 0).any()):
        raise ValueError("b + c must be below 2^63, the end of int64, but is beyond it")
    kind = _kind(discordant, method)
    statistic, p, log_p = _test(torch.minimum(right_wrong, wrong_right), discordant, kind)
    return McNemarResult(
        b=right_wrong,
        c=wrong_right,
        discordant=discordant,
        statistic=statistic,
        p_value=p,
        log_p_value=log_p,
        method=_names(kind),
        underpowered=discordant < FEW_DISCORDANTS,
        smallest_p=_smallest_p(discordant, kind),
    )


def mcnemar_pairs(
    gram: OutcomeGram | Counts,
    *,
    n: Counts | int | None = None,
    method: Method = "auto",
    adjust: Adjust | None = "holm",
    names: Sequence[str] | None = None,
) -> PairwiseMcNemar:
    """McNemar's test of every pair of K conditions, from their Gram matrix alone, adjusted for the family.

    Args:
        gram: an :class:`OutcomeGram`, or the integers XᵀX ``[..., K, K]`` of outcomes without gaps. Leading dimensions
            are strata.
        n: the number of rows ``[...]``, wanted with the bare matrix only.
        method: as for :func:`mcnemar`.
        adjust: ``"holm"``; ``"shaffer"``, which uses that equalities are transitive; ``"discrete-holm"``, which charges
            a pair only for the p-values that its discordants can reach; ``"bh"`` for the false discovery rate; None
            for raw p-values. Each Gram matrix is one family, so each stratum has its own.
        names: names of the K conditions, to name the pairs by.

    Returns:
        :class:`PairwiseMcNemar`: the pairs (i, j), i < j, in the order (0, 1), (0, 2), ..., (K-2, K-1), with tests and
        adjusted p-values, whose last dimension is the pairs. With K = 2 that is one pair, a p-value of shape ``[1]``.

    Raises:
        ValueError: where ``adjust`` or ``method`` is unknown, or names do not fit the matrix.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional import mcnemar_pairs, outcome_gram
        >>> wins = torch.tensor([[1, 0, 0]]).repeat(12, 1)
        >>> pairs = mcnemar_pairs(outcome_gram(wins), names=["new", "old", "older"])
        >>> for first, second, p in zip(pairs.first, pairs.second, pairs.adjusted_p):
        ...     print(f"{first} - {second}: {p:.5f}")
        new - old: 0.00146
        new - older: 0.00146
        old - older: 1.00000
    """
    if adjust is not None and adjust not in _ADJUSTMENTS:
        raise ValueError(f"adjust must be one of {', '.join(_ADJUSTMENTS)} or None, but is {adjust!r}")
    tables = paired_tables(gram, n=n)
    conditions = tables.shape[-3]
    if names is not None and len(names) != conditions:
        raise ValueError(f"names must name the {conditions} conditions of the Gram matrix, but {len(names)} came")
    first, second = torch.triu_indices(conditions, conditions, 1)
    result = mcnemar(counts=tables.cpu()[..., first, second, :, :], method=method)
    adjusted = result.p_value if adjust is None else _ADJUSTMENTS[adjust](result, method)
    family = "none" if adjust is None else "all pairs" if tables.dim() == 4 else "all pairs of each stratum"
    if names is None:
        return PairwiseMcNemar(first, second, result, adjusted, family)
    firsts, seconds = ([names[i] for i in index.tolist()] for index in (first, second))
    return PairwiseMcNemar(firsts, seconds, result, adjusted, family)


def _discordant_counts(b: Any, c: Any, counts: Counts | None) -> tuple[Tensor, Tensor]:
    if counts is not None and b is None and c is None:
        tables = as_counts(counts).cpu()
        return tables[..., 1, 0], tables[..., 0, 1]
    if counts is not None or b is None or c is None:
        raise TypeError("mcnemar takes either both b and c, or counts=[..., 2, 2] alone")
    right_wrong, wrong_right = (as_tensor(value, empty=torch.int64).cpu() for value in (b, c))
    if torch.bool in (right_wrong.dtype, wrong_right.dtype):
        raise TypeError(
            "b and c must be integers, numbers of pairs, but came as torch.bool; of outcomes use "
            "mcnemar(counts=channel_counts(before, after))"
        )
    lost, gained = (as_counts(value.unsqueeze(-1), name="b and c", shape=(1,)) for value in (right_wrong, wrong_right))
    both = torch.cat(torch.broadcast_tensors(lost, gained), dim=-1)  # type: ignore[no-untyped-call]
    return both[..., 0], both[..., 1]


def _kind(discordant: Tensor, method: str) -> Tensor:
    """Which test each table gets."""
    if method == "auto":
        kind = torch.where(discordant < FEW_DISCORDANTS, _EXACT, _EDWARDS)
    elif method in _REQUESTS:
        kind = torch.full_like(discordant, _REQUESTS[method])
    else:
        raise ValueError(f"method must be one of auto, {', '.join(_REQUESTS)}, but is {method!r}")
    return kind.masked_fill(discordant == 0, _NONE)


def _test(smaller: Tensor, discordant: Tensor, kind: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Statistic, p-value and its logarithm, from the smaller of the two discordant counts."""
    statistic = _chi_square(discordant - 2 * smaller, discordant, kind)
    binomial = (kind == _EXACT) | (kind == _MID_P)
    if bool(binomial.all()):
        return statistic, *_binomial_p(smaller, discordant, kind == _MID_P)
    p, log_p = torch.empty_like(statistic), torch.empty_like(statistic)
    log_p[~binomial] = _log_chi_square_tail(statistic[~binomial])
    p[~binomial] = log_p[~binomial].exp()
    p[binomial], log_p[binomial] = _binomial_p(smaller[binomial], discordant[binomial], kind[binomial] == _MID_P)
    return statistic, p, log_p


def _chi_square(difference: Tensor, discordant: Tensor, kind: Tensor) -> Tensor:
    corrected = (difference - (kind == _EDWARDS).long()).clamp(min=0).double()
    return torch.where((kind == _CHI2) | (kind == _EDWARDS), corrected * corrected / discordant, 0.0)


def _log_chi_square_tail(statistic: Tensor) -> Tensor:
    """log P(chi-square on one degree of freedom >= statistic) = log erfc(sqrt(statistic / 2))."""
    half = 0.5 * statistic
    x = half.sqrt()
    # 0 - erf: the logarithm of 1 is then 0, not -0.
    return torch.where(x < 0.5, torch.log1p(0.0 - torch.erf(x)), torch.special.erfcx(x).log() - half)


def _binomial_p(smaller: Tensor, discordant: Tensor, mid: Tensor) -> tuple[Tensor, Tensor]:
    """2 P(X <= smaller), less P(X = smaller) where ``mid``, and its logarithm."""
    exponent = _one_way(discordant, mid)
    p, log_p = torch.exp2(exponent), math.log(2.0) * exponent
    few = discordant <= EXACT_TRIALS
    pmf, tail = exact_pmf_and_tail(smaller[few], discordant[few])
    p[few] = (2.0 * tail - mid[few].double() * pmf).clamp(max=1.0)
    log_p[few] = p[few].log()
    many = ~few & (smaller > 0)
    of_many = _log_binomial_p(smaller[many], discordant[many], mid[many])
    p[many], log_p[many] = of_many.exp(), of_many
    return p, log_p


def _one_way(discordant: Tensor, mid: Tensor) -> Tensor:
    """The logarithm to base 2 of the p-value at (n, 0), n > 0."""
    return (1 - discordant - mid.long()).double()


def _smallest_p(discordant: Tensor, kind: Tensor) -> Tensor:
    """The p-value at (n, 0)."""
    smallest = torch.exp2(_one_way(discordant, kind == _MID_P)).clamp(max=1.0)
    other = (kind != _EXACT) & (kind != _MID_P)
    of_others = _chi_square(discordant[other], discordant[other], kind[other])
    smallest[other] = _log_chi_square_tail(of_others).exp()
    return smallest


def _log_binomial_p(smaller: Tensor, discordant: Tensor, mid: Tensor) -> Tensor:
    log_p = log_pmf(smaller, discordant) + torch.log(2.0 * tail_ratio(smaller, discordant) - mid.double())
    difference = discordant - 2 * smaller
    # By symmetry; rounding would leave it beside 1.
    certain = (difference == 0) | ((difference == 1) & ~mid)
    return log_p.masked_fill(certain, 0.0).clamp(max=0.0)


def _names(kind: Tensor) -> Any:
    names = _RESULT_NAMES[kind.numpy()]
    return names if isinstance(names, str) else names.tolist()


def _discrete_holm(result: McNemarResult, method: Method) -> Tensor:
    """Discrete Holm; a test's attainable p-values are those of its discordants at every split."""
    discordant = result.discordant.unsqueeze(-2)
    observed, kind = torch.minimum(result.b, result.c).unsqueeze(-2), _kind(discordant, method)

    def attainable(threshold: Tensor) -> Tensor:
        # p grows with the smaller count, so the last one within the threshold is found by bisection. A test is asked
        # about thresholds up to its own p-value only: its observed count bounds the search.
        n, kinds, beyond = (of.expand(*threshold.shape[:-1], -1) for of in (discordant, kind, observed + 1))
        within = torch.full_like(n, -1)
        for _ in range(int(observed.max()).bit_length() + 1 if observed.numel() else 0):
            middle = (within + beyond) // 2
            reached = (middle < 0) | (_test(middle.clamp(min=0), n, kinds)[1] <= threshold * _TIE)
            within, beyond = torch.where(reached, middle, within), torch.where(reached, beyond, middle)
        return torch.where(within < 0, 0.0, _test(within.clamp(min=0), n, kinds)[1])

    return discrete_holm(result.p_value, attainable)


_ADJUSTMENTS: dict[str, Callable[[McNemarResult, Method], Tensor]] = {
    "holm": lambda result, method: holm_bonferroni(result.p_value),
    "shaffer": lambda result, method: shaffer(result.p_value),
    "discrete-holm": _discrete_holm,
    "bh": lambda result, method: benjamini_hochberg(result.p_value),
}
