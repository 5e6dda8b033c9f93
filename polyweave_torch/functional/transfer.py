"""Transfer of a channel: what it predicts of another population, and how far off that is."""

from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, as_counts
from polyweave_torch.functional.channel import ChannelEstimate, predict_post_accuracy, weighted


class TransferResidual(NamedTuple):
    """Accuracy observed on a target population against the accuracy a calibration channel predicts."""

    predicted: Tensor
    """Predicted accuracy after the step."""
    actual: Tensor
    """Observed accuracy after the step."""
    residual: Tensor
    """actual - predicted."""
    standardized_residual: Tensor
    """residual / sqrt(predicted·(1 - predicted) / N): ignores pairing and the noise of the calibration."""
    target_n: Tensor
    """int64, samples of the target."""
    target_p0: Tensor
    """Accuracy before the step on the target."""
    target_p1: Tensor
    """Accuracy after it."""
    calib_c: Tensor
    """Correction rate of the calibration channel."""
    calib_gamma: Tensor
    """Corruption rate of the calibration channel."""
    paired_standardized_residual: Tensor
    """residual over its standard error given p0, with the pairing and the calibration noise."""


def predict_transfer(channel: ChannelEstimate, target_p0: float | Tensor) -> Tensor:
    """Accuracy that a calibration channel predicts after the step on a population of accuracy ``target_p0``.

    The same formula as :func:`~polyweave_torch.functional.predict_post_accuracy`, read as a forecast: it is right as
    far as c and gamma carry over, which :func:`transfer_residual` checks.

    Args:
        channel: the estimate made on the calibration population.
        target_p0: accuracy before the step on the target population.

    Example:
        >>> from polyweave_torch.functional import estimate_channel
        >>> round(float(predict_transfer(estimate_channel([[49, 32], [114, 305]], smoothing=0), 0.5)), 4)
        0.5615
    """
    return predict_post_accuracy(target_p0, channel)


def transfer_residual(channel: ChannelEstimate, target_counts: Counts) -> TransferResidual:
    r"""How far the accuracy observed on a target population is from the one its calibration channel predicts.

    The plain standardised residual divides by sqrt(pred·(1 - pred) / N), as if the target's answers after the step were
    drawn without looking at those before it and the channel were known. The paired one uses

    .. math:: \frac{(1-p_0)\,c(1-c) + p_0\,\gamma(1-\gamma)}{N}
        + \frac{(1-p_0)^2\,c(1-c)}{n_0^{cal}} + \frac{p_0^2\,\gamma(1-\gamma)}{n_1^{cal}}

    where a term of weight 0 is 0, and an empty calibration group with weight makes it NaN.

    Args:
        channel: the estimate made on the calibration population.
        target_counts: integers ``[..., 2, 2]`` observed on the target.

    Returns:
        :class:`TransferResidual`. A standard error of 0 gives 0 for a residual of 0 and ±inf else; N = 0 gives NaN.

    Example:
        >>> from polyweave_torch.functional import estimate_channel
        >>> result = transfer_residual(estimate_channel([[40, 10], [5, 45]], smoothing=0), [[30, 20], [5, 45]])
        >>> round(float(result.residual), 4), round(float(result.standardized_residual), 4)
        (0.1, 2.0101)
    """
    target = as_counts(target_counts, name="target_counts").to(channel.c.device)
    c, gamma, dtype = channel.c, channel.gamma, channel.c.dtype
    n = target.sum((-2, -1))
    p0 = target[..., 1, :].sum(-1).to(dtype) / n
    p1 = target[..., :, 1].sum(-1).to(dtype) / n
    predicted = predict_post_accuracy(p0, channel)
    residual = p1 - predicted
    spread_c, spread_gamma = c * (1 - c), gamma * (1 - gamma)
    within = (weighted(1 - p0, spread_c) + weighted(p0, spread_gamma)) / n
    noise_c = (spread_c / channel.n0).where(channel.n0 > 0, torch.nan)
    noise_gamma = (spread_gamma / channel.n1).where(channel.n1 > 0, torch.nan)
    calibration = weighted((1 - p0) ** 2, noise_c) + weighted(p0**2, noise_gamma)
    return TransferResidual(
        predicted=predicted,
        actual=p1,
        residual=residual,
        standardized_residual=_standardized(residual, predicted * (1 - predicted) / n),
        target_n=n,
        target_p0=p0,
        target_p1=p1,
        calib_c=c,
        calib_gamma=gamma,
        paired_standardized_residual=_standardized(residual, within + calibration),
    )


def _standardized(residual: Tensor, variance: Tensor) -> Tensor:
    error = variance.clamp(min=0).sqrt()
    # Rounding alone is no surprise.
    exact = torch.where(residual.abs() <= 1e-12, 0.0, torch.copysign(torch.full_like(residual, torch.inf), residual))
    return torch.where(error == 0, exact, residual / error)
