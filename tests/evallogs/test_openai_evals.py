"""Events of OpenAI evals, written by its LocalRecorder (3.0.1)."""

from pathlib import Path

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_lines

FOLDER = DATA / "openai_evals_generated"


def test_the_tools_own_files_give_what_they_were_made_of() -> None:
    before, after = (read_run(FOLDER / arm, slice="topic") for arm in ("before", "after"))
    assert before.format == "openai_evals"
    assert before.details == {"model": "toy-before", "task": "sums.dev.v0"}
    assert before.ids == [f"sums.dev.{item}" for item in range(6)]
    assert before.correct.tolist() == [1, 0, 1, 0, 1, 1]
    assert before.answers == ["0", "3", "4", "7", "8", "10"]
    # The second run recorded them the other way round, and failed on the last one before all others.
    assert dict(zip(after.ids, after.correct.tolist(), strict=True)) == {
        f"sums.dev.{item}": outcome for item, outcome in enumerate([1, 1, 1, 0, 0, -1])
    }
    assert after.errors.sum() == 1
    numbers = compare_runs([before, after]).to_dict()
    assert numbers["counts"] == {"n00": 1, "n01": 1, "n10": 1, "n11": 2}
    assert numbers["alignment"]["errors"] == 1
    assert numbers["prompts_differ"] == 0


def events(*matches: tuple[str, bool]) -> list[dict[str, object]]:
    return [
        {"run_id": "r", "event_id": number, "sample_id": item, "type": "match", "data": {"correct": correct}}
        for number, (item, correct) in enumerate(matches)
    ]


def test_the_report_can_stand_second_and_the_spec_be_absent(tmp_path: Path) -> None:
    rows = events(("a", True), ("b", False))
    spec, report = {"spec": {"eval_name": "e"}}, {"final_report": {"accuracy": 0.5}, "run_id": "r"}
    for lines in ([spec, report, *rows], [spec, *rows, report], rows):
        run = read_run(write_lines(tmp_path / "x.jsonl", lines))
        assert (run.ids, run.correct.tolist()) == (["a", "b"], [1, 0])


def test_several_matches_of_a_sample_are_attempts(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", events(("a", True), ("a", False)))
    with pytest.raises(ChoiceError, match="2 rows for 1 items"):
        read_run(path)


def test_a_run_that_matches_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no rows to compare"):
        read_run(write_lines(tmp_path / "x.jsonl", [{"spec": {"eval_name": "e"}}]))
