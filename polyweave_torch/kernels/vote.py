"""The vote of an ensemble without an ``[N, C]`` histogram: a sorting network over members, vectorised over samples.

The labels of one sample are put in order by a comparator network whose every step is an element-wise minimum and
maximum over all samples of a chunk. Equal labels then stand side by side, and one walk from the right gives the length
of each run, and with it the winner (the leftmost position of a longest run is the lowest winning class), the winner's
votes, and the number of agreeing pairs. Everything works in place in the narrowest integer type that holds the labels,
because element-wise operations on bytes are up to ten times faster than on int64. Nothing indexes with a label, so a
wrong one gives a wrong vote at worst, never a fault on the device.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.kernels.flags import LANE_SAMPLES
from polyweave_torch.kernels.tally import Tally

Members = Tensor | Sequence[Tensor]
"""An ``[M, N]`` tensor of any strides, or M tensors ``[N]``."""

# Up to here the M(M-1)/2 comparisons of all pairs cost less than the network.
_MOST_MEMBERS_BY_PAIRS = 8
# Above, Triton takes ten seconds and more to compile the network.
_MOST_MEMBERS_IN_REGISTERS = 48
_UNSUPPORTED_BY_ATEN = (torch.uint16, torch.uint32, torch.uint64)


class Encoding(NamedTuple):
    """How labels are written in a narrow integer type: ``code = label - offset``.

    An abstaining member m gets the code ``abstain + m``, above every label and unlike any other member's: it agrees
    with nobody, and wins only where nobody voted.
    """

    dtype: torch.dtype
    """The integer type of the codes."""
    offset: int
    """The label that is written as 0."""
    abstain: int
    """The code of an abstention of member 0."""
    radix: int
    """A power of two above every code, if run lengths fit beside a code in one key of this type; else 0."""


def prefers_triton(labels: Members) -> bool:
    """Whether the Triton kernel is there for these labels: a tensor on a GPU, of not too many members."""
    if not isinstance(labels, Tensor) or not labels.is_cuda or torch.compiler.is_compiling():
        return False
    from polyweave_torch.kernels.triton_vote import HAS_TRITON

    return HAS_TRITON and len(labels) <= _MOST_MEMBERS_IN_REGISTERS and labels.dtype not in _UNSUPPORTED_BY_ATEN


def choose_encoding(low: int, high: int, members: int, *, abstentions: bool = False) -> Encoding:
    """The narrowest encoding of labels from ``low`` to ``high``, with room for abstentions where there may be some."""
    span = high - low + 1 + (members if abstentions else 0)
    radix = 1 << (span - 1).bit_length()
    lowest_key = -radix * (members - 1)
    by_pairs = members <= _MOST_MEMBERS_BY_PAIRS
    if by_pairs and span <= 1 << 7 and lowest_key >= -1 << 7:
        return Encoding(torch.int8, low, high - low + 1, radix)
    if span <= 1 << 8 and members < 1 << 8:
        return Encoding(torch.uint8, low, high - low + 1, 0)
    if by_pairs and span <= 1 << 15 and lowest_key >= -1 << 15:
        return Encoding(torch.int16, low, high - low + 1, radix)
    for dtype in (torch.int16, torch.int32):
        # Signed types: the lowest label is written as the type's lowest number.
        lowest = torch.iinfo(dtype).min
        if span <= -2 * lowest and members < -lowest:
            return Encoding(dtype, low - lowest, high - low + 1 + lowest, 0)
    if abstentions and high + members > torch.iinfo(torch.int64).max:
        raise ValueError(f"labels must leave room for {members} abstentions in int64, but go up to {high}")
    return Encoding(torch.int64, 0, high + 1, 0)


def keep_encoding(labels: Members) -> Encoding:
    """Labels as they are, in their own type, where only equality matters."""
    dtypes = {row.dtype for row in ([labels] if isinstance(labels, Tensor) else labels)}
    dtype = dtypes.pop() if len(dtypes) == 1 and not dtypes & set(_UNSUPPORTED_BY_ATEN) else torch.int64
    return Encoding(dtype, 0, 0, 0)


def chunks(labels: Members, dtype: torch.dtype) -> list[tuple[int, int]]:
    """Bounds of the chunks of samples to load and count at a time, whole multiples of LANE_SAMPLES but for the last.

    On a CPU: short enough for codes of this type to stay in a cache, long enough to hide the cost of a call.
    """
    members, samples = len(labels), len(labels[0])
    if labels[0].device.type == "cpu":
        lanes = min((1 << 22 if members <= 32 else 1 << 23) // (members * dtype.itemsize * LANE_SAMPLES), 128)
    else:
        lanes = (1 << 28) // (members * dtype.itemsize * LANE_SAMPLES)
    length = max(lanes, 1) * LANE_SAMPLES
    return [(start, min(start + length, samples)) for start in range(0, samples, length)]


def slice_members(preds: Members, start: int, stop: int) -> list[Tensor]:
    """The labels of a chunk as they lie in memory: one row a member, or one block ``[n, M]`` if that's their order."""
    if not isinstance(preds, Tensor):
        pieces = [row[start:stop] for row in preds]
    elif preds.stride(0) < preds.stride(1) and preds.shape[0] > 1:
        pieces = [preds[:, start:stop].t()]
    else:
        pieces = list(preds[:, start:stop].unbind(0))
    return [computable(piece) for piece in pieces]


