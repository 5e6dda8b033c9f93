"""lm-evaluation-harness: ``samples_<task>_<time>.jsonl``, one row a document and filter, all generations of it."""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.json_stream import read_array
from polyweave_torch.evallogs.json_values import part, read_document, read_json_lines
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.readers.tasks import Task, find_tasks, item_of, of_one_task, slice_of
from polyweave_torch.evallogs.rows import Rows, outcome
from polyweave_torch.evallogs.run import ChoiceError, Run

NAME = "lm_eval"
OPTIONS = frozenset({"filter", "metric", "id", "slice", "arm", "threshold"})

_FIELDS = {"doc_id", "doc", "target", "truth", "arguments", "resps", "filtered_resps", "filter", "metrics"}
_HASHES = {"doc_hash", "prompt_hash", "target_hash"}
_FILE = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d:-]+(?:\.\d+)?)")


def sniff(shape: Outline) -> bool:
    """Rows with ``doc_id``, beside what was asked or answered."""
    row = shape.record
    return (
        "doc_id" in row
        and "native_id" not in row
        and any(name in row for name in ("doc", "arguments", "resps", "filtered_resps", "prompt_0"))
    )


def read(paths: list[Path], options: Options) -> Run:
    """Read one run: the samples of one or more tasks, with what the results file beside them says."""
    tasks, warnings = find_tasks(paths, options, _FILE)
    rows = Rows(tasks[0].path)
    left_out: list[ChoiceError] = []
    read_tasks = []
    lists: set[str] = set()
    chosen: dict[str, list[str]] = {"metric": [], "filter": []}
    for task in tasks:
        reading = _read_task(task, options, rows, lists, several=len(tasks) > 1)
        if isinstance(reading, ChoiceError):
            left_out.append(reading)
            continue
        read_tasks.append(task)
        for name, value in reading.items():
            chosen[name].append(value)
    if not read_tasks:
        raise left_out[0]
    warnings += [f"left out: {error.reason}" for error in left_out]
    warnings += [f"{name} is a list in each row; an item counts as right where every entry is true" for name in lists]
    details = _details(read_tasks)
    details |= {name: ", ".join(dict.fromkeys(values)) for name, values in chosen.items() if values}
    run = rows.finish(options, format=NAME, details=details, warnings=warnings)
    return of_one_task(run, tasks, read_tasks, options)


def _read_task(
    task: Task, options: Options, rows: Rows, lists: set[str], *, several: bool
) -> dict[str, str] | ChoiceError:
    """Add a task's rows; a ``ChoiceError`` comes back where it lacks the filter or metric that was asked for."""
    what = f"task {task.name}" if task.name else str(task.path)
    filters: dict[str, None] = {}
    metric = None
    for where, row in _rows(task.path):
        name = label(row.get("filter", "none"))
        filters.setdefault(name)
        if name != (options.filter or next(iter(filters))):
            continue
        if metric is None:
            metrics = _metrics(row)
            if options.metric is not None and options.metric not in metrics:
                return ChoiceError(f"{what} has no metric {options.metric!r}", option="metric", choices=metrics)
            metric = choose(options.metric, metrics, option="metric", where=what, what="metric")
        item = lookup(row, options.id or "doc_id", where, inside=("doc",))
        rows.add(
            where,
            item_of(task, item, several=several),
            _value(row.get(metric), where, metric, lists),
            epoch=0,
            slice=slice_of(task, row, options, where, several=several, inside=("doc",)),
            answer=_answer(row, metric),
            prompt=str(row.get("prompt_hash", ""))[:16],
            content=str(row.get("doc_hash", ""))[:16],
        )
    if options.filter is None and len(filters) > 1:
        raise ChoiceError(f"{what} has {len(filters)} filters", option="filter", choices=list(filters))
    if metric is None:
        return ChoiceError(f"{what} has no filter {options.filter!r}", option="filter", choices=list(filters))
    return {"metric": metric, "filter": options.filter or next(iter(filters))}


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    # Before 0.4.3 the file was one JSON array.
    return read_array(path) if outline(path).kind == "array" else read_json_lines(path)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Before 0.4.7 rows don't name their metrics: these are the numbers among the unknown fields."""
    if isinstance(row.get("metrics"), list):
        return [str(name) for name in row["metrics"]]
    return [
        name
        for name, value in row.items()
        if name not in _FIELDS | _HASHES and not name.startswith(("prompt_", "logit_")) and _is_outcome(value)
    ]


def _is_outcome(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    try:
        return all(isinstance(outcome(entry, ""), float) for entry in entries)
    except ValueError:
        return False


def _value(value: Any, where: str, metric: str, lists: set[str]) -> float:
    if not isinstance(value, list):
        return outcome(value, where)
    lists.add(metric)
    entries = [outcome(entry, where) for entry in value]
    if any(entry not in (0.0, 1.0) for entry in entries if not math.isnan(entry)):
        raise ValueError(f"{where}: {metric} is a list of numbers other than 0 and 1; choose another metric")
    return math.nan if not entries or any(map(math.isnan, entries)) else float(all(entries))


def _answer(row: Mapping[str, Any], metric: str) -> str | None:
    """The text that was filtered out of the response, or the number of the choice that ``acc`` takes."""
    answers = row.get("filtered_resps")
    if not isinstance(answers, list) or not answers:
        return None
    if len(answers) == 1 and isinstance(answers[0], str):
        return answers[0]
    if metric != "acc" or not all(isinstance(answer, list) and len(answer) == 2 for answer in answers):
        return None
    try:
        likelihoods = [float(answer[0]) for answer in answers]
    except (TypeError, ValueError, OverflowError):
        return None
    return str(likelihoods.index(max(likelihoods)))


def _details(tasks: list[Task]) -> dict[str, str]:
    """What the results files of the same time say; only there stand the model, versions and n-shot."""
    details: dict[str, list[str]] = {"task": [task.name for task in tasks if task.name]}
    for task in tasks:
        results = task.path.with_name(f"results_{task.time}.json")
        if not task.time or not results.is_file():
            continue
        document = read_document(results)
        if not isinstance(document, dict):
            continue
        said = {
            "model": document.get("model_name"),
            "harness": document.get("lm_eval_version") and f"lm_eval {document['lm_eval_version']}",
            "n-shot": part(document, "n-shot", str(results)).get(task.name),
            "task version": part(document, "versions", str(results)).get(task.name),
        }
        for name, value in said.items():
            if value is not None:
                details.setdefault(name, []).append(label(value))
    return {name: ", ".join(dict.fromkeys(values)) for name, values in details.items() if values}
