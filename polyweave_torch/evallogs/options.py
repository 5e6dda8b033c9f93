"""What a caller may choose when a log can be read in more than one way."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from polyweave_torch.evallogs.run import ChoiceError
from polyweave_torch.layout import shown

ID_NAMES = ("id", "item_id", "sample_id", "question_id", "task_id", "instance_id", "example_id", "doc_id", "uid", "qid")
"""The usual names of a column of ids."""


class FieldError(ValueError):
    """A row lacks a field that was named."""


@dataclass(frozen=True)
class Options:
    """The options of :func:`~polyweave_torch.evallogs.read_run`, which describes them."""

    filter: str | None = None
    metric: str | None = None
    scorer: str | None = None
    provider: str | None = None
    epochs: str | None = None
    id: str | None = None
    correct: str | None = None
    slice: str | None = None
    arm: str | None = None
    threshold: float | None = None

    def unused(self, used: frozenset[str]) -> list[str]:
        """A warning for each option that was given, but means nothing to a format."""
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return [f"{name}={getattr(self, name)} means nothing in this format" for name in given if name not in used]


def choose(wanted: str | None, choices: Sequence[str], *, option: str, where: str, what: str) -> str:
    """The one that is there, or the one that was asked for.

    Raises:
        ChoiceError: where several are there and none was asked for, or another one was.
    """
    if wanted is not None:
        if wanted in choices:
            return wanted
        raise ChoiceError(f"{where} has no {what} {wanted!r}", option=option, choices=choices)
    if len(choices) == 1:
        return choices[0]
    raise ChoiceError(f"{where} has {len(choices)} {what}s", option=option, choices=choices)


def lookup(row: Mapping[str, Any], path: str, where: str, *, inside: Sequence[str] = ()) -> Any:
    """The field of a row: by its name, by a dotted path, or by either inside one of some parts of the row.

    Raises:
        FieldError: where there is none.
    """
    if path in row:
        return row[path]
    for start in ("", *inside):
        found, value = _follow(row, f"{start}.{path}" if start else path)
        if found:
            return value
    raise FieldError(f"{where}: no field {path!r}; there are {', '.join(map(shown, row))}")


def _follow(row: Any, path: str) -> tuple[bool, Any]:
    if not isinstance(row, Mapping):
        return False, None
    if path in row:
        return True, row[path]
    head, _, rest = path.partition(".")
    return _follow(row[head], rest) if rest and head in row else (False, None)


def label(value: Any) -> str:
    """A field's value as the name of a slice, an answer or an arm."""
    if isinstance(value, str):
        return value
    if value is None:
        return "(none)"
    if not isinstance(value, (bool, int, float, list, dict)):
        # Parquet has dates, decimals and bytes, for which JSON has no form.
        return str(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
