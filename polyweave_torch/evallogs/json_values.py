"""JSON of files that nobody vouches for: values, objects a line, and what is expected inside of them."""

import json
from collections.abc import Callable, Iterator, Mapping
from json.scanner import make_scanner
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.source import MAX_PIECE, decode, named_errors, open_regular, raw_lines, repeated
from polyweave_torch.layout import clipped


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"the key {clipped(repeated(name for name, _ in pairs)[0])!r} stands twice in one object")
    return members


DECODER = json.JSONDecoder(object_pairs_hook=_object)
_scan: Callable[[str, int], tuple[Any, int]] = make_scanner(DECODER)  # type: ignore[arg-type]


def parse(text: str, where: str) -> Any:
    """One JSON value, NaN and Infinity included; a key that stands twice in one object is an error."""
    try:
        # The scanner alone is faster; what it refuses or leaves over, the decoder explains.
        value, end = _scan(text, 0)
        if end == len(text):
            return value
    except (StopIteration, ValueError, RecursionError):
        pass
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise misread(error, where) from error


def misread(error: Exception, where: str) -> ValueError:
    """What the decoder refused, said with its place."""
    if isinstance(error, RecursionError):
        return ValueError(f"{where}: nested too deeply")
    if isinstance(error, json.JSONDecodeError):
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"character {error.pos}"
        return ValueError(f"{where}: not JSON: {error.msg} at {place}")
    return ValueError(f"{where}: {error}")


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSONL file, each with its place."""
    name = str(path)
    for number, line in enumerate(raw_lines(path), start=1):
        text = line.strip()
        if not text:
            continue
        where = f"{name}:{number}"
        row = parse(text, where)
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected a JSON object a line, but found {kind_of(row)}")
        yield where, row


def read_document(path: Path) -> Any:
    """A whole JSON file of at most ``MAX_PIECE`` bytes."""
    with open_regular(path) as file, named_errors(path):
        content = file.read(MAX_PIECE + 1)
    if len(content) > MAX_PIECE:
        raise ValueError(f"{path}: expected a file of at most {MAX_PIECE // 2**20} MiB, but it is larger")
    return parse(decode(content, str(path)).lstrip("\ufeff"), str(path))


def part(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """An object inside of a row; an empty one where it is absent or null."""
    value = row.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{where}: expected {name} to be an object, but found {kind_of(value)}")
    return value or {}


def entries(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """A list inside of a row; an empty one where it is absent or null."""
    value = row.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{where}: expected {name} to be an array, but found {kind_of(value)}")
    return value or []


def kind_of(value: Any) -> str:
    """What JSON calls a value."""
    names = {dict: "an object", list: "an array", str: "a string", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")
