"""Files that nobody vouches for: what is refused, and what is said of them."""

import json
import os
from pathlib import Path

import pytest

from polyweave_torch.evallogs import source
from polyweave_torch.evallogs.outline import outline
from polyweave_torch.evallogs.reading import read_run
from tests.evallogs.logs import write_document


def test_text_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'[{"id": 1, "correct": 1},\n{"id": "\xff", "correct": 1}]')
    with pytest.raises(ValueError, match=r"x.json:2: not UTF-8 text"):
        read_run(tmp_path / "x.json")
    (tmp_path / "x.jsonl").write_bytes(b'{"id": 1, "correct": 1}\n' * 20_000 + b'{"id": "\xff", "correct": 1}\n')
    with pytest.raises(ValueError, match=r"x.jsonl:20001: not UTF-8 text"):
        read_run(tmp_path / "x.jsonl")


def test_a_long_line_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1, "correct": 1}\n')
    # A hole of 5 GB, which no reader may try to hold.
    os.truncate(path, 5 * 2**30)
    with pytest.raises(ValueError, match=r"x.jsonl:2: the line is longer than 64 MiB"):
        read_run(path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1, "correct": 1}\n{"id": 2, "correct": ' + "[" * 100_000 + "\n")
    with pytest.raises(ValueError, match=r"x.jsonl:2: nested too deeply"):
        read_run(tmp_path / "x.jsonl")
    (tmp_path / "y.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"y.json: nested too deeply"):
        read_run(tmp_path / "y.json")


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1, "correct": 1}\n{"id": 2, "correct": 1, "correct": 0}\n')
    with pytest.raises(ValueError, match=r"x.jsonl:2: the key 'correct' stands twice"):
        read_run(tmp_path / "x.jsonl")


def test_half_a_character_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a\\ud800", "correct": 1, "slice": "\\udfff", "prediction": "\\ud83d"}\n')
    run = read_run(tmp_path / "x.jsonl")
    assert (run.ids, run.slices, run.answers) == (["a?"], ["?"], ["?"])


def test_a_pipe_is_refused_since_it_is_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a regular file"):
        read_run(tmp_path / "pipe")


def test_an_outline_shows_what_the_first_bytes_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"a": 1, "b": {"c": [{"d": "x"}, 2], "e": 3}}
    for indent in (None, 2):
        text = json.dumps(document, indent=indent)
        for size in range(1, len(text) + 1):
            # Every place where the beginning of a file can end.
            monkeypatch.setattr(source, "HEAD", size)
            monkeypatch.setattr("polyweave_torch.evallogs.outline.HEAD", size)
            path = tmp_path / "x"
            path.write_text(text)
            record = outline(path).record
            assert set(record) <= {"a", "b"}
            if "a" in record:
                assert record["a"] in (1, None)
        assert record == document


def test_an_unknown_file_says_what_it_looks_like(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not a known evaluation log \(object: weights, bias\)"):
        read_run(write_document(tmp_path / "x.json", {"weights": [1], "bias": 2}))
    with pytest.raises(FileNotFoundError):
        read_run(tmp_path / "absent.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="holds no evaluation log"):
        read_run(tmp_path / "folder")


def test_a_broken_log_in_a_folder_does_not_go_missing(tmp_path: Path) -> None:
    write_document(tmp_path / "good.json", [{"id": 1, "correct": 1}])
    (tmp_path / "notes.bin").write_bytes(b"\xff\xfe")
    assert read_run(tmp_path).ids == ["1"]
    (tmp_path / "bad.json").write_text("[1, 2")
    with pytest.raises(ValueError, match=r"bad.json: not JSON"):
        read_run(tmp_path)
