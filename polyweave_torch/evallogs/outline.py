"""What a file looks like, from its first bytes: enough to tell its format by content, never by name."""

import csv
import importlib
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from polyweave_torch.evallogs.json_values import parse
from polyweave_torch.evallogs.source import HEAD, head
from polyweave_torch.evallogs.tables import delimiter

Kind = Literal["zip", "parquet", "lines", "array", "object", "table", "empty"]
"""``lines`` are JSON objects, one a line (also a lone one); ``object`` is one that takes several lines."""


@dataclass(frozen=True)
class Outline:
    """The shape of one file."""

    kind: Kind
    record: dict[str, Any] = field(default_factory=dict)
    """The first object of a JSONL file or array; of one JSON object as much as its first bytes show."""
    names: list[str] = field(default_factory=list)
    """Members of a zip, columns of a table."""


def outline(path: Path) -> Outline:
    """Look at a file. JSON that is broken from the start is an error here; the rest is seen when it is read."""
    start = head(path)
    if start[:4] == b"PK\x03\x04":
        return Outline("zip", names=_members(path))
    if start[:4] == b"PAR1":
        return Outline("parquet", names=_parquet_columns(path))
    truncated = len(start) == HEAD
    # The last character of a part may be cut in two.
    text = start.decode(errors="ignore") if truncated else _decoded(start, path)
    text = text.lstrip("\ufeff \t\r\n")
    if not text:
        return Outline("empty")
    line, _, rest = text.partition("\n")
    if text[0] not in "[{":
        return Outline("table", names=_columns(line))
    first = _partial(line, 0, _DEPTH)
    if text[0] == "{" and (_is_whole(line) or not rest):
        return Outline("lines", record=first)
    if not truncated:
        parse(text, str(path))
    value = _partial(text, 0, _DEPTH)
    if text[0] == "{":
        return Outline("object", record=value)
    return Outline("array", record=value[0] if value and isinstance(value[0], dict) else {})


def _decoded(start: bytes, path: Path) -> str:
    try:
        return start.decode()
    except UnicodeDecodeError as error:
        line = start.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: not UTF-8 text at byte {error.start} ({error.reason})") from error


_DEPTH = 4
"""Levels of a document that its outline shows."""


def _columns(line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter(line)), [])
    except csv.Error:
        return []


def _parquet_columns(path: Path) -> list[str]:
    """The top columns, none where pyarrow is not installed: to read the file says then what is missing."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        pyarrow = importlib.import_module("pyarrow")
    except ModuleNotFoundError:
        return []
    try:
        return list(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a whole Parquet file: {error}") from error


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise ValueError(f"{path}: not a whole zip file: {error}") from error


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _partial(text: str, place: int, depth: int) -> Any:
    """The JSON value at a place as far as the text goes: of an array that is cut off, only its first element."""
    try:
        return _DECODER.raw_decode(text, place)[0]
    except (ValueError, RecursionError):
        pass
    if depth == 0 or place >= len(text):
        return None
    if text[place] == "[":
        return [_partial(text, _skip(text, place + 1), depth - 1)]
    return _partial_object(text, place, depth) if text[place] == "{" else None


def _partial_object(text: str, place: int, depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    place = _skip(text, place + 1)
    while True:
        try:
            key, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return members
        colon = _skip(text, place)
        start = _skip(text, colon + 1)
        if text[colon : colon + 1] != ":" or not isinstance(key, str):
            return members
        try:
            members[key], place = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            members[key] = _partial(text, start, depth - 1)
            return members
        place = _skip(text, place)
        if text[place : place + 1] != ",":
            return members
        place = _skip(text, place + 1)


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


_DECODER = json.JSONDecoder()
