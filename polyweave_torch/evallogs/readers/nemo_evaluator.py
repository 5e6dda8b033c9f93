"""NVIDIA NeMo evaluator: ``results.jsonl``, one row a problem and repeat, with its reward."""

from pathlib import Path

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.options import Options, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, outcome
from polyweave_torch.evallogs.run import Run

NAME = "nemo_evaluator"
OPTIONS = frozenset({"epochs", "id", "slice", "arm", "threshold"})


def sniff(shape: Outline) -> bool:
    """Rows with ``problem_idx`` and ``reward``."""
    return shape.kind == "lines" and "problem_idx" in shape.record and "reward" in shape.record


def read(paths: list[Path], options: Options) -> Run:
    """Read one file; repeats of a problem are its epochs, and a reward other than 0 and 1 is a score."""
    path, options = one_file(paths, options)
    rows = Rows(path)
    for where, row in read_json_lines(path):
        rows.add(
            where,
            lookup(row, options.id or "problem_idx", where, inside=("metadata",)),
            outcome(lookup(row, "reward", where), where),
            epoch=row.get("repeat"),
            slice=None if options.slice is None else label(lookup(row, options.slice, where, inside=("metadata",))),
        )
    return rows.finish(options, format=NAME, details={"metric": "reward"}, warnings=[])
