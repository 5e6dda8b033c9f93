"""The outcomes of one validation, aligned by sample id over batches and ranks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist
from torchmetrics.utilities.distributed import gather_all_tensors

from polyweave_torch.callbacks._ids import crossing
from polyweave_torch.callbacks._outcomes import IGNORED, BatchOutcomes
from polyweave_torch.functional.channel import count_transitions

ABSENT = torch.iinfo(torch.int64).min


class Epoch(NamedTuple):
    """One validation: a row a sample, sorted by id, each id once. On the CPU."""

    ids: Tensor
    """int64 ``[n]``."""
    correct: Tensor
    """bool ``[n]``."""
    target: Tensor
    """int64 ``[n]``, :data:`ABSENT` where no class is known."""
    prediction: Tensor
    """int64 ``[n]``, :data:`ABSENT` likewise."""
    slice_index: Tensor
    """int64 ``[n]`` into ``slice_names``; empty without slices."""
    slice_names: tuple[str, ...]
    """Names, sorted."""
    votes: Tensor
    """int64 ``[n, M]``, the members' classes of an ensemble; M = 0 elsewhere."""

    def to_state(self) -> dict[str, Any]:
        """The epoch as what a checkpoint may hold."""
        return {**self._asdict(), "slice_names": list(self.slice_names)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Epoch":
        """Read :meth:`to_state` back."""
        return cls(**{**state, "slice_names": tuple(state["slice_names"])})


class Rows(NamedTuple):
    """What one rank collected in one batch."""

    ids: Tensor
    outcomes: BatchOutcomes
    labels: list[list[str] | None]
    """One list for each kind of slices, None where the batch has no labels of that kind."""
    said: Sequence[Any] = ()
    """The ids as they came, where that was no tensor."""


class _Report(NamedTuple):
    """What the ranks tell each other before they gather."""

    problem: str | None
    names: list[tuple[str, ...]]
    """The slices of each kind."""
    members: int
    texts: dict[int, str]


def join(
    batches: Sequence[Rows],
    *,
    slices: Sequence[Sequence[Any] | str | None],
    texts: dict[int, str],
    positions: bool,
    split: bool,
    distributed: bool,
    device: torch.device,
) -> list[Epoch]:
    """Check, gather, sort and de-duplicate the rows of all batches and ranks: one epoch for each kind of slices.

    Ids that came as text are added to ``texts``, those of other ranks too. Ids that are ``positions`` in the data set
    repeat for one reason only, which is padding; others might name two samples. ``split`` says that a sampler gives
    each rank its own part of the samples.

    Raises:
        ValueError: where an outcome is not binary, a label outside the classes, a sample outside ``slices``, or an id
            names more than one sample.
    """
    ids = _cat([rows.ids for rows in batches])
    correct = _cat([rows.outcomes.correct for rows in batches])
    target = _cat([_or_absent(rows.outcomes.target, rows.ids) for rows in batches])
    prediction = _cat([_or_absent(rows.outcomes.prediction, rows.ids) for rows in batches])
    classes = next((rows.outcomes.num_classes for rows in batches if rows.outcomes.num_classes is not None), None)
    # Rows that are left out name no slices, and their ids may repeat.
    kept = correct != IGNORED
    ids, correct, target, prediction = ids[kept], correct[kept], target[kept], prediction[kept]
    problem = _problem(ids, correct, target, classes)
    new_texts = _new_texts(batches, texts)
    if not (problem or positions):
        problem = _repeats(ids, {**texts, **new_texts}, padding=0)
    kinds: list[tuple[tuple[str, ...], Tensor]] = []
    if not problem:
        try:
            kinds = [_local_slices(rule, ids, target, _labels(batches, kind)) for kind, rule in enumerate(slices)]
        except ValueError as error:
            problem = str(error)
    members = [rows.outcomes.votes for rows in batches if rows.outcomes.votes is not None]
    votes = _cat(members)[kept] if members else torch.zeros(len(ids), 0).long()
    own = _Report(problem, [names for names, _ in kinds], votes.shape[1], new_texts)
    reports: list[_Report] = _from_all_ranks(own) if distributed else [own]
    # Every rank raises, or none: a rank that raised alone would leave the others waiting in the next collective.
    for report in reports:
        if report.problem:
            raise ValueError(report.problem)
        texts.update(report.texts)
    if not len(ids):  # a rank without a batch does not know how many members there are
        votes = votes.new_zeros(0, max(report.members for report in reports))
    unions = [tuple(sorted(set().union(*names))) for names in zip(*(report.names for report in reports), strict=True)]
    codes = [_renumbered(*local, union) for local, union in zip(kinds, unions, strict=True)]
    rows = torch.cat([torch.stack([ids, correct, target, prediction, *codes], 1), votes], 1)
    if distributed:
        parts = [part.cpu() for part in gather_all_tensors(rows.to(device))]
        rows = torch.cat(parts)
        # What all ranks have gathered they judge alike, so again every rank raises, or none.
        if not positions and (split or not _alike(parts)) and (problem := _repeats_over_ranks(rows, texts, len(parts))):
            raise ValueError(problem)
    return _sorted_once(rows, unions)


def tables(before: Epoch, after: Epoch) -> dict[str, Tensor]:
    """Transitions between two validations over the samples in both: int64 ``[2, 2]`` for "all" and every slice.

    Raises:
        ValueError: where a sample has another target than before.
    """
    kept, place = match(before, after)
    known = (before.target[place] != ABSENT) & (after.target[kept] != ABSENT)
    moved = known & (before.target[place] != after.target[kept])
    if bool(moved.any()):
        sample = int(after.ids[kept][moved][0])
        raise ValueError(
            f"the data set changed between validations: sample {sample} had target "
            f"{int(before.target[place][moved][0])} and now has {int(after.target[kept][moved][0])}. Sample ids must "
            'mean the same sample in every validation; pass ids="<batch key>" with ids that do'
        )
    right_before, right_after = before.correct[place], after.correct[kept]
    counts = {"all": count_transitions(right_before, right_after, None, 1, None)[0]}
    if after.slice_names:
        by_slice = count_transitions(right_before, right_after, after.slice_index[kept], len(after.slice_names), None)
        counts.update(zip(after.slice_names, by_slice, strict=True))
    return counts


def match(before: Epoch, after: Epoch) -> tuple[Tensor, Tensor]:
    """Rows of ``after`` whose sample is in ``before``, and their rows there."""
    if torch.equal(before.ids, after.ids):
        rows = torch.arange(len(after.ids))
        return rows, rows
    if not len(before.ids):
        none = torch.zeros(0, dtype=torch.int64)
        return none, none
    place = torch.searchsorted(before.ids, after.ids).clamp(max=len(before.ids) - 1)
    kept = (before.ids[place] == after.ids).nonzero().squeeze(1)
    return kept, place[kept]


def _cat(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.to("cpu", torch.int64) for part in _integers(parts)] or [torch.zeros(0, dtype=torch.int64)])


