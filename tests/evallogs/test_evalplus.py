"""evalplus results, written by evalplus 0.3.1."""

import json
from pathlib import Path

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_document

FOLDER = DATA / "evalplus_generated"


def results(arm: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((FOLDER / arm / "eval_results.json").read_text())
    return document


def right(arm: str, **options: str) -> dict[str, int]:
    run = read_run(FOLDER / arm, **options)  # type: ignore[arg-type]
    assert run.format == "evalplus"
    return dict(zip(run.ids, run.correct.tolist(), strict=True))


def test_a_task_is_right_where_base_and_extra_tests_pass() -> None:
    # What evalplus itself printed: base 0.75 and 1, plus 0.5 and 0.75.
    assert right("before") == {"HumanEval/0": 1, "HumanEval/1": 0, "HumanEval/2": 1, "HumanEval/3": 0}
    assert right("after") == {"HumanEval/0": 1, "HumanEval/1": 1, "HumanEval/2": 0, "HumanEval/3": 1}
    assert sum(right("before", metric="base").values()) == 3
    assert sum(right("after", metric="base").values()) == 4


def test_the_hash_of_the_data_set_must_match(tmp_path: Path) -> None:
    other = write_document(tmp_path / "x.json", results("after") | {"hash": "0" * 32})
    same = compare_runs([read_run(FOLDER / "before"), read_run(FOLDER / "after")])
    assert same.to_dict()["counts"] == {"n00": 0, "n01": 2, "n10": 1, "n11": 1}
    with pytest.raises(ValueError, match=r"two versions of the data set, 5f5112\w+ and 0000\w+; score both on one"):
        compare_runs([read_run(FOLDER / "before"), read_run(other)])


def test_base_tests_alone_must_be_asked_for(tmp_path: Path) -> None:
    sample = {"base_status": "pass", "plus_status": None}
    path = write_document(tmp_path / "x.json", {"hash": "h", "eval": {"T/0": [sample]}})
    with pytest.raises(ChoiceError, match=r"only the base tests were run.*--metric"):
        read_run(path)
    assert read_run(path, metric="base").correct.tolist() == [1]


def test_samples_of_a_task_are_attempts(tmp_path: Path) -> None:
    samples = [{"base_status": "pass", "plus_status": status} for status in ("fail", "pass", "timeout")]
    path = write_document(tmp_path / "x.json", {"hash": "h", "eval": {"T/0": samples}})
    with pytest.raises(ChoiceError, match="3 rows for 1 items"):
        read_run(path)
    assert read_run(path, epochs="any").correct.tolist() == [1]
    assert read_run(path, epochs="majority").correct.tolist() == [0]
