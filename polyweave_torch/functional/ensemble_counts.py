"""The integers from which every accuracy and disagreement of an ensemble follows. They add over batches and ranks."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from polyweave_torch.functional._ballots import Ballots, as_members, as_target, kept_samples
from polyweave_torch.functional._checks import Values
from polyweave_torch.functional.gram import gram_update
from polyweave_torch.kernels.flags import row_sums
from polyweave_torch.kernels.vote import (
    Encoding,
    can_hold,
    choose_encoding,
    count_votes,
    empty_tally,
    encode,
    keep_encoding,
    zero_pairs,
)


class EnsembleCounts(NamedTuple):
    """Sums over the samples of an ensemble of M members, all int64; v is the number of members who voted on a sample.

    Numerators over pairs are kept by v, so that a mean of ratios with denominators v(v-1)/2 stays exact.
    """

    samples: Tensor
    """[M+1], by v: samples. Those with v = 0 have no part in any mean."""
    agreeing: Tensor
    """[M+1], by v: pairs of voters with the same label."""
    divided: Tensor
    """[M+1], by v: pairs of voters of whom exactly one is right."""
    member_right: Tensor
    """[M]: samples on which the member is right."""
    member_votes: Tensor
    """[M]: samples on which the member voted."""
    vote_right: Tensor
    """[]: samples on which the majority vote is right."""
    unanimous: Tensor
    """[]: samples on which all M members voted for one label."""


def ensemble_counts(
    preds: Tensor | Sequence[Tensor],
    target: Tensor | None,
    num_classes: int,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """Count a batch, without reading a value: no wait for the device, one graph under ``torch.compile``.

    Labels outside ``[0, num_classes)`` aren't looked for, and give wrong counts.

    Args:
        preds: ``[M, N]`` integer labels, or M tensors of N labels each.
        target: ``[N]`` integer labels; without it, nobody is right.
        num_classes: C.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        int64 ``[5M + 5]``, which :func:`unpack_counts` takes apart.

    Example:
        >>> import torch
        >>> counts = ensemble_counts(torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([0, 1, 1]), num_classes=3)
        >>> unpack_counts(counts).member_right, unpack_counts(counts).unanimous
        (tensor([2, 3]), tensor(2))
    """
    labels = as_members(preds, member_dim)
    target = None if target is None else as_target(target)
    keep = kept_samples(labels[0], target, ignore_index, mask, like="each member")
    encoding = choose_encoding(0, num_classes - 1, len(labels), abstentions=ignore_index is not None)
    return count_ballots(Ballots(labels, encoding, ignore_index, keep), target)


def count_ballots(ballots: Ballots, target: Tensor | None, *, votes: bool = True) -> Tensor:
    """The counts of :func:`ensemble_counts`; ``votes=False`` leaves out what needs the vote."""
    total = torch.zeros(5 * ballots.members + 5, dtype=torch.int64, device=ballots.device)
    for part, codes, voted in ballots.read():
        truth = None if target is None else encode(target[part], ballots.encoding)
        total = total + _count_chunk(codes, voted, ballots.encoding, truth, votes)
        del codes, voted
    return total


def unpack_counts(counts: Tensor) -> EnsembleCounts:
    """Name the parts of the vector that :func:`ensemble_counts` returns."""
    members = len(counts) // 5 - 1
    parts = torch.split(counts, [members + 1] * 3 + [members] * 2 + [1, 1])
    return EnsembleCounts(*(part.squeeze(0) if index > 4 else part for index, part in enumerate(parts)))


def agreement_counts(
    preds: Tensor | Sequence[Tensor],
    target: Tensor | None = None,
    *,
    member_dim: int = 0,
    ignore_index: int | None = None,
    mask: Values | None = None,
) -> Tensor:
    """How often each two members agree, without reading a value, over labels of any range.

    Args:
        preds: ``[M, N]`` integer labels, or M tensors of N labels each.
        target: ``[N]`` integer labels, looked at for samples to leave out only.
        member_dim: the dimension of the members where ``preds`` is one tensor: 1 for ``[N, M]``.
        ignore_index: the label of a member that abstains; as a target it drops the sample.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        int64 ``[2, M, M]``: samples on which two members agree (above the diagonal, else 0), and on which both voted.

    Example:
        >>> import torch
        >>> agreement_counts(torch.tensor([[0, 1, 2], [0, 1, 1]]))[:, 0, 1]
        tensor([2, 3])
    """
    labels = as_members(preds, member_dim)
    target = None if target is None else as_target(target)
    keep = kept_samples(labels[0], target, ignore_index, mask, like="each member")
    encoding = keep_encoding(labels)
    if ignore_index is not None and not can_hold(encoding.dtype, len(labels)):
        encoding = encoding._replace(dtype=torch.int64)  # an abstention is written as the member's number
    return count_agreements(Ballots(labels, encoding, ignore_index, keep))


def count_agreements(ballots: Ballots) -> Tensor:
    """The counts of :func:`agreement_counts`; with abstentions, over the samples on which both voted."""
    members = ballots.members
    agreeing = torch.zeros((members, members), dtype=torch.int64, device=ballots.device)
    together = torch.zeros_like(agreeing)
    for _, codes, voted in ballots.read():
        buffer = torch.empty_like(codes)
        for member in range(members - 1):
            same = torch.eq(codes[member], codes[member + 1 :], out=buffer[member + 1 :])
            if voted is not None:
                # Both have to vote: labels of any range leave no code for abstentions that is no label too.
                same.mul_(voted[member]).mul_(voted[member + 1 :])
            agreeing[member, member + 1 :] += row_sums(same)
        together += codes.shape[1] if voted is None else gram_update(voted.t()).gram
        del codes, voted, buffer
    return torch.stack((agreeing, together))


def _count_chunk(codes: Tensor, voted: Tensor | None, encoding: Encoding, truth: Tensor | None, votes: bool) -> Tensor:
    members, samples = codes.shape
    voters = None if voted is None else _column_sums(voted)
    if voted is None:
        member_votes = torch.full((members,), samples, dtype=torch.int64, device=codes.device)
    else:
        member_votes = row_sums(voted)
    nothing = torch.zeros_like(member_votes[:1])
    divided = agreeing = nothing.expand(members + 1)
    member_right, vote_right, unanimous = nothing.expand(members), nothing, nothing
    if truth is not None:
        right = torch.eq(codes, truth, out=torch.empty_like(codes))
        if voted is not None:
            right.mul_(voted)
        member_right = row_sums(right)
        rights = _column_sums(right)
        divided = _by_voters(rights * ((members if voters is None else voters) - rights), voters, members)
    if votes:
        # This uses up the codes, so it comes last.
        tally = empty_tally(codes)
        winner = count_votes(codes, encoding, tally)
        agreeing = _by_voters(tally.agreeing_pairs, voters, members)
        agreed = tally.winner_votes == members
        unanimous = (agreed if voters is None else agreed & (voters == members)).sum().view(1)
        if truth is not None:
            hit = winner == truth
            vote_right = (hit if voters is None else hit & (voters > 0)).sum().view(1)
    by_voters = _by_voters(torch.ones_like(codes[0]), voters, members)
    return torch.cat((by_voters, agreeing, divided, member_right, member_votes, vote_right, unanimous))


def _by_voters(values: Tensor, voters: Tensor | None, members: int) -> Tensor:
    """Sums of ``values`` by the number of members who voted; all of them, where ``voters`` is None."""
    if voters is None:
        return F.pad(values.sum().view(1), (members, 0))
    sums = torch.zeros(members + 1, dtype=torch.int64, device=values.device)
    return sums.scatter_add(0, voters.to(torch.int64), values.to(torch.int64))


def _column_sums(flags: Tensor) -> Tensor:
    """Sums over the members of zeros and ones ``[M, n]``, in a type that holds products of two of them."""
    sums = zero_pairs(flags)
    for row in flags.unbind(0):
        sums.add_(row)
    return sums