def _integers(parts: list[Tensor]) -> list[Tensor]:
    # A float outcome of 0.5 must not become a 0 by truncation: it is kept as a value that the check refuses.
    return [torch.where(part == part.round(), part, 2) if part.is_floating_point() else part for part in parts]


def _or_absent(values: Tensor | None, ids: Tensor) -> Tensor:
    return torch.full((len(ids),), ABSENT) if values is None else values


def _labels(batches: Sequence[Rows], kind: int) -> list[str]:
    """The labels of the rows that are not left out."""
    return [
        label
        for rows in batches
        if (labels := rows.labels[kind]) is not None
        for label, correct in zip(labels, rows.outcomes.correct.tolist(), strict=True)
        if correct != IGNORED
    ]


def _new_texts(batches: Sequence[Rows], known: dict[int, str]) -> dict[int, str]:
    pairs = (pair for rows in batches if len(rows.said) for pair in zip(rows.ids.tolist(), rows.said, strict=True))
    return {number: str(said) for number, said in pairs if isinstance(said, str) and number not in known}


def _problem(ids: Tensor, correct: Tensor, target: Tensor, num_classes: int | None) -> str | None:
    wrong = (correct != 0) & (correct != 1)
    if bool(wrong.any()):
        return (
            f"outcomes must be binary, but sample {int(ids[wrong][0])} has another value; "
            "pass whether each sample is right (True or False)"
        )
    if num_classes is not None:
        outside = (target != ABSENT) & ((target < 0) | (target >= num_classes))
        if bool(outside.any()):
            return (
                f"targets must lie in [0, {num_classes}), the classes of the predictions, but sample "
                f"{int(ids[outside][0])} has {int(target[outside][0])}; ignore_index= leaves such samples out"
            )
    return None


def _repeats(ids: Tensor, texts: dict[int, str], *, padding: int) -> str | None:
    found, times = torch.unique(ids, return_counts=True)
    if len(ids) - len(found) <= padding:
        return None
    most = int(times.argmax())
    return _two_samples(
        f"ids name {len(found)} samples in {len(ids)} rows, for instance {_said(found[most], texts)} "
        f"{int(times[most])} times"
    )


