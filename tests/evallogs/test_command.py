"""``polyweave-torch compare`` from the command line: every entry of the truth, every refusal, every way out."""

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.command import add_arguments, run

DATA = Path(__file__).parents[1] / "data" / "evallogs"
TRUTH: dict[str, Any] = json.loads((DATA / "TRUTH.json").read_text())

GPQA = ["csv_long/gpqa_diamond_gpt5nano_vs_gpt54mini/gpqa_diamond_scores.csv"]
GPQA += ["--arm", "openai/gpt-5.4-mini-2026-03-17", "openai/gpt-5-nano-2025-08-07"]
SWE = ["swebench/verified_final_lists/FINAL_RESULTS.json"]
UNIVERSE = ["--universe", "swebench/verified_final_lists/all_instance_ids.json"]
GENERATED, PLAIN = "lm_eval_generated/", "lm_eval_generated/plain/"


def both(folder: str) -> list[str]:
    return [f"{folder}/before", f"{folder}/after"]


# What a user types for each entry of the truth.
WORDS: dict[str, list[str]] = {
    "lm_eval/mmlu_0shot_vs_5shot": both("lm_eval/mmlu_0shot_vs_5shot"),
    PLAIN + "arith_mc:acc": [*both(PLAIN), "--metric", "acc", "--slice", "topic"],
    PLAIN + "arith_mc:acc_norm": [*both(PLAIN), "--metric", "acc_norm", "--slice", "topic"],
    **{
        f"{PLAIN}arith_gen:exact_match,{name}": [
            *both(PLAIN),
            *("--metric", "exact_match", "--filter", name, "--slice", "topic"),
        ]
        for name in ("strict-match", "flexible-extract", "maj@5")
    },
    GENERATED + "limit50:acc": [PLAIN + "before", GENERATED + "limit50/after", "--metric", "acc"],
    GENERATED + "unsorted_samples:by_doc_hash(RIGHT)": [
        *both(GENERATED + "unsorted_samples"),
        *("--id", "doc_hash", "--metric", "acc"),
    ],
    GENERATED + "list_and_nan_metrics:prompt_level_strict_acc": [
        *both(GENERATED + "list_and_nan_metrics"),
        *("--metric", "prompt_level_strict_acc"),
    ],
    GENERATED + "list_and_nan_metrics:inst_level_strict_acc(all)": [
        *both(GENERATED + "list_and_nan_metrics"),
        *("--metric", "inst_level_strict_acc"),
    ],
    "inspect/popularity_gpt4omini_feb_vs_sep": both("inspect/popularity_gpt4omini_feb_vs_sep"),
    "inspect_generated/plain:match": [
        *both("inspect_generated/eval_zstd/plain"),
        *("--scorer", "match", "--slice", "topic"),
    ],
    "inspect_generated/errors:errors_excluded": [*both("inspect_generated/json/errors"), "--scorer", "match"],
    "inspect_generated/errors:errors_as_wrong": [
        *both("inspect_generated/eval_zstd/errors"),
        *("--scorer", "match", "--errors", "wrong"),
    ],
    "csv_long/gpqa_diamond:epoch1": [*GPQA, "--epochs", "first"],
    "csv_long/gpqa_diamond:majority_3_of_5": [*GPQA, "--epochs", "majority"],
    "swebench/verified_final_lists:baseline_vs_polydev": [*SWE, "--arm", "baseline", "polydev", *UNIVERSE],
    "swebench/verified_final_lists:baseline_vs_hybrid": [*SWE, "--arm", "baseline", "hybrid", *UNIVERSE],
    "reflexion/humaneval_py": both("reflexion/humaneval_py"),
    "reflexion/mbpp_py": both("reflexion/mbpp_py"),
    "human_eval/gpt35_reruns:1SPT_vs_1SPT(4)": ["human_eval/run_a.jsonl", "human_eval/run_b.jsonl"],
    "promptfoo_generated:errors_as_fail": [
        *both("promptfoo_generated"),
        *("--errors", "wrong", "--slice", "topic"),
    ],
    "promptfoo_generated:errors_excluded": both("promptfoo_generated"),
    "promptfoo_generated:both_in_one_file": [
        "promptfoo_generated/both_in_one_file",
        *("--arm", "model-before", "model-after"),
    ],
    "evalscope_generated:before_vs_after": both("evalscope_generated"),
    "evalscope_generated:rep3_vs_after:group_id,generation_index0": [
        *("evalscope_generated/before_rep3", "evalscope_generated/after", "--epochs", "first"),
    ],
    "helm_generated:exact_match": [*both("helm_generated"), "--metric", "exact_match"],
}

