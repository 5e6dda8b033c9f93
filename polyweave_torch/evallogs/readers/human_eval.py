"""HumanEval results: ``task_id`` and ``passed``, one row a sample of a task."""

from pathlib import Path

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.options import Options, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import Run

NAME = "human_eval"
OPTIONS = frozenset({"epochs", "id", "slice", "arm", "threshold"})


def sniff(shape: Outline) -> bool:
    """Rows with ``task_id`` and ``passed``."""
    return shape.kind == "lines" and "task_id" in shape.record and "passed" in shape.record


def read(paths: list[Path], options: Options) -> Run:
    """Read one file; k samples of a task are its epochs."""
    return read_tasks(paths, options, format=NAME, id=("task_id",), correct="passed", answer="completion")


def read_tasks(
    paths: list[Path], options: Options, *, format: str, id: tuple[str, ...], correct: str, answer: str
) -> Run:
    """Read rows of tasks: the first of some ids that they have, an outcome, and perhaps an answer and a prompt."""
    path, options = one_file(paths, options)
    rows = Rows(path)
    for where, row in read_json_lines(path):
        known = next((name for name in id if name in row), id[0])
        rows.add(
            where,
            lookup(row, options.id or known, where),
            outcome(lookup(row, correct, where), where),
            slice=None if options.slice is None else label(lookup(row, options.slice, where)),
            answer=label(row[answer]) if row.get(answer) is not None else None,
            prompt=fingerprint(row["prompt"]) if row.get("prompt") is not None else "",
        )
    return rows.finish(options, format=format, details={}, warnings=[])
