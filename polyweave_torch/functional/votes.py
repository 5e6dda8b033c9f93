"""The hard vote of an ensemble over class labels."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._ballots import Ballots, gather_ballots
from polyweave_torch.functional._checks import Values
from polyweave_torch.kernels.tally import Tally
from polyweave_torch.kernels.vote import can_hold, count_votes, decode, empty_tally, prefers_triton


class VoteSummary(NamedTuple):
    """What an ensemble says about each of N samples."""

    vote: Tensor
    """[N] int64: the winning class, ties to the lowest; ``ignore_index`` where all members abstain."""
    winner_votes: Tensor
    """[N] int64: members that voted for it."""
    unanimous: Tensor
    """[N] bool: all M members voted for it; an abstention breaks unanimity."""
    agreeing_pairs: Tensor
    """[N] int64: pairs of members that gave the same label."""


def majority_vote(
    preds: Tensor | Sequence[Tensor],
    num_classes: int | None = None,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    r"""The class that most members of an ensemble predict; of equals, the lowest class.

    .. math:: \hat y_n = \min \arg\max_c \#\{m : \mathrm{preds}_{mn} = c\}

    Args:
        preds: ``[M, N]`` integer labels, or M tensors of N labels each, which are flattened.
        num_classes: C, labels must lie in [0, C). Without it their range costs one more pass over them.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains.
        mask: ``[N]`` bool, False leaves a sample out; its labels aren't read.

    Returns:
        int64 ``[N]``. Where all members abstain, and where the mask leaves a sample out, it is ``ignore_index`` (-1 if
        there is none).

    Raises:
        ValueError: where a label is out of range, there are no members, or their lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> majority_vote(torch.tensor([[0, 2, 1], [0, 1, 3], [5, 1, 2]]), num_classes=6)
        tensor([0, 1, 1])
    """
    ballots, _ = gather_ballots(preds, num_classes, member_dim=member_dim, ignore_index=ignore_index, mask=mask)
    vote = torch.empty(ballots.samples, dtype=torch.int64, device=ballots.device)
    _vote(ballots, vote, None)
    return vote if ballots.keep is None else vote.masked_fill_(~ballots.keep, _no_vote(ignore_index))


def vote_summary(
    preds: Tensor | Sequence[Tensor],
    num_classes: int | None = None,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> VoteSummary:
    """The vote of an ensemble with the winner's votes, unanimity and the number of agreeing pairs, in one pass.

    Args:
        preds: ``[M, N]`` integer labels, or M tensors of N labels each, which are flattened.
        num_classes: C, labels must lie in [0, C). Without it their range costs one more pass over them.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains: it has no part in the vote, and agrees with nobody.
        mask: ``[N]`` bool, False leaves a sample out: no votes, no agreement, and the vote as of total abstention.

    Returns:
        A :class:`VoteSummary` on the device of ``preds``.

    Raises:
        ValueError: where a label is out of range, there are no members, or their lengths differ.
        TypeError: where labels aren't integers.

    Example:
        >>> import torch
        >>> summary = vote_summary(torch.tensor([[0, 2], [0, 1], [0, 1]]))
        >>> summary.winner_votes, summary.unanimous, summary.agreeing_pairs
        (tensor([3, 2]), tensor([ True, False]), tensor([3, 1]))
    """
    ballots, _ = gather_ballots(preds, num_classes, member_dim=member_dim, ignore_index=ignore_index, mask=mask)
    vote = torch.empty(ballots.samples, dtype=torch.int64, device=ballots.device)
    # One block for two: glibc then keeps what a call frees for the next, and no page has to be fetched anew.
    winner_votes, agreeing_pairs = torch.empty((2, ballots.samples), dtype=torch.int64, device=ballots.device)
    summary = VoteSummary(vote, winner_votes, torch.empty_like(vote, dtype=torch.bool), agreeing_pairs)
    _vote(ballots, vote, summary)
    if ballots.keep is not None:
        vote.masked_fill_(~ballots.keep, _no_vote(ignore_index))
    if ballots.keep is not None or ignore_index is not None:
        silent = vote == _no_vote(ignore_index)
        for field in summary[1:]:
            field.masked_fill_(silent, 0)
    return summary


def _vote(ballots: Ballots, vote: Tensor, summary: VoteSummary | None) -> None:
    """Fill ``vote``, and the rest of ``summary`` if given; of samples without a vote they are still to be corrected."""
    encoding, ignore_index = ballots.encoding, ballots.ignore_index
    if isinstance(ballots.labels, Tensor) and prefers_triton(ballots.labels):
        from polyweave_torch.kernels.triton_vote import triton_vote

        ballots.check()
        absent = ignore_index if ignore_index is not None and can_hold(ballots.labels.dtype, ignore_index) else None
        first_free = encoding.offset + encoding.abstain
        tally = None if summary is None else Tally(summary.winner_votes, summary.agreeing_pairs)
        triton_vote(ballots.labels, vote, tally, abstain=first_free, ignore_index=absent)
        if summary is not None:
            torch.eq(summary.winner_votes, ballots.members, out=summary.unanimous)
        return
    for part, codes, voted in ballots.read():
        tally = None if summary is None else empty_tally(codes)
        decode(count_votes(codes, encoding, tally), encoding, ignore_index, vote[part])
        if summary is not None and tally is not None:
            summary.winner_votes[part].copy_(tally.winner_votes)
            summary.agreeing_pairs[part].copy_(tally.agreeing_pairs)
            torch.eq(tally.winner_votes, ballots.members, out=summary.unanimous[part])
        del codes, voted


def _no_vote(ignore_index: int | None) -> int:
    return -1 if ignore_index is None else ignore_index
