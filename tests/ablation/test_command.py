"""The command, from files to the printed report."""

import argparse
import json
from pathlib import Path

import pytest

from polyweave_torch.ablation import Analysis, SimulatedEvaluator, analyze_outcomes, baseline_conditions, run_ablation
from polyweave_torch.ablation.command import add_arguments, run
from tests.ablation.runs import ARMS, evaluate, make_cases, write_cases

_EVALUATE = ("--evaluate", "tests.ablation.runs:evaluate")
_ARMS = ("--conditions", "old", 'new={"tuned": true}', 'newest={"tuned": true, "deep": 2}')


def ablate(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_cases(tmp_path / "cases.jsonl", [json.dumps(case._asdict()) for case in make_cases(5)])


def test_a_run_prints_its_analysis_and_goes_on_from_its_file(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.jsonl"
    options = (cases, *_EVALUATE, *_ARMS, "--out", out, "--batch-size", 4, "--model", "mine", "--json")
    assert ablate(*options) == 0
    printed = capsys.readouterr().out
    expected = analyze_outcomes(run_ablation(make_cases(5), ARMS, evaluate), model="mine")
    assert Analysis.from_json(printed) == expected
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:17]))
    assert ablate(*options) == 0
    assert capsys.readouterr().out == printed


def test_a_simulation_needs_no_conditions_and_says_what_it_is(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.jsonl"
    assert ablate(cases, "--simulate", "--seed", 3, "--per-stratum", 2, "--out", out) == 0
    report = capsys.readouterr().out
    assert report.startswith("SIMULATED: Paired ablation of 3 conditions on 6 cases")
    assert ablate(cases, "--simulate", "--conditions", "plain", "array-IR", "--markdown") == 0
    assert "| all | array-IR | " in capsys.readouterr().out
    with pytest.raises(ValueError, match="the evaluator was 'seed 3, 5 attempts' and is 'seed 0, 5 attempts'"):
        ablate(cases, "--simulate", "--per-stratum", 2, "--out", out)
    with pytest.raises(ValueError, match="the mode was 'SIMULATED' and is 'LIVE'"):
        ablate(cases, *_EVALUATE, "--conditions", "plain", "--per-stratum", 2, "--out", out)
    assert ablate(cases, *_EVALUATE, "--conditions", "plain", "--per-stratum", 2, "--out", out, "--restart") == 0
    assert capsys.readouterr().out.startswith("Paired ablation of 1 condition on 6 cases")


def test_strata_errors_alpha_and_note_reach_the_analysis(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--strata", "media", "compleja", "simple", "--errors", "drop", "--alpha", 0.2, "--note", "mine")
    assert ablate(cases, "--simulate", *options, "--json") == 0
    analysis = Analysis.from_json(capsys.readouterr().out)
    assert list(analysis.counts) == ["media", "compleja", "simple"]
    assert (analysis.errors, analysis.alpha, analysis.note) == ("drop", 0.2, "mine")
    outcomes = run_ablation(make_cases(5), baseline_conditions(), SimulatedEvaluator())
    assert analysis.total_cases == len(outcomes) // 3


def test_the_figure_is_written(cases: Path, tmp_path: Path) -> None:
    assert ablate(cases, "--simulate", "--figure", tmp_path / "figure.png") == 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (_EVALUATE, "--evaluate needs --conditions"),
        ((*_EVALUATE, "--conditions", "a={"), "expected a JSON object after the ="),
        ((*_EVALUATE, "--conditions", "a=3"), "expected NAME or NAME="),
        ((*_EVALUATE, "--conditions", "a", "a"), "condition 'a' comes twice"),
        ((*_ARMS, "--evaluate", "evaluate"), "expected MODULE:FUNCTION"),
        ((*_ARMS, "--evaluate", "no_such_module:evaluate"), "No module named 'no_such_module'"),
        ((*_ARMS, "--evaluate", "tests.ablation.runs:absent"), "has no attribute 'absent'"),
        ((*_ARMS, "--evaluate", "tests.ablation.runs:ARMS"), "a list can't be called"),
        (("--simulate", "--strata", "simple"), "declared are simple"),
        (("--simulate", "--batch-size", "0"), "batch_size must be at least 1"),
    ],
)
def test_bad_input_is_said(cases: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ablate(cases, *options)


def test_no_case_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no case"):
        ablate(write_cases(tmp_path / "none.jsonl", []), "--simulate")
    with pytest.raises(FileNotFoundError):
        ablate(tmp_path / "absent.jsonl", "--simulate")