# The traps: what a user could type to get them, and what the refusal or the warning says.
REFUSED: dict[str, tuple[list[str], str]] = {
    PLAIN + "arith_gen:TRAP_all_rows_as_items": ([*both(PLAIN), "--metric", "exact_match"], "--filter"),
    GENERATED + "unsorted_samples:by_doc_id(WRONG)": (
        [*both(GENERATED + "unsorted_samples"), "--metric", "acc"],
        "--id doc_hash",
    ),
    "csv_long/gpqa_diamond:TRAP_990_pairs": (GPQA, "--epochs"),
    "evalscope_generated:rep3_vs_after:by_index(WRONG)": (
        ["evalscope_generated/before_rep3", "evalscope_generated/after"],
        "--epochs",
    ),
}


def compare(*words: str) -> int:
    """Run the command in the data folder's terms, as the command line does."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(DATA / word) if (DATA / word).exists() else word for word in words]))


def as_json(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> dict[str, Any]:
    assert compare(*words, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return found


def test_every_entry_of_the_truth_is_typed_or_refused() -> None:
    assert {*WORDS, *REFUSED, "csv_long/gpqa_diamond:item_means"} == set(TRUTH)


@pytest.mark.parametrize("name", WORDS)
def test_the_command_gives_the_truth(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    truth, found = TRUTH[name], as_json(capsys, WORDS[name])
    cells = ("n00", "n01", "n10", "n11")
    assert found["counts"] == {cell: truth[cell] for cell in cells}
    assert found["alignment"]["aligned"] == truth["n"]
    for key in ("c", "gamma", "delta"):
        assert found[key] == pytest.approx(truth[key], rel=1e-9, abs=1e-12)
    for arm, side in zip(found["runs"], ("before", "after"), strict=True):
        assert arm["accuracy"] == pytest.approx(truth[f"acc_{side}"], rel=1e-9)
        assert [arm["low"], arm["high"]] == pytest.approx(truth[f"wilson_{side}"], rel=1e-9)
    for rate in ("c", "gamma"):
        assert found["intervals"][rate] == pytest.approx(truth[f"wilson_{rate}"], rel=1e-9, abs=1e-12)
    assert found["intervals"]["delta"] == pytest.approx(truth["delta_ci95_tango"], abs=1e-9)
    assert found["mcnemar"]["p_exact"] == pytest.approx(truth["mcnemar_exact_p"], rel=1e-9)
    if truth["n01"] != truth["n10"]:  # where they are equal DECISIONS.md takes the other convention, p = 1
        assert found["mcnemar"]["p_midp"] == pytest.approx(truth["mcnemar_midp"], rel=1e-9)
    if "slices" in truth:
        assert set(found["slices"]) == set(truth["slices"])
        for label, part in truth["slices"].items():
            assert found["slices"][label]["counts"] == {cell: part[cell] for cell in cells}
            assert found["slices"][label]["p_exact"] == pytest.approx(part["mcnemar_exact_p"], rel=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_the_traps_are_refused_with_the_way_out(name: str) -> None:
    words, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        compare(*words)


def test_item_means_of_epochs_are_compared_as_scores(capsys: pytest.CaptureFixture[str]) -> None:
    truth = TRUTH["csv_long/gpqa_diamond:item_means"]
    found = as_json(capsys, [*GPQA, "--epochs", "mean"])
    assert found["alignment"]["aligned"] == truth["n_items"]
    assert [arm["accuracy"] for arm in found["runs"]] == pytest.approx([truth["mean_before"], truth["mean_after"]])
    assert found["delta"] == pytest.approx(truth["delta"])
    t = found["scores"]["t_test"]
    assert t["p_value"] == pytest.approx(truth["t_p"], rel=1e-9)
    assert [t["low"], t["high"]] == pytest.approx(truth["ci95_t"], rel=1e-9)
    # The bootstrap over items agrees with the published interval; one over the 990 rows would be a third narrower.
    assert found["intervals"]["delta"] == pytest.approx(truth["ci95_t"], abs=0.006)


def test_swe_bench_hides_two_projects_that_moved_apart(capsys: pytest.CaptureFixture[str]) -> None:
    words = WORDS["swebench/verified_final_lists:baseline_vs_polydev"]
    assert as_json(capsys, words)["mcnemar"]["p_value"] == pytest.approx(0.343, abs=5e-4)
    assert compare(*words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "NOISE" in text
    assert "Taken alone, p < 0.05: django up, sympy down." in text
    assert "the pooled difference hides slices that differ" in text


def test_mmlu_is_cautious_because_the_prompts_differ(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, WORDS["lm_eval/mmlu_0shot_vs_5shot"])
    assert found["verdict"]["label"] == "CAUTIOUS"
    assert {"significantly-up", "prompts-differ"} <= set(found["verdict"]["reasons"])
    assert any("n-shot" in warning for warning in found["warnings"])


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    """Three runs over 60 items in two slices: the second loses 12 of the first's, the third gains 12."""
    paths = []
    for name, right in (("a", range(30)), ("b", range(12, 30)), ("c", range(42))):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "correct", "topic"])
            writer.writerows([f"q{item}", int(item in right), "ab"[item % 2]] for item in range(60))
        paths.append(str(path))
    return paths


