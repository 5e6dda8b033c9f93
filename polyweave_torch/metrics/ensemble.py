"""Votes and disagreement of an ensemble, as metrics that share one vector of counts."""

from typing import Any

import torch
from torch import Tensor

from polyweave_torch.functional._ballots import gather_ballots
from polyweave_torch.functional._checks import check_at_least_one, check_mask, check_same_length, check_tensor
from polyweave_torch.functional.ensemble import (
    disagreement_matrix_from_counts,
    disagreement_rate_from_counts,
    ensemble_accuracy_from_counts,
    ensemble_gain_from_counts,
    mean_accuracy_from_counts,
    pairwise_disagreement_from_counts,
)
from polyweave_torch.functional.ensemble_counts import agreement_counts, count_ballots, ensemble_counts
from polyweave_torch.functional.soft_votes import check_soft_votes, soft_accuracy_from_counts, soft_ensemble_counts
from polyweave_torch.metrics.base import TableMetric


class _EnsembleScalar(TableMetric):
    """Shared by the scalars: the counts of :func:`ensemble_counts`, read as one number."""

    higher_is_better: bool | None = None
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(
        self,
        num_members: int,
        num_classes: int,
        ignore_index: int | None = None,
        *,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_members, name="num_members")
        check_at_least_one(num_classes, name="num_classes")
        self.num_members = num_members
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self._state = f"ensemble_counts_{num_members}_{num_classes}{_ignored(ignore_index)}"
        self.declare(self._state, torch.zeros(5 * num_members + 5, dtype=torch.int64))

    def update(self, preds: Tensor, target: Tensor, mask: Tensor | None = None) -> None:
        """Count the votes of a batch."""
        _check_votes(preds, target, mask, self.num_members)
        options: dict[str, Any] = {"member_dim": 1, "ignore_index": self.ignore_index, "mask": mask}
        if self.validate_args:
            ballots, truth = gather_ballots(preds, self.num_classes, target, **options)
            batch = count_ballots(ballots, truth)
        else:
            batch = ensemble_counts(preds, target, self.num_classes, **options)
        setattr(self, self._state, getattr(self, self._state) + batch)

    def _counts(self) -> Tensor:
        counts: Tensor = getattr(self, self._state)
        return counts


class EnsembleAccuracy(_EnsembleScalar):
    """Accuracy of the majority vote of M members, ties to the lowest class.

    As input to ``update``: ``preds`` ``[N, M]`` integer classes (or bools, which are 0 and 1), ``target`` ``[N]``, and
    optionally ``mask`` ``[N]`` bool, False leaves a sample out. As output of ``compute``: a 0-d tensor, NaN without
    samples. All scalars of one ensemble share their counts, so a ``MetricCollection`` of them updates once.

    Args:
        num_members: M.
        num_classes: C; labels must lie in [0, C).
        ignore_index: as a prediction a member's abstention, as a target a sample to leave out.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where shapes differ from what the metric was built for, or a label is out of range.

    Example:
        >>> import torch
        >>> metric = EnsembleAccuracy(num_members=3, num_classes=4)
        >>> metric.update(torch.tensor([[0, 0, 1], [2, 3, 2], [1, 1, 1]]), torch.tensor([0, 3, 1]))
        >>> metric.compute()
        tensor(0.6667, dtype=torch.float64)
    """

    higher_is_better = True

    def compute(self) -> Tensor:  # noqa: D102
        return ensemble_accuracy_from_counts(self._counts())


class MeanMemberAccuracy(_EnsembleScalar):
    """Mean of the members' own accuracies: what the vote is compared with.

    Input and arguments as in :class:`EnsembleAccuracy`.

    Args:
        num_members: M.
        num_classes: C.
        ignore_index: as in :class:`EnsembleAccuracy`.

    Example:
        >>> import torch
        >>> metric = MeanMemberAccuracy(num_members=2, num_classes=4)
        >>> metric.update(torch.tensor([[0, 0], [2, 3]]), torch.tensor([0, 3]))
        >>> metric.compute()
        tensor(0.7500, dtype=torch.float64)
    """

    higher_is_better = True

    def compute(self) -> Tensor:  # noqa: D102
        return mean_accuracy_from_counts(self._counts())


