"""Shift of the mixture of slices: pooled rates against those of another mixture."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional.channel import ChannelEstimate, check_one_table, weighted


class MixtureShiftBias(NamedTuple):
    """Pooled rates against rates conditioned on slices (Simpson's paradox)."""

    pooled_c: Tensor
    """Correction rate of the calibration mixture."""
    pooled_gamma: Tensor
    """Corruption rate of the calibration mixture."""
    slice_conditioned_c: Tensor
    """Correction rate of the deployment mixture."""
    slice_conditioned_gamma: Tensor
    """Corruption rate of the deployment mixture."""
    bias_c: Tensor
    """pooled_c - slice_conditioned_c."""
    bias_gamma: Tensor
    """pooled_gamma - slice_conditioned_gamma."""
    slice_keys: list[str]
    """Slice names, ascending."""


def mixture_shift_bias(
    channels: Mapping[str, ChannelEstimate],
    deployment_weights: Mapping[str, float] | None = None,
    calibration_weights: Mapping[str, float] | None = None,
    *,
    support: Literal["total", "group"] = "total",
) -> MixtureShiftBias:
    r"""Bias of pooled rates when the deployment mixes slices differently from the calibration.

    ``support="total"`` averages both rates with the same slice weights w: the slices' sample counts for the pooled
    rates (or ``calibration_weights``), ``deployment_weights`` (uniform by default) for the conditioned ones.
    ``support="group"`` pools exactly: a correction happens only to a sample that was wrong, so c is weighted by the
    wrong ones and gamma by the right ones,

    .. math:: c = \frac{\sum_s w_s (1 - p_{0,s})\,c_s}{\sum_s w_s (1 - p_{0,s})}, \qquad
        \gamma = \frac{\sum_s w_s\, p_{0,s}\,\gamma_s}{\sum_s w_s\, p_{0,s}}

    which on raw rates reproduces the pooled accuracy change.

    Args:
        channels: estimates by slice name, each of one table.
        deployment_weights: weight of every slice in deployment; need not sum to 1.
        calibration_weights: weight of every slice in calibration, instead of its sample count.
        support: how rates are averaged.

    Returns:
        :class:`MixtureShiftBias` of 0-d tensors. An empty slice has weight 0 unless weights are given.

    Raises:
        ValueError: where there is no slice, or weights miss a slice, name an unknown one, are negative, sum to 0 or put
            weight on an empty slice.

    Example:
        >>> from polyweave_torch.functional import estimate_slice_channels
        >>> channels = estimate_slice_channels([0, 0, 0, 1], [1, 1, 0, 1], ["a", "a", "a", "b"], smoothing=0.5)
        >>> bias = mixture_shift_bias(channels)
        >>> round(float(bias.pooled_c), 4), round(float(bias.slice_conditioned_c), 4)
        (0.5938, 0.5625)
    """
    if not channels:
        raise ValueError("channels must hold at least one slice, but is empty")
    keys = sorted(channels)
    for key in keys:
        check_one_table(channels[key], slice=key)
    p0, c, gamma, total = (torch.stack([getattr(channels[k], f) for k in keys]) for f in ("p0", "c", "gamma", "total"))
    sizes = total.to(c.dtype)
    uniform = (total > 0).to(c.dtype)
    pooled = sizes if calibration_weights is None else _weights(calibration_weights, keys, sizes, "calibration_weights")
    deployed = (
        uniform if deployment_weights is None else _weights(deployment_weights, keys, sizes, "deployment_weights")
    )
    if support == "group":
        wrong, right = (weighted(uniform, share) for share in (1 - p0, p0))
    elif support == "total":
        wrong = right = uniform
    else:
        raise ValueError(f'support must be "total" or "group", but is {support!r}')
    pooled_c, pooled_gamma = _mean(pooled * wrong, c), _mean(pooled * right, gamma)
    conditioned_c, conditioned_gamma = _mean(deployed * wrong, c), _mean(deployed * right, gamma)
    return MixtureShiftBias(
        pooled_c=pooled_c,
        pooled_gamma=pooled_gamma,
        slice_conditioned_c=conditioned_c,
        slice_conditioned_gamma=conditioned_gamma,
        bias_c=pooled_c - conditioned_c,
        bias_gamma=pooled_gamma - conditioned_gamma,
        slice_keys=keys,
    )


def _weights(weights: Mapping[str, float], keys: list[str], sizes: Tensor, name: str) -> Tensor:
    unknown, missing = sorted(set(weights) - set(keys)), sorted(set(keys) - set(weights))
    if unknown or missing:
        raise ValueError(f"{name} must weigh every slice once; unknown slices {unknown}, missing slices {missing}")
    weight = torch.tensor([float(weights[key]) for key in keys], dtype=sizes.dtype, device=sizes.device)
    if not bool((weight >= 0).all()) or not 0 < float(weight.sum()) < torch.inf:
        raise ValueError(f"{name} must be finite, at least 0, and not all 0, but is {dict(weights)}")
    empty = [key for key, bad in zip(keys, ((weight > 0) & (sizes == 0)).tolist(), strict=True) if bad]
    if empty:
        raise ValueError(f"{name} puts weight on slices without samples: {empty}; their rates are unknown")
    return weight


def _mean(weight: Tensor, value: Tensor) -> Tensor:
    return weighted(weight, value).sum() / weight.sum()
