"""OLMES predictions and NeMo evaluator results, built from what is known of the formats."""

from pathlib import Path

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import counts, write_lines


def prediction(item: int, raw: float, per_char: float) -> dict[str, object]:
    metrics = {"acc_raw": raw, "acc_per_char": per_char, "predicted_index_raw": 2, "correct_choice": 1}
    return {"doc_id": item, "native_id": f"Mercury_{item}", "metrics": metrics, "model_output": [], "label": 1}


def test_one_of_several_accuracies_must_be_chosen(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "task-000-arc_easy-predictions.jsonl", [prediction(0, 1.0, 0.0), prediction(1, 0.0, 0.0)]
    )
    with pytest.raises(ChoiceError, match="acc_raw, acc_per_char"):
        read_run(path)
    run = read_run(path, metric="acc_raw")
    assert (run.format, run.ids, run.correct.tolist()) == ("olmes", ["Mercury_0", "Mercury_1"], [1, 0])
    assert run.task == "arc_easy"
    assert read_run(path, metric="acc_per_char", id="doc_id").ids == ["0", "1"]


def test_tasks_of_a_folder_are_slices_and_meet_one_task_alone(tmp_path: Path) -> None:
    for number, task in enumerate(("arc_easy", "boolq")):
        rows = [prediction(item, float(item > number), 0.0) for item in range(3)]
        write_lines(tmp_path / "both" / f"task-00{number}-{task}-predictions.jsonl", rows)
    both = read_run(tmp_path / "both", metric="acc_raw")
    assert both.slices == ["arc_easy"] * 3 + ["boolq"] * 3
    assert both.correct.tolist() == [0, 1, 1, 0, 0, 1]
    one = read_run(tmp_path / "both/task-001-boolq-predictions.jsonl", metric="acc_raw")
    assert compare_runs([both, one]).to_dict()["alignment"]["aligned"] == 3


def test_ids_are_numbers_where_the_task_has_no_own(tmp_path: Path) -> None:
    rows = [prediction(item, 1.0, 1.0) | {"native_id": None} for item in range(2)]
    assert read_run(write_lines(tmp_path / "x.jsonl", rows), metric="acc_raw").ids == ["0", "1"]


def test_repeats_of_a_nemo_problem_are_epochs_and_rewards_can_be_scores(tmp_path: Path) -> None:
    rewards = {(0, 0): 1.0, (0, 1): 0.0, (1, 1): 1.0, (1, 0): 1.0}
    rows = [{"problem_idx": item, "repeat": repeat, "reward": reward} for (item, repeat), reward in rewards.items()]
    path = write_lines(tmp_path / "results.jsonl", rows)
    with pytest.raises(ChoiceError, match="4 rows for 2 items"):
        read_run(path)
    run = read_run(path, epochs="all")
    assert (run.format, run.ids, run.correct.tolist()) == ("nemo_evaluator", ["0", "1"], [0, 1])
    assert run.id_kind == "int"
    scored = read_run(write_lines(tmp_path / "x.jsonl", [rows[0] | {"reward": 0.25}]))
    assert scored.scores is not None
    assert scored.scores.tolist() == [0.25]
    with pytest.raises(ValueError, match=r"results.jsonl: 2 items stand twice"):
        read_run(write_lines(path, [row | {"repeat": 0} for row in rows]), epochs="all")
    aligned = compare_runs([run, run]).aligned
    assert counts(aligned) == {"n00": 1, "n01": 0, "n10": 0, "n11": 1}
