"""What a vote tells beside the winner."""

from typing import NamedTuple

from torch import Tensor


class Tally(NamedTuple):
    """What :func:`~polyweave_torch.kernels.vote.count_votes` can fill in beside the winner, [n] each."""

    winner_votes: Tensor
    """Members that voted for the winner (1 where all abstain)."""
    agreeing_pairs: Tensor
    """Pairs of members with the same label."""
