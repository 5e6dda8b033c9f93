"""Files that nobody vouches for: one line on the terminal and exit code 2, whatever is in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from polyweave_torch.cli import main

CASE = '{"id": "a", "stratum": "s"}\n'
DEEP = "[" * 100_000 + "]" * 100_000
CHILD = """
import resource, sys
from pathlib import Path
from polyweave_torch.cli import main
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 2**29
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
assert main(["ablate", sys.argv[1], "--simulate"]) == 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.jsonl").write_text(CASE)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["ablate", *words, "--simulate"]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix("polyweave-torch ablate: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f'{{"id": "q", "stratum": "s", "gold": {DEEP}}}', "bad.jsonl:2: nested too deeply"),
        (f'{{"id": "q", "stratum": "s", "gold": {"9" * 5000}}}', "bad.jsonl:2: Exceeds the limit"),
        ('{"id": "q", "id": "r", "stratum": "s"}', "bad.jsonl:2: the key 'id' stands twice in one object"),
        ('{"id": "\udcff"}', "bad.jsonl:2: not UTF-8 text at byte 8"),
        ('{"id": ["\x1b[31m"], "stratum": "s"}'.replace("\x1b", "\\u001b"), "bad.jsonl:2: a case needs id as text"),
    ],
    ids=["deep", "digits", "key twice", "binary", "escape"],
)
def test_a_bad_line_is_named(folder: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.jsonl").write_bytes((CASE + content + "\n").encode("utf-8", "surrogateescape"))
    found = said(capsys, "bad.jsonl")
    assert found.startswith(message)
    assert "\x1b" not in found


@pytest.mark.parametrize("depth", range(970, 1000, 2))
def test_no_depth_ends_in_a_traceback(folder: Path, depth: int, capsys: pytest.CaptureFixture[str]) -> None:
    gold = "[" * depth + "]" * depth
    (folder / "deep.jsonl").write_text(f'{{"id": "q", "stratum": "s", "gold": {gold}}}\n')
    assert main(["ablate", "deep.jsonl", "--simulate"]) in (0, 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes that have a name")
@pytest.mark.parametrize(
    "words", [["PIPE"], ["cases.jsonl", "--out", "PIPE"], ["cases.jsonl", "--out", "PIPE", "--restart"]]
)
def test_a_pipe_or_a_device_is_refused_at_once(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "/dev/zero"):
        found = said(capsys, *(name if word == "PIPE" else word for word in words))
        assert found.startswith(f"{name} is not a regular file")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_a_line_without_an_end_takes_no_memory(folder: Path) -> None:
    with (folder / "endless.jsonl").open("wb") as file:
        file.write(CASE.encode() + b'{"id": "')
        file.truncate(5 * 2**30)
    found = subprocess.run([sys.executable, "-c", CHILD, "endless.jsonl"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stderr == "polyweave-torch ablate: endless.jsonl:2: the line is longer than 64 MiB\n"


@pytest.mark.parametrize(
    "line",
    [
        f'{{"case_id": {DEEP}}}',
        '{"case_id": [], "stratum": "s", "condition": "plain", "first_try": 1, "converged": 1, "iterations": 1}',
        '{"case_id": "a", "case_id": "a"}',
        '{"case_id": "a", "stratum": "s", "condition": "plain", "first_try": 1, "converged": 1, "iterations": "x"}',
    ],
    ids=["deep", "no text", "key twice", "no number"],
)
def test_a_line_that_is_no_outcome_is_named(folder: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.jsonl").write_text(line + "\n" + line + "\n")
    assert said(capsys, "cases.jsonl", "--out", "run.jsonl").startswith("run.jsonl:1 is no outcome")
    assert (folder / "run.jsonl").read_text() == line + "\n" + line + "\n"


@pytest.mark.parametrize(
    "manifest", [f'{{"cases": {DEEP}}}', '{"mode": "LIVE", "model": "", "cases": [], "conditions": {}}', "[]"]
)
def test_a_manifest_that_is_none_is_named(folder: Path, manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", "cases.jsonl", "--simulate", "--out", "run.jsonl"]) == 0
    (folder / "run.jsonl.manifest").write_text(manifest)
    capsys.readouterr()
    assert "run.jsonl.manifest is no manifest" in said(capsys, "cases.jsonl", "--out", "run.jsonl")


@pytest.mark.parametrize("options", [DEEP, '{"x": 1, "x": 2}'], ids=["deep", "key twice"])
def test_options_that_cannot_be_read_are_said(folder: Path, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "cases.jsonl", "--conditions", f"a={options}", "b")
    assert "expected a JSON object after the =" in found
    assert len(found) < 600
