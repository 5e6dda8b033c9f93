"""Accuracies of an ensemble and its members, and how often the members disagree.

Three disagreements are in use, and they differ: members not unanimous (:func:`disagreement_rate`), two members with
different labels (:func:`pairwise_disagreement`), and exactly one of two members right (:func:`oracle_disagreement`).

Each function is a count of integers, and a formula on them (``*_from_counts``, which the metrics share). Without a
sample all are NaN.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from polyweave_torch.functional._ballots import gather_ballots
from polyweave_torch.functional._checks import Values, rate_dtype
from polyweave_torch.functional.ensemble_counts import count_agreements, count_ballots, unpack_counts

Predictions = Tensor | Sequence[Tensor]


def ensemble_accuracy(
    preds: Predictions,
    target: Tensor,
    num_classes: int | None = None,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Accuracy of the majority vote: the share of samples, of those with a vote, on which the vote is right.

    Args:
        preds: ``[M, N]`` integer labels, or M tensors of N labels each, which are flattened.
        target: ``[N]`` integer labels.
        num_classes: C, labels must lie in [0, C). Without it their range costs one more pass over them.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out; its labels aren't read.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where a label is out of range, there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> target = torch.tensor([0, 1, 2, 3])
        >>> preds = torch.tensor([[9, 1, 2, 3], [0, 9, 2, 3], [0, 1, 9, 3]])
        >>> ensemble_accuracy(preds, target, num_classes=10)
        tensor(1., dtype=torch.float64)
    """
    counts = _count(preds, target, num_classes, member_dim, ignore_index, mask)
    return ensemble_accuracy_from_counts(counts)


def mean_accuracy(
    preds: Predictions,
    target: Tensor,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Mean of the members' accuracies, each over the samples on which the member voted.

    A member that never voted has no accuracy, and no part in the mean.

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        target: ``[N]`` integer labels.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> target = torch.tensor([0, 1, 2, 3])
        >>> mean_accuracy(torch.tensor([[9, 1, 2, 3], [0, 9, 2, 3], [0, 1, 9, 3]]), target)
        tensor(0.7500, dtype=torch.float64)
    """
    counts = _count(preds, target, None, member_dim, ignore_index, mask, classes=False, votes=False)
    return mean_accuracy_from_counts(counts)


def member_accuracies(
    preds: Predictions,
    target: Tensor,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Accuracy of each member, over the samples on which it voted.

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        target: ``[N]`` integer labels.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        ``[M]``, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> member_accuracies(torch.tensor([[0, 1, 2, 3], [0, 1, 1, 1]]), torch.tensor([0, 1, 2, 3]))
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    counts = _count(preds, target, None, member_dim, ignore_index, mask, classes=False, votes=False)
    return member_accuracies_from_counts(counts)


def ensemble_gain(
    preds: Predictions,
    target: Tensor,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """What voting gains: accuracy of the majority vote less the mean of the members' accuracies.

    Args:
        preds: ``[M, N]`` class labels, or M tensors of N labels each, which are flattened.
        target: ``[N]`` integer labels.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``; negative where the vote is worse.

    Raises:
        ValueError: where a label is negative, there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> target = torch.tensor([0, 1, 2, 3])
        >>> ensemble_gain(torch.tensor([[9, 1, 2, 3], [0, 9, 2, 3], [0, 1, 9, 3]]), target)
        tensor(0.2500, dtype=torch.float64)
    """
    return ensemble_gain_from_counts(_count(preds, target, None, member_dim, ignore_index, mask))


def disagreement_rate(
    preds: Predictions, *, member_dim: int = 0, ignore_index: int | None = None, mask: Values | None = None
) -> Tensor:
    r"""Share of samples on which the members are not unanimous.

    .. math:: \frac{1}{N} \#\{n : \max_c v_{nc} < M\}

    with :math:`v_{nc}` the votes for class c; an abstention breaks unanimity. One member always agrees: 0.

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; samples without a vote are left out.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> disagreement_rate([torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 2, 9])])
        tensor(0.2500, dtype=torch.float64)
    """
    return disagreement_rate_from_counts(_count(preds, None, None, member_dim, ignore_index, mask, classes=False))


def pairwise_disagreement(
    preds: Predictions, *, member_dim: int = 0, ignore_index: int | None = None, mask: Values | None = None
) -> Tensor:
    r"""Share of pairs of members that give different labels, over the pairs of a sample and then over samples.

    .. math:: 1 - \frac{1}{N} \sum_n \frac{\sum_c v_{nc}(v_{nc} - 1)}{m_n(m_n - 1)}

    with :math:`v_{nc}` the votes for class c and :math:`m_n` the members who voted; samples with fewer than two are
    left out. One member always agrees with itself: 0.

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> pairwise_disagreement(torch.tensor([[0, 1], [0, 2], [0, 2]]))
        tensor(0.3333, dtype=torch.float64)
    """
    return pairwise_disagreement_from_counts(_count(preds, None, None, member_dim, ignore_index, mask, classes=False))


def oracle_disagreement(
    preds: Predictions,
    target: Tensor,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    r"""Share of pairs of members of whom exactly one is right, over the pairs of a sample and then over samples.

    .. math:: \frac{1}{N} \sum_n \frac{r_n (m_n - r_n)}{m_n(m_n - 1) / 2}

    with :math:`r_n` the members who are right of the :math:`m_n` who voted; samples with fewer than two are left out.
    One member never differs from itself: 0. (Skalak, 1996; "disagreement measure" in Kuncheva and Whitaker, 2003.)

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        target: ``[N]`` integer labels.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``preds``.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> oracle_disagreement(torch.tensor([[0, 1, 2], [0, 2, 5]]), torch.tensor([0, 1, 3]))
        tensor(0.3333, dtype=torch.float64)
    """
    counts = _count(preds, target, None, member_dim, ignore_index, mask, classes=False, votes=False)
    return oracle_disagreement_from_counts(counts)


def disagreement_matrix(
    preds: Predictions, *, member_dim: int = 0, ignore_index: int | None = None, mask: Values | None = None
) -> Tensor:
    """Share of samples, of those on which both voted, to which two members give different labels, for all pairs.

    Args:
        preds: ``[M, N]`` integer labels of any range, or M tensors of N labels each, which are flattened.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        Symmetric ``[M, M]``, 0 on its diagonal, float64 (float32 on MPS), on the device of ``preds``; NaN for two
        members with no sample in common.

    Raises:
        ValueError: where there are no members, or lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> disagreement_matrix(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 9]]))
        tensor([[0.0000, 0.2500],
                [0.2500, 0.0000]], dtype=torch.float64)
    """
    ballots, _ = gather_ballots(preds, member_dim=member_dim, ignore_index=ignore_index, mask=mask, classes=False)
    return disagreement_matrix_from_counts(count_agreements(ballots))


def ensemble_accuracy_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`ensemble_accuracy`."""
    parts = unpack_counts(counts)
    return _ratio(parts.vote_right, parts.samples[1:].sum())


