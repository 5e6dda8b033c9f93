"""What the tests of the readers share: where the logs are, how to write one, how to count."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.alignment import Aligned

DATA = Path(__file__).parents[1] / "data" / "evallogs"
TRUTH: dict[str, dict[str, Any]] = json.loads((DATA / "TRUTH.json").read_text())


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_document(path: Path, document: Any, indent: int | None = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=indent))
    return path


def tally(before: Iterable[bool], after: Iterable[bool]) -> dict[str, int]:
    counts = dict.fromkeys(("n00", "n01", "n10", "n11"), 0)
    for first, second in zip(before, after, strict=True):
        counts[f"n{int(first)}{int(second)}"] += 1
    return counts


def counts(aligned: Aligned) -> dict[str, int]:
    return tally(aligned.correct[:, 0].tolist(), aligned.correct[:, -1].tolist())


def slice_counts(aligned: Aligned) -> dict[str, dict[str, int]]:
    assert aligned.slices is not None
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for name, row in zip(aligned.slices, aligned.correct.tolist(), strict=True):
        pairs.setdefault(name, []).append((row[0], row[-1]))
    return {name: tally(*zip(*rows, strict=True)) for name, rows in pairs.items()}


def cells(truth: Mapping[str, Any]) -> dict[str, int]:
    return {name: truth[name] for name in ("n00", "n01", "n10", "n11")}
