"""The command ``verdict``: from files to the word, the report and the exit code."""

import argparse
import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.functional.verdict import verdict
from polyweave_torch.verdict_command import add_arguments, run
from polyweave_torch.verdict_files import CHECK_LAYERS, Columns, read_layer_file

LAYERS = ("fact", "behavior", "judge")
Rows = Sequence[dict[str, Any]]
Write = Callable[[str, Rows], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes rows as JSONL or CSV, as the name says."""

    def written(name: str, rows: Rows) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            if path.suffix == ".csv":
                writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
                writer.writeheader()
                writer.writerows(rows)
            else:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return path

    return written


def command(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(argument) for argument in arguments]))


def scored(score: float, n: int = 20, **more: Any) -> Rows:
    return [{"id": i, "fact": score, "judge": score, **more} for i in range(n)]


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


# Checks.


def test_checks_become_scores_of_their_layers(write: Write) -> None:
    checks = [
        {"type": "contains", "passed": True, "weight": 3},
        {"type": "regex", "passed": False},
        {"type": "tool_called", "passed": False},
        {"type": "max_cost", "passed": 1, "weight": 0.5},
        {"type": "polite", "passed": True},
    ]
    rows: Rows = [{"id": 1, "checks": checks, "judge": 4}, {"id": 2, "judge": 0}, {"id": 3, "checks": []}]
    columns = Columns(LAYERS, {**CHECK_LAYERS, "polite": "behavior"})
    found = read_layer_file(write("run.jsonl", rows), columns)
    # Facts: 3 of 4; behavior: 1.5 of 2.5.
    assert found.scores["1"] == pytest.approx([4.0, 3.4, 4.0])
    assert str(found.scores["2"]) == "[nan, nan, 0.0]"
    assert str(found.scores["3"]) == "[nan, nan, nan]"


def test_one_check_a_row_is_the_same(write: Write) -> None:
    rows: Rows = [
        {"id": "a", "type": "contains", "passed": "true", "weight": 3, "judge": ""},
        {"id": "a", "type": "regex", "passed": "False", "weight": "", "judge": ""},
        {"id": "a", "type": "", "passed": "", "weight": "", "judge": 4.5},
        {"id": "b", "type": "tool_called", "passed": 1, "weight": 2, "judge": ""},
    ]
    wanted = {"a": "[4.0, nan, 4.5]", "b": "[nan, 5.0, nan]"}
    for name in ("run.csv", "run.jsonl"):
        found = read_layer_file(write(name, rows), Columns(LAYERS))
        assert {sample: str(scores) for sample, scores in found.scores.items()} == wanted


def test_the_user_extends_the_table_of_checks(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": i, "checks": [{"type": "house style", "passed": i % 5 > 0}], "judge": 4} for i in range(20)]
    path = write("run.jsonl", rows)
    with pytest.raises(ValueError, match=r"run\.jsonl:1: the type of check 'house style' belongs to no layer.*--check"):
        command(path)
    assert command(path, "--check", "house style=style", "--layers", "style,judge", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["layers"] == {"style": 4.2, "judge": 4.0}
    with pytest.raises(ValueError, match="of the layer 'style', which is not in --layers"):
        command(path, "--check", "house style=style")


# Judges, people, provenance.


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


# Files are data.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": 1, "fact": 4}\n{"id": 2, "fact": "four"}\n', r":2: expected fact to be a finite number.*'four'"),
        ('{"id": 1, "fact": true}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": 1e999}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": [4]}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": __import__("os")}\n', ":1: not JSON"),
        ('{"id": 1, "fact": 4}\n{"id": 1, "fact": 5}\n', ":2: id '1' stands twice"),
        ('{"id": 1, "fact": 4, "fact": 5}\n', ":1: .*stands twice"),
        ('{"fact": 4}\n', ":1: expected id .*found None; name it with --id"),
        ('{"id": true, "fact": 4}\n', ":1: expected id"),
        ('{"id": 1, "fact": 4}\n[1]\n', ":2: expected a JSON object"),
        ('{"id": 1, "checks": {"type": "regex"}}\n', ":1: checks must be a list"),
        ('{"id": 1, "checks": [{"type": "regex", "passed": "maybe"}]}\n', ":1: expected passed to be true or false"),
        ('{"id": 1, "checks": [{"type": "regex"}]}\n', ":1: expected passed to be true or false"),
        ('{"id": 1, "checks": [{"type": "regex", "passed": 1, "weight": -1}]}\n', ":1: the weight of a check"),
        ('{"id": 1, "type": "regex", "passed": true, "judge": 4}\n', ":1: a row of one check holds a score too"),
        ('{"id": 1, "fact": 4}\n{"id": 1, "type": "regex", "passed": true}\n', "has a score and checks of the layer"),
        ('{"id": 1, "score": 4}\n', r"no row has a score of the layers \['fact', 'behavior', 'judge'\].*'score'"),
        ('{"id": 1, "fact": ' + "[" * 100_000 + "\n", ":1: nested too deeply"),
        ("id,fact\n1,4\n2\n", ":3: expected 2 cells as in the first line, but found 1"),
        ("id,fact,fact\n1,4,4\n", ":1: the column 'fact' stands 2 times"),
        ('id,fact\n1,"4\n', "not CSV"),
        ("", "no row has a score"),
        ("id,fact\n", "no row has a score"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        command(path)
    assert str(path) in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b"id,fact\n1,4\n\xff\xfe,5\n")
    with pytest.raises(ValueError, match=r"run\.csv:3: not UTF-8"):
        command(path)


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": 1, "fact": 4}\n{"id": "')
        file.truncate(80 * 2**20)  # a sparse file
    with pytest.raises(ValueError, match=r"run\.jsonl:2: the line is longer than"):
        command(path)


def test_other_spellings_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    for content in (
        "\ufeffid,fact\r\na,4\r\n",
        "id\tfact\na\t4\n",
        "id;fact\n\na;4\n",
        'id,fact\n"a","4"\n',
        "id,fact\na, 4 \n",
    ):
        path.write_text(content, newline="")
        assert read_layer_file(path, Columns(("fact",))).scores == {"a": [4.0]}


def test_missing_scores_have_many_spellings(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"id": 1, "fact": null}\n{"id": 2, "fact": NaN}\n{"id": 3}\n{"id": 4, "fact": ""}\n{"id": 5, "fact": 3}\n'
    )
    found = read_layer_file(path, Columns(("fact",)))
    assert [str(score) for (score,) in found.scores.values()] == ["nan", "nan", "nan", "nan", "3.0"]


def test_a_run_is_scored_in_one_way(write: Write) -> None:
    rows = [*scored(4.0, 2, hash="a"), {"id": 9, "fact": 4, "judge": 4, "hash": "b"}]
    with pytest.raises(ValueError, match=r"run\.csv:4: hash is 'b', but was 'a' before"):
        command(write("run.csv", rows), "--provenance", "hash")


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
