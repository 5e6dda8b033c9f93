"""Rows of scores that the tests write to files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LAYERS = ("fact", "behavior", "judge")
Rows = Sequence[dict[str, Any]]
Write = Callable[[str, Rows], Path]


def scored(score: float, n: int = 20, **more: Any) -> Rows:
    return [{"id": i, "fact": score, "judge": score, **more} for i in range(n)]
