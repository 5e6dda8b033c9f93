"""Adjusted p-values of a family of tests: Holm, Shaffer and discrete Holm (family-wise), Benjamini-Hochberg (FDR)."""

import functools
import math
import operator
from collections.abc import Callable

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Values

_THRESHOLDS_AT_ONCE = 64


def holm_bonferroni(p_values: Values) -> Tensor:
    r"""Holm's step-down p-values: the smallest family-wise error rate at which each hypothesis is rejected.

    For the m p-values in ascending order, :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    Args:
        p_values: shape ``[..., m]``; the last dimension is one family. NaN (an undefined test) stays NaN and is not
            counted in m.

    Returns:
        Adjusted p-values aligned to the input, float64 on the CPU.

    Raises:
        ValueError: where a p-value lies outside [0, 1].

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65.

    Example:
        >>> from polyweave_torch.functional import holm_bonferroni
        >>> holm_bonferroni([0.01, 0.04, 0.03])
        tensor([0.0300, 0.0600, 0.0600], dtype=torch.float64)
    """
    ordered, order, tests = _ascending(p_values)
    return _in_input_order(_step_down(ordered * (tests - torch.arange(ordered.shape[-1]))), order)


def benjamini_hochberg(p_values: Values) -> Tensor:
    r"""Benjamini and Hochberg's step-up p-values: the smallest false discovery rate that rejects each hypothesis.

    For the m p-values in ascending order, :math:`\tilde p_{(i)} = \min_{j \ge i} \min(1, m\, p_{(j)} / j)`.

    Args:
        p_values: shape ``[..., m]``; the last dimension is one family. NaN (an undefined test) stays NaN and is not
            counted in m.

    Returns:
        Adjusted p-values aligned to the input, float64 on the CPU.

    Raises:
        ValueError: where a p-value lies outside [0, 1].

    Source: Y. Benjamini, Y. Hochberg, JRSS B 57 (1995) 289.

    Example:
        >>> from polyweave_torch.functional import benjamini_hochberg
        >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
        tensor([0.0400, 0.0533, 0.0533, 0.5000], dtype=torch.float64)
    """
    ordered, order, tests = _ascending(p_values)
    scaled = ordered * tests / torch.arange(1, ordered.shape[-1] + 1)
    # NaN stands last, so a running minimum from the right would spread it: 1 is neutral there.
    adjusted = torch.cummin(scaled.nan_to_num(nan=1.0).clamp(max=1.0).flip(-1), dim=-1).values.flip(-1)
    return _in_input_order(torch.where(ordered.isnan(), ordered, adjusted), order)


def shaffer(p_values: Values) -> Tensor:
    r"""Shaffer's step-down p-values for the family of all pairs of K conditions (static form).

    As Holm's, but the j-th factor is :math:`t_j`, the largest number of the m = K(K-1)/2 hypotheses "these two
    conditions are equally accurate" that can be true together when at least j - 1 of them are false: equalities are
    transitive, so with K = 3 the factors are 3, 1, 1 where Holm has 3, 2, 1.

    Args:
        p_values: shape ``[..., m]``; the last dimension holds the p-values of all pairs, so m must be K(K-1)/2 for
            some K.

    Returns:
        Adjusted p-values aligned to the input, float64 on the CPU, never above Holm's.

    Raises:
        ValueError: where a p-value lies outside [0, 1] or is NaN, or m is not the number of pairs of anything.

    Source: J. P. Shaffer, JASA 81 (1986) 826, procedure S1.

    Example:
        >>> from polyweave_torch.functional.multiplicity import shaffer
        >>> shaffer([0.01, 0.04, 0.03])
        tensor([0.0300, 0.0400, 0.0300], dtype=torch.float64)
    """
    ordered, order, tests = _ascending(p_values)
    pairs = ordered.shape[-1]
    conditions = (1 + math.isqrt(1 + 8 * pairs)) // 2
    if conditions * (conditions - 1) // 2 != pairs or bool((tests != pairs).any()):
        raise ValueError(
            f"Shaffer's factors hold for the defined p-values of all pairs of K conditions, K(K-1)/2 of them, but "
            f"{int(tests.min())} defined of {pairs} came; use holm_bonferroni for any other family"
        )
    return _in_input_order(_step_down(ordered * torch.tensor(shaffer_factors(conditions))), order)


