"""The labels that the members of an ensemble give to the same samples: checked once, then read chunk by chunk."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from polyweave_torch.functional._checks import (
    Values,
    as_tensor,
    check_at_least_one,
    check_mask,
    check_same_length,
    is_integer,
)
from polyweave_torch.kernels.vote import (
    Encoding,
    Members,
    abstains,
    choose_encoding,
    chunks,
    computable,
    load,
    slice_members,
)


class Ballots(NamedTuple):
    """What the members said, and how to read it."""

    labels: Members
    """The labels as they came, M rows of N samples."""
    encoding: Encoding
    """How they are written for counting."""
    ignore_index: int | None = None
    """The label of an abstention, if there is one."""
    keep: Tensor | None = None
    """[N] bool, the samples that count; None: all."""
    bound: int | None = None
    """Labels have yet to be checked to lie in [0, bound); None: they need no check."""

    @property
    def members(self) -> int:
        """M."""
        return len(self.labels)

    @property
    def samples(self) -> int:
        """N."""
        return len(self.labels[0])

    @property
    def device(self) -> torch.device:
        """Where the labels are."""
        return self.labels[0].device

    def check(self) -> None:
        """Check all labels at once, for a reader other than :meth:`read`."""
        if self.bound is not None:
            _check_bound("preds", _range_of_all(self.labels, None, self.ignore_index, self.keep), self.bound)

    def read(self) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Codes [M, n] of each chunk of samples, and which votes count there, 0 or 1 as uint8 [M, n] (None: all).

        Who deletes them before asking for the next chunk never has two in memory.
        """
        for start, stop in chunks(self.labels, self.encoding.dtype):
            pieces = slice_members(self.labels, start, stop)
            keep = None if self.keep is None else self.keep[start:stop]
            if self.bound is None:
                codes, abstained = load(pieces, self.encoding, self.ignore_index)
            else:
                found = _Range(self.ignore_index, keep)
                codes, abstained = load(pieces, self.encoding, self.ignore_index, found.look)
                _check_bound("preds", found.bounds(), self.bound)
            voted = None if abstained is None else ~abstained
            if keep is not None:
                voted = keep.expand(codes.shape) if voted is None else voted & keep
            if voted is not None:
                voted = voted.contiguous().view(torch.uint8)
            yield slice(start, stop), codes, voted
            del codes, voted, abstained


def gather_ballots(
    preds: Tensor | Sequence[Tensor],
    num_classes: int | None = None,
    target: Tensor | None = None,
    *,
    member_dim: int,
    ignore_index: int | None,
    mask: Values | None,
    classes: bool = True,
) -> tuple[Ballots, Tensor | None]:
    """Check the arguments of a hard vote; return the ballots, and the target as ``[N]``.

    Labels are classes, which start at 0, unless ``classes=False``. Without ``num_classes`` they are read once for their
    range; with it, :meth:`Ballots.read` checks them as it goes.
    """
    labels = as_members(preds, member_dim)
    if target is not None:
        target = as_target(target)
    keep = kept_samples(labels[0], target, ignore_index, mask, like="each member")
    if num_classes is not None:
        check_at_least_one(num_classes, name="num_classes")
        if target is not None:
            found = _Range(None, keep)
            found.look(target)
            _check_bound("target", found.bounds(), num_classes)
        low, high = 0, num_classes - 1
    else:
        low, high = _range_of_all(labels, target, ignore_index, keep)
        if classes and low < 0:
            raise ValueError(
                f"preds and target must be class indices, from 0 on, but hold {low}; "
                f"where that marks an abstention or a missing target, pass ignore_index={low}"
            )
    encoding = choose_encoding(low, high, len(labels), abstentions=ignore_index is not None)
    return Ballots(labels, encoding, ignore_index, keep, num_classes), target


