"""promptfoo: ``results.results[]`` of the JSON export, and the JSONL one: a row a test, prompt and provider."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import JsonStream
from polyweave_torch.evallogs.json_values import part, read_json_lines
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.source import open_log

NAME = "promptfoo"
OPTIONS = frozenset({"provider", "metric", "epochs", "id", "slice", "arm", "threshold"})

_RESULTS = ("results", "results")
_ERROR = 2
"""The ``failureReason`` of a provider that failed; 1 is a wrong answer."""


class _Result(NamedTuple):
    where: str
    provider: str
    prompt: str
    test: tuple[str | None, str | None, str]
    """The test's id, description and variables."""
    item: Any
    """The field that the caller named as id."""
    value: float
    failed: bool
    slice: str | None
    answer: str | None
    asked: str


def sniff(shape: Outline) -> bool:
    """An object whose ``results`` hold results and prompts, or rows of such results."""
    results = shape.record.get("results")
    if isinstance(results, dict):
        return (
            isinstance(results.get("results"), list)
            or isinstance(results.get("prompts"), list)
            or "evalId" in shape.record
        )
    return "success" in shape.record and "vars" in shape.record and "provider" in shape.record


def read(paths: list[Path], options: Options) -> Run:
    """Read one provider's results; a test that several prompts share is an item for each, sliced by prompt."""
    path, options = _export(paths, options)
    details: dict[str, str] = {}
    results = list(_results(path, options, details))
    if not results:
        raise ValueError(f"{path}: no rows to compare")
    if None not in (options.provider, options.arm) and options.provider != options.arm:
        raise ValueError(
            f"{path}: provider={options.provider!r} and arm={options.arm!r} name two providers (--provider, --arm); "
            "give one of them"
        )
    wanted = options.provider if options.provider is not None else options.arm
    providers = list(dict.fromkeys(result.provider for result in results))
    provider = choose(wanted, providers, option="provider", where=str(path), what="provider")
    results = [result for result in results if result.provider == provider]
    prompts = list(dict.fromkeys(result.prompt for result in results))
    key = _key(results)
    rows = Rows(path)
    for result in results:
        item = result.item if options.id is not None else result.test[key]
        rows.add(
            result.where,
            f"{result.prompt} | {label(item)}" if len(prompts) > 1 else item,
            result.value,
            failed=result.failed,
            slice=result.prompt if options.slice is None and len(prompts) > 1 else result.slice,
            answer=result.answer,
            prompt=result.asked,
        )
    warnings = []
    if len(prompts) > 1:
        warnings.append(
            f"{len(prompts)} prompts put the same tests to {provider}: each test is an item for each prompt"
        )
    details["model"] = provider
    return rows.finish(options, format=NAME, details=details, warnings=warnings)


def _export(paths: list[Path], options: Options) -> tuple[Path, Options]:
    # One evaluation is often exported as .json and .jsonl side by side.
    whole = [path for path in paths if "results" in outline(path).record]
    return one_file(whole if len({path.with_suffix("") for path in paths}) == 1 and whole else paths, options)


def _results(path: Path, options: Options, details: dict[str, str]) -> Iterator[_Result]:
    if outline(path).kind == "lines" and "results" not in outline(path).record:
        for where, row in read_json_lines(path):
            yield _result(row, where, options)
        return
    with open_log(path) as file:
        for place, where, piece in JsonStream(file, str(path)).pieces({_RESULTS}):
            if place == _RESULTS:
                yield _result(piece, where, options)
            elif place == ("metadata",) and isinstance(piece, Mapping) and "promptfooVersion" in piece:
                details["harness"] = f"promptfoo {piece['promptfooVersion']}"


def _result(row: Any, where: str, options: Options) -> _Result:
    if not isinstance(row, Mapping) or "success" not in row:
        raise ValueError(f"{where}: expected a result with success, but found {label(row)[:60]}")
    case, prompt = part(row, "testCase", where), part(row, "prompt", where)
    output = part(row, "response", where).get("output")
    variables = row.get("vars") or case.get("vars") or {}
    metadata = part(case, "metadata", where)
    inside = ("testCase", "testCase.metadata", "vars")
    return _Result(
        where=where,
        provider=_provider(row.get("provider")),
        prompt=label(prompt.get("label") or prompt.get("display") or prompt.get("raw") or ""),
        test=(
            label(metadata["id"]) if metadata.get("id") is not None else None,
            label(case["description"]) if case.get("description") else None,
            json.dumps(variables, sort_keys=True, ensure_ascii=False),
        ),
        item=None if options.id is None else lookup(row, options.id, where, inside=inside),
        value=_value(row, where, options),
        failed=_failed(row),
        slice=None if options.slice is None else label(lookup(row, options.slice, where, inside=inside)),
        answer=None if output is None else label(output),
        asked=fingerprint(prompt["raw"]) if prompt.get("raw") else "",
    )


def _provider(provider: Any) -> str:
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    return label(provider)


def _value(row: Mapping[str, Any], where: str, options: Options) -> float:
    """Whether the test passed, unless its score or a named score was asked for."""
    if options.metric is None or options.metric == "success":
        return outcome(row["success"], where)
    if options.metric == "score":
        return outcome(row.get("score"), where)
    named = part(row, "namedScores", where)
    if not _failed(row) and options.metric not in named:
        choose(options.metric, ["success", "score", *named], option="metric", where=where, what="metric")
    return outcome(named.get(options.metric, math.nan), where)


def _failed(row: Mapping[str, Any]) -> bool:
    """Wrong answers carry an error text too; before ``failureReason`` they are told by their grading."""
    if "failureReason" in row:
        return bool(row["failureReason"] == _ERROR)
    return not row["success"] and bool(row.get("error")) and not row.get("gradingResult")


def _key(results: list[_Result]) -> int:
    """Which of a test's names tells it from the others: its id, its description, or its variables."""
    for key in (0, 1):
        tests = {(result.test[key], result.test[2]) for result in results}
        names = {name for name, _ in tests}
        if None not in names and len(names) == len(tests):
            return key
    return 2
