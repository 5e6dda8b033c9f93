"""Channels that travel: composition of steps, transfer to another population, shift of the mixture of slices."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, Values, as_counts, rate_dtype
from polyweave_torch.functional._chi_square import chi_square_tail
from polyweave_torch.functional.channel import ChannelEstimate, check_one_table, predict_post_accuracy, weighted


class CompositionGap(NamedTuple):
    """How far a direct kernel is from the composition of two steps."""

    mean: Tensor
    """Mean absolute difference over the four cells."""
    max: Tensor
    """Largest absolute difference."""
    composed: Tensor
    """``[..., 2, 2]``, first @ second."""
    weighted: Tensor
    """Mean absolute difference of each row, weighted by the support of the rows."""


class CompositionTest(NamedTuple):
    """Test of whether two steps compose."""

    statistic: Tensor
    """G², likelihood ratio."""
    df: Tensor
    """int64, e1 strata whose four margins are all positive."""
    p_value: Tensor
    """Upper tail of chi-square; 1 where df is 0."""


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


def channel_matrix(channel: ChannelEstimate) -> Tensor:
    """The row-stochastic kernel ``[[1 - c, c], [gamma, 1 - gamma]]`` of a channel, ``[..., 2, 2]``.

    Args:
        channel: an estimate.

    Example:
        >>> from polyweave_torch.functional import estimate_channel
        >>> channel_matrix(estimate_channel([[3, 1], [1, 1]], smoothing=0))
        tensor([[0.7500, 0.2500],
                [0.5000, 0.5000]], dtype=torch.float64)
    """
    rows = [torch.stack((1 - channel.c, channel.c), -1), torch.stack((channel.gamma, 1 - channel.gamma), -1)]
    return torch.stack(rows, -2)


def composition_gap(
    direct: Values,
    first: Values,
    second: Values,
    *,
    support: Values | None = None,
) -> CompositionGap:
    r"""Compare the kernel observed over two steps with the composition of the steps' kernels.

    .. math:: K = K_{01} K_{12}, \qquad \text{mean} = \tfrac14 \sum_{rs} |K_{rs} - K_{02,rs}|, \qquad
        \text{weighted} = \sum_r w_r \tfrac12 \sum_s |K_{rs} - K_{02,rs}|

    Args:
        direct: ``[..., 2, 2]`` kernel from step 0 to step 2, rows summing to 1.
        first: kernel from step 0 to step 1.
        second: kernel from step 1 to step 2.
        support: ``[..., 2]`` weights of the rows (wrong and right before), normalised; uniform by default, where
            ``weighted`` equals ``mean``. Pass ``(n0, n1)`` to weigh rows by how many samples stand behind them.

    Returns:
        :class:`CompositionGap`.

    Raises:
        TypeError: where a :class:`ChannelEstimate` came in place of its matrix.
        ValueError: where a matrix is not row-stochastic, or the weights are negative or sum to 0.

    Example:
        >>> gap = composition_gap([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]])
        >>> float(gap.mean), float(gap.max)
        (0.125, 0.25)
    """
    kernels = [_as_kernel(k, name) for k, name in ((direct, "direct"), (first, "first"), (second, "second"))]
    weight = torch.ones(2, dtype=kernels[0].dtype, device=kernels[0].device)
    if support is not None:
        weight = torch.as_tensor(support, dtype=kernels[0].dtype, device=kernels[0].device)
        if weight.shape[-1:] != (2,):
            raise ValueError(f"support must have shape [..., 2], one weight a row, but came as {list(weight.shape)}")
        if bool((weight < 0).any()) or not bool((weight.sum(-1) > 0).all()):
            raise ValueError(f"support must be weights of at least 0 that do not sum to 0, but is {support}")
    composed = kernels[1] @ kernels[2]
    difference = (composed - kernels[0]).abs()
    share = weight / weight.sum(-1, keepdim=True)
    return CompositionGap(
        mean=difference.mean((-2, -1)),
        max=difference.amax((-2, -1)),
        composed=composed,
        weighted=weighted(share, difference.mean(-1)).sum(-1),
    )


def composition_test(counts3: Counts) -> CompositionTest:
    r"""Test whether what happens in the second step depends on the state before the first.

    Composing two channels is right when e0 and e2 are independent given e1. The likelihood-ratio test of that
    (Agresti, "Categorical Data Analysis", on conditional independence) is

    .. math:: G^2 = 2 \sum_{ijk} n_{ijk} \log\frac{n_{ijk}\, n_{+j+}}{n_{ij+}\, n_{+jk}}

    with one degree of freedom for each e1 stratum whose four margins are all positive. It is this library's addition:
    the published gap says how large a misfit is, the test whether it is more than chance.

    Args:
        counts3: integers ``[..., 2, 2, 2]`` by ``[e0, e1, e2]``.

    Returns:
        :class:`CompositionTest`, float64 on the CPU; df 0 gives statistic 0 and p 1.

    Example:
        >>> test = composition_test([[[719, 79], [32, 19]], [[14, 22], [185, 1891]]])
        >>> int(test.df), bool(test.p_value < 1e-28)
        (2, True)
    """
    table = as_counts(counts3, name="counts3", shape=(2, 2, 2)).cpu().to(torch.float64)
    rows, columns = table.sum(-1, keepdim=True), table.sum(-3, keepdim=True)
    expected = rows * columns / table.sum((-3, -1), keepdim=True)
    informative = (rows > 0).all(-3, keepdim=True) & (columns > 0).all(-1, keepdim=True)
    term = torch.where(informative & (table > 0), table * torch.log(table / expected), 0.0)
    statistic = (2 * term.sum((-3, -2, -1))).clamp(min=0)
    df = informative.sum((-3, -2, -1))
    return CompositionTest(statistic=statistic, df=df, p_value=chi_square_tail(statistic, df))


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


def _as_kernel(kernel: Values, name: str) -> Tensor:
    if isinstance(kernel, ChannelEstimate):
        raise TypeError(f"{name} must be a matrix [..., 2, 2], but is a ChannelEstimate; pass channel_matrix({name})")
    device = kernel.device if isinstance(kernel, Tensor) else torch.device("cpu")
    matrix = torch.as_tensor(kernel, dtype=rate_dtype(device), device=device)
    if matrix.shape[-2:] != (2, 2):
        raise ValueError(f"{name} must have shape [..., 2, 2], but came with shape {list(matrix.shape)}")
    off = ((matrix.sum(-1) - 1).abs() > 1e-6).any() | (matrix < 0).any()
    if bool(off):
        raise ValueError(
            f"{name} must be row-stochastic (entries of at least 0, rows summing to 1), but is {matrix.tolist()}; "
            "channel_matrix turns an estimate into such a matrix"
        )
    return matrix


def _standardized(residual: Tensor, variance: Tensor) -> Tensor:
    error = variance.clamp(min=0).sqrt()
    exact = torch.where(residual == 0, 0.0, torch.copysign(torch.full_like(residual, torch.inf), residual))
    return torch.where(error == 0, exact, residual / error)


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
