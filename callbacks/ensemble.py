"""EnsembleMonitor: the vote of an ensemble's members, and how much they differ."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.callbacks._epoch import ABSENT, Epoch
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import LightningModule
from polyweave_torch.callbacks._monitor import OutcomeMonitor
from polyweave_torch.callbacks._observe import Observed
from polyweave_torch.callbacks._outcomes import (
    IGNORED,
    TARGET_NAMES,
    BatchOutcomes,
    OwnSource,
    as_values,
    batch_target,
    named,
    one_call,
)
from polyweave_torch.callbacks._references import References
from polyweave_torch.functional._checks import is_integer
from polyweave_torch.functional.ensemble import (
    disagreement_rate_from_counts,
    ensemble_accuracy_from_counts,
    ensemble_gain_from_counts,
    mean_accuracy_from_counts,
    pairwise_disagreement_from_counts,
)
from polyweave_torch.functional.ensemble_counts import ensemble_counts
from polyweave_torch.functional.votes import majority_vote

VoteFunction = Callable[[Any, Any, Any], Tensor]


class EnsembleMonitor(OutcomeMonitor):
    """Logs accuracy and disagreement of an ensemble whose members' classes the step hands over.

    =========================  =========================================================================================
    Key                        What is logged
    =========================  =========================================================================================
    ``ensemble/accuracy``      accuracy of the majority vote, ties to the lowest class
    ``ensemble/mean_member``   mean of the members' own accuracies
    ``ensemble/gain``          the first minus the second
    ``ensemble/disagreement``  share of samples on which the members are not unanimous
    ``ensemble/pairwise``      share of pairs of members whose classes differ, averaged over samples
    =========================  =========================================================================================

    Samples are addressed by their ids as in :class:`ChannelMonitor`, so padding and ranks change nothing. The outcome
    of a sample is that of the vote. Where all members abstain there is no prediction; such a sample has no part in the
    accuracy, and stands as wrong in :meth:`outcomes` and :meth:`save_outcomes`.

    Args:
        num_members: M.
        num_classes: C; classes must lie in [0, C).
        votes: "auto" (``observe(votes=..., target=...)``, or the key "votes" of the step's outputs), another key of the
            outputs, or a function ``(pl_module, batch, outputs)``; each gives integer classes ``[N, M]``.
        target: key of the outputs or of the batch that holds the right classes; by default found by its usual names.
        ignore_index: as a vote a member's abstention, as a target a sample to leave out.
        ids: as in :class:`ChannelMonitor`.
        name: first part of every key.

    Raises:
        ValueError: where a size is below 1, or ``votes`` or ``target`` is of another type; in validation, where there
            are no votes or targets, or they have another shape.
        TypeError: in validation, where votes are not integers.

    Example:
        >>> monitor = EnsembleMonitor(num_members=5, num_classes=10)
        >>> monitor.history
        []
    """

    def __init__(
        self,
        num_members: int,
        num_classes: int,
        *,
        votes: str | VoteFunction = "auto",
        target: str | None = None,
        ignore_index: int | None = None,
        ids: str | IdFunction | None = None,
        name: str = "ensemble",
    ) -> None:
        super().__init__(
            OwnSource(self._read),
            ids=ids,
            ignore_index=ignore_index,
            name=name,
        )
        for argument, size in (("num_members", num_members), ("num_classes", num_classes)):
            if size < 1:
                raise ValueError(f"{argument} must be at least 1, but is {size}")
        if not (isinstance(votes, str) or callable(votes)):
            raise ValueError(f"votes must be a key of the outputs or a function, but is of type {type(votes).__name__}")
        if not (target is None or isinstance(target, str)):
            raise ValueError(
                f"target must be a key of the outputs or the batch, but is of type {type(target).__name__}"
            )
        self.num_members = num_members
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.votes = votes
        self.target = target

    def complete(self, epoch: Epoch) -> Epoch:
        """The vote as prediction; the range of the members' classes is checked on the way."""
        votes = epoch.votes.reshape(-1, self.num_members)  # without any sample not even the members are known
        vote = majority_vote(votes, self.num_classes, member_dim=1, ignore_index=self.ignore_index)
        abstained = torch.zeros_like(epoch.correct) if self.ignore_index is None else vote == self.ignore_index
        prediction = vote.masked_fill(abstained, ABSENT)
        return epoch._replace(correct=prediction == epoch.target, prediction=prediction, votes=votes)

    def measure(self, epoch: Epoch, references: References, path: str) -> dict[str, Tensor]:
        """The vote and the disagreements."""
        counts = ensemble_counts(
            epoch.votes, epoch.target, self.num_classes, member_dim=1, ignore_index=self.ignore_index
        )
        return {
            f"{path}/accuracy": ensemble_accuracy_from_counts(counts),
            f"{path}/mean_member": mean_accuracy_from_counts(counts),
            f"{path}/gain": ensemble_gain_from_counts(counts),
            f"{path}/disagreement": disagreement_rate_from_counts(counts),
            f"{path}/pairwise": pairwise_disagreement_from_counts(counts),
        }

    def _read(self, pl_module: LightningModule, batch: Any, outputs: Any, observed: list[Observed]) -> BatchOutcomes:
        call = one_call(observed) if observed else None
        if callable(self.votes):
            votes: Any = self.votes(pl_module, batch, outputs)
        elif call is not None and call.votes is not None and self.votes == "auto":
            votes = call.votes
        else:
            votes = named(outputs, ("votes",) if self.votes == "auto" else (self.votes,))
        target = self._find_target(call, batch, outputs)
        if votes is None or target is None:
            missing = "votes" if votes is None else "targets"
            keys = sorted(map(str, outputs)) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise ValueError(
                f"EnsembleMonitor found no {missing}: the step returned {keys}. Add observe(votes=..., target=...) "
                f"with integer classes [N, {self.num_members}], or pass votes=function(pl_module, batch, outputs)"
            )
        votes = as_values(votes, "votes")
        if votes.dim() != 2 or votes.shape[1] != self.num_members:
            raise ValueError(
                f"votes must have shape [N, {self.num_members}], one column a member, but came with {list(votes.shape)}"
            )
        if not is_integer(votes):
            raise TypeError(
                f"votes must be the members' classes as integers, but came as {votes.dtype}; "
                "pass the argmax of each member's scores"
            )
        target = as_values(target, "target")
        if target.shape != votes.shape[:1]:
            raise ValueError(
                f"target must have shape [{len(votes)}], one class for each row of votes, but came with "
                f"{list(target.shape)}; pass one class a sample, such as target.squeeze(1) of [N, 1]"
            )
        target = target.to(torch.int64)
        # Nothing is right or wrong yet: the vote is taken over all rows at the end, where its range is checked too.
        outcomes = torch.zeros_like(target, dtype=torch.int8)
        if self.ignore_index is not None:
            outcomes = outcomes.masked_fill(target == self.ignore_index, IGNORED)
        return BatchOutcomes(outcomes, target, None, self.num_classes, votes)

    def _find_target(self, call: Observed | None, batch: Any, outputs: Any) -> Tensor | None:
        if self.target is not None:
            found = named(outputs, (self.target,))
            return named(batch, (self.target,)) if found is None else found
        if call is not None and call.target is not None:
            return call.target
        found = named(outputs, TARGET_NAMES)
        return batch_target(batch) if found is None else found
