"""deepeval test runs: ``testCases``, each with a name, ``success`` and what its metrics said."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import JsonStream
from polyweave_torch.evallogs.json_values import entries
from polyweave_torch.evallogs.options import Options, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.evallogs.source import open_log

NAME = "deepeval"
OPTIONS = frozenset({"epochs", "metric", "id", "slice", "arm", "threshold"})

_CASES = ("testCases", "conversationalTestCases")
_WRAPPER = "testRunData"
_POSITIONAL = re.compile(r"(conversational_)?test_case_\d+")


def sniff(shape: Outline) -> bool:
    """An object with test cases, also inside of ``testRunData``."""
    record = shape.record
    inner = record.get(_WRAPPER)
    return any(
        isinstance(part, Mapping) and any(isinstance(part.get(n), list) for n in _CASES) for part in (record, inner)
    )


def read(paths: list[Path], options: Options) -> Run:
    """Read one test run. A case is right where it succeeded, or with ``metric`` where that metric did.

    Cases without a name of their own are called by their place; what they ask must agree then. ``doc_hash`` calls each
    by what it asks.
    """
    path, options = one_file(paths, options)
    rows = Rows(path)
    positional = True
    streamed = {(*prefix, name) for name in _CASES for prefix in ((), (_WRAPPER,))}
    with open_log(path) as file:
        for place, where, case in JsonStream(file, str(path)).pieces(streamed):
            if place not in streamed:
                continue
            if not isinstance(case, dict):
                raise ValueError(f"{where}: expected a test case, but found {type(case).__name__}")
            asked = case.get("input", case.get("scenario"))
            hashed = "" if asked is None else fingerprint(asked)
            item = lookup({**case, "doc_hash": hashed}, options.id or "name", where, inside=("metadata",))
            positional = positional and isinstance(item, str) and _POSITIONAL.fullmatch(item) is not None
            failed, value = _outcome(case, options.metric, where)
            rows.add(
                where,
                item,
                value,
                failed=failed,
                slice=None
                if options.slice is None
                else label(lookup(case, options.slice, where, inside=("metadata",))),
                answer=label(case["actualOutput"]) if case.get("actualOutput") is not None else None,
                content=hashed,
            )
    warnings = []
    if positional and len(rows):
        warnings.append(
            "test cases have no names of their own; they are aligned by their place (--id doc_hash: by input)"
        )
    details = {"metric": options.metric or "success"}
    return rows.finish(options, format=NAME, details=details, warnings=warnings)


def _outcome(case: Mapping[str, Any], metric: str | None, where: str) -> tuple[bool, float]:
    """Whether a metric that counts failed to give a verdict, and the verdict."""
    metrics = [entry for entry in entries(case, "metricsData", where) if isinstance(entry, Mapping)]
    if metric is None:
        return any(entry.get("error") for entry in metrics), outcome(case.get("success"), where)
    found = [entry for entry in metrics if entry.get("name") == metric]
    if not found:
        names = [str(entry.get("name")) for entry in metrics]
        raise ChoiceError(f"{where} has no metric {metric!r}", option="metric", choices=names)
    return bool(found[0].get("error")), outcome(found[0].get("success"), where)
