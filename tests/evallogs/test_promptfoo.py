"""promptfoo exports of the tool, and older ones built by hand."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, TRUTH, cells, counts, slice_counts, write_document, write_lines

FOLDER = DATA / "promptfoo_generated"
BOTH = FOLDER / "both_in_one_file/out_both.json"


def result(number: int, success: bool, **more: Any) -> dict[str, Any]:
    """A row as it was before ``failureReason``, ``testIdx`` and ``testCase``."""
    return {
        "provider": {"id": "openai:gpt-4"},
        "prompt": {"raw": f"add {number}", "display": "add {{n}}"},
        "vars": {"n": number},
        "response": {"output": str(number)},
        "success": success,
        "score": float(success),
        **more,
    }


def export(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"version": 2, "results": {"results": rows, "stats": {}, "table": {"head": {}, "body": []}}, "config": {}}


@pytest.mark.parametrize("side", ["before", "after"])
def test_both_exports_of_one_run_are_the_same(side: str) -> None:
    whole, lines = (read_run(FOLDER / side / f"out_{side}{kind}") for kind in (".json", ".jsonl"))
    for name in ("format", "ids", "answers", "prompts"):
        assert getattr(whole, name) == getattr(lines, name)
    assert whole.correct.tolist() == lines.correct.tolist()
    assert whole.details["harness"] == "promptfoo 0.121.20"


def test_a_wrong_answer_is_no_error_though_it_has_an_error_text() -> None:
    rows = json.loads((FOLDER / "before/out_before.json").read_text())["results"]["results"]
    run = read_run(FOLDER / "before")
    assert sum(bool(row.get("error")) for row in rows) == 22
    assert run.errors.sum() == 1
    assert (run.correct == 0).sum() == 21


def test_providers_need_a_choice_and_prompts_are_slices() -> None:
    with pytest.raises(ChoiceError, match="2 providers") as caught:
        read_run(BOTH)
    with pytest.raises(ValueError, match="provider='model-before' and arm='model-after' name two providers"):
        read_run(BOTH, provider="model-before", arm="model-after")
    assert (caught.value.option, caught.value.choices) == ("provider", ["model-before", "model-after"])
    aligned = align([read_run(BOTH, provider=name) for name in ("model-before", "model-after")])
    truth = TRUTH["promptfoo_generated:both_in_one_file"]
    assert slice_counts(aligned) == {name: cells(part) for name, part in truth["slices"].items()}
    assert any("each test is an item for each prompt" in warning for warning in aligned.warnings)


def test_partial_scores_are_another_metric() -> None:
    rows = json.loads((FOLDER / "after/out_after.json").read_text())["results"]["results"]
    run = read_run(FOLDER / "after", metric="score")
    assert run.scores is not None
    assert run.scores.tolist() == [row["score"] for row in rows]
    assert read_run(FOLDER / "after", metric="is_number").correct.all()
    with pytest.raises(ChoiceError) as caught:
        read_run(FOLDER / "after", metric="style")
    assert (caught.value.option, caught.value.choices) == ("metric", ["success", "score", "is_number"])


def test_older_exports_have_neither_test_cases_nor_failure_reasons(tmp_path: Path) -> None:
    rows = [
        result(1, True),
        result(2, False, error="Expected 3", gradingResult={"pass": False}),
        result(3, False, error="timeout", response={}),
    ]
    run = read_run(write_document(tmp_path / "old.json", export(rows)))
    assert run.format == "promptfoo"
    assert run.ids == ['{"n": 1}', '{"n": 2}', '{"n": 3}']
    assert run.correct.tolist() == [1, 0, -1]
    assert run.errors.tolist() == [False, False, True]
    assert run.details["model"] == "openai:gpt-4"


def test_repeats_are_attempts(tmp_path: Path) -> None:
    rows = [result(1, True), result(1, False), result(2, True), result(2, True)]
    path = write_lines(tmp_path / "repeat.jsonl", rows)
    with pytest.raises(ChoiceError, match="4 rows for 2 items"):
        read_run(path)
    assert read_run(path, epochs="all").correct.tolist() == [0, 1]


def test_tests_are_named_by_id_then_description_then_variables(tmp_path: Path) -> None:
    def ids(*cases: dict[str, Any]) -> list[str]:
        rows = [result(number, True, testCase=case) for number, case in enumerate(cases)]
        return read_run(write_lines(tmp_path / "rows.jsonl", rows)).ids

    assert ids({"metadata": {"id": "x"}, "description": "d"}, {"metadata": {"id": "y"}, "description": "d"}) == [
        "x",
        "y",
    ]
    assert ids({"description": "one"}, {"description": "two"}) == ["one", "two"]
    # One description for all tests tells none from the others.
    assert ids({"description": "sums"}, {"description": "sums"}) == ['{"n": 0}', '{"n": 1}']


def test_a_table_export_is_read_with_named_columns() -> None:
    runs = [
        read_run(FOLDER / side / f"out_{side}.csv", id="Description", correct="Status") for side in ("before", "after")
    ]
    assert counts(align(runs)) == cells(TRUTH["promptfoo_generated:errors_excluded"])
    assert counts(align(runs, errors="wrong")) == cells(TRUTH["promptfoo_generated:errors_as_fail"])
    with pytest.raises(ValueError, match="the column 'Status' stands 4 times"):
        read_run(BOTH.with_suffix(".csv"), id="Description", correct="Status")


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    for kind in (".json", ".jsonl"):
        copy = shutil.copy(FOLDER / f"before/out_before{kind}", tmp_path / f"x{kind}.bin")
        assert read_run(copy).ids == read_run(FOLDER / "before").ids
