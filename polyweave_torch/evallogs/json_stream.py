"""JSON documents of any length, piece by piece."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from polyweave_torch.evallogs.archives import UNPACKING
from polyweave_torch.evallogs.json_values import DECODER, kind_of, misread
from polyweave_torch.evallogs.source import MAX_PIECE, open_log
from polyweave_torch.layout import clipped

_AFTER_VALUE = frozenset(",:]} \t\r\n")


def read_array(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of one JSON array, each with its place."""
    with open_log(path) as file:
        for _, where, row in JsonStream(file, str(path)).pieces({()}):
            if not isinstance(row, dict):
                raise ValueError(f"{where}: expected a JSON object an element, but found {kind_of(row)}")
            yield where, row


class JsonStream:
    """Walks one JSON document piece by piece, so that memory holds one piece and never the file.

    ``pieces`` yields ``(path, where, value)``: each member of the top object, or each element of the arrays whose paths
    are streamed. ``()`` streams a top array.
    """

    def __init__(self, file: IO[bytes], name: str, *, limit: int = MAX_PIECE) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._name = name
        self._limit = limit
        self._text = ""
        self._place = 0
        self._line = 1
        self._counted = 0
        self._ended = False

    def pieces(self, streamed: set[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
        """Walk the document; see the class."""
        try:
            yield from self._walk((), streamed)
            if self._peek():
                raise ValueError(f"{self._where()}: text after the end of the JSON document")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self._where()}: not UTF-8 text ({error.reason})") from error

    def _walk(
        self, path: tuple[str, ...], streamed: set[tuple[str, ...]]
    ) -> Iterator[tuple[tuple[str, ...], str, Any]]:
        opening = self._peek()
        if path in streamed and opening == "[":
            for _ in self._items("[", "]"):
                where = self._where()
                yield path, where, self._value()
        elif opening == "{" and (not path or any(target[: len(path)] == path for target in streamed)):
            keys: set[str] = set()
            for _ in self._items("{", "}"):
                key = self._value()
                if not isinstance(key, str) or self._peek() != ":":
                    raise ValueError(f"{self._where()}: not JSON: expected a key and a colon")
                if key in keys:
                    raise ValueError(f"{self._where()}: the key {clipped(key)!r} stands twice in one object")
                keys.add(key)
                self._place += 1
                yield from self._walk((*path, key), streamed)
        else:
            where = self._where()
            yield path, where, self._value()

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        """Stand before each item of an array or object, and after its end at last."""
        self._expect(opening)
        if self._peek() == closing:
            self._place += 1
            return
        while True:
            yield
            if self._peek() != ",":
                break
            self._place += 1
        self._expect(closing)

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            found = repr(self._peek()) if self._peek() else "the end of the file"
            raise ValueError(f"{self._where()}: not JSON: expected {character!r}, but found {found}")
        self._place += 1

    def _peek(self) -> str:
        """The next character that is no blank, "" at the end."""
        while True:
            text, place = self._text, self._place
            while place < len(text) and text[place] in " \t\r\n":
                place += 1
            self._place = place
            if place < len(text):
                return text[place]
            if not self._more():
                return ""

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._place)
            except (ValueError, RecursionError) as error:
                if not isinstance(error, json.JSONDecodeError) or not self._more():
                    raise misread(error, self._where()) from error
                continue
            # A number that the text read so far cuts off can look whole: 1.5 of 1.5e-7.
            if self._text[end : end + 1] in _AFTER_VALUE or not self._more():
                self._place = end
                return value

    def _more(self) -> bool:
        """Read on, forgetting what is behind; False at the end of the file."""
        self._count()
        self._text = self._text[self._place :]
        self._place = self._counted = 0
        if len(self._text) > self._limit:
            raise ValueError(f"{self._where()}: one value is longer than {self._limit // 2**20} MiB")
        if not self._ended:
            try:
                more = self._file.read(max(2**18, len(self._text)))
            except UNPACKING as error:
                raise ValueError(f"{self._where()}: can't be unpacked: {error}") from error
            self._ended = not more
            self._text += self._decoder.decode(more, final=not more)
        return not self._ended

    def _count(self) -> None:
        self._line += self._text.count("\n", self._counted, self._place)
        self._counted = self._place

    def _where(self) -> str:
        self._count()
        return f"{self._name}:{self._line}"
