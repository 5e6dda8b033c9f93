"""evalscope: ``reviews/<model>/<bench>_<subset>.jsonl``, one row an attempt at a question."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import Run

NAME = "evalscope"
OPTIONS = frozenset({"metric", "epochs", "id", "slice", "arm", "threshold"})


def sniff(shape: Outline) -> bool:
    """Rows with a ``sample_score``."""
    score = shape.record.get("sample_score")
    return isinstance(score, dict) and "score" in score


def read(paths: list[Path], options: Options) -> Run:
    """Read one run: the reviews of one or more benchmarks of a model.

    A question is a ``group_id``, an attempt at it a ``generation_index``: with repeats ``index`` numbers attempts.
    """
    models = list(dict.fromkeys(path.parent.name for path in paths))
    if options.arm is not None or len(models) > 1:
        arm = choose(options.arm, models, option="arm", where=str(paths[0].parent.parent), what="model")
        paths = [path for path in paths if path.parent.name == arm]
    rows = Rows(paths[0])
    repeated = False
    metric = None
    for path in paths:
        prefix = f"{path.stem}/" if len(paths) > 1 else ""
        for where, row in read_json_lines(path):
            score = row.get("sample_score")
            if not isinstance(score, Mapping) or not isinstance(score.get("score"), Mapping):
                raise ValueError(f"{where}: expected a review with sample_score.score")
            values = score["score"].get("value")
            failed = score["score"].get("status", "success") not in ("success", None)
            if isinstance(values, Mapping) and values:
                metric = choose(options.metric, list(values), option="metric", where=where, what="metric")
            if isinstance(values, Mapping):
                values = values[metric] if values else None
            attempt = score.get("generation_index") or 0
            if not isinstance(attempt, int):
                raise ValueError(f"{where}: expected generation_index to be a number, but found {attempt!r}")
            repeated |= attempt > 0
            rows.add(
                where,
                _item(row, score, prefix, options, where),
                math.nan if failed else outcome(values, where),
                failed=failed,
                epoch=attempt if options.id is None else None,
                slice=_slice(row, path, options, len(paths) > 1, where),
                answer=_answer(score["score"]),
                prompt=_asked(row),
            )
    if options.id is not None and repeated and not rows.repeated:
        raise ValueError(
            f"{rows.path}: {options.id} numbers the attempts at a question, and repeats of an item are not items; "
            "leave id= (--id) out and choose epochs= (--epochs)"
        )
    details = {"metric": metric} if metric else {}
    # Only in its place does a file's path say what it is.
    if paths[0].parent.parent.name == "reviews":
        details |= {"model": paths[0].parent.name, "task": ", ".join(path.stem for path in paths)}
    run = rows.finish(options, format=NAME, details=details, warnings=[])
    return run if len(paths) > 1 else replace(run, task=paths[0].stem)


def _item(row: Mapping[str, Any], score: Mapping[str, Any], prefix: str, options: Options, where: str) -> Any:
    if options.id is not None:
        item = lookup(row, options.id, where, inside=("sample_score", "sample_score.sample_metadata"))
    else:
        item = score.get("group_id")
        item = row.get("index") if item is None else item
    return f"{prefix}{label(item)}" if prefix else item


def _slice(row: Mapping[str, Any], path: Path, options: Options, several: bool, where: str) -> str | None:
    if options.slice is None:
        return path.stem if several else None
    return label(lookup(row, options.slice, where, inside=("sample_score", "sample_score.sample_metadata")))


def _answer(score: Mapping[str, Any]) -> str | None:
    answer = score.get("extracted_prediction")
    return None if answer is None else label(answer)


def _asked(row: Mapping[str, Any]) -> str:
    """A hash of what the user asked; messages have ids of their own in each run."""
    messages = row.get("messages")
    if not isinstance(messages, list):
        return ""
    asked = [
        message.get("content")
        for message in messages
        if isinstance(message, Mapping) and message.get("role") in ("system", "user")
    ]
    return fingerprint(asked)
