"""Every case under every condition, in one order, in batches, into a file from which a killed run goes on."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from polyweave_torch.ablation.cases import Case
from polyweave_torch.ablation.outcomes import Condition, Outcome, append_outcomes, by_pair, recover_outcomes
from polyweave_torch.ablation.record import Manifest, read_manifest, sync_folder
from polyweave_torch.evallogs.source import check_regular
from polyweave_torch.layout import clipped, printable

Evaluate = Callable[[Sequence[Case], Condition], Sequence[Outcome]]


def run_ablation(
    cases: Sequence[Case],
    conditions: Sequence[Condition],
    evaluate: Evaluate,
    *,
    model: str = "",
    batch_size: int = 1,
    out: str | Path | None = None,
    resume: bool = True,
    progress: bool = True,
) -> list[Outcome]:
    """Evaluate every case under every condition.

    A batch of cases goes through all conditions before the next batch starts, so that a run which is stopped early is
    still paired, and whatever drifts with time meets all conditions alike.

    With ``out`` each outcome is one JSON line, on the disk before the next batch starts. A run that was killed goes on
    where it stopped: no outcome is lost, none is made twice, and a last line that was torn is dropped, with a warning.
    Beside the file lies a manifest (``out`` + ``.manifest``) of the cases, conditions, model, mode and evaluator that
    it is of.

    Args:
        cases: with ids that differ.
        conditions: with names that differ.
        evaluate: takes a batch of cases and a condition, and returns an outcome for each of these cases. If it raises,
            the cases of the batch are tried one by one, and each that raises again has an outcome with ``error``. An
            attribute ``simulated = True`` marks a simulator; an attribute ``identity``, a text, is recorded, and a file
            is not gone on with under another one (a seed, a checkpoint, the version of a prompt).
        model: what is evaluated, for the report.
        batch_size: cases in a call of ``evaluate``, at most.
        out: file to write to, and to go on from.
        resume: False starts over, and loses what is in the file.
        progress: show a bar where there is a terminal (needs tqdm).

    Returns:
        The outcomes, case by case, each in the order of the conditions.

    Raises:
        ValueError: where ids or names are not unique, ``evaluate`` returned something else than an outcome for each
            case, or the file is of other cases, conditions, model, mode or evaluator; the message says what changed.

    Example:
        >>> def evaluate(cases, condition):
        ...     return [Outcome(c.id, c.stratum, condition.name, c.gold == condition.name, True, 1) for c in cases]
        >>> cases = [Case("a", "easy", gold="new"), Case("b", "easy", gold="old")]
        >>> outcomes = run_ablation(cases, [Condition("old"), Condition("new")], evaluate)
        >>> [(outcome.case_id, outcome.condition, outcome.first_try) for outcome in outcomes]
        [('a', 'old', False), ('a', 'new', True), ('b', 'old', True), ('b', 'new', False)]
    """
    _check_unique("case", [case.id for case in cases])
    _check_unique("condition", [condition.name for condition in conditions])
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, but is {batch_size}")
    simulated = bool(getattr(evaluate, "simulated", False))
    identity = str(getattr(evaluate, "identity", ""))
    manifest = Manifest.of(cases, conditions, model=model, simulated=simulated, evaluator=identity)
    path = None if out is None else Path(out)
    done = {} if path is None else _open(path, manifest, resume)
    with _bar(len(cases) * len(conditions), len(done), progress) as bar:
        for start in range(0, len(cases), batch_size):
            for condition in conditions:
                batch = [case for case in cases[start : start + batch_size] if (case.id, condition.name) not in done]
                if not batch:
                    continue
                outcomes = list(_outcomes(evaluate, batch, condition))
                if path is not None:
                    append_outcomes(path, outcomes)
                done.update(by_pair(outcomes))
                if bar is not None:
                    bar.update(len(outcomes))
    return [done[case.id, condition.name] for case in cases for condition in conditions]


def _outcomes(evaluate: Evaluate, batch: Sequence[Case], condition: Condition) -> Iterator[Outcome]:
    try:
        returned: Any = evaluate(batch, condition)
        if isinstance(returned, Iterator):
            returned = list(returned)  # A generator raises here, and not when it is called.
    # Whatever a user's model may raise is what came of the case, and not the end of the run.
    except Exception as error:
        if len(batch) == 1:
            yield _error(batch[0], condition, error)
            return
        for case in batch:
            yield from _outcomes(evaluate, [case], condition)
        return
    yield from _checked(returned, batch, condition)


def _error(case: Case, condition: Condition, error: Exception) -> Outcome:
    return Outcome(case.id, case.stratum, condition.name, False, False, 0, error=f"{type(error).__name__}: {error}")


def _checked(returned: Any, batch: Sequence[Case], condition: Condition) -> list[Outcome]:
    """The outcomes in the order of the batch."""
    wanted = {(case.id, case.stratum, condition.name): None for case in batch}
    # One bare Outcome is a sequence too, of its fields, and is refused below.
    outcomes = list(returned) if isinstance(returned, Sequence) else [returned]
    found = {(o.case_id, o.stratum, o.condition): o.plain() for o in outcomes if isinstance(o, Outcome)}
    if len(found) != len(outcomes) or found.keys() != wanted.keys():
        raise ValueError(
            f"evaluate must return a sequence of one Outcome for each of the {len(batch)} cases that it got, with the "
            f"case's id and stratum and the condition's name; expected {list(wanted)[:3]}, but {len(outcomes)} came: "
            f"{[tuple(o)[:3] if isinstance(o, Outcome) else o for o in outcomes[:3]]}"
        )
    return [found[key] for key in wanted]


def _open(path: Path, manifest: Manifest, resume: bool) -> dict[tuple[str, str], Outcome]:
    """The outcomes that the file has already; a file that has none is begun anew."""
    if path.exists():
        check_regular(path)
    if resume and path.exists():
        outcomes, torn = recover_outcomes(path, manifest.outcome)
        if torn:
            warnings.warn(
                f"{printable(str(path))}: dropped a torn last line of {torn} bytes, which a killed run left; its case "
                "is evaluated again",
                stacklevel=3,
            )
        if outcomes:
            done = by_pair(outcomes)
            _check_same_run(path, manifest, outcomes)
            return done
    path.parent.mkdir(parents=True, exist_ok=True)
    # The old outcomes go before the old manifest does: never is there a file with the manifest of another one.
    path.write_bytes(b"")
    sync_folder(path.parent)
    manifest.write(path)
    return {}


def _check_same_run(path: Path, manifest: Manifest, outcomes: Sequence[Outcome]) -> None:
    recorded = read_manifest(path)
    if recorded is None:
        changes = _strangers(manifest, outcomes)
        if not changes:
            warnings.warn(
                f"{printable(str(path))} has no manifest beside it: its outcomes are of these cases and conditions by "
                "name, but nothing tells whether what the names stand for has changed",
                stacklevel=4,
            )
            manifest.write(path)
    else:
        changes = recorded.changes(manifest)
    if changes:
        raise ValueError(
            f"{path} is of another run: {'; '.join(changes)}. Go on with what it was begun with, choose another file, "
            "or start over with resume=False (--restart)"
        )


def _strangers(manifest: Manifest, outcomes: Sequence[Outcome]) -> list[str]:
    """What the outcomes name that the run doesn't have."""
    strangers = {("case", o.case_id): None for o in outcomes if o.case_id not in manifest.cases}
    strangers |= {("condition", o.condition): None for o in outcomes if o.condition not in manifest.conditions}
    return [
        f"{what} {clipped(name)!r} of the file is not among those of this run" for what, name in list(strangers)[:5]
    ]


def _check_unique(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} comes twice; outcomes are paired by it, so each needs its own")
        seen.add(name)


def _bar(total: int, done: int, progress: bool) -> AbstractContextManager[Any]:
    if progress:
        try:
            from tqdm.auto import tqdm
        except ModuleNotFoundError:
            return nullcontext()
        return tqdm(total=total, initial=done, unit="outcome", disable=None)
    return nullcontext()
