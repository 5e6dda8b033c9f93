"""Should the step run? The phase plane of a channel and the decision per slice.

The step helps a population of accuracy p0 exactly where c / gamma > p0 / (1 - p0) (arXiv 2604.18245; independently
arXiv 2604.22273): the higher the accuracy already is, the more corrections each corruption has to be paid with.
"""

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Values, check_open_unit
from polyweave_torch.functional.channel import (
    ChannelEstimate,
    as_accuracy,
    break_even,
    channel_counts,
    check_one_table,
    delta_interval,
    estimate_channel,
    expected_gain,
    weighted,
)
from polyweave_torch.functional.intervals import normal_quantile

MARGINAL_BAND = 0.05
# What rounding may do to a difference of rates that is 0, or the band's edge, in exact arithmetic.
_ROUNDING = 1e-12


class Quadrant(enum.IntEnum):
    """Where a channel stands against its break-even line."""

    HARMFUL = -1
    MARGINAL = 0
    HELPFUL = 1
    UNKNOWN = 2


class StepDecision(NamedTuple):
    """Whether a step should run."""

    activate: Tensor
    """bool, expected gain > threshold and every group that matters has been observed."""
    expected_gain: Tensor
    """(1 - p0)·c - p0·gamma, in accuracy."""
    threshold: Tensor
    """The gain that must be exceeded, in accuracy."""


class PhasePlaneDiagnosis(NamedTuple):
    """A channel in the plane of corruption (across) and correction (up)."""

    c: Tensor
    """Correction rate."""
    gamma: Tensor
    """Corruption rate."""
    p0: Tensor
    """The accuracy at which the channel is judged."""
    amplification: Tensor
    """p0 / (1 - p0), the slope of the break-even line; inf at p0 = 1."""
    break_even_c: Tensor
    """amplification·gamma; inf at p0 = 1."""
    surplus: Tensor
    """c - break_even_c, in units of c; -inf at p0 = 1."""
    expected_gain: Tensor
    """(1 - p0)·c - p0·gamma, in accuracy."""
    quadrant: Tensor
    """int8 codes of :class:`Quadrant`."""


class GatingDecision(NamedTuple):
    """The decision for one slice, in Python values."""

    slice: str
    """Name of the slice."""
    p0: float
    """Accuracy before."""
    p1: float
    """Accuracy after."""
    c: float
    """Correction rate (smoothed as the estimate was)."""
    gamma: float
    """Corruption rate (likewise)."""
    expected_gain: float
    """(1 - p0)·c - p0·gamma."""
    activate: bool
    """Whether the step should run on this slice."""
    counts: Tensor
    """int64 ``[2, 2]``, the slice's table."""


def should_activate_step(p0: float | Tensor, channel: ChannelEstimate, *, cost_threshold: float = 0.0) -> StepDecision:
    r"""Decide whether a step pays for a population of accuracy p0.

    .. math:: \text{activate} \iff (1 - p_0)\,c - p_0\,\gamma > \text{cost\_threshold}

    Args:
        p0: accuracy before the step, in [0, 1], broadcast against the channel.
        channel: an estimate.
        cost_threshold: what the step costs, in accuracy; the gain must exceed it, by more than rounding (1e-12).

    Returns:
        :class:`StepDecision`. No data never activates: False where a group that has weight at p0 was not observed,
        whatever its smoothed rate.

    Raises:
        ValueError: where p0 is outside [0, 1] or ``cost_threshold`` is NaN.

    Example:
        >>> decision = should_activate_step(0.5, estimate_channel([[1, 9], [1, 9]]))
        >>> bool(decision.activate), round(float(decision.expected_gain), 4)
        (True, 0.3636)
    """
    if math.isnan(cost_threshold):
        raise ValueError("cost_threshold must be a number, but is NaN")
    accuracy = as_accuracy(p0, like=channel.c, name="p0")
    gain = expected_gain(accuracy, channel.c, channel.gamma)
    threshold = torch.full_like(gain, cost_threshold)
    return StepDecision(_observed(accuracy, channel) & (gain > threshold + _ROUNDING), gain, threshold)


