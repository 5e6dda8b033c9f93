"""Layer scores from the files that people have: rows of scores, or of checks that passed or failed."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.source import head
from polyweave_torch.evallogs.tables import read_table
from polyweave_torch.functional.composite import layer_score
from polyweave_torch.layout import clipped, shown

CHECK_LAYERS: Mapping[str, str] = {
    **dict.fromkeys(("contains", "not_contains", "equals", "starts_with", "ends_with", "regex", "not_regex"), "fact"),
    **dict.fromkeys(("json_valid", "json_schema", "similarity"), "fact"),
    **dict.fromkeys(("tool_called", "tool_not_called", "tool_order", "tool_arguments", "tool_output"), "behavior"),
    **dict.fromkeys(("max_tool_calls", "max_turns", "max_tokens", "max_cost", "max_seconds"), "behavior"),
}
"""The layer of each type of check: what an answer says is fact, what was done for it is behavior."""


class Columns(NamedTuple):
    """What the columns of a file mean."""

    layers: tuple[str, ...]
    """Columns that hold scores, one a layer."""
    checks: Mapping[str, str] = CHECK_LAYERS
    """Layer by type of check."""
    id: str = "id"
    """What names a sample."""
    judges: tuple[str, ...] = ()
    """Columns of single judges' marks."""
    human: str | None = None
    """Column of people's marks."""
    provenance: tuple[str, ...] = ()
    """Columns that say how the run was scored, the same in all rows."""


class LayerFile(NamedTuple):
    """One run: everything by sample id, NaN where missing."""

    path: Path
    scores: dict[str, list[float]]
    marks: dict[str, list[float]]
    human: dict[str, float]
    provenance: dict[str, str]
    columns: list[str]
    """All that its rows have, in the order in which they first come."""


def read_layer_file(path: Path, columns: Columns) -> LayerFile:
    """Read a run of layer scores from JSONL or CSV, told apart by content. Files are data and never evaluated.

    A row has an id and either scores, in columns named as the layers, or checks: a list ``checks`` of objects (JSONL),
    or one check itself. A check has a ``type``, ``passed`` and optionally a ``weight``. Scores and checks of one sample
    may stand in rows of their own. A score that is absent, empty, null or NaN is missing.

    Args:
        path: the file.
        columns: what its columns mean.

    Raises:
        ValueError: with file and line, where a row can't be understood.
        OSError: where the file can't be opened.
    """
    rows = _Rows(path, columns)
    start = head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    for where, row in read_json_lines(path) if start[:1] == b"{" else read_table(path):
        rows.add(where, row)
    return rows.finish()


class _Rows:
    """Takes the rows of one run."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.columns = columns
        self.file = LayerFile(path, {}, {}, {}, {}, [])
        self.scored: set[str] = set()
        # By layer and id: weight passed, and all.
        self.weights: dict[str, dict[str, list[float]]] = {}
        self.seen: dict[str, None] = {}

    def add(self, where: str, row: Mapping[str, Any]) -> None:
        columns, file = self.columns, self.file
        self.seen.update(dict.fromkeys(row))
        sample = _id(row.get(columns.id), where, columns.id)
        scores = [_number(row.get(layer), where, layer) for layer in columns.layers]
        file.scores.setdefault(sample, [math.nan] * len(scores))
        one_check = _given(row.get("passed"))
        self._add_provenance(row, where, one_check=one_check)
        if one_check:
            if not all(math.isnan(score) for score in scores):
                raise ValueError(f"{where}: a row of one check holds a score too; put scores in a row of their own")
            marked = [name for name in (*columns.judges, columns.human) if name is not None and _given(row.get(name))]
            if marked:
                raise ValueError(
                    f"{where}: a row of one check holds a mark too, {marked[0]}; put marks in a row of their own"
                )
            self._add_check(sample, row, where)
            return
        if sample in self.scored:
            raise ValueError(
                f"{where}: {columns.id} {clipped(sample)!r} stands twice; each sample has one row of scores"
            )
        self.scored.add(sample)
        file.scores[sample] = scores
        checks = row.get("checks", [])
        if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
            raise ValueError(f"{where}: checks must be a list of objects with type and passed")
        for check in checks:
            self._add_check(sample, check, where)
        if columns.judges:
            file.marks[sample] = [_number(row.get(judge), where, judge) for judge in columns.judges]
        if columns.human is not None:
            file.human[sample] = _number(row.get(columns.human), where, columns.human)

    def finish(self) -> LayerFile:
        columns, file = self.columns, self.file
        for layer, by_sample in self.weights.items():
            place = columns.layers.index(layer)
            passed, total = zip(*by_sample.values(), strict=True)
            for sample, score in zip(by_sample, layer_score(passed, total).tolist(), strict=True):
                if not math.isnan(file.scores[sample][place]):
                    raise ValueError(
                        f"{file.path}: {columns.id} {clipped(sample)!r} has a score and checks of the layer {layer!r}; "
                        "keep one"
                    )
                file.scores[sample][place] = score
        if all(math.isnan(score) for scores in file.scores.values() for score in scores):
            raise ValueError(
                f"{file.path}: no row has a score of the layers {list(columns.layers)}, or checks; "
                f"its columns are {list(map(clipped, list(self.seen)[:20]))}"
            )
        file.columns.extend(self.seen)
        return file

    def _add_provenance(self, row: Mapping[str, Any], where: str, *, one_check: bool) -> None:
        provenance = self.file.provenance
        for name in self.columns.provenance:
            # A check need not repeat how its run was scored.
            if one_check and not _given(row.get(name)):
                continue
            value = str(row.get(name, ""))
            was = provenance.setdefault(name, value)
            if was != value:
                raise ValueError(f"{where}: {name} is {value!r}, but was {was!r} before; a run is scored in one way")

    def _add_check(self, sample: str, check: Mapping[str, Any], where: str) -> None:
        kind = check.get("type")
        layer = self.columns.checks.get(kind) if isinstance(kind, str) else None
        if layer is None:
            raise ValueError(
                f"{where}: the type of check {clipped(repr(kind))} belongs to no layer; say which, for instance "
                f"--check {shown(kind)}=fact"
            )
        if layer not in self.columns.layers:
            raise ValueError(
                f"{where}: checks of type {clipped(repr(kind))} are of the layer {layer!r}, which is not in --layers"
            )
        weight = _number(check.get("weight"), where, "weight", missing=1.0)
        if weight < 0.0:
            raise ValueError(f"{where}: the weight of a check must not be negative, but is {weight:g}")
        sums = self.weights.setdefault(layer, {}).setdefault(sample, [0.0, 0.0])
        sums[0] += weight * _passed(check.get("passed"), where)
        sums[1] += weight


def _given(value: Any) -> bool:
    return value is not None and value != ""


def _id(value: Any, where: str, column: str) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(
        f"{where}: expected {column} (text or a whole number), but found {clipped(repr(value))}; name it with --id"
    )


def _number(value: Any, where: str, column: str, *, missing: float = math.nan) -> float:
    if not _given(value):
        return missing
    try:
        number = math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"{where}: expected {column} to be a finite number, but found {str(value)[:40]!r}")
    return number


def _passed(value: Any, where: str) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (True, "true", "1"):
        return True
    if word in (False, "false", "0"):
        return False
    raise ValueError(f"{where}: expected passed to be true or false, but found {str(value)[:40]!r}")


def sample_order(files: Iterable[LayerFile]) -> list[str]:
    """All sample ids in one order, whatever the order of rows."""
    return sorted({sample for file in files for sample in file.scores})
