"""Diversity of an ensemble, from the Gram matrix of its members' correctness."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Counts, rate_dtype
from polyweave_torch.functional.gram import OutcomeGram, paired_tables


class Diversity(NamedTuple):
    """Measures of diversity of K members over n samples, each [...] (0-d for one ensemble). NaN where undefined."""

    q_statistic: Tensor
    """Yule's Q, mean over the pairs where it is defined; 0 for independent members, lower for more diverse ones."""
    correlation: Tensor
    """Phi, the correlation of two members' correctness, mean over the pairs where it is defined."""
    double_fault: Tensor
    """Share of samples on which both of two members are wrong, mean over pairs."""
    oracle_disagreement: Tensor
    """Share of samples on which exactly one of two members is right, mean over pairs."""
    kohavi_wolpert: Tensor
    """Mean over samples of the variance of a random member's correctness, r(K - r) / K² with r members right."""
    kappa: Tensor
    """Interrater agreement on correctness beyond chance; 0 for independent members, lower for more diverse ones."""


def diversity(gram: OutcomeGram | Counts, n: Counts | int | None = None) -> Diversity:
    r"""Measures of how differently the members of an ensemble err.

    With the pair's table :math:`n_{ab}` (a: the first is right, b: the second), :math:`r` members right on a sample and
    :math:`\bar p` the mean accuracy:

    .. math::
        Q = \frac{n_{11} n_{00} - n_{01} n_{10}}{n_{11} n_{00} + n_{01} n_{10}}, \quad
        \phi = \frac{n_{11} n_{00} - n_{01} n_{10}}{\sqrt{n_{1\cdot} n_{0\cdot} n_{\cdot 1} n_{\cdot 0}}}, \quad
        KW = \frac{1}{n K^2} \sum r (K - r), \quad
        \kappa = 1 - \frac{K}{K - 1} \frac{KW}{\bar p (1 - \bar p)}

    (L. I. Kuncheva and C. J. Whitaker, "Measures of diversity in classifier ensembles", Machine Learning 51, 2003.)

    Args:
        gram: an :class:`OutcomeGram`, of which the complete rows count, or XᵀX ``[..., K, K]`` of correctness
            ``[n, K]``.
        n: the number of samples ``[...]``, wanted with the bare matrix only.

    Returns:
        A :class:`Diversity`, float64 (float32 on MPS), on the device of ``gram``.

    Raises:
        ValueError: where the matrix cannot be the XᵀX of n rows of outcomes.
        TypeError: where ``n`` is missing, or given where the :class:`OutcomeGram` has it.

    Example:
        >>> import torch
        >>> from polyweave_torch.functional import outcome_gram
        >>> preds, target = torch.tensor([[3, 3, 0, 0], [3, 1, 2, 0]]), torch.tensor([3, 3, 2, 2])  # [members, samples]
        >>> measures = diversity(outcome_gram((preds == target).T))
        >>> measures.q_statistic, measures.double_fault, measures.kohavi_wolpert
        (tensor(0., dtype=torch.float64), tensor(0.2500, dtype=torch.float64), tensor(0.1250, dtype=torch.float64))
    """
    if isinstance(gram, OutcomeGram) and n is None:
        tables = paired_tables(gram.complete, n=gram.complete_n)
    else:
        tables = paired_tables(gram, n=_one_n(gram, n))
    members = tables.shape[-3]
    first, second = torch.triu_indices(members, members, 1, device=tables.device)
    pairs = tables[..., first, second, :, :].to(rate_dtype(tables.device))
    both_wrong, second_only, first_only, both_right = pairs.flatten(-2).unbind(-1)
    total = pairs.sum((-2, -1))
    odds, counter_odds = both_right * both_wrong, second_only * first_only
    margins = pairs.sum(-1).prod(-1) * pairs.sum(-2).prod(-1)

    # A member with itself: right on G_ii samples; the sum of all G_ij is the sum of r².
    right_on = tables[..., 1, 1].to(pairs.dtype)
    rights = right_on.diagonal(dim1=-2, dim2=-1).sum(-1)
    samples = tables[..., 0, 0, :, :].sum((-2, -1)).to(pairs.dtype)
    kohavi_wolpert = (members * rights - right_on.sum((-2, -1))) / (members**2 * samples)
    accuracy = rights / (members * samples)
    return Diversity(
        q_statistic=((odds - counter_odds) / (odds + counter_odds)).nanmean(-1),
        correlation=((odds - counter_odds) / margins.sqrt()).nanmean(-1),
        double_fault=(both_wrong / total).mean(-1),
        oracle_disagreement=((first_only + second_only) / total).mean(-1),
        kohavi_wolpert=kohavi_wolpert,
        kappa=1 - kohavi_wolpert * members / ((members - 1) * accuracy * (1 - accuracy)),
    )


def _one_n(gram: OutcomeGram | Counts, n: Counts | int | None) -> Any:
    """``n`` as one number a matrix, also where it came as the matrix MᵀM of an OutcomeGram without gaps."""
    if isinstance(gram, Tensor) and isinstance(n, Tensor) and n.ndim > 1 and n.shape == gram.shape:
        if bool((n != n[..., :1, :1]).any()):
            raise ValueError(
                "n differs between pairs of members, so outcomes are missing; pass the OutcomeGram itself, whose "
                "complete rows serve here"
            )
        return n[..., 0, 0]
    return n