def phase_plane_diagnosis(
    channel: ChannelEstimate,
    *,
    p0: float | Tensor | None = None,
    by: Literal["surplus", "gain", "interval"] = "surplus",
    level: float = 0.95,
) -> PhasePlaneDiagnosis:
    r"""Say on which side of its break-even line a channel lies.

    .. math:: \text{surplus} = c - \frac{p_0}{1 - p_0}\,\gamma, \qquad \text{gain} = (1 - p_0)\,c - p_0\,\gamma

    ``by="surplus"``: HELPFUL above 0, MARGINAL in (-0.05, 0], else HARMFUL; at p0 = 1, where the surplus is -inf, the
    gain decides: MARGINAL if gamma is 0, else HARMFUL. ``by="gain"``: the same thresholds on the gain. What lies within
    1e-12 of a threshold is taken to be on it, since rates are rounded.
    ``by="interval"``: MARGINAL while the confidence interval of the gain contains 0. At the channel's own p0 that is
    the interval of delta; at a given p0 the gain's variance is (1-p0)²·c(1-c)/n0 + p0²·gamma(1-gamma)/n1. Both are
    Wald's, too narrow below some 200 samples (:func:`~polyweave_torch.functional.channel_intervals` has the figures):
    three gains and no loss among 12 samples are HELPFUL, though Tango's interval contains 0 and McNemar's exact p is
    0.25. For few samples look at :func:`~polyweave_torch.functional.paired_difference_interval` first.

    UNKNOWN where a group that has weight at p0 was never observed.

    Args:
        channel: an estimate.
        p0: the accuracy at which to judge, broadcast against the channel; its own by default.
        by: the rule.
        level: confidence level of ``by="interval"``.

    Returns:
        :class:`PhasePlaneDiagnosis`.

    Raises:
        ValueError: where p0 is outside [0, 1], ``by`` is unknown, or ``level`` is outside (0, 1).

    Example:
        >>> diagnosis = phase_plane_diagnosis(estimate_channel([[0, 2], [0, 1]]))
        >>> quadrant_names(diagnosis.quadrant), round(float(diagnosis.surplus), 4)
        ('HELPFUL', 0.7083)
    """
    at = channel.p0 if p0 is None else as_accuracy(p0, like=channel.c, name="p0")
    at, c, gamma = torch.broadcast_tensors(at, channel.c, channel.gamma)  # type: ignore[no-untyped-call]
    gain = expected_gain(at, c, gamma)
    break_even_c = break_even(at, gamma)
    # c is NaN where it is raw and nothing was wrong; there it has no part in the surplus.
    surplus = torch.where(at == 1, -torch.inf, c - break_even_c)
    if by == "surplus":
        helpful, harmful = surplus > _ROUNDING, torch.where(at == 1, gain < 0, surplus <= _ROUNDING - MARGINAL_BAND)
    elif by == "gain":
        helpful, harmful = gain > _ROUNDING, gain <= _ROUNDING - MARGINAL_BAND
    elif by == "interval":
        check_open_unit(level, name="level")
        low, high = delta_interval(channel.counts, level=level) if p0 is None else _gain_interval(at, channel, level)
        helpful, harmful = low > 0, high < 0
    else:
        raise ValueError(f'by must be "surplus", "gain" or "interval", but is {by!r}')
    sign = helpful.to(torch.int8) - harmful.to(torch.int8)
    return PhasePlaneDiagnosis(
        c=c,
        gamma=gamma,
        p0=at,
        amplification=at / (1 - at),
        break_even_c=break_even_c,
        surplus=surplus,
        expected_gain=gain,
        quadrant=torch.where(_observed(at, channel), sign, int(Quadrant.UNKNOWN)).to(torch.int8),
    )


def quadrant_names(quadrant: Tensor | int) -> str | list[Any]:
    """Names of quadrant codes: a string for one code, (nested) lists of strings for a tensor of them.

    Args:
        quadrant: codes of :class:`Quadrant`.

    Example:
        >>> quadrant_names(torch.tensor([1, -1, 2]))
        ['HELPFUL', 'HARMFUL', 'UNKNOWN']
    """
    codes = quadrant.tolist() if isinstance(quadrant, Tensor) else int(quadrant)
    return _names(codes)


