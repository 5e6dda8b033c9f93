"""evalscope reviews of the tool, and built by hand."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, TRUTH, cells, counts, write_lines

FOLDER = DATA / "evalscope_generated"


def review(index: int, value: Any, **more: Any) -> dict[str, Any]:
    return {"index": index, "target": "B", "sample_score": {"score": {"value": value, **more}, "sample_id": index}}


def reviews(side: str) -> Path:
    return next((FOLDER / side).rglob("reviews/*/*.jsonl"))


def test_epochs_are_the_attempts_at_a_group() -> None:
    rows = [json.loads(line)["sample_score"] for line in reviews("before_rep3").read_text().splitlines()]
    expected: dict[str, list[float]] = {}
    for row in rows:
        expected.setdefault(str(row["group_id"]), []).append(row["score"]["value"]["accuracy"])
    majority = read_run(FOLDER / "before_rep3", epochs="majority")
    assert dict(zip(majority.ids, majority.correct.tolist(), strict=True)) == {
        item: int(sum(values) > 1.5) for item, values in expected.items()
    }


def test_path_and_content_tell_model_and_answers(tmp_path: Path) -> None:
    run = read_run(FOLDER / "after")
    assert run.details == {"metric": "accuracy", "model": "noisy-after", "task": "general_mcq_arith"}
    assert run.answers is not None
    assert set(run.answers) <= set("ABCD")
    renamed = read_run(shutil.copy(reviews("after"), tmp_path / "x"))
    assert counts(align([read_run(FOLDER / "before"), renamed])) == cells(TRUTH["evalscope_generated:before_vs_after"])


def test_without_group_ids_the_index_names_the_question(tmp_path: Path) -> None:
    run = read_run(write_lines(tmp_path / "old.jsonl", [review(3, {"acc": 1.0}), review(5, {"acc": 0.0})]))
    assert run.ids == ["3", "5"]
    assert run.correct.tolist() == [1, 0]
    assert read_run(write_lines(tmp_path / "old.jsonl", [review(3, 1.0), review(5, 0.0)])).correct.tolist() == [1, 0]


def test_a_failed_review_is_an_error(tmp_path: Path) -> None:
    rows = [review(0, {"acc": 1.0}, status="success"), review(1, {}, status="error")]
    run = read_run(write_lines(tmp_path / "x.jsonl", rows))
    assert run.errors.tolist() == [False, True]
    assert run.correct.tolist() == [1, -1]


def test_metrics_and_models_need_a_choice(tmp_path: Path) -> None:
    for model in ("a", "b"):
        write_lines(tmp_path / f"reviews/{model}/gsm8k_main.jsonl", [review(0, {"acc": 1.0, "f1": 0.5})])
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path)
    assert (caught.value.option, caught.value.choices) == ("arm", ["a", "b"])
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path, arm="a")
    assert (caught.value.option, caught.value.choices) == ("metric", ["acc", "f1"])
    assert read_run(tmp_path, arm="b", metric="acc").correct.tolist() == [1]


def test_subsets_are_slices(tmp_path: Path) -> None:
    for subset in ("x", "y"):
        write_lines(tmp_path / f"reviews/m/mmlu_{subset}.jsonl", [review(0, {"acc": 1.0})])
    run = read_run(tmp_path)
    assert run.ids == ["mmlu_x/0", "mmlu_y/0"]
    assert run.slices == ["mmlu_x", "mmlu_y"]
    one = read_run(tmp_path / "reviews/m/mmlu_y.jsonl")
    assert align([run, one]).ids == ["mmlu_y/0"]
