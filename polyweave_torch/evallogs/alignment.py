"""Runs over the same items, matched by id and never by position."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress, repeat
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.source import repeated
from polyweave_torch.evallogs.universe import Universe, universe_ids
from polyweave_torch.layout import clipped

_COMPARED = ("task", "task version", "n-shot", "harness", "data set", "filter", "metric", "scorer", "epochs")
_KINDS = {"int": "whole numbers", "text": "text"}


@dataclass(frozen=True, eq=False)
class Aligned:
    """Two or more runs over the same N items."""

    runs: list[Run]
    """The R runs, in their order."""
    ids: list[str]
    """The N items, in the order of the first run."""
    correct: NDArray[np.bool_]
    """``[N, R]``; all False where ``scores`` are given."""
    scores: NDArray[np.float64] | None
    """``[N, R]`` where any run has scores that are not 0 and 1."""
    slices: list[str] | None
    """The slice of each item, from the first run that knows it."""
    answers: list[list[str | None]] | None
    """``answers[r][i]``, where all runs have answers."""
    alignment: dict[str, int]
    """``aligned``, ``only_before``, ``only_after`` (first against last run); ``unscored`` and ``errors`` in any run."""
    warnings: list[str]
    """What should be known of the runs and of what sets them apart."""
    prompts_differ: int = 0
    """On how many of the N items any run was asked something else than the first."""


def align(
    runs: Sequence[Run],
    *,
    missing: Literal["drop", "wrong"] = "drop",
    errors: Literal["drop", "wrong"] = "drop",
    universe: Universe | None = None,
    prompts_may_differ: bool = False,
) -> Aligned:
    """Bring runs to the same items, by id, never by position. Items stand in the order of the first run.

    Unscored items are left out and counted; so are failed and missing ones, unless they are to count as wrong.

    Args:
        runs: two or more.
        missing: what an item counts as in a run that lacks it.
        errors: what an item counts as in a run that failed on it.
        universe: the items that count; one that a run doesn't name is wrong there. Needed by runs that name only
            what they got right.
        prompts_may_differ: whether prompts that differ are no warning.

    Raises:
        ValueError: where ids contradict each other, have nothing in common, or lie outside the universe.
    """
    _check_policies(runs, missing, errors, universe)
    runs = _with_tasks(runs)
    places = [dict(zip(run.ids, range(len(run.ids)), strict=True)) for run in runs[1:]]
    for run, place in zip(runs[1:], places, strict=True):
        _check_same_items(runs[0], run, place, need_overlap=universe is None)
    candidates = runs[0].ids
    rows = np.stack([np.arange(len(candidates)), *(_rows_of(candidates, place) for place in places)], 1)
    shared = int((rows[:, -1] >= 0).sum())
    overlap_warnings = _overlap_warnings(runs, int((rows >= 0).all(1).sum())) if universe is None else []
    if universe is not None or missing == "wrong":
        candidates = list(dict.fromkeys(name for run in runs for name in run.ids))
        candidates = candidates if universe is None else universe_ids(universe, candidates)
        first = dict(zip(runs[0].ids, range(len(runs[0].ids)), strict=True))
        rows = np.stack([_rows_of(candidates, place) for place in (first, *places)], 1)
    elif bool((rows < 0).any()):
        common = np.asarray((rows >= 0).all(1))
        candidates, rows = list(compress(candidates, common.tolist())), rows[common]
    outcomes, failed, as_scores = _outcomes(runs, rows)
    if errors == "wrong":
        outcomes[failed] = 0.0
    unscored = np.isnan(outcomes)
    kept = np.asarray(~unscored.any(1))
    failed_items = failed.any(1)
    rows, outcomes = rows[kept], outcomes[kept]
    ids = list(compress(candidates, kept.tolist()))
    slices, slice_warnings = _slices(runs, rows, ids)
    differ = _prompts_differ(runs, rows)
    return Aligned(
        runs=runs,
        ids=ids,
        correct=np.zeros(outcomes.shape, np.bool_) if as_scores else outcomes == 1.0,
        scores=outcomes if as_scores else None,
        slices=slices,
        answers=_answers(runs, rows),
        alignment={
            "aligned": len(ids),
            "only_before": 0 if universe is not None else len(runs[0].ids) - shared,
            "only_after": 0 if universe is not None else len(runs[-1].ids) - shared,
            "unscored": int((unscored.any(1) & ~failed_items).sum()),
            "errors": int(failed_items.sum()),
        },
        warnings=[
            *_run_warnings(runs),
            *_twin_warnings(runs),
            *overlap_warnings,
            *_difference_warnings(runs, 0 if prompts_may_differ else differ, len(ids)),
            *slice_warnings,
        ],
        prompts_differ=differ,
    )


def _rows_of(names: list[str], place: dict[str, int]) -> NDArray[np.int64]:
    """The row of each item in a run, -1 where it lacks the item."""
    return np.fromiter(map(place.get, names, repeat(-1)), np.int64, len(names))


def _check_policies(runs: Sequence[Run], missing: str, errors: str, universe: Universe | None) -> None:
    if len(runs) < 2:
        raise ValueError(f"expected two or more runs to align, but got {len(runs)}")
    for name, value in (("missing", missing), ("errors", errors)):
        if value not in ("drop", "wrong"):
            raise ValueError(f"{name} must be 'drop' or 'wrong', but is {value!r}")
    for run in runs:
        if run.only_right and universe is None:
            raise ValueError(
                f"{run.path} names only the items that {run.name} got right; which ones it got wrong depends on the "
                "items that count: pass universe= (--universe, a file of ids or their number)"
            )


def _with_tasks(runs: Sequence[Run]) -> list[Run]:
    """Name the task in the ids of a run over one task, where another run is over several."""
    several = [run for run in runs if run.task is None]
    return [
        replace(run, ids=[f"{run.task}/{name}" for name in run.ids], task=None)
        if run.task is not None and any(name.startswith(f"{run.task}/") for other in several for name in other.ids)
        else run
        for run in runs
    ]


def _outcomes(runs: list[Run], rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_], bool]:
    """Outcomes and failures ``[N, R]``, an absent item wrong, an unscored one NaN; and whether these are scores."""
    as_scores = any(run.scores is not None for run in runs)
    outcomes = np.zeros(rows.shape)
    failed = np.zeros(rows.shape, np.bool_)
    for column, run in enumerate(runs):
        values = np.where(run.correct < 0, np.nan, run.correct) if run.scores is None else run.scores
        present = rows[:, column] >= 0
        found = rows[present, column]
        outcomes[present, column] = values[found]
        failed[present, column] = run.errors[found]
    outcomes[failed] = np.nan
    return outcomes, failed, as_scores


def _check_same_items(first: Run, other: Run, place: dict[str, int], *, need_overlap: bool) -> None:
    """Refuse runs whose ids have nothing in common, or mean other items than their contents say."""
    if need_overlap and not any(map(place.__contains__, first.ids)):
        kinds = ""
        if first.id_kind != other.id_kind:
            kinds = f" One has ids that are {_KINDS[first.id_kind]}, the other {_KINDS[other.id_kind]}."
        raise ValueError(
            f"{first.path} and {other.path} have no item in common: ids {_examples(first.ids)} against "
            f"{_examples(other.ids)}.{kinds} Choose another id with id= (--id), or compare runs over the same items"
        )
    versions = [run.details.get("data set hash", "") for run in (first, other)]
    if "" not in versions and versions[0] != versions[1]:
        raise ValueError(
            f"{first.path} and {other.path} were scored on two versions of the data set, {versions[0]} and "
            f"{versions[1]}; score both on one"
        )
    if first.hashes is None or other.hashes is None:
        return
    shared = [name for name in first.ids if name in place]
    here = dict(zip(first.ids, first.hashes, strict=True))
    wrong = [name for name in shared if here[name] and other.hashes[place[name]] not in ("", here[name])]
    if wrong:
        pairs = ", ".join(
            f"{clipped(name)!r} ({here[name][:12]} against {other.hashes[place[name]][:12]})" for name in wrong[:3]
        )
        raise ValueError(
            f"{first.path} and {other.path} hold other content under the same id in {len(wrong)} of {len(shared)} "
            f"items: {pairs}. Align by content with id='doc_hash' (--id doc_hash) where the content is the same"
        )
    there = {content: name for content, name in zip(other.hashes, other.ids, strict=True) if content}
    several = {content for run in (first, other) for content in repeated(run.hashes or [])}
    twice = [
        (name, there[content])
        for name, content in here.items()
        if content in there and content not in several and there[content] != name
    ]
    if twice:
        pairs = ", ".join(f"{clipped(mine)!r} against {clipped(theirs)!r}" for mine, theirs in twice[:3])
        raise ValueError(
            f"{len(twice)} items have one id in {first.path} and another in {other.path}: {pairs}. "
            "Align by content with id='doc_hash' (--id doc_hash)"
        )


def _examples(ids: list[str]) -> str:
    return ", ".join(repr(clipped(name)) for name in ids[:3]) + (", ..." if len(ids) > 3 else "") if ids else "(none)"


def _slices(runs: list[Run], rows: NDArray[np.int64], ids: list[str]) -> tuple[list[str] | None, list[str]]:
    """The slice of each item, from the first run that knows it, and a warning where runs disagree."""
    names: list[str | None] | None = None
    disagree = 0
    for column, run in enumerate(runs):
        known = _slices_of(run, rows[:, column], ids)
        if names is None or known is None:
            names = names or known
        elif names != known:
            disagree += sum(None not in pair and pair[0] != pair[1] for pair in zip(names, known, strict=True))
            names = [mine or theirs for mine, theirs in zip(names, known, strict=True)]
    if names is None:
        return None, []
    warnings = (
        [f"items whose slice differs between runs, where the first run's is used: {disagree}"] if disagree else []
    )
    return [name or "(none)" for name in names], warnings


def _slices_of(run: Run, rows: NDArray[np.int64], ids: list[str]) -> list[str | None] | None:
    if run.slices is None and run.slice_of is None:
        return None
    places = rows.tolist() if run.slices is not None else [-1] * len(ids)
    known = run.slices or []
    return [
        known[row] if row >= 0 else run.slice_of(name) if run.slice_of is not None else None
        for row, name in zip(places, ids, strict=True)
    ]


def _answers(runs: list[Run], rows: NDArray[np.int64]) -> list[list[str | None]] | None:
    if any(run.answers is None for run in runs):
        return None
    return [
        [None if row < 0 else (run.answers or [])[row] for row in rows[:, column].tolist()]
        for column, run in enumerate(runs)
    ]


def _prompts_differ(runs: list[Run], rows: NDArray[np.int64]) -> int:
    differ = np.zeros(len(rows), np.bool_)
    first = runs[0].prompts
    for column, run in enumerate(runs[1:], start=1):
        if first is None or run.prompts is None:
            continue
        asked = [
            mine >= 0
            and theirs >= 0
            and "" not in (first[mine], run.prompts[theirs])
            and first[mine] != run.prompts[theirs]
            for mine, theirs in zip(rows[:, 0].tolist(), rows[:, column].tolist(), strict=True)
        ]
        differ |= np.array(asked, np.bool_)
    return int(differ.sum())


def _run_warnings(runs: list[Run]) -> list[str]:
    return list(dict.fromkeys(f"{run.path}: {warning}" for run in runs for warning in run.warnings))


def _twin_warnings(runs: list[Run]) -> list[str]:
    """A warning for each file that is compared with itself."""
    twins = [
        first.path
        for first, other in combinations(runs, 2)
        if first.path
        and os.path.normpath(first.path) == os.path.normpath(other.path)
        and (first.name, first.details) == (other.name, other.details)
        and np.array_equal(first.correct, other.correct)
    ]
    return [
        f"{path} is compared with itself, which shows nothing: name two runs, or two arms of one file with arm= "
        "(--arm BEFORE AFTER)"
        for path in dict.fromkeys(twins)
    ]


def _overlap_warnings(runs: list[Run], shared: int) -> list[str]:
    """A warning where more than 5 % of the items of a run are not in every run, with an item of each run that lacks."""
    items = max(len(run.ids) for run in runs)
    if 20 * (items - shared) <= items:
        return []
    common = set(runs[0].ids).intersection(*(run.ids for run in runs[1:]))
    alone = [next((name for name in run.ids if name not in common), None) for run in runs]
    sides = ("only before", "only after") if len(runs) == 2 else tuple(f"of {clipped(run.name)} is not" for run in runs)
    examples = [f"{clipped(name)!r} {side}" for name, side in zip(alone, sides, strict=True) if name is not None]
    form = "; ids that differ in form (leading zeros, prefixes) do not match" if len(examples) > 1 else ""
    every = "both" if len(runs) == 2 else f"all {len(runs)}"
    return [f"only {shared} of {items} items are in {every} runs, for instance {', '.join(examples)}{form}"]


def _difference_warnings(runs: list[Run], differ: int, items: int) -> list[str]:
    warnings = [f"prompts differ on {differ} of {items} items"] if differ else []
    for name in _COMPARED:
        values = [run.details[name] for run in runs if name in run.details]
        if len(set(values)) > 1:
            warnings.append(f"{name} differs: {' against '.join(map(clipped, dict.fromkeys(values)))}")
    return warnings