@pytest.mark.parametrize(
    ("after", "gate", "code"),
    [
        (1, [], 0),
        (1, ["--fail-on", "regress"], 1),
        (1, ["--fail-on", "REGRESS"], 1),
        (1, ["--fail-on", "cautious"], 1),
        (2, ["--fail-on", "cautious"], 0),
    ],
)
def test_the_gate_fails_on_its_verdict_and_still_reports(
    logs: list[str], after: int, gate: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(logs[0], logs[after], *gate) == code
    captured = capsys.readouterr()
    assert captured.out.startswith("REGRESS" if after == 1 else "PROGRESS")
    assert ("fails --fail-on" in captured.err) == bool(code)


def test_a_cautious_gate_fails_on_caution_and_a_regress_gate_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    words = WORDS["lm_eval/mmlu_0shot_vs_5shot"]
    assert compare(*words, "--fail-on", "regress") == 0
    assert compare(*words, "--fail-on", "cautious") == 1
    assert compare(*words, "--fail-on", "cautious", "--prompts-may-differ") == 0


def test_markdown_and_html_and_flips_are_written(
    logs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, flips = tmp_path / "report.html", tmp_path / "flips.jsonl"
    assert compare(logs[0], logs[1], "--markdown", "--html", str(page), "--flips-out", str(flips), "--flips", "2") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("## REGRESS")
    assert "Corrupted, 2 of 12:" in printed
    assert page.read_text().startswith("<!DOCTYPE html>")
    written = [json.loads(line) for line in flips.read_text().splitlines()]
    assert [flip["id"] for flip in written] == [f"q{item}" for item in range(12)]
    assert all(flip["before"] and not flip["after"] for flip in written)


def test_options_of_the_tests_arrive(logs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [logs[0], logs[1], "--slice", "topic", "--margin", "0.4", "--level", "0.9", "--method", "midp"]
    found = as_json(capsys, words)
    assert found["mcnemar"]["method"] == "mid-p"
    assert found["mcnemar"]["p_value"] == pytest.approx(0.5**12)
    assert found["equivalence"]["margin"] == 0.4
    assert found["level"] == 0.9
    assert list(found["slices"]) == ["a", "b"]
    assert as_json(capsys, [logs[0], logs[1], "--alpha", "0.0001"])["verdict"]["label"] == "UNDERPOWERED"


def test_three_runs_come_with_cochran_and_all_pairs(logs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, logs)
    assert found["counts"] == as_json(capsys, [logs[0], logs[2]])["counts"]
    assert len(found["pairs"]) == 3
    assert found["cochran_q"]["df"] == 2


def test_a_threshold_turns_scores_into_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, shift in (("a", 0.0), ("b", 0.05)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"id": f"q{i}", "score": i / 40 + shift}) + "\n" for i in range(40)))
        paths.append(str(path))
    assert as_json(capsys, paths)["scores"]["estimate"] == pytest.approx(0.05)
    found = as_json(capsys, [*paths, "--threshold", "0.5"])
    assert found["counts"] == {"n00": 18, "n01": 2, "n10": 0, "n11": 20}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.csv", "missing.csv"], "missing.csv"),
        (["a.csv"], "needs two runs"),
        (["a.csv", "b.csv", "--arm", "x"], "names 1 arm for 2 runs"),
        (["a.csv", "b.csv", "--margin", "2"], "margin"),
        (["a.csv", "b.csv", "--level", "95"], "level"),
        (["a.csv", "b.csv", "--slice", "colour"], "colour"),
    ],
)
def test_input_errors_say_what_is_wrong(
    logs: list[str], words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(logs[0]).parent)
    with pytest.raises((ValueError, OSError), match=said):
        compare(*words)