def _repeats_over_ranks(rows: Tensor, texts: dict[int, str], world: int) -> str | None:
    """What a DistributedSampler's padding, fewer rows than there are ranks, does not explain."""
    ids, _, target = rows[:, :3].unbind(1)
    if problem := _repeats(ids, texts, padding=world - 1):
        return problem
    order = ids.argsort(stable=True)
    ids, target = ids[order], target[order]
    # Not so for outcomes: a padded row may stand in a batch of another size, where a near tie can fall the other way.
    differ = ((ids[1:] == ids[:-1]) & (target[1:] != target[:-1])).nonzero().flatten()
    if not len(differ):
        return None
    row = int(differ[0])
    return _two_samples(
        f"ids name two samples {_said(ids[row], texts)}, one of target {int(target[row])} and one of target "
        f"{int(target[row + 1])}"
    )


def _alike(parts: Sequence[Tensor]) -> bool:
    """Whether each rank saw the same samples: all ran the whole evaluation."""
    in_order = []
    for part in parts:
        ids, correct, target = part[part[:, 0].argsort(stable=True), :3].unbind(1)
        # Outcomes count where no target tells samples apart: a near tie can fall one way on one rank and the other way
        # on another.
        in_order.append(torch.stack((ids, target, torch.where(target == ABSENT, correct, 0))))
    return all(torch.equal(part, in_order[0]) for part in in_order[1:])


def _said(number: Tensor, texts: dict[int, str]) -> str:
    return repr(texts.get(int(number), int(number)))


def _two_samples(what: str) -> str:
    return (
        f"{what}; an id must name one sample. Join the repeat's number to it, such as "
        'ids=lambda batch: [f"{u}/{k}" for u, k in zip(batch["uid"], batch["turn"])], or compare finished runs with '
        "polyweave-torch compare --epochs"
    )


def _local_slices(
    slices: Sequence[Any] | str | None, ids: Tensor, target: Tensor, labels: list[str]
) -> tuple[tuple[str, ...], Tensor]:
    none = torch.zeros_like(ids)
    if slices is None:
        return (), none
    if slices == "target":
        if bool((target == ABSENT).any()):
            raise ValueError('slices="target" needs targets, but only outcomes came; pass preds and target')
        values, codes = torch.unique(target, return_inverse=True)
        return _in_name_order([str(value) for value in values.tolist()], codes)
    if isinstance(slices, str):
        values_of = labels
    else:
        if bool(((ids < 0) | (ids >= len(slices))).any()):
            raise ValueError(
                f"slices has {len(slices)} labels, one a sample, but the sample ids reach from {int(ids.min())} to "
                f'{int(ids.max())}; pass a label for every sample, or slices="<batch key>"{crossing(slices)}'
            )
        values_of = [str(slices[index]) for index in ids.tolist()]
    names = sorted(set(values_of))
    place = {name: index for index, name in enumerate(names)}
    return tuple(names), torch.tensor([place[value] for value in values_of], dtype=torch.int64)


def _in_name_order(names: list[str], codes: Tensor) -> tuple[tuple[str, ...], Tensor]:
    order = sorted(range(len(names)), key=lambda index: names[index])
    rank = torch.zeros(len(names), dtype=torch.int64)
    rank[torch.tensor(order, dtype=torch.int64)] = torch.arange(len(names))
    return tuple(names[index] for index in order), rank[codes]


def _renumbered(names: tuple[str, ...], codes: Tensor, union: tuple[str, ...]) -> Tensor:
    """Codes of one rank's names as those of all ranks' names."""
    place = torch.tensor([union.index(name) for name in names], dtype=torch.int64)
    return place[codes] if len(names) else codes


def _from_all_ranks(thing: Any) -> list[Any]:
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, thing)
    return gathered


def _sorted_once(rows: Tensor, kinds: Sequence[tuple[str, ...]]) -> list[Epoch]:
    rows = rows[rows[:, 0].argsort(stable=True)]
    first = torch.ones(len(rows), dtype=torch.bool)
    first[1:] = rows[1:, 0] != rows[:-1, 0]
    votes = 4 + len(kinds)
    ids, _, target, prediction, *codes = (column.clone() for column in rows[first, :votes].unbind(1))
    # A duplicate with two outcomes counts as right, whichever rank comes first.
    correct = torch.zeros(len(ids), dtype=torch.int64).scatter_reduce(0, first.cumsum(0) - 1, rows[:, 1], "amax")
    shared = (ids, correct.to(torch.bool), target, prediction)
    return [
        Epoch(*shared, code if names else code[:0], names, rows[first, votes:])
        for code, names in zip(codes, kinds, strict=True)
    ]
