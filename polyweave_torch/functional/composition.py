"""Steps that follow one another: is the channel of both the composition of the two?"""

from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, Values, as_counts, rate_dtype
from polyweave_torch.functional._chi_square import chi_square_tail
from polyweave_torch.functional.channel import ChannelEstimate, weighted


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
