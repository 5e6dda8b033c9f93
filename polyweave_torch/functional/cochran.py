"""Cochran's Q: whether K conditions on the same rows are equally accurate, by chi-square or by exact permutation."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyweave_torch.functional._checks import Counts, Values, as_counts
from polyweave_torch.functional._chi_square import chi_square_tail
from polyweave_torch.functional.gram import OutcomeGram, check_gram, outcome_gram

# Column totals that the exact permutation enumerates at most: seconds, and under a gigabyte.
_MAX_WORK = 2**26


class CochranQResult(NamedTuple):
    """Cochran's Q test, tensors of the leading shape ``[...]`` of the Gram matrix, on the CPU."""

    statistic: Tensor
    """Q; 0 where every row is concordant, NaN where there is no row or fewer than two conditions."""
    df: Tensor
    """int64, K - 1."""
    p_value: Tensor
    """Of the chi-square with ``df`` degrees of freedom, or exact over the permutations of each row's outcomes."""
    k: Tensor
    """int64, number of conditions."""
    n: Tensor
    """int64, number of rows, concordant ones too (with gaps: of complete rows)."""


def cochran_q(
    correct: Values | None = None,
    *,
    gram: OutcomeGram | Counts | None = None,
    n: Counts | int | None = None,
    row_totals: Counts | None = None,
    permutation: bool = False,
) -> CochranQResult:
    r"""Test whether K conditions on the same rows are equally accurate.

    .. math:: Q = \frac{(K - 1) K \sum_j (C_j - \bar C)^2}{K \sum_i T_i - \sum_i T_i^2}

    with C_j the number of rows on which condition j is right and T_i the number of conditions right on row i. The Gram
    matrix G = XᵀX holds both: C is its diagonal, the sum of T its trace, the sum of T² the sum of all its entries. With
    K = 2 it is McNemar's chi-square without correction.

    With ``permutation=True`` the p-value is exact: the share of all rearrangements of outcomes within rows whose Q is
    at least the observed one. Its null distribution depends on the histogram of row totals alone, the observed Q on
    the diagonal of the Gram matrix.

    Args:
        correct: outcomes ``[N, K]``, bool or 1 and 0. In place of it:
        gram: an :class:`OutcomeGram` (its complete rows count), or the integers XᵀX ``[..., K, K]``.
        n: the number of rows ``[...]``, wanted with a bare matrix only; row totals hold it too.
        row_totals: ``[..., K+1]``, how many rows have 0, 1, ..., K conditions right; with a bare matrix, for
            permutations.
        permutation: whether the p-value is the exact one. It enumerates the column totals that can be reached, so it
            is for few conditions or few discordant rows.

    Returns:
        A :class:`CochranQResult`.

    Raises:
        TypeError: where not exactly one of ``correct`` and ``gram`` came, or what ``permutation`` needs is missing.
        ValueError: where the counts contradict each other, or there are too many permutations to enumerate.

    Source: W. G. Cochran, Biometrika 37 (1950) 256.

    Example:
        >>> from polyweave_torch.functional import cochran_q
        >>> rows = [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]]
        >>> result = cochran_q(rows)
        >>> print(f"Q = {result.statistic:.4f}, p = {result.p_value:.4f}")
        Q = 0.6667, p = 0.7165
        >>> print(f"exact p = {cochran_q(rows, permutation=True).p_value:.4f}")
        exact p = 1.0000
    """
    matrix, rows, histogram = _statistics(correct, gram, n, row_totals)
    conditions = matrix.shape[-1]
    df = max(conditions - 1, 0)
    column_totals = matrix.diagonal(dim1=-2, dim2=-1)
    trace = column_totals.sum(-1)
    # Everything up to here is an exact integer: K·C_j - ΣC is at most K·N. Only squares may leave int64.
    deviation = (conditions * column_totals - trace.unsqueeze(-1)).double().square().sum(-1)
    spread = conditions * trace - matrix.sum((-2, -1))
    statistic = df / max(conditions, 1) * deviation / spread
    # All rows concordant: nothing differs.
    statistic = statistic.masked_fill(spread == 0, 0.0).masked_fill((rows == 0) | (conditions < 2), math.nan)
    if not permutation:
        p_value = chi_square_tail(statistic, torch.tensor(df))
    elif histogram is None:
        raise TypeError("permutation=True needs the rows (correct), an OutcomeGram, or row_totals beside the matrix")
    else:
        columns = column_totals.reshape(rows.numel(), conditions).tolist()
        exact = map(_permutation_p, columns, histogram.reshape(rows.numel(), conditions + 1).tolist())
        p_value = torch.tensor(list(exact), dtype=torch.float64).view_as(statistic)
        p_value = p_value.masked_fill(statistic.isnan(), math.nan)
    return CochranQResult(statistic, torch.full_like(rows, df), p_value, torch.full_like(rows, conditions), rows)