def computable(labels: Tensor) -> Tensor:
    """Labels in a type that ATen computes with: int64 in place of wide unsigned ones."""
    return labels.to(torch.int64) if labels.dtype in _UNSUPPORTED_BY_ATEN else labels


def load(
    pieces: Sequence[Tensor],
    encoding: Encoding,
    ignore_index: int | None = None,
    look: Callable[[Tensor], None] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Codes ``[M, n]`` of a chunk, and where members abstained (``None`` where nobody can).

    ``look`` is shown each piece just before it is narrowed, while it's about to be in the cache anyway.
    """
    abstained = None
    if pieces[0].ndim == 2:
        (block,) = pieces
        if look is not None:
            look(block)
        # Convert along memory first, so that the strided pass touches few cache lines.
        narrow = block.to(encoding.dtype)
        codes = torch.empty(block.shape[::-1], dtype=encoding.dtype, device=block.device)
        if len(codes) > 64:
            codes.copy_(narrow.t())
        else:
            for row, column in zip(codes.unbind(0), narrow.unbind(1), strict=True):
                row.copy_(column)
        del narrow
        if ignore_index is not None:
            abstained = abstains(block, ignore_index).t()
    else:
        codes = torch.empty((len(pieces), len(pieces[0])), dtype=encoding.dtype, device=pieces[0].device)
        for row, piece in zip(codes.unbind(0), pieces, strict=True):
            if look is not None:
                look(piece)
            row.copy_(piece)
        if ignore_index is not None:
            abstained = torch.stack([abstains(piece, ignore_index) for piece in pieces])
    if encoding.offset:
        codes.sub_(_wrap(encoding.offset, encoding.dtype))
    if abstained is not None:
        for member, (row, absent) in enumerate(zip(codes.unbind(0), abstained.unbind(0), strict=True)):
            row.masked_fill_(absent, encoding.abstain + member)
    return codes, abstained


def encode(labels: Tensor, encoding: Encoding) -> Tensor:
    """Codes of labels of one row, such as the target, that may be no member's."""
    return labels.to(encoding.dtype) - _wrap(encoding.offset, encoding.dtype)


def abstains(labels: Tensor, ignore_index: int) -> Tensor:
    """Where a label is ``ignore_index``; nowhere if its type can't hold that number (-100 is no uint8 156)."""
    if not can_hold(labels.dtype, ignore_index):
        return torch.zeros_like(labels, dtype=torch.bool)
    return labels == ignore_index


def can_hold(dtype: torch.dtype, value: int) -> bool:
    """Whether an integer type has this number."""
    return torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max


def decode(code: Tensor, encoding: Encoding, ignore_index: int | None, out: Tensor) -> None:
    """Write winners as int64 labels into ``out``: ``ignore_index`` where all members abstained, and nowhere else."""
    out.copy_(code)
    if encoding.offset:
        out.add_(encoding.offset)
    if ignore_index is not None:
        out.masked_fill_(code >= encoding.abstain, ignore_index)


def zero_pairs(codes: Tensor) -> Tensor:
    """Zeros ``[n]`` in the narrowest type that holds a number of pairs of the M members."""
    members, samples = codes.shape
    dtypes = [codes.dtype, torch.int16, torch.int32, torch.int64]
    dtype = next(dtype for dtype in dtypes if members * (members - 1) // 2 <= torch.iinfo(dtype).max)
    return torch.zeros(samples, dtype=dtype, device=codes.device)


def empty_tally(codes: Tensor) -> Tally:
    """A tally of codes ``[M, n]`` for :func:`count_votes` to fill in."""
    return Tally(torch.zeros_like(codes[0]), zero_pairs(codes))


def count_votes(codes: Tensor, encoding: Encoding, tally: Tally | None = None) -> Tensor:
    """Codes ``[n]`` of the winners among codes ``[M, n]``, which are used up as working memory."""
    if prefers_triton(codes):
        from polyweave_torch.kernels.triton_vote import triton_vote

        winner = torch.empty_like(codes[0])
        triton_vote(codes, winner, tally, abstain=torch.iinfo(codes.dtype).max - len(codes))
        return winner
    if encoding.radix:
        return _count_by_pairs(codes, encoding.radix, tally)
    return _count_by_runs(codes, tally)


def _count_by_pairs(codes: Tensor, radix: int, tally: Tally | None) -> Tensor:
    """Few members: ``agreeing`` is the number of members further on that gave the same label as this one.

    It's the class's votes less one at its first member, so the smallest ``label - radix * agreeing`` names the lowest
    class with most votes.
    """
    *rows, last = codes.unbind(0)
    key, agreeing, same = last, torch.empty_like(last), torch.empty_like(last)
    for i, row in enumerate(rows):
        torch.eq(row, last, out=agreeing)
        for other in rows[i + 1 :]:
            agreeing.add_(torch.eq(row, other, out=same))
        if tally is not None:
            tally.agreeing_pairs.add_(agreeing)
        torch.sub(row, agreeing, alpha=radix, out=row)
    for row in rows:
        torch.minimum(key, row, out=key)
    if tally is not None:
        torch.sub(1, key >> (radix.bit_length() - 1), out=tally.winner_votes)
    return key.bitwise_and_(radix - 1)


def _count_by_runs(codes: Tensor, tally: Tally | None) -> Tensor:
    rows = _in_order(codes)
    winner = rows[-1].clone()
    longest = torch.zeros_like(winner) if tally is None else tally.winner_votes
    run, wins = torch.zeros_like(winner), torch.empty_like(winner)
    for row, right in zip(rows[-2::-1], rows[:0:-1], strict=True):
        # run = same * (run + 1), then winner += wins * (row - winner); the right row has served, and is working memory.
        same = torch.eq(row, right, out=right)
        torch.addcmul(same, same, run, out=run)
        torch.ge(run, longest, out=wins)
        torch.maximum(longest, run, out=longest)
        winner.addcmul_(torch.sub(row, winner, out=same), wins)
        if tally is not None:
            tally.agreeing_pairs.add_(run)
    if tally is not None:
        tally.winner_votes.add_(1)
    return winner


def _in_order(codes: Tensor) -> list[Tensor]:
    """The codes of each sample in ascending order, as M rows."""
    members, samples = codes.shape
    # The network has about M·log²M/4 comparators, each a call; on few samples one call that sorts is faster.
    if samples < 24 * (members - 1).bit_length() ** 2:
        return list(codes.t().contiguous().sort(dim=1).values.t().contiguous().unbind(0))
    rows = list(codes.unbind(0))
    spare = torch.empty_like(rows[0])
    for low, high in network(members):
        torch.minimum(rows[low], rows[high], out=spare)
        torch.maximum(rows[low], rows[high], out=rows[high])
        rows[low], spare = spare, rows[low]
    return rows


def network(members: int) -> tuple[tuple[int, int], ...]:
    """Comparators of Batcher's odd-even merge sort, in order, cut to any number of inputs.

    (K. E. Batcher, "Sorting networks and their applications", AFIPS 1968.)
    """
    # Not functools.cache: Dynamo warns of it.
    if members not in _networks:
        _networks[members] = tuple(_comparators(members))
    return _networks[members]


_networks: dict[int, tuple[tuple[int, int], ...]] = {}


def _comparators(members: int) -> Iterator[tuple[int, int]]:
    for stage in range((members - 1).bit_length()):
        merged = 1 << stage
        for halving in range(stage + 1):
            distance = merged >> halving
            for low in range(members - distance):
                high = low + distance
                if (low - distance % merged) // distance % 2 == 0 and low // (2 * merged) == high // (2 * merged):
                    yield low, high


def _wrap(value: int, dtype: torch.dtype) -> int:
    """``value`` modulo the type's size, within its range: codes are differences, which may wrap."""
    info = torch.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min
