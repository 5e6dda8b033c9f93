"""The Triton kernel against the plain form, in Triton's interpreter: run by test_triton_vote in a process of its own,

since the interpreter is chosen by an environment variable when Triton is imported.
"""

import random

import torch
from torch import Tensor

from polyweave_torch.functional.votes import vote_summary
from polyweave_torch.kernels.tally import Tally
from polyweave_torch.kernels.triton_vote import triton_vote
from polyweave_torch.kernels.vote import can_hold
from tests.functional.ensembles import layouts, random_labels

DTYPES = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


def compare(labels: Tensor, classes: int, ignore_index: int | None) -> None:
    wanted = vote_summary(labels, classes, ignore_index=ignore_index)
    vote = torch.full_like(wanted.vote, -9)
    tally = Tally(torch.full_like(vote, -9), torch.full_like(vote, -9, dtype=torch.int16))
    present = ignore_index if ignore_index is not None and can_hold(labels.dtype, ignore_index) else None
    case = (tuple(labels.shape), labels.stride(), labels.dtype, classes, ignore_index)
    triton_vote(labels, vote, tally, abstain=classes, ignore_index=present)
    assert torch.equal(vote, wanted.vote), case
    voted = wanted.winner_votes > 0
    assert torch.equal(tally.winner_votes[voted], wanted.winner_votes[voted]), case
    assert torch.equal(tally.agreeing_pairs.to(torch.int64), wanted.agreeing_pairs), case
    alone = torch.full_like(vote, -9)
    triton_vote(labels, alone, None, abstain=classes, ignore_index=present)
    assert torch.equal(alone, vote), case


def main() -> None:
    rng = random.Random(0)
    for members in (1, 2, 3, 5, 8, 9, 16, 17, 33):
        for samples in (0, 1, 255, 257):
            dtype = rng.choice(DTYPES)
            classes = rng.choice(
                [n for n in (1, 3, 127, 255, 40_000, 2**31 - 5, 2**40) if n - 1 <= torch.iinfo(dtype).max]
            )
            ignore_index = rng.choice([None, -1, -100, 0, 1, classes - 1])
            if ignore_index is not None and not can_hold(dtype, ignore_index):
                abstain = 0.0
            else:
                abstain = 0.0 if ignore_index is None else rng.choice([0.3, 0.95])
            low = max(classes - 4, 0) if members % 2 else 0
            labels = random_labels(
                members, samples, low, min(low + 3, classes - 1), abstain=abstain, ignore_index=ignore_index or 0
            ).to(dtype)
            for layout in layouts(labels).values() if samples == 257 and members < 9 else [labels]:
                compare(layout, classes, ignore_index)
    print("all equal")


if __name__ == "__main__":
    main()
