"""The soft vote of an ensemble over class probabilities."""

import torch
from torch import Tensor

from polyweave_torch.functional._ballots import as_target, kept_samples
from polyweave_torch.functional._checks import Values, check_range, check_tensor, rate_dtype


def soft_vote(
    probs: Tensor, *, from_logits: bool = False, ignore_index: int | None = None, mask: Values | None = None
) -> Tensor:
    r"""The mean of the members' class probabilities; its argmax is the ensemble's prediction.

    .. math:: \bar p_{nc} = \frac{1}{M} \sum_m p_{nmc}

    Args:
        probs: ``[N, M, C]`` probabilities, samples first.
        from_logits: ``probs`` are logits: take their softmax over the classes first.
        ignore_index: has no part here, where there are no labels; taken so that all votes have one signature.
        mask: ``[N]`` bool, False leaves a sample out: its probabilities are NaN.

    Returns:
        ``[N, C]``, float32 or wider.

    Raises:
        ValueError: where a probability is negative, as logits are, or a shape is wrong.
        TypeError: where ``probs`` aren't floating point.

    Example:
        >>> import torch
        >>> soft_vote(torch.tensor([[[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]]))
        tensor([[0.5000, 0.5000]])
    """
    _check_probs(probs)
    keep = kept_samples(probs, None, None, mask, like="probs")
    _check_values(probs if keep is None else probs[keep], from_logits)
    vote = _mean_probabilities(probs, from_logits)
    return vote if keep is None else vote.masked_fill(~keep[:, None], torch.nan)


def soft_ensemble_accuracy(
    probs: Tensor,
    target: Tensor,
    *,
    from_logits: bool = False,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Accuracy of the soft vote: the share of samples whose class of highest mean probability is the target.

    Of equals, the lowest class.

    Args:
        probs: ``[N, M, C]`` probabilities, samples first.
        target: ``[N]`` integer labels.
        from_logits: ``probs`` are logits: take their softmax over the classes first.
        ignore_index: the target of a sample to leave out.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        0-d, float64 (float32 on MPS), on the device of ``probs``; NaN without a sample.

    Raises:
        ValueError: where a probability is negative, as logits are, a target is out of range, or a shape is wrong.
        TypeError: where ``probs`` aren't floating point, or targets aren't integers.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]])
        >>> soft_ensemble_accuracy(probs, torch.tensor([0, 0]))
        tensor(0.5000, dtype=torch.float64)
    """
    counts = soft_ensemble_counts(probs, target, from_logits=from_logits, ignore_index=ignore_index, mask=mask)
    check_soft_votes(probs, target, from_logits=from_logits, ignore_index=ignore_index, mask=mask)
    return soft_accuracy_from_counts(counts)


def soft_ensemble_counts(
    probs: Tensor,
    target: Tensor,
    *,
    from_logits: bool = False,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Count a batch, without reading a value: int64 ``[2]``, samples on which the soft vote is right, and samples.

    Example:
        >>> import torch
        >>> soft_ensemble_counts(torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]]), torch.tensor([0, 0]))
        tensor([1, 2])
    """
    _check_probs(probs)
    target = as_target(target)
    keep = kept_samples(probs, target, ignore_index, mask, like="probs")
    right = _mean_probabilities(probs, from_logits).argmax(-1) == target
    seen = torch.ones_like(right) if keep is None else keep
    return torch.stack(((right & seen).sum(), seen.sum()))


def check_soft_votes(
    probs: Tensor, target: Tensor, *, from_logits: bool, ignore_index: int | None, mask: Values | None
) -> None:
    """Refuse values that :func:`soft_ensemble_counts` would count wrongly. Reads them, so it waits for the device."""
    target = as_target(target)
    keep = kept_samples(probs, target, ignore_index, mask, like="probs")
    seen_probs, seen_target = (probs, target) if keep is None else (probs[keep], target[keep])
    _check_values(seen_probs, from_logits)
    check_range(seen_target, probs.shape[-1], name="target", what="classes of probs")


def soft_accuracy_from_counts(counts: Tensor) -> Tensor:
    """The accuracy that :func:`soft_ensemble_counts` hold."""
    return counts[0].to(rate_dtype(counts.device)) / counts[1]


def _mean_probabilities(probs: Tensor, from_logits: bool) -> Tensor:
    probs = probs.to(torch.promote_types(probs.dtype, torch.float32))
    return (probs.softmax(-1) if from_logits else probs).mean(1)


def _check_probs(probs: Tensor) -> None:
    check_tensor(probs, name="probs")
    if not probs.is_floating_point():
        raise TypeError(f"probs must be floating point, but came as {probs.dtype}; majority_vote takes class labels")
    if probs.ndim != 3 or 0 in probs.shape[1:]:
        raise ValueError(
            f"probs must have shape [N, M, C] (samples, members, classes), but came with shape {list(probs.shape)}"
        )


def _check_values(probs: Tensor, from_logits: bool) -> None:
    if bool(probs.isnan().any()):
        raise ValueError("probs must not be NaN: a member that diverged has no vote; leave its samples out by mask=")
    # The softmax of an infinite logit is NaN. One of -inf is a class that is ruled out, but not all of them.
    unusable = probs.isinf() if not from_logits else probs.isposinf() | probs.isneginf().all(-1, keepdim=True)
    if bool(unusable.any()):
        raise ValueError(
            "probs must be finite: a member that overflowed has no vote; leave its samples out by mask="
            + (" (a logit of -inf rules a class out, but not all of them)" if from_logits else "")
        )
    if not from_logits and bool((probs < 0).any()):
        raise ValueError(
            f"probs must not be negative, but go down to {float(probs.min())}; pass from_logits=True for logits"
        )
