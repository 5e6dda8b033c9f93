"""JSON documents in pieces: what json reads whole, in the memory of one piece."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.evallogs.json_stream import JsonStream, read_array
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


@pytest.mark.parametrize("text", ['{"a": [1],\n"b": 2,\n"a": [3]}', '{"c": {"d": 1},\n\n"c": 2}'])
def test_a_key_that_stands_twice_is_refused_where_members_are_streamed(text: str) -> None:
    with pytest.raises(ValueError, match=r"x:3: the key '[ac]' stands twice in one object"):
        pieces(text, ("a",), ("c", "d"))


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


def test_memory_is_that_of_one_element(tmp_path: Path) -> None:
    rows = [{"id": row, "correct": 1, "text": "x" * 100_000} for row in range(200)]
    path = write_document(tmp_path / "x.json", rows)
    tracemalloc.start()
    assert sum(1 for _ in read_array(path)) == 200
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 4_000_000