def member_accuracies_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`member_accuracies`."""
    parts = unpack_counts(counts)
    return _ratio(parts.member_right, parts.member_votes)


def mean_accuracy_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`mean_accuracy`.

    On the most votes of a member as common denominator, so that without abstentions there is one division of two
    integers, and members that are all alike have the accuracy of their vote to the last bit.
    """
    parts = unpack_counts(counts)
    votes = parts.member_votes.to(rate_dtype(counts.device))
    # A member that never voted adds 0 times infinity, which is NaN.
    right = (parts.member_right * (votes.max() / votes)).nansum()
    return right / (votes.max() * (votes > 0).sum())


def ensemble_gain_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`ensemble_gain`."""
    return ensemble_accuracy_from_counts(counts) - mean_accuracy_from_counts(counts)


def disagreement_rate_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`disagreement_rate`."""
    parts = unpack_counts(counts)
    samples = parts.samples[1:].sum()
    return _ratio(samples - parts.unanimous, samples)


def pairwise_disagreement_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`pairwise_disagreement`."""
    parts = unpack_counts(counts)
    return _mean_over_pairs(_pairs(parts.samples) * parts.samples - parts.agreeing, parts.samples)


def oracle_disagreement_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`oracle_disagreement`."""
    parts = unpack_counts(counts)
    return _mean_over_pairs(parts.divided, parts.samples)


def disagreement_matrix_from_counts(counts: Tensor) -> Tensor:
    """Formula of :func:`disagreement_matrix`, from :func:`~.ensemble_counts.agreement_counts`."""
    agreeing, together = counts.unbind(0)
    differing = (together - agreeing).triu(1)
    return _ratio(differing + differing.mT, together)


def _count(
    preds: Predictions,
    target: Tensor | None,
    num_classes: int | None,
    member_dim: int,
    ignore_index: int | None,
    mask: Values | None,
    *,
    classes: bool = True,
    votes: bool = True,
) -> Tensor:
    ballots, truth = gather_ballots(
        preds, num_classes, target, member_dim=member_dim, ignore_index=ignore_index, mask=mask, classes=classes
    )
    return count_ballots(ballots, truth, votes=votes)


def _mean_over_pairs(numerators: Tensor, samples: Tensor) -> Tensor:
    """Mean over samples of numerator / pairs of voters, from sums by the number of voters.

    On the common denominator of all M members, so that without abstentions there is one division of two integers.
    """
    if len(samples) == 2:
        return _ratio(torch.zeros_like(samples[1]), samples[1])
    pairs = _pairs(samples)[2:].to(rate_dtype(samples.device))
    return (numerators[2:] * (pairs[-1] / pairs)).sum() / (pairs[-1] * samples[2:].sum())


def _pairs(samples: Tensor) -> Tensor:
    voters = torch.arange(len(samples), device=samples.device)
    return voters * (voters - 1) // 2


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator.to(rate_dtype(numerator.device)) / denominator
