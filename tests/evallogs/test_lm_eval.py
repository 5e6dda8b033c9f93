"""lm-evaluation-harness samples, of the tool and of layouts before and after those in the data."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, TRUTH, cells, counts, write_document, write_lines

MMLU = DATA / "lm_eval/mmlu_0shot_vs_5shot"
PLAIN = DATA / "lm_eval_generated/plain"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def samples(folder: Path, task: str) -> Path:
    return next(folder.rglob(f"samples_{task}_*.jsonl"))


def test_the_results_file_tells_model_version_and_shots() -> None:
    run = read_run(MMLU / "after")
    assert run.format == "lm_eval"
    assert run.name == "after"
    assert run.details["harness"] == "lm_eval 0.4.12"
    assert run.details["n-shot"] == "5"
    assert "Qwen2.5-1.5B-Instruct" in run.details["model"]
    warnings = align([read_run(MMLU / "before"), run]).warnings
    assert "prompts differ on 400 of 400 items" in warnings
    assert "n-shot differs: 0 against 5" in warnings


def test_answers_are_the_choice_that_acc_takes() -> None:
    path = samples(PLAIN / "before", "arith_mc")
    run = read_run(path, metric="acc")
    assert run.answers is not None
    for row, answer, correct in zip(rows(path), run.answers, run.correct, strict=True):
        assert (answer == row["target"]) == bool(correct)


def test_one_file_and_its_folder_are_the_same_run() -> None:
    folder = read_run(PLAIN / "before", metric="acc")
    alone = read_run(samples(PLAIN / "before", "arith_mc"), metric="acc")
    assert alone.ids == folder.ids
    assert alone.correct.tolist() == folder.correct.tolist()
    assert any("arith_gen has no metric 'acc'" in warning for warning in folder.warnings)


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    copy = shutil.copy(samples(PLAIN / "before", "arith_mc"), tmp_path / "somewhere.txt")
    run = read_run(copy, metric="acc")
    assert run.format == "lm_eval"
    assert counts(align([run, read_run(PLAIN / "after", metric="acc")])) == cells(
        TRUTH["lm_eval_generated/plain/arith_mc:acc"]
    )


def test_a_run_over_one_task_aligns_with_a_run_over_several() -> None:
    several = read_run(MMLU / "before")
    one = read_run(samples(MMLU / "after", "mmlu_machine_learning"))
    truth = TRUTH["lm_eval/mmlu_0shot_vs_5shot"]["slices"]["mmlu_machine_learning"]
    for runs, only in (([several, one], "only_before"), ([one, several], "only_after")):
        aligned = align(runs)
        assert aligned.alignment[only] == 300
        assert counts(align([several, one])) == cells(truth)


def test_the_latest_samples_of_each_task_are_read(tmp_path: Path) -> None:
    newest = samples(MMLU / "after", "mmlu_machine_learning")
    shutil.copy(newest, tmp_path)
    stale = rows(newest)
    for row in stale:
        row["acc"] = 1.0 - row["acc"]
    write_lines(tmp_path / "samples_mmlu_machine_learning_2025-01-01T00-00-00.000000.jsonl", stale)
    run = read_run(tmp_path)
    assert run.correct.tolist() == read_run(newest).correct.tolist()
    assert any("was run 2 times; the latest is read, of 2026-07-13" in warning for warning in run.warnings)


def test_two_models_in_one_folder_are_arms(tmp_path: Path) -> None:
    for side, model in (("before", "base"), ("after", "tuned")):
        (tmp_path / model).mkdir()
        shutil.copy(samples(PLAIN / side, "arith_mc"), tmp_path / model)
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path, metric="acc")
    assert (caught.value.option, caught.value.choices) == ("arm", ["base", "tuned"])
    runs = [read_run(tmp_path, metric="acc", arm=model) for model in ("base", "tuned")]
    assert counts(align(runs)) == cells(TRUTH["lm_eval_generated/plain/arith_mc:acc"])
    assert [run.name for run in runs] == ["base", "tuned"]


def test_metrics_are_not_guessed() -> None:
    with pytest.raises(ChoiceError) as caught:
        read_run(samples(PLAIN / "before", "arith_mc"))
    assert (caught.value.option, caught.value.choices) == ("metric", ["acc", "acc_norm"])
    with pytest.raises(ChoiceError, match="no metric 'f1'"):
        read_run(PLAIN / "before", metric="f1")
    with pytest.raises(ChoiceError, match="no filter 'lenient'"):
        read_run(PLAIN / "before", metric="exact_match", filter="lenient")


def test_nan_is_unscored_and_a_continuous_metric_is_a_score() -> None:
    path = samples(DATA / "lm_eval_generated/list_and_nan_metrics/before", "arith_if")
    run = read_run(path, metric="chrf_like")
    expected = [row["chrf_like"] for row in rows(path)]
    assert run.scores is not None
    np.testing.assert_array_equal(run.scores, expected)
    assert (run.correct == -1).all()
    cut = read_run(path, metric="chrf_like", threshold=0.5)
    assert cut.scores is None
    assert cut.correct.tolist() == [-1 if np.isnan(value) else 1 for value in expected]


def test_layout_before_0_4_7_names_neither_filter_nor_metrics(tmp_path: Path) -> None:
    older = []
    for row in rows(samples(PLAIN / "before", "arith_mc")):
        del row["filter"], row["metrics"]
        older.append(row)
    path = write_lines(tmp_path / "samples_arith_mc_2024-05-01T10-00-00.jsonl", older)
    with pytest.raises(ChoiceError) as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("metric", ["acc", "acc_norm"])
    runs = [read_run(path, metric="acc"), read_run(PLAIN / "after", metric="acc")]
    assert counts(align(runs)) == cells(TRUTH["lm_eval_generated/plain/arith_mc:acc"])


@pytest.mark.parametrize("indent", [None, 4])
def test_layout_before_0_4_3_is_one_array_without_hashes(tmp_path: Path, indent: int | None) -> None:
    older = []
    for row in rows(samples(PLAIN / "before", "arith_mc")):
        for name in ("filter", "metrics", "doc_hash", "prompt_hash", "target_hash"):
            del row[name]
        older.append(row)
    path = write_document(tmp_path / "pretrained__base_arith_mc.jsonl", older, indent)
    run = read_run(path, metric="acc_norm")
    assert run.hashes is None
    assert run.prompts is None
    aligned = align([run, read_run(PLAIN / "after", metric="acc_norm")])
    assert counts(aligned) == cells(TRUTH["lm_eval_generated/plain/arith_mc:acc_norm"])


def test_layout_of_write_out_has_metrics_as_text(tmp_path: Path) -> None:
    older = [
        {
            "doc_id": item,
            "prompt_0": "1+1=",
            "logit_0": -1.5,
            "truth": "2",
            "acc": str(item % 2 == 0),
            "acc_norm": "0.0",
        }
        for item in range(4)
    ]
    run = read_run(write_document(tmp_path / "arith_write_out_info.json", older), metric="acc")
    assert run.correct.tolist() == [1, 0, 1, 0]


def test_row_order_does_not_matter(tmp_path: Path) -> None:
    path = samples(PLAIN / "after", "arith_mc")
    shuffled = rows(path)
    np.random.default_rng(0).shuffle(shuffled)
    write_lines(tmp_path / path.name, shuffled)
    aligned = align([read_run(PLAIN / "before", metric="acc"), read_run(tmp_path, metric="acc")])
    assert counts(aligned) == cells(TRUTH["lm_eval_generated/plain/arith_mc:acc"])


def test_a_document_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    twice = rows(samples(PLAIN / "after", "arith_mc"))
    path = write_lines(tmp_path / "twice.jsonl", [*twice, twice[3]])
    with pytest.raises(ValueError, match="1 items stand twice, such as '3'"):
        read_run(path, metric="acc")


def test_a_broken_row_is_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    lines = samples(PLAIN / "after", "arith_mc").read_text().splitlines()
    path.write_text("\n".join([*lines[:7], lines[7][:50], *lines[8:]]))
    with pytest.raises(ValueError, match=r"broken.jsonl:8: not JSON"):
        read_run(path, metric="acc")


def test_lists_of_other_numbers_are_refused(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "f1.jsonl",
        [{"doc_id": 0, "doc": {}, "filter": "none", "metrics": ["f1"], "f1": [2, 1]}],
    )
    with pytest.raises(ValueError, match="f1 is a list of numbers other than 0 and 1"):
        read_run(path)
