"""The command line as a whole: help, exit codes, and what is said of files that can't be opened."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from polyweave_torch.ablation import command as ablate
from polyweave_torch.cli import main
from polyweave_torch.evallogs import command as compare

COMMANDS = ("verdict", "ablate", "claims", "compare")
ROOT = Path(__file__).parents[1]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files for each command, in the working directory."""
    for name, text in {
        "run.csv": "id,correct,fact\na,1,4\nb,0,4\n",
        "cases.jsonl": '{"id": "a", "stratum": "s"}\n',
        "gold/one.sexp": "(lion LionA)",
        "read/one.sexp": "(lion Leo)",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_the_exit_codes_mean(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Exit code 0 " in said
    assert "2 for bad input." in said
    assert "Exit code 3: an error that nobody foresaw" in said


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"polyweave-torch {metadata.version('polyweave-torch')}\n"


def test_an_error_that_nobody_foresaw_is_no_failed_gate(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(compare, "compare_runs", broken)
    assert main(["compare", "run.csv", "run.csv", "--fail-on", "regress"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "ZeroDivisionError: unforeseen" in said


@pytest.mark.parametrize(
    "words",
    [
        "verdict run.csv --layers fact",
        "ablate cases.jsonl --simulate",
        "claims gold read",
        "compare run.csv run.csv",
    ],
)
def test_json_is_one_object_that_people_can_read(inputs: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*words.split(), "--json"])
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert found["schema"] == 1
    assert printed == json.dumps(found, indent=2) + "\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("verdict none.csv", "none.csv is not there; expected a JSONL or CSV file of scores or checks. Check the path"),
        ("ablate none.jsonl --simulate", "none.jsonl is not there; expected a JSONL file of cases. Check the path"),
        ("claims none read", "none is not there; expected a folder with a file of claims for each document."),
        ("claims gold read --background none.sexp", "none.sexp is not there"),
        ("claims run.csv read", "run.csv can't be opened (Not a directory); expected a folder with a file of claims"),
        ("compare run.csv none.csv", "none.csv is not there; expected the log of a finished run, or a folder that "),
        ("compare run.csv no/such.csv", "no/such.csv is not there, nor is the folder no. Check the path, or make the "),
        ("compare run.csv run.csv --html no/page.html", "no/page.html is not there, nor is the folder no."),
        ("compare run.csv run.csv --html gold", "gold can't be opened (Is a directory); expected a file to write, by"),
        ("compare run.csv run.csv --flips-out gold", "gold can't be opened (Is a directory); expected a file to write"),
        ("compare run.csv run.csv --figures run.csv", "run.csv can't be opened (File exists); expected a folder to wr"),
        (
            "compare run.csv run.csv --universe gold",
            "gold can't be opened (Is a directory); expected a file of ids, on",
        ),
        ("compare none.csv run.csv --figures .", "none.csv is not there; expected the log of a finished run"),
        (
            "ablate cases.jsonl --simulate --out gold",
            "gold can't be opened (Is a directory); expected a place to write",
        ),
    ],
)
def test_a_file_that_cannot_be_opened_is_named_with_what_to_do(
    inputs: Path, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = words.split()[0]
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"polyweave-torch {command}: {said}")
    assert "Errno" not in printed.err
    assert not printed.out


FAILED = ("compare run.csv 比.csv --fail-on regress", "verdict run.csv 比.csv --layers fact")


@pytest.mark.parametrize("words", FAILED)
@pytest.mark.parametrize("output", ["closed", "cp1252"])
def test_a_failed_gate_fails_whoever_reads(inputs: Path, words: str, output: str) -> None:
    for name, correct in (("run", 1), ("比", 0)):
        rows = "".join(f"比較{index},{correct},{4 * correct + 1},比\n" for index in range(40))
        (inputs / f"{name}.csv").write_text(f"id,correct,fact,slice\n{rows}", encoding="utf-8")
    reading, writing = os.pipe()
    if output == "closed":
        os.close(reading)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "cp1252" if output == "cp1252" else "utf-8",
    }
    command = [sys.executable, "-m", "polyweave_torch.cli", *words.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert done.returncode == 1, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"Broken pipe" not in done.stderr
    if output == "cp1252":
        with os.fdopen(reading, "rb") as read:
            assert len(read.read()) > 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--alpha 5", "--alpha must"),
        ("--figure no/chart.png", "--figure no/chart.png: the folder no is not there"),
        ("--figure chart.none", "--figure chart.none: expected a file that ends in one of "),
    ],
)
def test_what_an_ablation_s_report_needs_is_checked_before_it_runs(
    inputs: Path, words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluated(*args: object, **options: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr(ablate, "run_ablation", evaluated)
    assert main(["ablate", "cases.jsonl", "--simulate", *words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"polyweave-torch ablate: {said}")


ESCAPE, BIDI = "\x1b[31m", "\u202e"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("columns.csv", f"{ESCAPE}one,{BIDI}two\n1,2\n", "compare FILE FILE"),
        ("arms.csv", f"id,correct,model\n1,1,{ESCAPE}a\n1,1,{BIDI}b\n", "compare FILE FILE"),
        ("unknown.txt", f"{ESCAPE}{BIDI}\n1\n", "compare FILE FILE"),
        ("ids.csv", f"id,correct\n{ESCAPE}{BIDI}{'x' * 100_000},1\n", "compare FILE run.csv"),
        (f"{ESCAPE}{BIDI}.csv", "id,correct\n", "compare FILE FILE"),
        (f"{ESCAPE}{BIDI}.jsonl", "[", "ablate FILE --simulate"),
        ("checks.csv", f"id,type,passed\n1,{ESCAPE}{BIDI},1\n", "verdict FILE"),
        ("verdict.csv", f"id,{ESCAPE}{BIDI}\n1,2\n", "verdict FILE"),
        (f"read/{ESCAPE}{BIDI}.sexp", "(lion Leo)", "claims gold read"),
    ],
    ids=["columns", "arms", "unknown", "ids", "compare path", "ablate path", "check", "verdict columns", "claims path"],
)
def test_names_from_outside_do_not_reach_the_terminal_raw(
    inputs: Path, name: str, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (inputs / name).write_text(text)
    assert main([name if word == "FILE" else word for word in words.split()]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.removesuffix("\n").isprintable()
    assert "\\x1b[31m" in said
    assert len(said) < 1500


def test_the_last_print_escapes_and_bounds_whatever_an_error_says(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ValueError(ESCAPE + "x" * 1_000_000)

    monkeypatch.setattr(compare, "compare_runs", broken)
    assert main(["compare", "run.csv", "run.csv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("polyweave-torch compare: \\x1b[31mxxx")
    assert len(said) < 11_000


def test_an_uninstalled_source_tree_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("polyweave_torch.cli.version", missing)
    assert main(["compare", "no.jsonl", "such.jsonl"]) == 2
    assert "no.jsonl is not there" in capsys.readouterr().err
