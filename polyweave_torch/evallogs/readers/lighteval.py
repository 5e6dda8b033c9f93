"""lighteval details: ``details_<task>_<time>.parquet``, one row a document, in any order."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.json_values import part
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.readers.tasks import find_tasks, item_of, of_one_task, slice_of
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.tables import read_parquet

NAME = "lighteval"
OPTIONS = frozenset({"metric", "id", "slice", "arm", "threshold"})

_FILE = re.compile(r"details_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d-]+(?:\.\d+)?)")


def sniff(shape: Outline) -> bool:
    """A Parquet file with the columns ``doc`` and ``metric``."""
    return shape.kind == "parquet" and {"doc", "metric"} <= set(shape.names)


def read(paths: list[Path], options: Options) -> Run:
    """Read the details of one or more tasks of one run."""
    tasks, warnings = find_tasks(paths, options, _FILE)
    rows = Rows(tasks[0].path)
    several = len(tasks) > 1
    chosen: dict[str, None] = {}
    for task in tasks:
        metric = ""
        for where, row in read_parquet(task.path):
            doc, metrics = part(row, "doc", where), part(row, "metric", where)
            if not metric:
                metric = choose(options.metric, list(metrics), option="metric", where=str(task.path), what="metric")
            rows.add(
                where,
                item_of(task, lookup(doc, options.id or "id", where, inside=("specific",)), several=several),
                outcome(metrics.get(metric), where),
                epoch=0,
                slice=slice_of(task, doc, options, where, several=several, inside=("specific",)),
                answer=_answer(part(row, "model_response", where)),
                prompt=fingerprint(doc["query"]) if isinstance(doc.get("query"), str) else "",
            )
        chosen.setdefault(metric)
    details = {"task": ", ".join(task.name for task in tasks), "metric": ", ".join(chosen)}
    run = rows.finish(options, format=NAME, details=details, warnings=warnings)
    return of_one_task(run, tasks, tasks, options)


def _answer(response: Mapping[str, Any]) -> str | None:
    """The one answer that was generated, after processing where there was some."""
    for name in ("text_post_processed", "text"):
        texts = response.get(name)
        if isinstance(texts, list) and len(texts) == 1 and texts[0] is not None:
            return label(texts[0])
    return None
