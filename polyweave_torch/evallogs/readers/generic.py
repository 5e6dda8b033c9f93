"""Tables that a user names the columns of: JSONL, a JSON array, CSV, Parquet."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import read_array
from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.options import ID_NAMES, Options, label, lookup
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.rows import Rows, outcome
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.evallogs.tables import read_parquet, read_table
from polyweave_torch.layout import shown

OPTIONS = frozenset({"epochs", "id", "correct", "slice", "arm", "threshold"})

_OUTCOMES = ("correct", "is_correct", "passed", "success", "resolved", "score", "accuracy", "acc", "exact_match")
_EPOCHS = ("epoch", "repeat", "trial", "attempt")
_ARMS = ("model", "model_id", "model_name", "arm", "provider", "variant", "system", "condition", "run")
_BY_KIND = {"lines": "jsonl", "array": "json", "table": "csv", "parquet": "parquet"}
_LISTED = 5
FORMATS = tuple(_BY_KIND.values())

_Row = tuple[str, Mapping[str, Any]]


def sniff(shape: Outline) -> bool:
    """Anything with rows and columns."""
    return (
        shape.kind == "parquet"
        or (shape.kind == "table" and len(shape.names) > 1)
        or (shape.kind in ("lines", "array") and bool(shape.record))
    )


def format_of(shape: Outline) -> str | None:
    """Which of the formats a table has; None where it is none."""
    return _BY_KIND.get(shape.kind)


def read(paths: list[Path], options: Options) -> Run:
    """Read one table. Columns with the usual names need not be named; one arm of several is found by its value."""
    path, options = one_file(paths, options)
    kind = outline(path).kind
    if kind not in _BY_KIND:
        raise ValueError(f"{path}: expected a table (JSONL, an array, CSV or Parquet), but found {kind}")
    table = _Table(path, options)
    for where, row in _rows(path, kind):
        table.add(where, row)
    return table.finish(_BY_KIND[kind])


class _Table:
    """Takes rows, and learns on the first what their columns mean."""

    def __init__(self, path: Path, options: Options) -> None:
        self.rows = Rows(path)
        self.options = options
        self.columns: list[str] = []
        self.arms: dict[str, dict[str, None]] = {}
        self.chosen: dict[str, dict[str, None]] = {}
        self.arm_column: str | None = None
        self.arm_given = False

    def add(self, where: str, row: Mapping[str, Any]) -> None:
        options = self.options
        if not self.columns:
            self._learn(row)
        for name, seen in self.arms.items():
            seen.setdefault(label(row.get(name)))
        item, value = row.get(self.id), row.get(self.correct)
        if options.arm is not None:
            if not self._is_of_arm(row, where):
                return
            for name in self.arms:
                self.chosen.setdefault(name, {}).setdefault(label(row.get(name)))
        # A value that is there is taken as it is: a million rows feel every call.
        if item is None:
            item = lookup(row, self.id, where)
        if value is None:
            value = lookup(row, self.correct, where)
        failed = isinstance(value, str) and value.strip().lower() == "error"
        value = math.nan if failed else outcome(value, where)
        failed |= math.isnan(value) and bool(row.get("error"))
        answer = row.get("prediction")
        self.rows.add(
            where,
            item,
            value,
            failed=failed,
            epoch=row.get(self.epoch) if self.epoch else None,
            slice=None if self.slice is None else label(lookup(row, self.slice, where)),
            answer=None if answer is None else label(answer),
        )

    def finish(self, format: str) -> Run:
        options, rows = self.options, self.rows
        if not self.columns:
            raise ValueError(f"{rows.path}: no rows to compare")
        if options.arm is not None and not len(rows):
            arms = [name for seen in self.arms.values() for name in seen]
            raise ChoiceError(f"{rows.path} has no arm {options.arm!r}", option="arm", choices=arms)
        several = [name for name, seen in self.arms.items() if len(seen) > 1]
        if rows.repeated and options.arm is None and several:
            arms = list(self.arms[several[0]])
            raise ChoiceError(f"{rows.path} has {len(arms)} arms, by {several[0]}", option="arm", choices=arms)
        if rows.repeated and options.epochs is None:
            self._check_one_arm()
        details = {"metric": self.correct}
        return rows.finish(options, format=format, details=details, warnings=[])

    def _check_one_arm(self) -> None:
        """Refuse rows of the wanted arm that another column divides into arms: they are no epochs of one."""
        for name, values in self.chosen.items():
            if len(values) > 1:
                raise ValueError(
                    f"{self.rows.path}: the rows of the arm {self.options.arm!r} differ in {name} "
                    f"({', '.join(map(shown, list(values)[:_LISTED]))}), and an item has several; make a file of the "
                    "rows of one of them, or, where they are repeats, say what they come to with epochs= (--epochs)"
                )

    def _learn(self, row: Mapping[str, Any]) -> None:
        options, where = self.options, self.rows.path
        self.columns = list(row)
        if not options.id and not options.correct and not {*ID_NAMES, *_OUTCOMES}.intersection(self.columns):
            raise ChoiceError(
                f"{where} has no column with a usual name for the item's id, nor for the outcome (correct=, --correct)",
                option="id",
                choices=self.columns,
            )
        self.id = options.id or self._usual(ID_NAMES, "id", where)
        self.correct = options.correct or self._usual(_OUTCOMES, "correct", where)
        self.slice = options.slice or ("slice" if "slice" in row else None)
        self.epoch = next((name for name in _EPOCHS if name in row and name != self.id), None)
        self.arms = {name: {} for name in _ARMS if name in row and name not in (self.id, self.correct)}
        column, _, value = (options.arm or "").partition("=")
        if value and column in row:
            self.arm_column, self.arm_given = column, True
            self.options = replace(options, arm=value)

    def _usual(self, names: Sequence[str], option: str, where: str) -> str:
        found = [name for name in names if name in self.columns]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} columns that may be" if found else "no column with a usual name for"
        raise ChoiceError(f"{where} has {what} the {_MEANING[option]}", option=option, choices=found or self.columns)

    def _is_of_arm(self, row: Mapping[str, Any], where: str) -> bool:
        """Whether the column that names arms has the wanted one here; unless it was given, it's where that is found."""
        wanted = self.options.arm
        if self.arm_given:
            return label(row.get(self.arm_column or "")) == wanted
        found = [
            name
            for name, value in row.items()
            # What is no text (run 1, tuned true) may be anything, unless the column has a usual name.
            if name not in (self.id, self.correct)
            and (value == wanted or (name in self.arms and label(value) == wanted))
        ]
        if found and self.arm_column is None:
            self.arm_column = found[0]
        if found not in ([], [self.arm_column]):
            raise ValueError(
                f"{where}: {wanted!r} stands in {' and '.join(dict.fromkeys([self.arm_column or '', *found]))}; "
                f"say which names the arm: arm='{found[0]}={wanted}' (--arm)"
            )
        return bool(found)


_MEANING = {"id": "item's id", "correct": "outcome"}


def _rows(path: Path, kind: str) -> Iterator[_Row]:
    readers = {"lines": read_json_lines, "array": read_array, "table": read_table, "parquet": read_parquet}
    return readers[kind](path)
