"""The correction/corruption channel: every rate of a 2x2 table of before/after outcomes.

A table is an int64 tensor ``[..., 2, 2]`` indexed ``[before, after]`` by correctness (0 wrong, 1 right): ``n00`` wrong
and wrong, ``n01`` corrected, ``n10`` corrupted, ``n11`` right and right. ``n0 = n00 + n01`` samples were wrong before,
``n1 = n10 + n11`` right, ``N = n0 + n1``. Leading dimensions are slices, epochs, whatever the caller has.

The theory is "Correction and Corruption: A Two-Rate View of Error Flow in LLM Protocols" (arXiv 2604.18245).
"""

import math
from typing import Literal, NamedTuple

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
    check_open_unit,
    check_outcome_dtype,
    check_range,
    check_same_length,
    check_tensor,
    rate_dtype,
)
from polyweave_torch.functional.difference import wald_interval
from polyweave_torch.functional.intervals import ConfidenceInterval, jeffreys_interval, normal_quantile, wilson_interval


class ChannelEstimate(NamedTuple):
    """The rates of a channel; every tensor has the table's leading shape ``[...]``."""

    counts: Tensor
    """int64 ``[..., 2, 2]``, the table itself, ``[before, after]``."""
    n0: Tensor
    """int64, samples that were wrong before."""
    n1: Tensor
    """int64, samples that were right before."""
    total: Tensor
    """int64, all samples."""
    p0: Tensor
    """Accuracy before, n1 / N."""
    p1: Tensor
    """Accuracy after, (n01 + n11) / N."""
    c: Tensor
    """Correction rate: of the samples wrong before, the share right after (smoothed)."""
    gamma: Tensor
    """Corruption rate: of the samples right before, the share wrong after (smoothed)."""
    delta: Tensor
    """p1 - p0 = (n01 - n10) / N, never smoothed."""
    predicted_delta: Tensor
    """(1 - p0)·c - p0·gamma, which is delta when smoothing is 0."""
    break_even_correction: Tensor
    """p0 / (1 - p0)·gamma, the correction rate below which the step costs accuracy; inf at p0 = 1."""
    smoothing: float
    """Pseudo-count added to both outcomes of each group."""


class ChannelIntervals(NamedTuple):
    """Confidence intervals of a channel's raw rates."""

    c: ConfidenceInterval
    """Of n01 / n0."""
    gamma: ConfidenceInterval
    """Of n10 / n1."""
    delta: ConfidenceInterval
    """Of (n01 - n10) / N: Wald's, too narrow for few samples and of width 0 without discordant ones."""
    level: float
    """Confidence level of each."""


class ChannelOrbit(NamedTuple):
    """Accuracy under repeated application of one channel."""

    accuracy: Tensor
    """``[steps + 1, ...]``, from p0 on."""
    fixed_point: Tensor
    """c / (c + gamma), where the accuracy settles; NaN where nothing ever changes."""


