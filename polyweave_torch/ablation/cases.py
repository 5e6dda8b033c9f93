"""The cases of an ablation: read in one order, whatever the order of the file, and sampled by stratum."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.layout import clipped

LADDER = ("simple", "media", "compleja")
"""Strata that need no declaring: where a file has no others, they are ordered from simple to complex."""


class Case(NamedTuple):
    """What every condition is asked."""

    id: str
    """By which its outcomes are paired."""
    stratum: str
    """The group that it is reported with."""
    domain: str = ""
    """What it is about; not used here."""
    description: str = ""
    """What is asked."""
    gold: Any = None
    """What is right, in any form that JSON has."""


def load_cases(
    path: str | Path, *, strata: Sequence[str] | None = None, validate: Callable[[Any], object] | None = None
) -> list[Case]:
    """Read cases from a JSONL file, sorted by stratum and id.

    Args:
        path: one object a line with ``id``, ``stratum``, and where there are any ``domain``, ``description``, ``gold``;
            other keys are left alone.
        strata: the strata in their order; a case of another one is an error. By default the order of
            :data:`LADDER` where the file has no others, else that of the names.
        validate: called with the gold of each case; it raises ValueError, or returns False, where the gold is wrong.

    Returns:
        The cases; ids are compared as text.

    Raises:
        ValueError: where a line is no case, an id comes twice, a stratum is not declared, or a gold is not valid; the
            message names the line.

    Example:
        >>> import json, tempfile
        >>> lines = [json.dumps({"id": id, "stratum": s}) for id, s in (("b", "easy"), ("c", "hard"), ("a", "hard"))]
        >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        ...     _ = file.write("\\n".join(lines)), file.flush()
        ...     [case.id for case in load_cases(file.name, strata=["hard", "easy"])]
        ['a', 'c', 'b']
    """
    found: dict[str, tuple[str, Case]] = {}
    for place, fields in read_json_lines(Path(path)):
        case = _case(fields, place)
        name = clipped(case.id)
        if case.id in found:
            raise ValueError(f"{place}: case {name!r} stands at {found[case.id][0]} already; ids must differ")
        if strata is not None and case.stratum not in strata:
            stratum = clipped(case.stratum)
            raise ValueError(f"{place}: case {name!r} is of stratum {stratum!r}, but declared are {', '.join(strata)}")
        _validate(case, place, validate)
        found[case.id] = (place, case)
    cases = [case for _, case in found.values()]
    rank = _ranks({case.stratum for case in cases}, strata)
    return sorted(cases, key=lambda case: (rank[case.stratum], case.id))


def sample_stratified(cases: Sequence[Case], n: int) -> list[Case]:
    """The first n cases of each stratum.

    Args:
        cases: in the order in which the first are taken, such as that of :func:`load_cases`.
        n: how many of each stratum; 0 or less takes all.

    Returns:
        The cases, in the order of ``cases``.

    Example:
        >>> cases = [Case("a", "easy"), Case("b", "easy"), Case("c", "hard")]
        >>> [case.id for case in sample_stratified(cases, 1)]
        ['a', 'c']
    """
    if n <= 0:
        return list(cases)
    taken: Counter[str] = Counter()
    sample = []
    for case in cases:
        if taken[case.stratum] < n:
            sample.append(case)
            taken[case.stratum] += 1
    return sample


def corpus_counts(cases: Sequence[Case]) -> dict[str, int]:
    """The number of cases of each stratum.

    Args:
        cases: any.

    Returns:
        Numbers by stratum, strata in the order in which they first come.

    Example:
        >>> corpus_counts([Case("a", "easy"), Case("b", "easy"), Case("c", "hard")])
        {'easy': 2, 'hard': 1}
    """
    return dict(Counter(case.stratum for case in cases))


def _case(fields: Mapping[str, Any], place: str) -> Case:
    case = Case(**{name: fields[name] for name in Case._fields if name in fields} | _required(fields, place))
    for name in ("domain", "description"):
        if not isinstance(getattr(case, name), str):
            raise ValueError(f"{place}: {name} must be text, but is {clipped(repr(getattr(case, name)), 60)}")
    return case


def _required(fields: Mapping[str, Any], place: str) -> dict[str, str]:
    for name in ("id", "stratum"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise ValueError(
                f"{place}: a case needs {name} as text that is not empty, but has {clipped(repr(fields.get(name)), 60)}"
            )
    return {name: fields[name] for name in ("id", "stratum")}


def _validate(case: Case, place: str, validate: Callable[[Any], object] | None) -> None:
    if validate is None:
        return
    message = f"{place}: the gold of case {clipped(case.id)!r} is not valid"
    try:
        valid = validate(case.gold)
    except ValueError as error:
        raise ValueError(f"{message}: {error}") from error
    if valid is False:
        raise ValueError(f"{message}; mend it, or the report measures the gold")


def _ranks(found: set[str], strata: Sequence[str] | None) -> dict[str, int]:
    if strata is None:
        strata = LADDER if found <= set(LADDER) else sorted(found)
    return {stratum: rank for rank, stratum in enumerate(strata)}