class EnsembleGain(_EnsembleScalar):
    """Accuracy of the majority vote minus the members' mean accuracy.

    Input and arguments as in :class:`EnsembleAccuracy`.

    Args:
        num_members: M.
        num_classes: C.
        ignore_index: as in :class:`EnsembleAccuracy`.

    Example:
        >>> import torch
        >>> metric = EnsembleGain(num_members=3, num_classes=2)
        >>> metric.update(torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]), torch.tensor([1, 1, 1, 1]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = -1.0

    def compute(self) -> Tensor:  # noqa: D102
        return ensemble_gain_from_counts(self._counts())


class DisagreementRate(_EnsembleScalar):
    """Share of samples on which the members are not unanimous.

    Input and arguments as in :class:`EnsembleAccuracy`; one member gives 0.

    Args:
        num_members: M.
        num_classes: C.
        ignore_index: as in :class:`EnsembleAccuracy`.

    Example:
        >>> import torch
        >>> metric = DisagreementRate(num_members=3, num_classes=4)
        >>> metric.update(torch.tensor([[0, 0, 1], [2, 2, 2]]), torch.tensor([0, 2]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def compute(self) -> Tensor:  # noqa: D102
        return disagreement_rate_from_counts(self._counts())


class PairwiseDisagreement(_EnsembleScalar):
    """Share of pairs of members whose labels differ, averaged over samples.

    Input and arguments as in :class:`EnsembleAccuracy`; one member gives 0.

    Args:
        num_members: M.
        num_classes: C.
        ignore_index: as in :class:`EnsembleAccuracy`.

    Example:
        >>> import torch
        >>> metric = PairwiseDisagreement(num_members=3, num_classes=4)
        >>> metric.update(torch.tensor([[0, 0, 1], [2, 2, 2]]), torch.tensor([0, 2]))
        >>> metric.compute()
        tensor(0.3333, dtype=torch.float64)
    """

    def compute(self) -> Tensor:  # noqa: D102
        return pairwise_disagreement_from_counts(self._counts())


class DisagreementMatrix(TableMetric):
    """How often each two members differ: ``[M, M]``, symmetric, 0 on the diagonal.

    As input to ``update``: ``preds`` ``[N, M]`` integer labels of any range, and optionally ``target`` ``[N]`` and
    ``mask`` ``[N]`` bool, False leaves a sample out. The target is taken as by all metrics of an ensemble, so that they
    go into one ``MetricCollection``; it matters only with ``ignore_index``. As output of ``compute``: the share of
    samples, of those on which both voted, to which two members give different labels; NaN without any.

    Args:
        num_members: M.
        ignore_index: as a prediction a member's abstention, as a target a sample to leave out.
        validate_args: taken as by all metrics; there is no value to check here.
        kwargs: see :class:`torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = DisagreementMatrix(num_members=2)
        >>> metric.update(torch.tensor([[0, 0], [1, 2], [3, 3], [4, 4]]))
        >>> metric.compute()
        tensor([[0.0000, 0.2500],
                [0.2500, 0.0000]], dtype=torch.float64)
    """

    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(
        self, num_members: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_members, name="num_members")
        self.num_members = num_members
        self.ignore_index = ignore_index
        self._state = f"member_agreements_{num_members}{_ignored(ignore_index)}"
        self.declare(self._state, torch.zeros(2, num_members, num_members, dtype=torch.int64))

    def update(self, preds: Tensor, target: Tensor | None = None, mask: Tensor | None = None) -> None:
        """Count the agreements of a batch."""
        _check_votes(preds, target, mask, self.num_members)
        batch = agreement_counts(preds, target, member_dim=1, ignore_index=self.ignore_index, mask=mask)
        setattr(self, self._state, getattr(self, self._state) + batch)

    def compute(self) -> Tensor:
        """The matrix."""
        return disagreement_matrix_from_counts(getattr(self, self._state))


class SoftEnsembleAccuracy(TableMetric):
    """Accuracy of the soft vote: the class of the highest mean probability, of equals the lowest.

    As input to ``update``: ``probs`` ``[N, M, C]`` probabilities (or logits), ``target`` ``[N]``, and optionally
    ``mask`` ``[N]`` bool, False leaves a sample out. As output of ``compute``: a 0-d tensor, NaN without samples.

    Args:
        num_members: M.
        num_classes: C.
        from_logits: ``probs`` are logits.
        ignore_index: the target of a sample to leave out.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where the shape of ``probs`` is another one, lengths differ, or a value is not a
            probability or a class.

    Example:
        >>> import torch
        >>> metric = SoftEnsembleAccuracy(num_members=2, num_classes=2)
        >>> metric.update(torch.tensor([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.3, 0.7]]]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(
        self,
        num_members: int,
        num_classes: int,
        from_logits: bool = False,
        *,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_members, name="num_members")
        check_at_least_one(num_classes, name="num_classes")
        self.num_members = num_members
        self.num_classes = num_classes
        self.from_logits = from_logits
        self.ignore_index = ignore_index
        kind = "logits" if from_logits else "probs"
        self._state = f"soft_votes_{num_members}_{num_classes}_{kind}{_ignored(ignore_index)}"
        self.declare(self._state, torch.zeros(2, dtype=torch.int64))

    def update(self, probs: Tensor, target: Tensor, mask: Tensor | None = None) -> None:
        """Count the soft votes of a batch."""
        check_tensor(probs, name="probs")
        if probs.dim() != 3 or probs.shape[1:] != (self.num_members, self.num_classes):
            raise ValueError(
                f"probs must have shape [N, {self.num_members}, {self.num_classes}] as the metric was built for, "
                f"but came with shape {list(probs.shape)}"
            )
        _check_target_and_mask(probs, target, mask, like="probs")
        options: dict[str, Any] = {"from_logits": self.from_logits, "ignore_index": self.ignore_index, "mask": mask}
        batch = soft_ensemble_counts(probs, target, **options)
        if self.validate_args:
            check_soft_votes(probs, target, **options)
        setattr(self, self._state, getattr(self, self._state) + batch)

    def compute(self) -> Tensor:
        """The accuracy."""
        return soft_accuracy_from_counts(getattr(self, self._state))


def _ignored(ignore_index: int | None) -> str:
    """The part of a state's name that says what is ignored."""
    return "" if ignore_index is None else f"_ignore_{ignore_index}".replace("-", "minus_")


def _check_votes(preds: Tensor, target: Tensor | None, mask: Tensor | None, num_members: int) -> None:
    check_tensor(preds, name="preds")
    if preds.dim() != 2 or preds.shape[1] != num_members:
        raise ValueError(
            f"preds must have shape [N, {num_members}], one column a member, but came with shape {list(preds.shape)}; "
            "build one metric per ensemble size"
        )
    _check_target_and_mask(preds, target, mask, like="preds")


def _check_target_and_mask(data: Tensor, target: Tensor | None, mask: Tensor | None, *, like: str) -> None:
    if target is not None:
        check_tensor(target, name="target")
        check_same_length(len(data), target, name=like, other_name="target")
    if mask is not None:
        check_mask(mask, data.shape[:1], like=like)