def channel_counts(
    before: Values,
    after: Values,
    *,
    slice_index: Values | None = None,
    num_slices: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    r"""Count the transitions of correctness between two runs over the same samples.

    .. math:: n_{ij} = \#\{k : \mathrm{before}_k = i,\ \mathrm{after}_k = j\}

    Args:
        before: ``[N]`` whether each sample was right before (bool, or 0 and 1).
        after: ``[N]`` whether the same sample was right after.
        slice_index: ``[N]`` int, the slice of each sample.
        num_slices: number of slices S; by default the largest index of a sample that is counted, plus one.
        mask: ``[N]`` bool, False leaves a sample out: neither its outcomes nor its slice are looked at.

    Returns:
        int64 ``[2, 2]`` indexed ``[before, after]``, or ``[S, 2, 2]`` with ``slice_index``.

    Raises:
        ValueError: where lengths differ, an outcome is not binary or a slice index is out of range.
        TypeError: where the mask is not bool, or a slice index is no integer.

    Example:
        >>> channel_counts([True, True, False, False], [True, False, True, True])
        tensor([[0, 2],
                [1, 1]])
    """
    before, after = torch.as_tensor(before), torch.as_tensor(after)
    slices = None if slice_index is None else as_tensor(slice_index, empty=torch.int64, device=before.device)
    keep = None if mask is None else as_tensor(mask, empty=torch.bool, device=before.device)
    check_transitions(before, after, slices, keep)
    check_binary(before, name="before", mask=keep)
    check_binary(after, name="after", mask=keep)
    if slices is None:
        if num_slices is not None:
            raise ValueError(f"num_slices={num_slices} came without slice_index; pass the slice of each sample")
        return count_transitions(before, after, None, 1, keep)[0]
    if keep is not None:
        before, after, slices = before[keep], after[keep], slices[keep]
    slices = as_int64(slices, name="slice_index")
    if num_slices is None:
        num_slices = int(slices.max()) + 1 if slices.numel() else 0
    check_range(slices, num_slices, name="slice_index", what="num_slices")
    return count_transitions(before, after, slices, num_slices, None)


def check_transitions(before: Tensor, after: Tensor, slice_index: Tensor | None, mask: Tensor | None) -> None:
    """Check shapes and dtypes of a batch of outcomes. Reads no value."""
    check_tensor(before, name="before")
    check_tensor(after, name="after")
    if before.dim() != 1:
        raise ValueError(f"before must have one outcome a sample, shape [N], but came with shape {list(before.shape)}")
    check_same_length(len(before), after, name="before", other_name="after")
    check_outcome_dtype(before, name="before")
    check_outcome_dtype(after, name="after")
    if slice_index is not None:
        check_index(slice_index, len(before), name="slice_index", like="before")
    if mask is not None:
        check_mask(mask, before.shape, like="before")


def count_transitions(
    before: Tensor, after: Tensor, slice_index: Tensor | None, num_slices: int, mask: Tensor | None
) -> Tensor:
    """Count checked outcomes into int64 ``[num_slices, 2, 2]``, on the device, without waiting for it."""
    none = torch.zeros(num_slices * 4, dtype=torch.int64, device=before.device)
    return add_transitions(none, before, after, slice_index, mask).view(num_slices, 2, 2)


def add_transitions(
    cells: Tensor, before: Tensor, after: Tensor, slice_index: Tensor | None, mask: Tensor | None
) -> Tensor:
    """Tables ``[S * 4]``, flat, with those of a batch added: out of place, without waiting for the device."""
    code = torch.add(_bits(after), _bits(before), alpha=2)
    cell = code.to(torch.int64) if slice_index is None else torch.add(code, slice_index.to(torch.int64), alpha=4)
    if mask is None:
        return cells.scatter_add(0, cell, torch.ones_like(cell))
    if slice_index is not None:
        # Nothing is added for what is left out, but its slice may be none.
        cell = torch.where(mask, cell, 0)
    return cells.scatter_add(0, cell, mask.to(torch.int64))


def _bits(outcome: Tensor) -> Tensor:
    return (outcome if outcome.dtype == torch.bool else outcome != 0).view(torch.uint8)


def estimate_channel(counts: Counts, *, smoothing: float = 0.5) -> ChannelEstimate:
    r"""Estimate correction and corruption rates from a table of transitions.

    .. math:: c = \frac{n_{01} + s}{n_0 + 2s}, \qquad \gamma = \frac{n_{10} + s}{n_1 + 2s}

    With the default ``s = 0.5`` these are the posterior means under Jeffreys' prior; ``s = 0`` gives the raw rates,
    NaN where the group is empty, for which (1 - p0)·c - p0·gamma equals p1 - p0 exactly.

    Args:
        counts: integers ``[..., 2, 2]`` by ``[before, after]``.
        smoothing: the pseudo-count s, at least 0.

    Returns:
        :class:`ChannelEstimate`, each field of shape ``[...]``, float64 (float32 on MPS) on the counts' device.

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative or do not end in ``[2, 2]``, or smoothing is negative.

    Example:
        >>> channel = estimate_channel([[49, 32], [114, 305]], smoothing=0)
        >>> round(float(channel.c), 4), round(float(channel.gamma), 4), round(float(channel.delta), 4)
        (0.3951, 0.2721, -0.164)
    """
    table = as_counts(counts)
    check_smoothing(smoothing)
    (n00, n01), (n10, n11) = cells(table)
    n0, n1 = n00 + n01, n10 + n11
    total = n0 + n1
    dtype = rate_dtype(table.device)
    p0 = n1.to(dtype) / total
    # Widened first: an integer tensor plus a Python float has torch's default dtype, which holds no large counts.
    c = (n01.to(dtype) + smoothing) / (n0.to(dtype) + 2 * smoothing)
    gamma = (n10.to(dtype) + smoothing) / (n1.to(dtype) + 2 * smoothing)
    return ChannelEstimate(
        counts=table,
        n0=n0,
        n1=n1,
        total=total,
        p0=p0,
        p1=(n01 + n11).to(dtype) / total,
        c=c,
        gamma=gamma,
        delta=(n01 - n10).to(dtype) / total,
        predicted_delta=expected_gain(p0, c, gamma),
        break_even_correction=break_even(p0, gamma),
        smoothing=smoothing,
    )


def check_smoothing(smoothing: float) -> None:
    """Refuse a pseudo-count that is negative or not finite."""
    if not 0.0 <= smoothing < math.inf:
        raise ValueError(f"smoothing must be a finite number of at least 0, but is {smoothing}")


def expected_gain(p0: Tensor, c: Tensor, gamma: Tensor) -> Tensor:
    """(1 - p0)·c - p0·gamma, where a term of weight 0 is 0 even if its rate is undefined."""
    return weighted(1 - p0, c) - weighted(p0, gamma)


def break_even(p0: Tensor, gamma: Tensor) -> Tensor:
    """p0 / (1 - p0)·gamma: inf at p0 = 1 whatever gamma is, 0 at p0 = 0."""
    return torch.where(p0 == 1, torch.inf, weighted(p0 / (1 - p0), gamma))


def weighted(weight: Tensor, value: Tensor) -> Tensor:
    """``weight * value``, 0 where the weight is 0."""
    return torch.where(weight == 0, 0.0, weight * value)


def channel_intervals(
    counts: Counts, *, level: float = 0.95, method: Literal["wilson", "jeffreys"] = "wilson"
) -> ChannelIntervals:
    r"""Confidence intervals of the raw correction rate, corruption rate and accuracy difference.

    c = n01/n0 and gamma = n10/n1 are proportions of their groups: Wilson score or Jeffreys intervals. The difference
    has the variance of a paired difference,

    .. math:: \mathrm{se}(\Delta) = \frac{1}{N}\sqrt{n_{01} + n_{10} - \frac{(n_{01} - n_{10})^2}{N}}

    and the interval delta ± z·se cut to [-1, 1]. That is Wald's interval, which is too narrow for few samples: at a
    level of .95, with c = .3 and gamma = .05, it covers 77 % (accuracy before .9) and 83 % (.7) at 20 samples, 91 and
    94 % at 50. Without a discordant sample it is a single point, 0. Below some 200 samples prefer
    :func:`~polyweave_torch.functional.paired_difference_interval`.

    Args:
        counts: integers ``[..., 2, 2]``.
        level: confidence level.
        method: interval of c and gamma.

    Returns:
        :class:`ChannelIntervals`; where a group is empty its Wilson interval is [0, 1] and Jeffreys' that of the prior;
        without any sample delta's is [-1, 1].

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative or do not end in ``[2, 2]``, ``level`` is outside (0, 1), or ``method`` is
            unknown.

    Example:
        >>> c = channel_intervals([[49, 32], [114, 305]]).c
        >>> round(float(c.low), 4), round(float(c.high), 4)
        (0.2957, 0.5039)
    """
    check_open_unit(level, name="level")
    table = as_counts(counts)
    (n00, n01), (n10, n11) = cells(table)
    n0, n1 = n00 + n01, n10 + n11
    if method == "wilson":
        c, gamma = (ConfidenceInterval(*wilson_interval(k, n, level=level)[1:3]) for k, n in ((n01, n0), (n10, n1)))
    elif method == "jeffreys":
        c, gamma = (jeffreys_interval(k, n, level=level) for k, n in ((n01, n0), (n10, n1)))
    else:
        raise ValueError(f'method must be "wilson" or "jeffreys", but is {method!r}')
    return ChannelIntervals(c=c, gamma=gamma, delta=delta_interval(table, level=level), level=level)


def delta_interval(table: Tensor, *, level: float) -> ConfidenceInterval:
    """delta ± z·se for checked counts, cut to [-1, 1]; [-1, 1] where there is no sample."""
    table = table.to(rate_dtype(table.device))
    total = table.sum((-2, -1))
    low, high = wald_interval(table[..., 0, 1], table[..., 1, 0], total, normal_quantile(level))
    return ConfidenceInterval(
        low.clamp(-1.0, 1.0).masked_fill(total == 0.0, -1.0), high.clamp(-1.0, 1.0).masked_fill(total == 0.0, 1.0)
    )


def predict_post_accuracy(p0: float | Tensor, channel: ChannelEstimate) -> Tensor:
    r"""Accuracy after the step on a population whose accuracy before it is p0.

    .. math:: p_1 = p_0 + (1 - p_0)\,c - p_0\,\gamma

    Args:
        p0: accuracy before, in [0, 1], broadcast against the channel.
        channel: an estimate.

    Returns:
        Accuracy after; a term of weight 0 counts as 0.

    Raises:
        ValueError: where p0 is outside [0, 1].

    Example:
        >>> channel = estimate_channel([[49, 32], [114, 305]], smoothing=0)
        >>> round(float(predict_post_accuracy(0.5, channel)), 4)
        0.5615
    """
    accuracy = as_accuracy(p0, like=channel.c, name="p0")
    return accuracy + expected_gain(accuracy, channel.c, channel.gamma)


def iterate_channel(p0: float | Tensor, channel: ChannelEstimate, steps: int) -> ChannelOrbit:
    r"""Accuracy when the same step is applied again and again.

    .. math:: p_t = p^* + (1 - c - \gamma)^t (p_0 - p^*), \qquad p^* = \frac{c}{c + \gamma}

    Args:
        p0: accuracy at the start, in [0, 1], broadcast against the channel.
        channel: an estimate.
        steps: how often the step is applied, at least 0.

    Returns:
        :class:`ChannelOrbit`. Where c + gamma = 0 the accuracy stays p0 and the fixed point is NaN.

    Raises:
        ValueError: where ``steps`` is negative or p0 is outside [0, 1].

    Example:
        >>> orbit = iterate_channel(0.838, estimate_channel([[49, 32], [114, 305]], smoothing=0), steps=2)
        >>> [round(float(p), 4) for p in orbit.accuracy], round(float(orbit.fixed_point), 4)
        ([0.838, 0.674, 0.6194], 0.5922)
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0, but is {steps}")
    moved = channel.c + channel.gamma
    start = as_accuracy(p0, like=channel.c, name="p0")
    start, moved = torch.broadcast_tensors(start, moved)  # type: ignore[no-untyped-call]
    fixed_point = torch.where(moved == 0, torch.nan, channel.c / moved)
    power = torch.arange(steps + 1, device=moved.device).view(-1, *[1] * moved.dim())
    accuracy = fixed_point + (1 - moved) ** power * (start - fixed_point)
    return ChannelOrbit(accuracy=torch.where(moved == 0, start, accuracy), fixed_point=fixed_point)


def check_one_table(channel: ChannelEstimate, *, slice: str) -> None:
    """Refuse an estimate of several tables where a slice has one."""
    if channel.c.dim():
        raise ValueError(f"the channel of slice {slice!r} holds {channel.c.numel()} tables; pass one a slice")


def as_accuracy(value: float | Tensor, *, like: Tensor, name: str) -> Tensor:
    """An accuracy as a tensor of the same dtype and device, refused outside [0, 1]; NaN passes."""
    accuracy = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if bool(((accuracy < 0) | (accuracy > 1)).any()):
        raise ValueError(f"{name} must be an accuracy in [0, 1], but is {value}")
    return accuracy


def cells(table: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """``(n00, n01), (n10, n11)`` of tables ``[..., 2, 2]``."""
    return (table[..., 0, 0], table[..., 0, 1]), (table[..., 1, 0], table[..., 1, 1])
