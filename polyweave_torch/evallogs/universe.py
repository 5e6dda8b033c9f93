"""The items that count, where runs don't name all of them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.json_values import read_document, read_json_lines
from polyweave_torch.evallogs.options import ID_NAMES
from polyweave_torch.evallogs.outline import outline
from polyweave_torch.evallogs.source import raw_lines, repeated
from polyweave_torch.layout import clipped, counted

Universe = int | str | os.PathLike[str] | Sequence[str]
"""The items that count: how many (a number, or text of it), a file that names them, or their ids."""

_MOST_UNNAMED = 1_000_000
"""Items that a universe may have beyond those that the runs name, where it is a number."""
_IDS = ("instance_id", "id", "item_id", "sample_id", "task_id", "question_id")


def universe_ids(universe: Universe, known: Sequence[str]) -> list[str]:
    """The ids of a universe; all ids that runs name must lie in it.

    Args:
        universe: see :data:`Universe`. A file is a JSON array of ids or of objects with an id, JSONL of such, or text
            with one id a line.
        known: the ids that runs name. Of a universe that is a number, the rest are unnamed.
    """
    if isinstance(universe, str) and universe.isdecimal() and not Path(universe).exists():
        universe = int(universe)
    if isinstance(universe, int):
        if universe < len(known):
            raise ValueError(f"the universe has {universe} items, but the runs name {len(known)}")
        if universe - len(known) > _MOST_UNNAMED:
            raise ValueError(
                f"the universe has {universe} items, of which the runs name {len(known)}; at most {_MOST_UNNAMED} may "
                "be unnamed. Check the number, or give a file of the ids"
            )
        return [*known, *(f"(unnamed {number})" for number in range(1, universe - len(known) + 1))]
    ids = _read(Path(universe)) if isinstance(universe, (str, os.PathLike)) else list(universe)
    inside = set(ids)
    if len(inside) < len(ids):
        twice = repeated(ids)
        raise ValueError(
            f"the universe names {counted(len(twice), 'item')} more than once, such as {clipped(twice[0])!r}"
        )
    outside = [name for name in known if name not in inside]
    if outside:
        raise ValueError(
            f"{len(outside)} items of the runs are not in the universe of {len(ids)}: "
            f"{', '.join(repr(clipped(name)) for name in outside[:3])}, where it has "
            f"{', '.join(repr(clipped(name)) for name in ids[:3])}"
        )
    return ids


def _read(path: Path) -> list[str]:
    kind = outline(path).kind
    if kind == "array":
        return [_id(item, str(path)) for item in read_document(path)]
    if kind == "lines":
        return [_id(row, where) for where, row in read_json_lines(path)]
    if kind != "table":
        raise ValueError(
            f"{path}: expected the ids of the universe (a JSON array, JSONL, or one id a line), not {kind}"
        )
    ids = [line.strip() for line in raw_lines(path) if line.strip()]
    if ids and ids[0].lower() in ID_NAMES:
        raise ValueError(
            f"{path}: its first line, {ids[0]!r}, is the name of a column and would count as an item; remove it"
        )
    return ids


def _id(item: Any, where: str) -> str:
    if isinstance(item, dict):
        item = next((item[name] for name in _IDS if name in item), None)
    if isinstance(item, bool) or not isinstance(item, (str, int)):
        raise ValueError(
            f"{where}: expected ids, or objects with one of {', '.join(_IDS)}, but found {str(item)[:40]!r}"
        )
    return str(item)
