"""Results of programs: HumanEval and Reflexion."""

from pathlib import Path

import pytest

from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_lines


def test_samples_of_a_task_are_attempts(tmp_path: Path) -> None:
    rows = [{"task_id": f"T/{task}", "completion": "x", "passed": passed} for task, passed in [(0, 1), (1, 0), (0, 0)]]
    path = write_lines(tmp_path / "samples.jsonl_results.jsonl", rows)
    with pytest.raises(ChoiceError, match="3 rows for 2 items"):
        read_run(path)
    run = read_run(path, epochs="any")
    assert (run.ids, run.correct.tolist()) == (["T/0", "T/1"], [1, 0])
    assert any("1 to 2 epochs" in warning for warning in run.warnings)


def test_reflexion_names_tasks_in_two_ways() -> None:
    assert read_run(DATA / "reflexion/humaneval_py/before").ids[0] == "HumanEval/0"
    run = read_run(DATA / "reflexion/mbpp_py/before")
    assert run.format == "reflexion"
    assert run.ids[0] == "mbpp_234_volume_cube"


def test_an_unfinished_row_is_unscored(tmp_path: Path) -> None:
    rows = [{"name": "a", "is_solved": True}, {"name": "b", "is_solved": None}]
    assert read_run(write_lines(tmp_path / "x.jsonl", rows)).correct.tolist() == [1, -1]
