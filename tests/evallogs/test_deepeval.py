"""deepeval test runs, written by deepeval 4.3.1."""

import json
from pathlib import Path

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_document

FOLDER = DATA / "deepeval_generated"
# The made-up models double 0 to 5 and err on these.
WRONG = {"before": {1, 3}, "after": {3, 4}}


def test_the_tools_own_files_give_what_they_were_made_of() -> None:
    runs = [read_run(FOLDER / arm, slice="topic") for arm in WRONG]
    for run, wrong in zip(runs, WRONG.values(), strict=True):
        assert run.format == "deepeval"
        assert run.ids == [f"test_case_{item}" for item in range(6)]
        assert run.correct.tolist() == [int(item not in wrong) for item in range(6)]
        assert run.answers == [str(2 * item + (item in wrong)) for item in range(6)]
        assert run.slices == ["small"] * 4 + ["large"] * 2
        assert any("no names of their own" in warning for warning in run.warnings)
    assert compare_runs(runs).to_dict()["counts"] == {"n00": 1, "n01": 1, "n10": 1, "n11": 3}


def test_names_that_were_given_are_ids_without_a_warning() -> None:
    run = read_run(FOLDER / "named")
    assert run.ids == [f"sum-{item}" for item in range(6)]
    assert not run.warnings


def test_one_metric_can_decide_alone() -> None:
    assert read_run(FOLDER / "before", metric="Short").correct.tolist() == [1] * 6
    assert read_run(FOLDER / "before", metric="Same").correct.tolist() == [1, 0, 1, 0, 1, 1]
    with pytest.raises(ChoiceError, match=r"no metric 'x'.*Same, Short"):
        read_run(FOLDER / "before", metric="x")


def test_places_that_hold_other_questions_are_not_one_item(tmp_path: Path) -> None:
    document = json.loads(next((FOLDER / "before").glob("*.json")).read_text())
    cases = document["testCases"]
    for case, name in zip(cases[::-1], [case["name"] for case in cases], strict=True):
        case["name"] = name
    moved = write_document(tmp_path / "x.json", document)
    before = read_run(FOLDER / "after")
    with pytest.raises(ValueError, match="other content under the same id in 6 of 6"):
        compare_runs([before, read_run(moved)])
    runs = [read_run(path, id="doc_hash") for path in (FOLDER / "after", moved)]
    assert compare_runs(runs).to_dict()["counts"] == {"n00": 1, "n01": 1, "n10": 1, "n11": 3}


def test_a_metric_that_failed_is_an_error_and_conversations_count(tmp_path: Path) -> None:
    case = {"name": "a", "success": False, "metricsData": [{"name": "m", "success": False, "error": "no answer"}]}
    talk = {"name": "b", "success": True, "metricsData": [], "scenario": "s", "turns": []}
    run = {"testCases": [case], "conversationalTestCases": [talk]}
    for document in (run, {"testRunData": run}):
        read = read_run(write_document(tmp_path / "x.json", document))
        assert (read.ids, read.errors.tolist(), read.correct.tolist()) == (["a", "b"], [True, False], [-1, 1])
