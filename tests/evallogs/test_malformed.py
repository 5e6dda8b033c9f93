"""Whatever stands in a log, a reader gives a run or a ``ValueError`` that names the file, never another exception."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.reading import read_run
from tests.evallogs.logs import DATA

JUNK: list[Any] = [None, "x", [1], {"a": 1}, 10**400]
Place = tuple[str | int, ...]


def first_rows(pattern: str, number: int = 2) -> list[Any]:
    return [json.loads(line) for line in next(DATA.glob(pattern)).read_text().splitlines()[:number]]


def document(pattern: str) -> Any:
    return json.loads(next(DATA.glob(pattern)).read_text())


def inspect_log() -> Any:
    log = document("inspect_generated/json/errors/after/*.json")
    log["eval"]["dataset"] = {}
    return log | {"samples": log["samples"][4:6]}


def promptfoo_export() -> Any:
    export = document("promptfoo_generated/before/*.json")
    export["results"]["results"] = export["results"]["results"][3:5]
    return export | {"config": {}}


def deepeval_run() -> Any:
    run = document("deepeval_generated/before/*.json")
    return run | {"testCases": run["testCases"][:2]}


LOGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lm_eval": (first_rows("lm_eval/*/before/samples_*.jsonl"), {"slice": "subject"}),
    "inspect_ai": (inspect_log(), {"slice": "topic"}),
    "swebench": ({"submitted_ids": ["a__a-1", "b"], "resolved_ids": ["b"], "error_ids": [], "model": "m"}, {}),
    "swebench-arms": ({"m": {"resolved_ids": ["a__a-1"]}, "n": {"resolved": []}}, {"arm": "m"}),
    "swebench-instance": ({"a__a-1": {"patch_exists": True, "resolved": False}}, {}),
    "promptfoo": (promptfoo_export(), {"slice": "topic"}),
    "promptfoo-lines": (first_rows("promptfoo_generated/before/*.jsonl"), {"metric": "is_number"}),
    "helm": (document("helm_generated/before/*/per_instance_stats.json")[:2], {"metric": "exact_match"}),
    "evalscope": (first_rows("evalscope_generated/before/reviews/*/*.jsonl"), {}),
    "deepeval": (deepeval_run(), {"slice": "topic"}),
    "evalplus": (document("evalplus_generated/before/*.json"), {"epochs": "first"}),
    "openai_evals": (first_rows("openai_evals_generated/before/*.jsonl", 4), {"slice": "topic"}),
    "olmes": ([{"doc_id": 0, "native_id": "a", "metrics": {"acc": 1.0}}], {}),
    "nemo_evaluator": ([{"problem_idx": 0, "repeat": 0, "reward": 1.0}], {}),
    "human_eval": (first_rows("human_eval/run_a.jsonl"), {}),
    "reflexion": (first_rows("reflexion/mbpp_py/before/*.jsonl"), {"slice": "language"}),
    "jsonl": ([{"id": 1, "correct": 1, "slice": "x", "prediction": "a", "epoch": 1, "model": "m"}] * 2, {"arm": "m"}),
}


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    members = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, inner in members:
        yield (*place, name)
        yield from places(inner, (*place, name))


def broken(log: Any, place: Place) -> Iterator[Any]:
    for junk in JUNK:
        changed = copy.deepcopy(log)
        holder = changed
        for name in place[:-1]:
            holder = holder[name]
        holder[place[-1]] = junk
        yield changed
    del holder[place[-1]]
    yield changed


@pytest.mark.parametrize("name", LOGS)
def test_any_value_anywhere_is_a_run_or_a_clear_error(name: str, tmp_path: Path) -> None:
    log, options = LOGS[name]
    lines = isinstance(log, list) and name != "helm"
    path = tmp_path / "log.json"
    refusals: list[str] = []
    # Each place once: of many alike, such as the messages of a sample, the first ones stand for all.
    for place in list(places(log))[:70]:
        for changed in broken(log, place):
            path.write_text("\n".join(map(json.dumps, changed)) if lines else json.dumps(changed))
            try:
                read_run(path, **options)
            except ValueError as error:
                refusals.append(str(error))
    assert refusals
    assert all("log.json" in message for message in refusals)