def test_columns_that_have_another_name_in_another_file_are_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,grade\n1,yes\n")
    (tmp_path / "b.csv").write_text("item,ok\n1,yes\n")
    words = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--correct", "grade"]
    with pytest.raises(ValueError, match=r"b.csv:2: no field 'question'.* so the files must name their columns alike"):
        compare(*words, "--id", "question")
    with pytest.raises(ValueError, match=r"a.csv:2: no field 'questoin'; there are question, grade$"):
        compare(*words, "--id", "questoin")


def test_a_file_that_is_named_twice_is_told_how_its_arms_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    both = "promptfoo_generated/both_in_one_file/out_both.json"
    twice = [both, f"promptfoo_generated/../{both}"]
    with pytest.raises(ValueError, match=r"has 2 providers.*name .*out_both\.json once, with --arm BEFORE AFTER"):
        compare(*twice)
    with pytest.raises(ValueError, match=r"has 2 providers; choose with provider= \(.*\): model-before, model-after$"):
        compare(both, "promptfoo_generated/before")
    said = "compared with itself"
    for words in ([*twice, "--provider", "model-before"], [both, "--arm", "model-before", "model-before"]):
        (warning,) = [warning for warning in as_json(capsys, words)["warnings"] if said in warning]
        assert "(--arm BEFORE AFTER)" in warning
    assert not any(
        said in warning for warning in as_json(capsys, [both, "--arm", "model-before", "model-after"])["warnings"]
    )


def test_another_reading_of_one_file_is_no_run_against_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,score\na,0.3\nb,0.6\n")
    low, high = (read_run(path, threshold=threshold) for threshold in (0.2, 0.5))
    assert compare_runs([low, high]).to_dict()["warnings"] == []
    assert len(compare_runs([low, high, low]).to_dict()["warnings"]) == 1


@pytest.mark.parametrize("words", [[], ["--json", "--markdown"], ["--fail-on", "noise"], ["--flips", "-1"]])
def test_the_parser_refuses_what_cannot_be_meant(logs: list[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        compare(*(logs[:2] if words else []), *words)
    assert refused.value.code == 2


def test_a_name_that_the_terminal_cannot_show_does_not_end_the_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"id,correct\n名,{int(name == 'a')}\nx,1\n", encoding="utf-8")
    with open(1, "w", encoding="ascii", closefd=False) as ascii_terminal:
        monkeypatch.setattr("sys.stdout", ascii_terminal)
        assert compare(str(tmp_path / "a.csv"), str(tmp_path / "b.csv")) == 0
    assert r"\u540d" in capfd.readouterr().out


def test_options_that_do_nothing_for_scores_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shift in (("old", 0.0), ("new", 0.1)):
        rows = "".join(f"{index},{index / 50 + shift}\n" for index in range(40))
        (tmp_path / f"{name}.csv").write_text(f"id,score\n{rows}")
    files = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), "--correct", "score"]
    warnings = as_json(capsys, [*files, "--flips", "3", "--flips-out", str(tmp_path / "flips.jsonl")])["warnings"]
    for option in ("--flips", "--flips-out"):
        assert f"{option} does nothing for scores, where no item is right or wrong" in warnings
    assert not any("does nothing" in warning for warning in as_json(capsys, files)["warnings"])
