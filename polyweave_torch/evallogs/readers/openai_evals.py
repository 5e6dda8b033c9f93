"""OpenAI evals: a JSONL of events, the specification first; those of type ``match`` say what was right."""

from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_values import part, read_json_lines
from polyweave_torch.evallogs.options import Options, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import Run

NAME = "openai_evals"
OPTIONS = frozenset({"epochs", "slice", "arm", "threshold"})


def sniff(shape: Outline) -> bool:
    """A first line with the specification, or an event."""
    row = shape.record
    return shape.kind == "lines" and ("spec" in row or {"run_id", "event_id", "sample_id", "type"} <= set(row))


def read(paths: list[Path], options: Options) -> Run:
    """Read one file. A sample that ended in an error and has no match failed."""
    path, options = one_file(paths, options)
    rows = Rows(path)
    details: dict[str, str] = {}
    prompts: dict[Any, str] = {}
    failed: dict[Any, str] = {}
    matched: set[Any] = set()
    for where, row in read_json_lines(path):
        if "spec" in row:
            details = _details(part(row, "spec", where))
        kind, item = row.get("type"), row.get("sample_id")
        if kind not in ("match", "sampling", "error"):
            continue
        if not isinstance(item, (str, int)):
            raise ValueError(f"{where}: expected the sample_id of a {kind} event, but found {str(item)[:40]!r}")
        data = part(row, "data", where)
        if kind == "match":
            matched.add(item)
            rows.add(
                where,
                item,
                outcome(lookup(data, "correct", where), where),
                slice=None if options.slice is None else label(lookup(data, options.slice, where)),
                answer=None if data.get("picked") is None else label(data["picked"]),
                prompt=prompts.pop(item, ""),
            )
        elif kind == "sampling" and data.get("prompt") is not None:
            prompts.setdefault(item, fingerprint(data["prompt"]))
        elif kind == "error":
            failed.setdefault(item, where)
    for item, where in failed.items():
        if item not in matched:
            rows.add(where, item, 0.0, failed=True)
    return rows.finish(options, format=NAME, details=details, warnings=[])


def _details(spec: Any) -> dict[str, str]:
    models = spec.get("completion_fns")
    said = {"model": models if models is None else label(models).strip('[]"'), "task": spec.get("eval_name")}
    return {name: label(value) for name, value in said.items() if value is not None}