def _statistics(correct: Any, gram: Any, n: Any, row_totals: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """The Gram matrix of complete rows, their number, and the histogram of row totals where there is one."""
    if (correct is None) == (gram is None):
        raise TypeError("cochran_q takes either the outcomes (correct) or their gram=")
    if correct is not None:
        gram = outcome_gram(correct)
    if isinstance(gram, OutcomeGram):
        if n is not None or row_totals is not None:
            raise TypeError("n and row_totals are known from the outcomes; pass them only beside a bare [K, K] matrix")
        return gram.complete.cpu(), gram.complete_n.cpu(), gram.row_totals.cpu()
    if row_totals is None:
        matrix, rows = check_gram(gram, n)
        return matrix.cpu(), rows.cpu().expand(matrix.shape[:-2]), None
    histogram = torch.as_tensor(row_totals).cpu()
    matrix, rows = check_gram(torch.as_tensor(gram).cpu(), histogram.sum(-1) if n is None else n)
    conditions = matrix.shape[-1]
    histogram = as_counts(histogram, name="row_totals", shape=(*matrix.shape[:-2], conditions + 1))
    total = torch.arange(conditions + 1)
    moments = torch.stack([(histogram * total**power).sum(-1) for power in range(3)])
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    if not torch.equal(moments, torch.stack((rows.expand_as(trace), trace, matrix.sum((-2, -1))))):
        raise ValueError(
            "row_totals do not belong to this Gram matrix: with h_T rows of T right, sum h must be n, sum T·h the "
            "trace, and sum T²·h the sum of all entries"
        )
    return matrix, rows.expand_as(trace), histogram


def _permutation_p(column_totals: list[int], histogram: list[int]) -> float:
    """P(Q >= the observed) over all rearrangements within rows: the share with at least the observed sum of C².

    The columns are exchangeable, so a state is a sorted vector of column totals; rows are added one at a time, and
    equal states merged.
    """
    conditions, informative = len(column_totals), sum(histogram[1:-1])
    # Rows where all are right add the same to every column.
    observed = sum((total - histogram[-1]) ** 2 for total in column_totals)
    states, weights, work = np.zeros((1, conditions), dtype=np.int64), np.ones(1), 0
    for total in np.repeat(np.arange(1, conditions), histogram[1:-1]).tolist():
        arrangements = math.comb(conditions, total)
        work += len(states) * arrangements * conditions
        if work > _MAX_WORK:
            raise ValueError(
                f"{informative} discordant rows of {conditions} conditions have too many permutations, over "
                f"{_MAX_WORK} column totals to enumerate; use permutation=False, whose chi-square suits many rows (or, "
                'for two conditions, mcnemar(..., method="exact"), which is the same test)'
            )
        chosen = np.array(list(itertools.combinations(range(conditions), total)))
        patterns = np.zeros((arrangements, conditions), dtype=np.int64)
        np.put_along_axis(patterns, chosen, 1, axis=1)
        candidates = np.sort((states[:, None, :] + patterns).reshape(-1, conditions), axis=1)
        states, weights = _merge(candidates, np.repeat(weights / arrangements, arrangements), informative + 1)
    return float(weights[np.square(states).sum(axis=1) >= observed].sum())


def _merge(states: NDArray[np.int64], weights: NDArray[np.float64], base: int) -> tuple[Any, Any]:
    """The distinct rows of ``states``, whose entries are below ``base``, and their summed weights."""
    # Digits are packed into as few int64 words as hold them: sorting whole rows is many times slower.
    digits = int(62 / math.log2(base))
    words = []
    for start in range(0, states.shape[1], digits):
        part = states[:, start : start + digits]
        words.append(part @ base ** np.arange(part.shape[1]))
    order = np.lexsort(words)
    differs = np.any([word[order][1:] != word[order][:-1] for word in words], axis=0)
    first = np.concatenate(([0], np.flatnonzero(differs) + 1))
    return states[order[first]], np.add.reduceat(weights[order], first)