def discrete_holm(p_values: Values, attainable: Callable[[Tensor], Tensor]) -> Tensor:
    r"""Holm's step-down p-values of discrete tests, which charge a test only for what it can still reach.

    A discrete test cannot have every p-value: with F_h(t) the largest attainable p-value of test h that is at most t (0
    where there is none), :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, \sum_{h \ge j} F_{(h)}(p_{(j)}))`. A pair with
    too few discordants to reach :math:`p_{(j)}` then costs the others nothing. Since F_h(t) is at most t, the result
    is never above Holm's.

    Args:
        p_values: shape ``[..., m]``; the last dimension is one family. Every value is one that its test can attain.
        attainable: F of all tests: takes thresholds ``[..., r, 1]`` and returns ``[..., r, m]``, tests in the input's
            order.

    Returns:
        Adjusted p-values aligned to the input, float64 on the CPU.

    Raises:
        ValueError: where a p-value lies outside [0, 1].

    Source: P. H. Westfall, R. D. Wolfinger, The American Statistician 51 (1997) 3.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional.multiplicity import discrete_holm
        >>> def attainable(threshold):  # the second test attains nothing below 0.5
        ...     return torch.cat((threshold, 0.5 * (threshold >= 0.5)), dim=-1)
        >>> discrete_holm([0.03, 0.5], attainable)
        tensor([0.0300, 0.5000], dtype=torch.float64)
    """
    ordered, order, _ = _ascending(p_values)
    rank = order.argsort(-1).unsqueeze(-2)
    # Blocks of thresholds bound the memory, which would grow with the fourth power of the number of conditions.
    steps = torch.split(torch.arange(ordered.shape[-1]).unsqueeze(-1), _THRESHOLDS_AT_ONCE)
    sums = [(attainable(ordered[..., step]) * (rank >= step)).sum(-1) for step in steps]
    return _in_input_order(_step_down(torch.cat(sums, dim=-1)), order)


def shaffer_factors(conditions: int) -> list[int]:
    """Shaffer's static factors of all pairs of K conditions, first to last: [3, 1, 1] for K = 3."""
    # Bit s of true_together[k]: k conditions can fall into groups of equals with s equal pairs.
    true_together = [1]
    for k in range(1, conditions + 1):
        groups = (true_together[k - size] << math.comb(size, 2) for size in range(1, k + 1))
        true_together.append(functools.reduce(operator.or_, groups))
    pairs = math.comb(conditions, 2)
    at_most = ((1 << (pairs - rejected + 1)) - 1 for rejected in range(pairs))
    return [(true_together[conditions] & bound).bit_length() - 1 for bound in at_most]


def _ascending(p_values: Values) -> tuple[Tensor, Tensor, Tensor]:
    """The p-values in stable ascending order with NaN last, that order, and the number of defined ones ``[..., 1]``."""
    p = torch.as_tensor(p_values, dtype=torch.float64, device="cpu")
    if p.dim() == 0:
        raise ValueError("p_values must have at least one dimension, the family of tests; for one test pass [p]")
    wrong = (p < 0.0) | (p > 1.0)
    if bool(wrong.any()):
        raise ValueError(f"p_values must lie in [0, 1], but hold {p[wrong][0].item():g}")
    ordered, order = torch.sort(p, dim=-1, stable=True)
    return ordered, order, (~p.isnan()).sum(-1, keepdim=True)


def _step_down(scaled: Tensor) -> Tensor:
    """Running maximum of the scaled p-values, capped at 1. NaN stands last and stays."""
    return torch.cummax(scaled.clamp(max=1.0), dim=-1).values


def _in_input_order(ordered: Tensor, order: Tensor) -> Tensor:
    return torch.empty_like(ordered).scatter_(-1, order, ordered)
