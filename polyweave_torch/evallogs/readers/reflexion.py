"""Reflexion: ``is_solved``, one row a task."""

from pathlib import Path

from polyweave_torch.evallogs.options import Options
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.readers.human_eval import read_tasks
from polyweave_torch.evallogs.run import Run

NAME = "reflexion"
OPTIONS = frozenset({"epochs", "id", "slice", "arm"})


def sniff(shape: Outline) -> bool:
    """Rows with ``is_solved`` and a ``task_id`` or ``name``."""
    row = shape.record
    return shape.kind == "lines" and "is_solved" in row and ("task_id" in row or "name" in row)


def read(paths: list[Path], options: Options) -> Run:
    """Read one file."""
    return read_tasks(paths, options, format=NAME, id=("task_id", "name"), correct="is_solved", answer="solution")
