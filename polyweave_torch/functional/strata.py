"""Paired comparisons in groups: do strata agree on the difference, and McNemar's test for several pairs per cluster."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, as_counts, as_tensor
from polyweave_torch.functional._chi_square import chi_square_tail

ClusterMethod = Literal["obuchowski", "durkalski"]


class ChiSquareResult(NamedTuple):
    """A chi-square test; tensors of the leading shape ``[...]``, on the CPU."""

    statistic: Tensor
    """float64."""
    df: Tensor
    """int64, degrees of freedom."""
    p_value: Tensor
    """float64, upper tail."""


def stratum_heterogeneity(b: Counts, c: Counts) -> ChiSquareResult:
    r"""Test whether all strata share one balance of losses and gains.

    .. math:: \chi^2 = \sum_s \frac{(b_s - c_s)^2}{b_s + c_s} - \frac{(\sum_s (b_s - c_s))^2}{\sum_s (b_s + c_s)}
        = \sum_s (b_s + c_s)\, (r_s - r)^2, \qquad r_s = \frac{b_s - c_s}{b_s + c_s}

    that is, the strata's McNemar chi-squares less the pooled one, on S - 1 degrees of freedom. A small p says that the
    pooled difference hides strata that differ; which ones, their own tests say.

    The variance is that of strata whose losses and gains balance, so the test is conservative where all strata share a
    real change: with 20 strata that lose 1 for 3 gained it rejects by chance in about 0.2 % of cases, not 5 %. A large
    p beside a large common change says little about agreement.

    Args:
        b: integers ``[..., S]``, pairs right before and wrong after (n10) in each stratum.
        c: integers ``[..., S]``, pairs wrong before and right after (n01).

    Returns:
        :class:`ChiSquareResult`. A stratum without discordant pairs has no balance and isn't counted in S; where fewer
        than two strata are left, nothing can differ: df 0, statistic 0, p 1.

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative or of different shapes.

    Source: the partition of chi-square into a pooled and a heterogeneity part; J. L. Fleiss, Statistical Methods for
    Rates and Proportions, 2nd ed. (1981), on matched samples.

    Example:
        >>> from polyweave_torch.functional import stratum_heterogeneity
        >>> result = stratum_heterogeneity([2, 10, 15], [8, 10, 5])
        >>> print(f"{result.statistic:.3f} on {result.df}, p {result.p_value:.4f}")
        8.280 on 2, p 0.0159
    """
    losses, gains = _same_shape(b=b, c=c)
    discordant = losses + gains
    balance = torch.where(discordant > 0.0, (losses - gains) / discordant, 0.0)
    pooled = (losses - gains).sum(-1, keepdim=True) / discordant.sum(-1, keepdim=True).clamp(min=1.0)
    df = ((discordant > 0.0).sum(-1) - 1).clamp(min=0)
    statistic = (discordant * (balance - pooled) ** 2).sum(-1)
    statistic = torch.where(df > 0, statistic, 0.0)
    return ChiSquareResult(statistic, df, chi_square_tail(statistic, df))


def clustered_mcnemar(b: Counts, c: Counts, sizes: Counts, *, method: ClusterMethod = "obuchowski") -> ChiSquareResult:
    r"""McNemar's test where the pairs come in clusters, such as several samples of one item.

    With :math:`d_k = b_k - c_k` in cluster k of K, of :math:`n_k` pairs,

    .. math:: \chi^2_{Obuchowski} = \frac{K-1}{K} \frac{(\sum_k d_k)^2}{\sum_k d_k^2}, \qquad
        \chi^2_{Durkalski} = \frac{(\sum_k d_k/n_k)^2}{\sum_k (d_k/n_k)^2}

    on one degree of freedom. The variance comes from the spread between clusters, so pairs of one cluster may depend on
    each other in any way. Durkalski's form gives each cluster the same weight, Obuchowski's each pair.

    Args:
        b: integers ``[..., K]``, pairs right before and wrong after (n10) in each cluster.
        c: integers ``[..., K]``, pairs wrong before and right after (n01).
        sizes: integers ``[..., K]``, all pairs of each cluster, concordant ones too. A cluster of size 0 isn't counted.
        method: ``"obuchowski"`` or ``"durkalski"``.

    Returns:
        :class:`ChiSquareResult`. Where no cluster leans either way, statistic 0 and p 1, as McNemar without discordant
        pairs; with fewer than two clusters there is no spread between them: NaN.

    Raises:
        TypeError: where the counts are not integers.
        ValueError: where they are negative, of different shapes, or a size is smaller than its b + c, or ``method`` is
            unknown.

    Source: N. A. Obuchowski, Statistics in Medicine 17 (1998) 1495; V. L. Durkalski et al., ibid. 22 (2003) 2417.

    Example:
        >>> from polyweave_torch.functional import clustered_mcnemar
        >>> result = clustered_mcnemar([3, 2, 0, 1], [0, 0, 1, 0], [4, 4, 4, 4])
        >>> print(f"{result.statistic:.3f}, p {result.p_value:.3f}")
        1.250, p 0.264
    """
    losses, gains, pairs = _same_shape(b=b, c=c, sizes=sizes)
    if bool((losses + gains > pairs).any()):
        raise ValueError("sizes must count all pairs of each cluster, but one is smaller than its b + c")
    clusters = (pairs > 0.0).sum(-1)
    lean = losses - gains
    if method == "obuchowski":
        scale = 1.0 - 1.0 / clusters.to(torch.float64)
    elif method == "durkalski":
        lean, scale = lean / pairs.clamp(min=1.0), torch.ones_like(clusters)
    else:
        raise ValueError(f"method must be obuchowski or durkalski, but is {method!r}")
    spread = (lean * lean).sum(-1)
    statistic = torch.where(spread > 0.0, scale * lean.sum(-1) ** 2 / spread, 0.0).masked_fill(clusters < 2, torch.nan)
    df = torch.ones_like(clusters)
    return ChiSquareResult(statistic, df, chi_square_tail(statistic, df))


def _same_shape(**named: Counts) -> tuple[Tensor, ...]:
    """Counts as float64 on the CPU."""
    columns = [as_tensor(counts, empty=torch.int64).cpu() for counts in named.values()]
    shapes = [list(column.shape) for column in columns]
    if any(shape != shapes[0] for shape in shapes) or not shapes[0]:
        raise ValueError(f"{', '.join(named)} must have one shape, its last dimension the groups, but have {shapes}")
    counts = (
        as_counts(column.unsqueeze(-1), name=name, shape=(1,)) for name, column in zip(named, columns, strict=True)
    )
    return tuple(column.squeeze(-1).to(torch.float64) for column in counts)
