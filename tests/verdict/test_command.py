"""The command ``verdict``: from files to the word, the report and the exit code."""

import argparse
import json
from pathlib import Path

import pytest

from polyweave_torch.functional.verdict import verdict
from polyweave_torch.verdict.command import add_arguments, run
from tests.verdict.rows import LAYERS, Rows, Write, scored


def command(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "txt"])
@pytest.mark.parametrize(
    ("score", "said", "exit_code"),
    [
        (4.5, "PROGRESS: ship", 0),
        (4.0, "NOISE: no call", 1),
        (4.05, "CAUTIOUS: investigate first", 1),
        (3.0, "REGRESS: do not ship", 1),
    ],
)
def test_the_word_its_action_and_the_exit_code(
    write: Write, capsys: pytest.CaptureFixture[str], suffix: str, score: float, said: str, exit_code: int
) -> None:
    control, treatment = write(f"old.{suffix}", scored(4.0)), write(f"new.{suffix}", scored(score))
    assert command(control, treatment) == exit_code
    text = capsys.readouterr().out
    assert text.startswith(said + "\n")
    assert "new against the control" in text


def test_a_lone_control_passes_its_gate_or_does_not(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(write("old.csv", scored(4.0))) == 0
    assert command(write("low.csv", scored(3.0))) == 1
    assert capsys.readouterr().out.count("SOLO: add a control") == 2


def test_too_few_cases(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(write("old.csv", scored(4.0, 5)), write("new.csv", scored(4.0, 5)), "--markdown") == 1
    assert capsys.readouterr().out.startswith("## UNDERPOWERED: add cases\n")


def test_json_is_the_report_of_the_function(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    old: Rows = [{"id": f"q{i}", "fact": 3.0 + i % 3, "judge": 4.0} for i in range(30)]
    new: Rows = [{"id": f"q{i}", "fact": 3.5 + i % 2, "judge": 4.0 + i % 2} for i in range(1, 31)]
    options = (
        "--gate",
        3,
        "--seed",
        7,
        "--weights",
        "fact=2,behavior=1,judge=1",
        "--wished-power",
        0.8,
        "--resamples",
        200,
    )
    # The order of rows doesn't matter: samples are sorted by id.
    command(write("old.jsonl", old[::-1]), write("a.csv", new), write("b.jsonl", old), "--json", *options)
    found = json.loads(capsys.readouterr().out)
    ids = sorted({row["id"] for row in [*old, *new]})
    arms = []
    for rows in (old, new, old):
        by_id = {row["id"]: row for row in rows}
        arms.append([[float(by_id.get(i, {}).get(layer, "nan")) for layer in LAYERS] for i in ids])
    wanted = verdict(
        arms[0],
        {"a": arms[1], "b": arms[2]},
        layer_names=LAYERS,
        gate=3.0,
        seed=7,
        weights=[2.0, 1.0, 1.0],
        wished_power=0.8,
        resamples=200,
        provenance={"control": {}, "a": {}, "b": {}},
    )
    files = found.pop("files")
    assert found == json.loads(json.dumps(wanted.to_dict()))
    assert [files[name]["samples"] for name in ("control", "a", "b")] == [30, 30, 30]
    assert found["pairs"][0]["incomplete"] == 2


def test_options_are_called_as_in_python_and_their_old_names_still_do(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (write("old.csv", scored(4.0)), write("new.csv", scored(4.5)), "--json")
    printed = []
    for options in (("--trivial-difference", 0.7, "--wished-power", 0.9), ("--trivial", 0.7, "--power", 0.9)):
        command(*files, *options)
        printed.append(capsys.readouterr().out)
    settings = json.loads(printed[0])["settings"]
    assert (settings["trivial_difference"], settings["wished_power"]) == (0.7, 0.9)
    assert printed[0] == printed[1]


def test_the_user_extends_the_table_of_checks(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": i, "checks": [{"type": "house style", "passed": i % 5 > 0}], "judge": 4} for i in range(20)]
    path = write("run.jsonl", rows)
    with pytest.raises(ValueError, match=r"run\.jsonl:1: the type of check 'house style' belongs to no layer.*--check"):
        command(path)
    assert command(path, "--check", "house style=style", "--layers", "style,judge", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["layers"] == {"style": 4.2, "judge": 4.0}
    with pytest.raises(ValueError, match="of the layer 'style', which is not in --layers"):
        command(path, "--check", "house style=style")


def test_judges_people_and_provenance_come_from_columns(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    old = [
        {**row, "j1": 1 + i % 5, "j2": 5 - i % 5, "people": 1 + i % 5, "hash": "a"} for i, row in enumerate(scored(4.0))
    ]
    new = [
        {**row, "j1": 1 + i % 5, "j2": 1 + i % 5, "people": 1 + i % 5, "hash": "b"} for i, row in enumerate(scored(4.5))
    ]
    options = ("--judges", "j1,j2", "--human", "people", "--provenance", "hash", "--json")
    assert command(write("old.csv", old), write("new.jsonl", new), *options) == 1
    found = json.loads(capsys.readouterr().out)
    pair = found["pairs"][0]
    assert pair["pearson"] == pytest.approx([-1.0, 1.0])
    assert pair["label"] == "CAUTIOUS"
    assert {"judges-disagree", "provenance-differs"} <= set(pair["reasons"])
    # The control's mean mark is always 3, which correlates with nothing.
    assert pair["audit"]["agrees_with_people"] == [None, pytest.approx(1.0)]
    assert found["provenance"] == {"control": {"hash": "a"}, "new": {"hash": "b"}}


def test_names_of_treatments_are_their_own(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    control = write("a/run.csv", scored(4.0))
    treatments = [write("b/run.csv", scored(4.5)), write("control.csv", scored(4.5)), write("new.csv", scored(4.5))]
    assert command(control, *treatments, "--json") == 0
    names = [pair["name"] for pair in json.loads(capsys.readouterr().out)["pairs"]]
    assert names == [str(treatments[0]), str(treatments[1]), "new"]
    with pytest.raises(ValueError, match="a treatment is named twice"):
        command(control, treatments[2], treatments[2])


def test_runs_of_other_samples_are_no_runs_to_compare(write: Write) -> None:
    other = [{**row, "id": f"x{row['id']}"} for row in scored(4.5)]
    with pytest.raises(ValueError, match=r"no id of .*new\.csv is in .*old\.csv"):
        command(write("old.csv", scored(4.0)), write("new.csv", other))


@pytest.mark.parametrize("options", [("--weights", "fact"), ("--weights", "fact=much"), ("--check", "=fact")])
def test_options_that_cannot_be_read_exit_with_2(write: Write, options: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        command(write("old.csv", scored(4.0)), *options)
    assert caught.value.code == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        command(tmp_path / "none.jsonl")


@pytest.mark.parametrize("option", ["--judges", "--human", "--provenance"])
def test_a_column_that_no_file_has_is_an_error_that_lists_those_there_are(write: Write, option: str) -> None:
    path = write("old.csv", scored(4.0))
    with pytest.raises(ValueError, match=rf"{option} names the column 'nope', which no file has; there are id, fact"):
        command(path, option, "nope")


def test_resamples_have_a_limit(write: Write) -> None:
    with pytest.raises(ValueError, match="--resamples must be at most 1000000, but is 1000001"):
        command(write("old.csv", scored(4.0)), "--resamples", 1_000_001)


@pytest.mark.parametrize(("form", "name"), [((), "<b>\\x1b[31m"), (("--markdown",), "&lt;b>\\\\x1b[31m")])
def test_the_name_of_a_treatment_is_no_markup_and_no_control_code(
    write: Write, capsys: pytest.CaptureFixture[str], form: tuple[str, ...], name: str
) -> None:
    command(write("old.csv", scored(4.0)), write("<b>\x1b[31m.csv", scored(4.5)), *form)
    text = capsys.readouterr().out
    assert f"\n{name} against the control" in text
    assert "\x1b" not in text
    assert form == () or "<b>" not in text
