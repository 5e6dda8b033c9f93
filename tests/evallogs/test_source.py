"""Files that nobody vouches for, in pieces."""

import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.evallogs import source
from polyweave_torch.evallogs.outline import outline
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.source import JsonStream, read_array
from tests.evallogs.logs import write_document

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Trickle(io.BytesIO):
    """A file that gives three bytes at a time, so that everything is cut somewhere."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


def pieces(text: str, *streamed: tuple[str, ...], limit: int = 10**6) -> list[tuple[tuple[str, ...], Any]]:
    stream = JsonStream(Trickle(text.encode()), "x", limit=limit)
    return [(path, value) for path, _, value in stream.pieces(set(streamed))]


@given(st.lists(values, max_size=5), st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=60)
def test_the_elements_of_an_array(elements: list[Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=ascii_only)
    if not ascii_only and not _encodes(text):
        return
    assert pieces(text, ()) == [((), value) for value in elements]


@given(st.dictionaries(st.sampled_from("abc"), values), st.lists(values, max_size=4))
@settings(max_examples=60)
def test_the_members_of_an_object_and_of_a_streamed_array(members: dict[str, Any], rows: list[Any]) -> None:
    document = {**members, "deep": {"rows": rows, "more": 1}, "end": 2}
    expected: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in members.items()]
    expected += [(("deep", "rows"), row) for row in rows]
    expected += [(("deep", "more"), 1), (("end",), 2)]
    assert pieces(json.dumps(document), ("deep", "rows")) == expected


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1,\n2,\n oops]", "x:3: not JSON"),
        ("[1, 2", "x:1: not JSON: expected ']', but found the end of the file"),
        ('{"a": 1,\n\n"b" 2}', "x:3: not JSON: expected a key and a colon"),
        ("[1] [2]", "x:1: text after the end"),
        ('[{"a": 1, "a": 2}]', "x:1: the key 'a' stands twice"),
        ("[" + "9" * 5000 + "]", "x:1:"),
        ("[" * 100_000, "x:1:"),
    ],
)
def test_broken_documents_are_named_by_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[").replace("]", r"\]")):
        pieces(text, ())


def test_a_long_element_is_refused_without_reading_it() -> None:
    with pytest.raises(ValueError, match="x:2: one value is longer than"):
        pieces('[1,\n"' + "long" * 1000 + '"]', (), limit=1000)


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


def test_memory_is_that_of_one_element(tmp_path: Path) -> None:
    rows = [{"id": row, "correct": 1, "text": "x" * 100_000} for row in range(200)]
    path = write_document(tmp_path / "x.json", rows)
    tracemalloc.start()
    assert sum(1 for _ in read_array(path)) == 200
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 4_000_000


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
