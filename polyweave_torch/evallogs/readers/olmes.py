"""OLMES predictions: ``task-<number>-<task>-predictions.jsonl``, one row a document, several metrics in each."""

import re
from collections.abc import Mapping
from pathlib import Path

from polyweave_torch.evallogs.json_values import part, read_json_lines
from polyweave_torch.evallogs.options import Options, choose, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.readers.tasks import find_tasks, item_of, of_one_task, slice_of
from polyweave_torch.evallogs.rows import Rows, outcome
from polyweave_torch.evallogs.run import Run

NAME = "olmes"
OPTIONS = frozenset({"metric", "id", "slice", "arm", "threshold"})

_FILE = re.compile(r"task-\d+-(?P<task>.+)-predictions(?P<time>)")


def sniff(shape: Outline) -> bool:
    """Rows with ``doc_id``, ``native_id`` and an object of metrics."""
    row = shape.record
    return "doc_id" in row and "native_id" in row and isinstance(row.get("metrics"), Mapping)


def read(paths: list[Path], options: Options) -> Run:
    """Read the predictions of one or more tasks. Items are called by ``native_id`` where the task has them."""
    tasks, warnings = find_tasks(paths, options, _FILE)
    rows = Rows(tasks[0].path)
    several = len(tasks) > 1
    chosen: dict[str, None] = {}
    for task in tasks:
        metric, id = "", options.id
        for where, row in read_json_lines(task.path):
            metrics = part(row, "metrics", where)
            if not metric:
                id = id or ("doc_id" if row.get("native_id") is None else "native_id")
                known = [name for name, value in metrics.items() if isinstance(value, (int, float))]
                metric = choose(options.metric, known, option="metric", where=str(task.path), what="metric")
            rows.add(
                where,
                item_of(task, lookup(row, id or "doc_id", where, inside=("doc",)), several=several),
                outcome(metrics.get(metric), where),
                epoch=0,
                slice=slice_of(task, row, options, where, several=several, inside=("doc", "metadata")),
            )
        chosen.setdefault(metric)
    details = {"task": ", ".join(task.name for task in tasks), "metric": ", ".join(chosen)}
    run = rows.finish(options, format=NAME, details=details, warnings=warnings)
    return of_one_task(run, tasks, tasks, options)