def as_members(preds: Tensor | Sequence[Tensor], member_dim: int) -> Members:
    """The members' labels as M rows ``[N]``, without a copy: a tensor stays one, a sequence stays a sequence."""
    if isinstance(preds, Tensor):
        if preds.ndim < 2:
            raise ValueError(
                f"preds must have a dimension of members and one of samples, [M, N], but came with shape "
                f"{list(preds.shape)}; pass a list [preds] for an ensemble of one"
            )
        labels: Members = as_labels(preds.movedim(member_dim, 0), name="preds", start_dim=1)
    else:
        labels = [as_labels(member, name=f"preds[{index}]") for index, member in enumerate(preds)]
    if len(labels) == 0:
        raise ValueError("preds has no members; pass the predictions of at least one")
    for index, member in enumerate(labels if isinstance(labels, list) else ()):
        if len(member) != len(labels[0]):
            raise ValueError(
                f"all members must predict the same samples, but preds[0] has {len(labels[0])} and "
                f"preds[{index}] has {len(member)}"
            )
    return labels


def as_labels(labels: Tensor, *, name: str, start_dim: int = 0) -> Tensor:
    """Flattened integer labels; bool, the prediction of a binary classifier, is 0 and 1."""
    if not isinstance(labels, Tensor):
        raise TypeError(f"{name} must be a tensor of class labels, but came as {type(labels).__name__}")
    if labels.dtype == torch.bool:
        labels = labels.view(torch.uint8)
    if not is_integer(labels):
        raise TypeError(
            f"{name} must be integer class labels, but came as {labels.dtype}; take the argmax of probabilities or "
            "logits first, or use soft_vote"
        )
    return labels.flatten(start_dim)


def as_target(target: Tensor) -> Tensor:
    """The target as labels ``[N]``."""
    return computable(as_labels(target, name="target"))


def kept_samples(
    data: Tensor, target: Tensor | None, ignore_index: int | None, mask: Values | None, *, like: str
) -> Tensor | None:
    """``[N]`` bool: samples that neither the mask nor an ignored target leaves out; ``None``: all. Reads no value."""
    if target is not None:
        check_same_length(len(data), target, name=like, other_name="target")
    keep = None
    if mask is not None:
        keep = as_tensor(mask, empty=torch.bool, device=data.device).flatten()
        check_mask(keep, data.shape[:1], like=like)
    if target is not None and ignore_index is not None:
        known = ~abstains(target, ignore_index)
        keep = known if keep is None else keep & known
    return keep


def _range_of_all(
    labels: Members, target: Tensor | None, ignore_index: int | None, keep: Tensor | None
) -> tuple[int, int]:
    low, high = 0, 0
    for start, stop in chunks(labels, torch.int64):
        found = _Range(ignore_index, None if keep is None else keep[start:stop])
        for piece in slice_members(labels, start, stop):
            found.look(piece)
        if target is not None:
            found.look(target[start:stop])
        bounds = found.bounds()
        low, high = min(low, bounds[0]), max(high, bounds[1])
    return low, high


class _Range:
    """Lowest and highest label, 0 taken in, of those that count."""

    def __init__(self, ignore_index: int | None, keep: Tensor | None) -> None:
        self._ignore_index, self._keep = ignore_index, keep
        self._extremes: list[Tensor] = []

    def look(self, piece: Tensor) -> None:
        if piece.numel() == 0:
            return
        if self._keep is None and self._ignore_index is None:
            self._extremes.extend(torch.aminmax(piece))
            return
        # What doesn't count is looked at as 0, in a copy. A block holds all members: copy it in parts.
        rows = len(piece) if piece.ndim == 1 else 1 << 13
        for start in range(0, len(piece), rows):
            part = piece[start : start + rows]
            if self._keep is not None:
                kept = self._keep[start : start + rows]
                part = part.masked_fill(~(kept if part.ndim == 1 else kept[:, None]), 0)
            if self._ignore_index is not None:
                part = part.masked_fill(abstains(part, self._ignore_index), 0)
            self._extremes.extend(torch.aminmax(part))

    def bounds(self) -> tuple[int, int]:
        """Waits for the device."""
        if not self._extremes:
            return 0, 0
        low, high = torch.aminmax(torch.stack([extreme.to(torch.int64) for extreme in self._extremes]))
        return min(int(low), 0), max(int(high), 0)


def _check_bound(name: str, found: tuple[int, int], bound: int) -> None:
    low, high = found
    if low < 0 or high >= bound:
        raise ValueError(
            f"{name} must lie in [0, {bound}), the classes that num_classes={bound} stands for, but holds "
            f"{low if low < 0 else high}; where that marks an abstention or a missing target, pass it as ignore_index"
        )
