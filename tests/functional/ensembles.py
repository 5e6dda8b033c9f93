"""Random ensembles, and their votes counted one by one in plain Python."""

from collections import Counter
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

DTYPES = (
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
)


class Counted(NamedTuple):
    """One sample, counted by hand; the vote is None where nobody voted."""

    vote: int | None
    winner_votes: int
    agreeing_pairs: int
    voters: int


def count(labels: list[int], ignore_index: int | None = None) -> Counted:
    votes = Counter(label for label in labels if label != ignore_index)
    if not votes:
        return Counted(None, 0, 0, 0)
    most = max(votes.values())
    vote = min(label for label, number in votes.items() if number == most)
    return Counted(vote, most, sum(number * (number - 1) // 2 for number in votes.values()), votes.total())


def differing_pairs(labels: list[int]) -> int:
    return sum(first != second for first, second in combinations(labels, 2))


def columns(preds: Tensor) -> list[list[int]]:
    """The labels of each sample of ``[M, N]``."""
    return [list(labels) for labels in zip(*preds.to(torch.int64).tolist(), strict=True)]


def random_labels(
    members: int, samples: int, low: int, high: int, *, seed: int = 0, abstain: float = 0, ignore_index: int = 0
) -> Tensor:
    """int64 ``[M, N]`` in [low, high], a share of them abstentions."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(low, high + 1, (members, samples), generator=generator)
    absent = torch.rand(members, samples, generator=generator) < abstain
    return torch.where(absent, ignore_index, labels)


def layouts(preds: Tensor) -> dict[str, Tensor]:
    """The same ``[M, N]`` values with different strides."""
    return {
        "members first": preds.contiguous(),
        "samples first": preds.t().contiguous().t(),
        "gaps": torch.stack((preds, preds), dim=2)[..., 1],
        "gaps in members": torch.cat((preds, preds), dim=1)[:, preds.shape[1] :],
    }
