"""Flips: samples whose correctness, or whose answer, changed."""

from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, Values, as_counts, check_same_length, rate_dtype
from polyweave_torch.functional.channel import cells


class FlipRates(NamedTuple):
    """Shares of samples whose correctness flipped. The same words have several denominators in the wild; ours here."""

    negative_flip_rate: Tensor
    """n10 / N: right before and wrong after, of all samples."""
    positive_flip_rate: Tensor
    """n01 / N: wrong before and right after, of all samples."""
    negative_flip_impact: Tensor
    """n10 / (n00 + n10): of the errors after, the share that is new."""
    positive_flip_impact: Tensor
    """n01 / (n01 + n11): of the right answers after, the share that is new."""
    backward_trust: Tensor
    """n11 / n1: of the samples right before, the share that stayed right (1 - gamma)."""
    churn: Tensor
    """(n01 + n10) / N: of all samples, the share whose correctness changed."""


class AnswerChurn(NamedTuple):
    """Changes of the answer itself, each a share of all N samples."""

    churn: Tensor
    """Answers that differ."""
    wrong_to_other_wrong: Tensor
    """Wrong before and differently wrong after: churn that no accuracy shows."""
    accuracy_churn: Tensor
    """Correctness that changed, (n01 + n10) / N."""


def flip_rates(counts: Counts) -> FlipRates:
    """Negative and positive flips, their impacts, backward trust and churn of a table of transitions.

    Negative flips are what a deployed model's users notice (Yan et al., "Positive-Congruent Training", CVPR 2021);
    backward trust compatibility is Srivastava et al., KDD 2020. Each field's docstring in :class:`FlipRates` states its
    denominator.

    Args:
        counts: integers ``[..., 2, 2]`` by ``[before, after]``.

    Returns:
        :class:`FlipRates`, each field ``[...]``, NaN where its denominator is 0.

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative or do not end in ``[2, 2]``.

    Example:
        >>> rates = flip_rates([[1, 1], [1, 1]])
        >>> float(rates.negative_flip_rate), float(rates.negative_flip_impact)
        (0.25, 0.5)
    """
    table = as_counts(counts)
    (n00, n01), (n10, n11) = cells(table)
    total, dtype = table.sum((-2, -1)), rate_dtype(table.device)
    return FlipRates(
        negative_flip_rate=n10.to(dtype) / total,
        positive_flip_rate=n01.to(dtype) / total,
        negative_flip_impact=n10.to(dtype) / (n00 + n10),
        positive_flip_impact=n01.to(dtype) / (n01 + n11),
        backward_trust=n11.to(dtype) / (n10 + n11),
        churn=(n01 + n10).to(dtype) / total,
    )


def answer_churn(before: Values, after: Values, target: Values) -> AnswerChurn:
    """How many answers changed, and how many wrong ones became differently wrong.

    Accuracy churn sees only answers that crossed the line between right and wrong; a model that is wrong in a new way
    is a change too ("Accuracy is Not All You Need", arXiv 2407.09141).

    Args:
        before: ``[N]`` predicted classes before.
        after: ``[N]`` predicted classes after.
        target: ``[N]`` right classes.

    Returns:
        :class:`AnswerChurn` of 0-d tensors, each a share of the N samples; NaN for N = 0.

    Raises:
        ValueError: where the three do not have one answer a sample.

    Example:
        >>> churn = answer_churn([2, 1, 0, 2], [1, 3, 0, 3], [3, 3, 0, 2])
        >>> float(churn.churn), float(churn.wrong_to_other_wrong), float(churn.accuracy_churn)
        (0.75, 0.25, 0.5)
    """
    before, after, target = torch.as_tensor(before), torch.as_tensor(after), torch.as_tensor(target)
    if before.dim() != 1:
        raise ValueError(f"before must have one answer a sample, shape [N], but came with shape {list(before.shape)}")
    check_same_length(len(before), after, name="before", other_name="after")
    check_same_length(len(before), target, name="before", other_name="target")
    changed, was_right, is_right = before != after, before == target, after == target
    shares = (changed, changed & ~was_right & ~is_right, was_right != is_right)
    dtype = rate_dtype(before.device)
    return AnswerChurn(*(share.sum().to(dtype) / len(before) for share in shares))
