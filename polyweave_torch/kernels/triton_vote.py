# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# ruff: noqa: RUF005 (Triton's Python has no starred tuples)
"""The vote on a GPU: one read of the labels, the sorting network in registers, one write of the winners.

The same algorithm as :mod:`.vote`, one sample a lane. It needs no narrow types, no working memory and no histogram.
"""

import contextlib
import importlib.util

import torch
from torch import Tensor

from polyweave_torch.kernels.tally import Tally

HAS_TRITON = importlib.util.find_spec("triton") is not None
if HAS_TRITON:
    import triton
    import triton.language as tl

    # Tuples, which hold the registers, came with Triton 3.3.
    HAS_TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 3)


def triton_vote(
    labels: Tensor, vote: Tensor, tally: Tally | None, *, abstain: int, ignore_index: int | None = None
) -> None:
    """Vote over ``[M, N]`` labels of any integer type and strides.

    Args:
        labels: ``[M, N]``.
        vote: ``[N]``, is filled with the winners, and with ``ignore_index`` where all members abstain.
        tally: is filled as well, if given.
        abstain: a number above every label, from which on M more numbers fit into int64.
        ignore_index: the label of an abstention, a number that the type of ``labels`` can hold.
    """
    members, samples = labels.shape
    if samples == 0:
        return
    block = 256 if members <= 16 else 128
    winner_votes, agreeing_pairs = (vote, vote) if tally is None else tally
    with torch.cuda.device(labels.device) if labels.is_cuda else contextlib.nullcontext():
        _vote_kernel[(triton.cdiv(samples, block),)](
            labels,
            vote,
            winner_votes,
            agreeing_pairs,
            samples,
            labels.stride(0),
            labels.stride(1),
            abstain,
            0 if ignore_index is None else ignore_index,
            MEMBERS=members,
            STAGES=(members - 1).bit_length(),
            ABSTENTIONS=ignore_index is not None,
            DTYPE=tl.int32 if abstain + members <= torch.iinfo(torch.int32).max else tl.int64,
            TALLY=tally is not None,
            BLOCK=block,
        )


if HAS_TRITON:

    @triton.jit
    def _vote_kernel(
        labels,
        vote,
        winner_votes,
        agreeing_pairs,
        samples,
        member_stride,
        sample_stride,
        abstain,
        ignore_index,
        MEMBERS: tl.constexpr,
        STAGES: tl.constexpr,
        ABSTENTIONS: tl.constexpr,
        DTYPE: tl.constexpr,
        TALLY: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        sample = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = sample < samples
        # A tuple of registers, one a member: every index is known at compile time.
        row = ()
        place = sample * sample_stride
        for member in tl.static_range(MEMBERS):
            label = tl.load(labels + place, mask=inside, other=0)
            # A sum in int64: member * member_stride could leave int32.
            place += member_stride
            code = label.to(DTYPE)
            if ABSTENTIONS:
                code = tl.where(label == ignore_index, tl.full((BLOCK,), member, DTYPE) + abstain, code)
            row = row + (code,)  # type: ignore[assignment]
        # The comparators of vote.network, unrolled.
        for stage in tl.static_range(STAGES):
            for halving in tl.static_range(stage + 1):
                for low in tl.static_range(MEMBERS - ((1 << stage) >> halving)):
                    row = _compare_exchange(row, low, 1 << stage, (1 << stage) >> halving)
        winner = row[MEMBERS - 1]  # type: ignore[var-annotated]
        longest = tl.zeros((BLOCK,), tl.int32)
        run = tl.zeros((BLOCK,), tl.int32)
        pairs = tl.zeros((BLOCK,), tl.int32)
        for step in tl.static_range(1, MEMBERS):
            run = tl.where(row[MEMBERS - 1 - step] == row[MEMBERS - step], run + 1, 0)
            winner = tl.where(run >= longest, row[MEMBERS - 1 - step], winner)
            longest = tl.maximum(longest, run)
            pairs += run
        winner = winner.to(tl.int64)
        if ABSTENTIONS:
            winner = tl.where(winner >= abstain, ignore_index, winner)
        tl.store(vote + sample, winner, mask=inside)
        if TALLY:
            tl.store(winner_votes + sample, longest + 1, mask=inside)
            tl.store(agreeing_pairs + sample, pairs, mask=inside)

    @triton.jit
    def _compare_exchange(row, LOW: tl.constexpr, MERGED: tl.constexpr, DISTANCE: tl.constexpr):
        HIGH: tl.constexpr = LOW + DISTANCE
        if (LOW - DISTANCE % MERGED) // DISTANCE % 2 == 0 and LOW // (2 * MERGED) == HIGH // (2 * MERGED):
            low = tl.minimum(row[LOW], row[HIGH])
            high = tl.maximum(row[LOW], row[HIGH])
            row = row[:LOW] + (low,) + row[LOW + 1 : HIGH] + (high,) + row[HIGH + 1 :]
        return row
