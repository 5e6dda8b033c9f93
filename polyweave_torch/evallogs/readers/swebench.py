"""SWE-bench: lists of instance ids (v0 and v2 reports, several arms in one file) and reports of single instances."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_values import read_document
from polyweave_torch.evallogs.options import Options, choose
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows
from polyweave_torch.evallogs.run import Run

NAME = "swebench"
OPTIONS = frozenset({"slice", "arm"})

_RIGHT = ("resolved_ids", "resolved")
_FAILED = ("error_ids", "install_fail", "reset_failed")
_WRONG = (
    *("unresolved_ids", "empty_patch_ids", "completed_ids", "submitted_ids"),
    *("unresolved", "generated", "no_generation", "no_apply", "no_logs", "applied", "with_logs"),
    *("test_errored", "test_timeout"),
)
_COMPLETE = ("submitted_ids", "unresolved_ids", "generated", "unresolved")
"""With one of these a report names all that was tried; else the universe must come from elsewhere."""


def sniff(shape: Outline) -> bool:
    """An object with a list of resolved ids, at the top or in one of its parts, or with reports by instance."""
    record = shape.record
    return shape.kind in ("object", "lines") and bool(_is_lists(record) or _arms(record) or _is_reports(record))


def read(paths: list[Path], options: Options) -> Run:
    """Read one run. Slices are the projects, as the ids name them."""
    documents = {path: _document(path) for path in paths}
    reports = {path: document for path, document in documents.items() if _is_reports(document)}
    rows = Rows(paths[0])
    warnings: list[str] = []
    details: dict[str, str] = {}
    complete = True
    if len(reports) == len(paths):
        _read_reports(reports, options, rows)
    else:
        path, options = one_file(paths, options)
        warnings, complete, details = _read_lists(documents[path], path, options, rows)
    if options.slice not in (None, "project", "repo"):
        raise ValueError(f"{rows.path}: slices of SWE-bench are the projects (slice='project'), not {options.slice!r}")
    run = rows.finish(options, format=NAME, details=details, warnings=warnings)
    return replace(run, only_right=not complete, slice_of=project)


def project(instance: str) -> str:
    """The project of an instance: ``django`` of ``django__django-11001``."""
    name, separator, _ = instance.partition("__")
    return name if separator else "(none)"


def _document(path: Path) -> dict[str, Any]:
    document = read_document(path)
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected a SWE-bench report, but found an array")
    return document


def _is_lists(record: Mapping[str, Any]) -> bool:
    return any(isinstance(record.get(name), list) for name in _RIGHT)


def _arms(record: Mapping[str, Any]) -> list[str]:
    return [name for name, part in record.items() if isinstance(part, Mapping) and _is_lists(part)]


def _is_reports(record: Mapping[str, Any]) -> bool:
    first = next(iter(record.values()), None)
    return isinstance(first, Mapping) and "resolved" in first and any(name.startswith("patch_") for name in first)


def _read_reports(reports: Mapping[Path, Mapping[str, Any]], options: Options, rows: Rows) -> None:
    """Reports by instance, one file an instance below a folder for each model."""
    models = {path: path.parent.parent.name for path in reports}
    names = list(dict.fromkeys(models.values()))
    instances = [instance for report in reports.values() for instance in report]
    if options.arm is not None or len(set(instances)) < len(instances):
        where = str(next(iter(reports)).parent.parent.parent)
        arm = choose(options.arm, names, option="arm", where=where, what="model")
        reports = {path: report for path, report in reports.items() if models[path] == arm}
    for path, report in reports.items():
        for instance, result in report.items():
            if not isinstance(result, Mapping) or not isinstance(result.get("resolved"), bool):
                raise ValueError(f"{path}: {instance} does not say whether it is resolved")
            rows.add(str(path), instance, float(result["resolved"]), epoch=0, slice=project(instance))


def _read_lists(
    document: Mapping[str, Any], path: Path, options: Options, rows: Rows
) -> tuple[list[str], bool, dict[str, str]]:
    details = {"model": document["model"]} if isinstance(document.get("model"), str) else {}
    if not _is_lists(document):
        arm = choose(options.arm, _arms(document), option="arm", where=str(path), what="arm")
        document = document[arm]
    lists = {
        name: _ids(document[name], f"{path}: {name}")
        for name in (*_RIGHT, *_FAILED, *_WRONG)
        if isinstance(document.get(name), list)
    }
    warnings = [
        f"{name} holds {len(ids) - len(set(ids))} ids more than once; each counts once"
        for name, ids in lists.items()
        if len(set(ids)) < len(ids)
    ]
    right = dict.fromkeys(name for key in _RIGHT for name in lists.get(key, []))
    contradictions = [name for key in ("unresolved_ids", "unresolved") for name in lists.get(key, []) if name in right]
    if contradictions:
        raise ValueError(
            f"{path}: {len(contradictions)} ids are resolved and unresolved, such as {contradictions[0]!r}"
        )
    failed = dict.fromkeys(name for key in _FAILED for name in lists.get(key, []))
    both = [name for name in failed if name in right]
    if both:
        warnings.append(f"{len(both)} ids are resolved and failed, such as {both[0]!r}; they count as resolved")
    for name in dict.fromkeys(name for ids in lists.values() for name in ids):
        rows.add(
            str(path),
            name,
            float(name in right),
            failed=name in failed and name not in right,
            epoch=0,
            slice=project(name),
        )
    absent = document.get("incomplete_ids")
    if isinstance(absent, list) and absent:
        warnings.append(f"{len(absent)} ids were not submitted (incomplete_ids); the run lacks them")
    return warnings, any(name in lists for name in _COMPLETE), details


def _ids(values: list[Any], where: str) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise ValueError(f"{where}: expected instance ids, but found {type(value).__name__}")
    return values
