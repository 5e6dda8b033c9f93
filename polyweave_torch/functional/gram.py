"""The Gram matrix of correctness: the K x K integers that hold every paired table of K conditions on the same rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import (
    Counts,
    Values,
    as_counts,
    as_int64,
    as_tensor,
    check_binary,
    check_index,
    check_mask,
    check_outcome_dtype,
    is_integer,
)

# Below 2^24 rows a float32 sum of zeros and ones is exact; a block of few rows is all overhead.
_MIN_ROWS, _MAX_ROWS = 2**10, 2**24 - 1
# Elements of a block's operands: they stay in a CPU's cache, or keep the launches on a GPU few.
_CPU_BLOCK, _GPU_BLOCK = 2**18, 2**25


class OutcomeGram(NamedTuple):
    """Sufficient statistics of the outcomes of K conditions on the same rows, all int64; they add over batches.

    With X the outcomes (1 = right, and 0 where missing), M the observed entries, and a row complete where all its K
    outcomes are observed. Leading dimensions, if any, are strata.
    """

    gram: Tensor
    """``[..., K, K]``: XᵀX, rows where both conditions are right."""
    observed: Tensor
    """``[..., K, K]``: XᵀM, rows where the first condition is right and the second is observed."""
    n: Tensor
    """``[..., K, K]``: MᵀM, rows where both conditions are observed."""
    complete: Tensor
    """``[..., K, K]``: XᵀX of the complete rows."""
    complete_n: Tensor
    """``[...]``: number of complete rows."""
    row_totals: Tensor
    """``[..., K+1]``: how many complete rows have 0, 1, ..., K right conditions."""


def outcome_gram(correct: Values, *, mask: Values | None = None) -> OutcomeGram:
    """Count, for every pair of K conditions, the rows on which both are right: XᵀX, exactly.

    From these K² integers follow all pairwise McNemar tables, Cochran's Q and the diversity measures of an ensemble.

    Args:
        correct: outcomes ``[N, K]``, one row a sample and one column a condition: bool, or 1 for right and 0 for wrong.
        mask: ``[N, K]``, True where the outcome was observed. A missing outcome takes its row out of the pairs that
            need it and out of the complete rows; its value is not read.

    Returns:
        The counts, on the device of ``correct``.

    Raises:
        ValueError: where an observed outcome is neither 0 nor 1, or a shape does not fit.
        TypeError: where the mask is not bool.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional import outcome_gram
        >>> correct = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]])
        >>> statistics = outcome_gram(correct)
        >>> statistics.gram.tolist(), statistics.row_totals.tolist()
        ([[3, 2, 1], [2, 2, 1], [1, 1, 2]], [0, 2, 1, 1])
    """
    correct = torch.as_tensor(correct)
    seen = None if mask is None else as_tensor(mask, empty=torch.bool, device=correct.device)
    check_outcomes(correct, seen)
    check_binary(correct, name="correct", mask=seen)
    return gram_update(correct, mask=seen)


def gram_update(
    correct: Tensor,
    *,
    mask: Tensor | None = None,
    slice_index: Tensor | None = None,
    num_slices: int | None = None,
) -> OutcomeGram:
    """The counts of one batch, without reading a value: no wait for the device, one graph under ``torch.compile``.

    Args:
        correct: outcomes ``[N, K]``; every value but 0 is right.
        mask: ``[N, K]`` bool, True where the outcome was observed.
        slice_index: ``[N]`` integers, the stratum of each row; a row outside [0, num_slices) is not counted.
        num_slices: S, the number of strata.

    Returns:
        Counts with a leading dimension S where ``num_slices`` is given, else without.

    Raises:
        ValueError: where a shape does not fit, or only one of ``slice_index`` and ``num_slices`` came.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional.gram import gram_update
        >>> correct = torch.tensor([[True, False], [True, True], [False, True]])
        >>> gram_update(correct, slice_index=torch.tensor([0, 1, 1]), num_slices=2).gram.tolist()
        [[[1, 0], [0, 0]], [[1, 1], [1, 2]]]
    """
    check_outcomes(correct, mask, slice_index)
    rows, conditions = correct.shape
    strata = 1 if num_slices is None else num_slices
    if (slice_index is None and strata != 1) or (slice_index is not None and num_slices is None):
        raise ValueError(f"slice_index and num_slices={num_slices} belong together: pass both, or neither")
    budget = _CPU_BLOCK if correct.device.type == "cpu" else _GPU_BLOCK
    block = min(_MAX_ROWS, max(_MIN_ROWS, budget // max(1, conditions * min(strata, conditions))))

    def count(start: int) -> OutcomeGram:
        part = slice(start, start + block)
        seen = None if mask is None else mask[part]
        stratum = None if slice_index is None else slice_index[part]
        return _count_block(correct[part], seen, stratum, strata)

    counts = count(0)
    for start in range(block, rows, block):
        counts = OutcomeGram(*(a + b for a, b in zip(counts, count(start), strict=True)))
    return counts if num_slices is not None else OutcomeGram(*(count.squeeze(0) for count in counts))


def paired_tables(gram: OutcomeGram | Counts, *, n: Counts | int | None = None) -> Tensor:
    """The 2x2 table of every ordered pair of conditions: ``[first, second, first's outcome, second's outcome]``.

    n11 = G_ij, n10 = G_ii - G_ij, n01 = G_jj - G_ij, n00 the rest of the n rows; with an :class:`OutcomeGram`, over the
    rows where both are observed. Entry ``[i, j]`` is the table of a change from condition i (before) to condition j
    (after).

    Args:
        gram: an :class:`OutcomeGram`, or the integers XᵀX ``[..., K, K]`` of outcomes without gaps.
        n: the number of rows ``[...]``, wanted with the bare matrix only.

    Returns:
        Counts, int64 ``[..., K, K, 2, 2]``, on the input's device.

    Raises:
        ValueError: where the matrix cannot be the XᵀX of n rows of outcomes.
        TypeError: where ``n`` is missing, or given where the :class:`OutcomeGram` has it.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional import paired_tables
        >>> paired_tables(torch.tensor([[3, 2], [2, 2]]), n=4)[0, 1].tolist()
        [[1, 0], [1, 2]]
    """
    if isinstance(gram, OutcomeGram):
        if n is not None:
            raise TypeError("n is part of an OutcomeGram; pass it only beside a bare [K, K] matrix")
        first_right, second_right, both_right, total = gram.observed, gram.observed.mT, gram.gram, gram.n
    else:
        both_right, rows = check_gram(gram, n)
        diagonal = both_right.diagonal(dim1=-2, dim2=-1)
        first_right, second_right, total = diagonal.unsqueeze(-1), diagonal.unsqueeze(-2), rows[..., None, None]
    first_only, second_only = first_right - both_right, second_right - both_right
    neither = total - both_right - first_only - second_only
    wrong_before, right_before = torch.stack((neither, second_only), -1), torch.stack((first_only, both_right), -1)
    return torch.stack((wrong_before, right_before), dim=-2)


def check_gram(gram: Counts, n: Counts | int | None) -> tuple[Tensor, Tensor]:
    """A bare Gram matrix and its number of rows as int64, refused where no n rows of outcomes can have given it."""
    if n is None:
        raise TypeError(
            "n, the number of rows, is needed beside a bare [K, K] Gram matrix: it does not hold it; of outcomes pass "
            "outcome_gram(correct), or use the metric PairedOutcomes, which has mcnemar()"
        )
    gram = torch.as_tensor(gram)
    if gram.dim() < 2 or gram.shape[-1] != gram.shape[-2]:
        raise ValueError(f"gram must have shape [..., K, K], but came with shape {list(gram.shape)}")
    gram = as_counts(gram, name="gram", shape=(gram.shape[-1],) * 2)
    rows = torch.as_tensor(n, device=gram.device)
    if not is_integer(rows):
        raise TypeError(f"n, the number of rows, must be integers, but came as {rows.dtype}")
    rows = as_int64(rows, name="n")
    if rows.dim() > 0 and rows.shape != gram.shape[:-2]:
        raise ValueError(
            f"n must have one number of rows a matrix, shape {list(gram.shape[:-2])}, "
            f"but came with shape {list(rows.shape)}"
        )
    right = gram.diagonal(dim1=-2, dim2=-1)
    either = right.unsqueeze(-1) + right.unsqueeze(-2) - gram
    if bool(((gram != gram.mT) | (gram > right.unsqueeze(-1)) | (either > rows[..., None, None])).any()):
        raise ValueError(
            "gram must be the matrix XᵀX of n rows of zeros and ones: symmetric, no entry above the diagonal ones of "
            "its row and column, and no more than n rows right under either of two conditions"
        )
    return gram, rows


def _count_block(correct: Tensor, mask: Tensor | None, slice_index: Tensor | None, strata: int) -> OutcomeGram:
    """Counts [S, ...] of fewer than 2^24 rows."""
    right = correct if correct.dtype == torch.bool else correct != 0
    right = right if mask is None else right & mask
    x, conditions = _zeros_and_ones(right), right.shape[1]
    # Stratum S takes the rows that are not counted: leaving them out would need their number on the host.
    stratum: Tensor | None = None
    if slice_index is not None:
        stratum = slice_index.to(torch.int64)
        stratum = torch.where((stratum >= 0) & (stratum < strata), stratum, strata)

    totals = x.sum(-1).to(torch.int64)
    cell = totals if stratum is None else totals + stratum * (conditions + 1)
    if mask is not None:
        complete = mask.all(-1)
        cell = torch.where(complete, cell, strata * (conditions + 1))
    histogram = totals.new_zeros((strata + 1) * (conditions + 1)).scatter_add(0, cell, torch.ones_like(cell))
    row_totals = histogram.view(strata + 1, conditions + 1)[:-1]
    complete_n = row_totals.sum(-1)

    gram = _products(x, x, stratum, strata)
    if mask is None:
        observed = gram.diagonal(dim1=-2, dim2=-1).unsqueeze(-1).expand_as(gram)
        return OutcomeGram(gram, observed, complete_n[:, None, None].expand_as(gram), gram, complete_n, row_totals)
    m, whole = _zeros_and_ones(mask), _zeros_and_ones(complete.unsqueeze(-1))
    observed, n = _products(x, m, stratum, strata), _products(m, m, stratum, strata)
    return OutcomeGram(gram, observed, n, _products(x * whole, x, stratum, strata), complete_n, row_totals)


def _products(left: Tensor, right: Tensor, stratum: Tensor | None, strata: int) -> Tensor:
    """LᵀR of each stratum, ``[S, K, K]`` int64. Float32 is exact here and fast; half precisions count wrongly."""
    conditions = right.shape[-1]
    with torch.autocast(left.device.type, enabled=False):
        if stratum is None:
            product = left.mT @ right
        elif strata <= conditions:
            member = _zeros_and_ones(stratum.unsqueeze(-1) == torch.arange(strata, device=stratum.device))
            product = (member.unsqueeze(-1) * left.unsqueeze(-2)).flatten(1).mT @ right
        else:
            # Many strata of few rows each: the products of the single rows are fewer than those with all strata.
            rows = (left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(1)
            product = rows.new_zeros(strata + 1, rows.shape[-1]).index_add(0, stratum, rows)[:-1]
    return product.to(torch.int64).view(strata, conditions, conditions)


def _zeros_and_ones(flags: Tensor) -> Tensor:
    """Bool as float32, by way of bytes, which convert three times as fast."""
    return flags.view(torch.uint8).to(torch.float32)


def check_outcomes(correct: Tensor, mask: Tensor | None, slice_index: Tensor | None = None) -> None:
    """Check shapes and dtypes of the outcomes of several conditions. Reads no value."""
    check_outcome_dtype(correct, name="correct")
    if correct.dim() != 2:
        raise ValueError(
            f"correct must have shape [N, K], one row a sample and one column a condition, but came with shape "
            f"{list(correct.shape)}"
        )
    if mask is not None:
        check_mask(mask, correct.shape, like="correct")
    if slice_index is not None:
        check_index(slice_index, len(correct), name="slice_index", like="correct")
