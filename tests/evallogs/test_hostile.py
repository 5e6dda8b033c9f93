"""Hostile files, read by a child that may not take more than half a GiB beyond what it starts with."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from polyweave_torch.evallogs.reading import read_run
from tests.evallogs.logs import write_lines

CHILD = """
import resource, sys
from pathlib import Path
from polyweave_torch.cli import main
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 2**29
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sys.argv[2:]:
    assert main(["compare", sys.argv[1], path]) == 2
"""


def endless(path: Path) -> Path:
    with path.open("wb") as file:
        file.write(b'{"id": 1, "correct": 1}\n{"id": 2, "correct": "')
        file.truncate(5 * 2**30)
    return path


def endless_array(path: Path) -> Path:
    with path.open("wb") as file:
        file.write(b'[{"id": 1, "correct": 1}, {"id": 2, "correct": "')
        file.truncate(5 * 2**30)
    return path


def bomb(path: Path, member: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", '{"status": "success", "eval": {"task": "t", "model": "m"}}')
        with archive.open(member, "w") as file:
            for _ in range(150):
                file.write(b" " * 2**20)
    return path


def deep(path: Path) -> Path:
    path.write_text('{"id": 1, "correct": 1}\n' + '{"id": 2, "correct": ' + "[" * 100_000 + "\n")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_memory_stays_bounded_and_each_error_names_the_file(tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.jsonl", [{"id": 1, "correct": 1}])
    files = [
        endless(tmp_path / "endless.jsonl"),
        endless_array(tmp_path / "endless.json"),
        bomb(tmp_path / "sample.eval", "samples/1_epoch_1.json"),
        deep(tmp_path / "deep.jsonl"),
    ]
    command = [sys.executable, "-c", CHILD, str(good), *map(str, files)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout == ""
    errors = found.stderr.splitlines()
    assert len(errors) == len(files)
    for path, error in zip(files, errors, strict=True):
        assert error.startswith(f"polyweave-torch compare: {path}")
    assert "endless.jsonl:2: the line is longer than 64 MiB" in errors[0]
    assert "deep.jsonl:2: nested too deeply" in errors[3]


def test_a_zip_with_paths_that_climb_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    folder.mkdir(parents=True)
    path = folder / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", '{"status": "success", "eval": {"task": "t", "model": "m"}}')
        archive.writestr("../../evil.json", "{}")
        archive.writestr("samples/../../../evil.json", '{"id": 1, "epoch": 1}')
    # A member's name is a key and never a path.
    assert read_run(path).ids == ["1"]
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "a", folder, path]
