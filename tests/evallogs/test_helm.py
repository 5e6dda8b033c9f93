"""HELM's statistics by instance."""

from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_document


def instance(
    name: str, mean: float | None, trial: int = 0, perturbation: dict[str, Any] | None = None
) -> dict[str, Any]:
    stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": mean, "mean": mean}
    entry: dict[str, Any] = {"instance_id": name, "train_trial_index": trial, "stats": [stat]}
    if perturbation:
        stat["name"] = {"name": "exact_match", "split": "test", "perturbation": perturbation}
        entry["perturbation"] = perturbation
    return entry


def test_the_statistic_is_not_guessed() -> None:
    with pytest.raises(ChoiceError) as caught:
        read_run(DATA / "helm_generated/before")
    assert caught.value.option == "metric"
    assert "quasi_exact_match" in caught.value.choices
    with pytest.raises(ChoiceError, match="no statistic 'f1'"):
        read_run(DATA / "helm_generated/before", metric="f1")


def test_the_specification_tells_model_and_shots() -> None:
    run = read_run(DATA / "helm_generated/after", metric="exact_match")
    assert run.details["model"] == "simple/model1"
    assert run.details["n-shot"] == "5"


def test_perturbed_instances_are_left_out(tmp_path: Path) -> None:
    typos = {"name": "misspellings"}
    rows = [instance("id1", 1.0), instance("id1", 0.0, perturbation=typos), instance("id2", 0.0)]
    run = read_run(write_document(tmp_path / "x.json", rows))
    assert run.ids == ["id1", "id2"]
    assert run.correct.tolist() == [1, 0]
    assert run.warnings == ["1 perturbed instances are left out"]


def test_train_trials_are_epochs(tmp_path: Path) -> None:
    rows = [instance("id1", 1.0, 1), instance("id1", 0.0, 0), instance("id2", 1.0, 0), instance("id2", 1.0, 1)]
    path = write_document(tmp_path / "per_instance_stats.json", rows, None)
    with pytest.raises(ChoiceError, match="4 rows for 2 items"):
        read_run(path)
    assert read_run(path, epochs="first").correct.tolist() == [0, 1]
    scores = read_run(path, epochs="mean").scores
    assert scores is not None
    assert scores.tolist() == [0.5, 1.0]


def test_several_runs_of_a_suite_need_a_choice(tmp_path: Path) -> None:
    for name in ("mmlu:model=a", "mmlu:model=b"):
        write_document(tmp_path / name / "per_instance_stats.json", [instance("id1", 1.0)])
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path)
    assert caught.value.option == "arm"
    assert caught.value.choices == ["mmlu:model=a/per_instance_stats.json", "mmlu:model=b/per_instance_stats.json"]
