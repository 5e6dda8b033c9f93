"""A bar on a terminal, silence in a pipe; figures as files; one bad row among many."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from polyweave_torch.cli import main
from polyweave_torch.evallogs.json_values import read_json_lines
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.source import raw_lines, watch_reading
from tests.evallogs.logs import write_lines

ROWS = [{"id": item, "correct": item % 3 > 0, "slice": f"s{item % 2}"} for item in range(400)]


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    return [write_lines(tmp_path / f"{arm}.jsonl", ROWS[:: (1, -1)[arm == "after"]]) for arm in ("before", "after")]


def test_there_is_a_bar_on_a_terminal_and_none_in_a_pipe(logs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, logs)]) == 0
    piped = capsys.readouterr()
    assert piped.err == ""
    ours, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    os.set_blocking(ours, False)
    command = [sys.executable, "-m", "polyweave_torch.cli", "compare", *map(str, logs)]
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, text=True, check=True)
    assert shown.stdout == piped.out
    bar = os.read(ours, 2**16).decode()
    os.close(terminal)
    os.close(ours)
    assert "before.jsonl" in bar
    assert "after.jsonl" in bar


def test_the_watcher_hears_of_every_byte(logs: list[Path]) -> None:
    heard: list[int] = []
    with watch_reading(heard.append):
        watched = list(raw_lines(logs[0]))
    assert sum(heard) == logs[0].stat().st_size
    assert watched == list(raw_lines(logs[0]))
    assert sum(heard) == logs[0].stat().st_size


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"id": 1, "corr', "not JSON"),
        ('{"id": 1, "id": 2, "correct": 1}', "'id' stands twice"),
        ('{"id": 999999, "correct": "perhaps"}', "expected an outcome"),
        ('{"id": [1], "correct": 1}', "expected an id"),
        ('{"id": 999999}', "no field 'correct'"),
        ("[" * 100_000, "nested too deeply"),
        ("7", "expected a JSON object a line, but found a number"),
        ('{"id": 1, "correct": 1} {"id": 2}', "not JSON: Extra data"),
    ],
)
def test_one_bad_row_among_many_is_named_by_its_line(tmp_path: Path, bad: str, said: str) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"id": {item}, "correct": {item % 2}}}\n' for item in range(5_000))
        file.write(f"{bad}\n")
        file.writelines(f'{{"id": {item}, "correct": {item % 2}}}\n' for item in range(5_000, 6_000))
    with pytest.raises(ValueError, match=said) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:5001: ")


def test_the_bad_row_ends_the_command_with_2_and_one_line(logs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    with logs[1].open("ab") as file:
        file.write(b'{"id": "\xff"}\n')
    assert main(["compare", *map(str, logs)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"{logs[1]}:401: not UTF-8 text" in said.err


def test_figures_are_written_as_png(logs: list[Path], tmp_path: Path) -> None:
    assert main(["compare", *map(str, logs), "--figures", str(tmp_path / "a/b")]) == 0
    files = sorted((tmp_path / "a/b").iterdir())
    assert [file.name for file in files] == ["flips.png", "forest.png", "phase_plane.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_scores_have_no_figures_but_a_page(tmp_path: Path) -> None:
    rows = [{"id": item, "score": item / 50} for item in range(50)]
    logs = [write_lines(tmp_path / f"{arm}.jsonl", rows) for arm in range(2)]
    assert main(["compare", *map(str, logs), "--figures", str(tmp_path / "f"), "--html", str(tmp_path / "x.html")]) == 0
    assert not list((tmp_path / "f").iterdir())
    assert "<img" not in (tmp_path / "x.html").read_text()


def test_figures_without_matplotlib_are_an_error_that_says_what_to_install(
    logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["compare", *map(str, logs), "--figures", str(tmp_path / "f")]) == 2
    assert "pip install 'polyweave-torch[plot]'" in capsys.readouterr().err


def test_lines_are_told_apart_as_json_says(tmp_path: Path) -> None:
    # The fast way and the decoder must agree on what surrounds a value.
    path = tmp_path / "x.jsonl"
    path.write_text(' {"a": 1} \n\n\t{"a": NaN}\r\n')
    assert [where.rpartition(":")[2] for where, _ in read_json_lines(path)] == ["1", "3"]