def estimate_slice_channels(
    before: Values,
    after: Values,
    slices: Sequence[str],
    *,
    smoothing: float = 0.5,
) -> dict[str, ChannelEstimate]:
    """Estimate one channel a slice from per-sample outcomes and slice labels.

    Args:
        before: ``[N]`` whether each sample was right before.
        after: ``[N]`` whether it was right after.
        slices: N labels.
        smoothing: as in :func:`~polyweave_torch.functional.estimate_channel`.

    Returns:
        Estimates by slice name, names ascending.

    Raises:
        ValueError: where the three do not have one value a sample, or an outcome is not binary.
        TypeError: where a label is not a string.

    Example:
        >>> channels = estimate_slice_channels([0, 0, 1, 1], [1, 1, 1, 0], ["easy", "easy", "easy", "hard"])
        >>> {name: round(float(channel.gamma), 2) for name, channel in channels.items()}
        {'easy': 0.25, 'hard': 0.75}
    """
    for label in slices:
        if not isinstance(label, str):
            raise TypeError(f"slices must be strings, but holds {label!r} of type {type(label).__name__}")
    names = sorted(set(slices))
    position = {name: index for index, name in enumerate(names)}
    slice_index = torch.tensor([position[label] for label in slices], dtype=torch.int64)
    tables = channel_counts(before, after, slice_index=slice_index, num_slices=len(names))
    return {name: estimate_channel(table, smoothing=smoothing) for name, table in zip(names, tables, strict=True)}


def slice_gating_decisions(
    channels: Mapping[str, ChannelEstimate], *, cost_threshold: float = 0.0
) -> list[GatingDecision]:
    """Decide for each slice, at the slice's own accuracy, whether the step should run there.

    The gain is that of the estimates' rates. Smoothing alone can make it positive: ``[[27, 4], [4, 15]]`` corrects as
    many as it corrupts, a raw delta of 0, and has an expected gain of +0.0017 at the default smoothing, so its step is
    activated. Estimate the channels with ``smoothing=0``, or set a ``cost_threshold``.

    Args:
        channels: estimates by slice name, each of one table.
        cost_threshold: the gain that must be exceeded, in accuracy.

    Returns:
        One :class:`GatingDecision` a slice, names ascending. An empty slice is never activated.

    Raises:
        ValueError: where an estimate holds several tables.

    Example:
        >>> channels = estimate_slice_channels([0, 0, 1, 1], [1, 1, 1, 0], ["easy", "easy", "easy", "hard"])
        >>> [(decision.slice, decision.activate) for decision in slice_gating_decisions(channels)]
        [('easy', True), ('hard', False)]
    """
    decisions = []
    for name in sorted(channels):
        channel = channels[name]
        check_one_table(channel, slice=name)
        step = should_activate_step(channel.p0, channel, cost_threshold=cost_threshold)
        decisions.append(
            GatingDecision(
                slice=name,
                p0=float(channel.p0),
                p1=float(channel.p1),
                c=float(channel.c),
                gamma=float(channel.gamma),
                expected_gain=float(step.expected_gain),
                activate=bool(step.activate),
                counts=channel.counts,
            )
        )
    return decisions


def _observed(p0: Tensor, channel: ChannelEstimate) -> Tensor:
    unseen = ((channel.n0 == 0) & (p0 < 1)) | ((channel.n1 == 0) & (p0 > 0))
    return ~(unseen | p0.isnan())


def _gain_interval(p0: Tensor, channel: ChannelEstimate, level: float) -> tuple[Tensor, Tensor]:
    c, gamma = channel.c, channel.gamma
    variance = weighted((1 - p0) ** 2, c * (1 - c) / channel.n0) + weighted(p0**2, gamma * (1 - gamma) / channel.n1)
    half = normal_quantile(level) * variance.sqrt()
    gain = expected_gain(p0, c, gamma)
    return gain - half, gain + half


def _names(codes: Any) -> str | list[Any]:
    return [_names(code) for code in codes] if isinstance(codes, list) else Quadrant(codes).name
