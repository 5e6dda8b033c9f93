"""Read text, JSON and zip members of files that nobody vouches for: in bounded pieces, errors with their place.

Nothing here is evaluated or unpickled, and nothing is written to a path that a file names.
"""

import codecs
import contextlib
import csv
import importlib
import io
import itertools
import json
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from json.scanner import make_scanner
from pathlib import Path
from types import ModuleType
from typing import IO, Any

MAX_PIECE = 64 * 2**20
"""The most bytes that one line, one element of a JSON array or one member of a zip may have."""
HEAD = 2**18
"""Bytes that a format is told from."""
_ZSTANDARD = 93


def head(path: Path) -> bytes:
    """The first bytes of a regular file."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} is not a regular file; save what it gives to a file first, since it is read twice")
    with path.open("rb") as file:
        return file.read(HEAD)


@contextlib.contextmanager
def watch_reading(watcher: Callable[[int], object]) -> Iterator[None]:
    """Tell a watcher how many bytes are read, as they are read, by whatever runs inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


_watcher: ContextVar[Callable[[int], object] | None] = ContextVar("watcher", default=None)


class _Watched(io.FileIO):
    """A file that tells a watcher of each block that it gives."""

    def __init__(self, path: Path, watcher: Callable[[int], object]) -> None:
        super().__init__(path)
        self._watcher = watcher

    def readinto(self, buffer: Any, /) -> int:
        number = super().readinto(buffer) or 0
        self._watcher(number)
        return number


def open_log(path: Path) -> IO[bytes]:
    """A log to read from its start to its end."""
    watcher = _watcher.get()
    # Blocks of a quarter MiB: the watcher is asked a few times a second, not at each line.
    return path.open("rb") if watcher is None else io.BufferedReader(_Watched(path, watcher), 2**18)


def raw_lines(path: Path) -> Iterator[str]:
    """Every line of UTF-8 text with its end."""
    with open_log(path) as file:
        number = 0
        while line := file.readline(MAX_PIECE + 1):
            number += 1
            if len(line) > MAX_PIECE:
                raise ValueError(f"{path}:{number}: the line is longer than {MAX_PIECE // 2**20} MiB")
            text = line.decode() if line.isascii() else decode(line, f"{path}:{number}")
            yield text if number > 1 else text.removeprefix("\ufeff")


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSONL file, each with its place."""
    name = str(path)
    for number, line in enumerate(raw_lines(path), start=1):
        text = line.strip()
        if not text:
            continue
        where = f"{name}:{number}"
        row = parse(text, where)
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected a JSON object a line, but found {_kind(row)}")
        yield where, row


def read_array(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of one JSON array, each with its place."""
    with open_log(path) as file:
        for _, where, row in JsonStream(file, str(path)).pieces({()}):
            if not isinstance(row, dict):
                raise ValueError(f"{where}: expected a JSON object an element, but found {_kind(row)}")
            yield where, row


def read_table(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file by the names in its first line, each with its place; empty lines are passed over."""
    lines = raw_lines(path)
    above, first = 0, next(lines, "")
    while first and not first.strip():
        above, first = above + 1, next(lines, "")
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter(first), strict=True)
    name = str(path)
    try:
        header = next(reader)
        if twice := repeated(header):
            times = header.count(twice[0])
            raise ValueError(f"{path}:{above + reader.line_num}: the column {twice[0]!r} stands {times} times")
        for cells in reader:
            where = f"{name}:{above + reader.line_num}"
            if cells and len(cells) != len(header):
                raise ValueError(f"{where}: expected {len(header)} cells as in the first line, but found {len(cells)}")
            if cells:
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{above + reader.line_num}: not CSV: {error}") from error


def delimiter(line: str) -> str:
    """What divides the columns of a table."""
    return max(",\t;", key=line.count)


def read_document(path: Path) -> Any:
    """A whole JSON file of at most ``MAX_PIECE`` bytes."""
    with path.open("rb") as file:
        content = file.read(MAX_PIECE + 1)
    if len(content) > MAX_PIECE:
        raise ValueError(f"{path}: expected a summary file of at most {MAX_PIECE // 2**20} MiB, but it is larger")
    return parse(decode(content, str(path)).lstrip("\ufeff"), str(path))


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file, each with its place."""
    parquet = optional_module("pyarrow.parquet", extra="parquet", why=f"{path} is a Parquet file")
    pyarrow = optional_module("pyarrow", extra="parquet", why=f"{path} is a Parquet file")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a whole Parquet file: {error}") from error


def decode(content: bytes, where: str) -> str:
    """UTF-8 bytes as text."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: not UTF-8 text at byte {error.start} ({error.reason})") from error


def parse(text: str, where: str) -> Any:
    """One JSON value, NaN and Infinity included; a key that stands twice in one object is an error."""
    try:
        # The scanner alone is faster; what it refuses or leaves over, the decoder explains.
        value, end = _scan(text, 0)
        if end == len(text):
            return value
    except (StopIteration, ValueError, RecursionError):
        pass
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _bad(error, where) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"the key {repeated(name for name, _ in pairs)[0]!r} stands twice in one object")
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_scan: Callable[[str, int], tuple[Any, int]] = make_scanner(_DECODER)  # type: ignore[arg-type]


def _bad(error: Exception, where: str) -> ValueError:
    if isinstance(error, RecursionError):
        return ValueError(f"{where}: nested too deeply to be an evaluation log")
    if isinstance(error, json.JSONDecodeError):
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"character {error.pos}"
        return ValueError(f"{where}: not JSON: {error.msg} at {place}")
    return ValueError(f"{where}: {error}")


def part(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """An object inside of a row; an empty one where it is absent or null."""
    value = row.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{where}: expected {name} to be an object, but found {_kind(value)}")
    return value or {}


def repeated(names: Iterable[str]) -> list[str]:
    """The names that come more than once, in the order in which they first come."""
    return [name for name, number in Counter(names).items() if number > 1]


def entries(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """A list inside of a row; an empty one where it is absent or null."""
    value = row.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{where}: expected {name} to be an array, but found {_kind(value)}")
    return value or []


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")


_AFTER_VALUE = frozenset(",:]} \t\r\n")


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
            for _ in self._items("{", "}"):
                key = self._value()
                if not isinstance(key, str) or self._peek() != ":":
                    raise ValueError(f"{self._where()}: not JSON: expected a key and a colon")
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
                value, end = _DECODER.raw_decode(self._text, self._place)
            except (ValueError, RecursionError) as error:
                if not isinstance(error, json.JSONDecodeError) or not self._more():
                    raise _bad(error, self._where()) from error
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


UNPACKING = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)
"""What a damaged, encrypted or strangely packed member raises."""


def read_member(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    """One member of a zip, of at most ``MAX_PIECE`` bytes however small it is packed."""
    with open_member(archive, name, where) as file:
        try:
            content = file.read(MAX_PIECE + 1)
        except UNPACKING as error:
            raise ValueError(f"{where}: {name} can't be unpacked: {error}") from error
    if len(content) > MAX_PIECE:
        raise ValueError(f"{where}: {name} unpacks to more than {MAX_PIECE // 2**20} MiB")
    return content


def open_member(archive: zipfile.ZipFile, name: str, where: str) -> IO[bytes]:
    """A member of a zip to read from, stored, deflated or packed with zstd."""
    member = archive.getinfo(name)
    try:
        return _open_zstandard(archive, member) if member.compress_type == _ZSTANDARD else archive.open(member)
    except UNPACKING as error:
        raise ValueError(f"{where}: {name} can't be unpacked: {error}") from error


def _open_zstandard(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    zstandard = optional_module("zstandard", extra="zstd", why="this log is packed with zstd")
    file = archive.fp
    if file is None or member.compress_size > MAX_PIECE:
        raise zipfile.BadZipFile(f"{member.compress_size} packed bytes are more than {MAX_PIECE // 2**20} MiB")
    # zipfile before Python 3.14 knows where the member is, but not how to unpack it.
    file.seek(member.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile("no member at the place that the directory names")
    name_length, extra_length = (int.from_bytes(header[place : place + 2], "little") for place in (26, 28))
    file.seek(member.header_offset + 30 + name_length + extra_length)
    packed = file.read(member.compress_size)
    return io.BufferedReader(_Zstandard(zstandard, packed))


class _Zstandard(io.RawIOBase):
    """Unpacks zstd frames; errors are those of other damaged members."""

    def __init__(self, zstandard: ModuleType, packed: bytes) -> None:
        self._error = zstandard.ZstdError
        self._reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            return int(self._reader.readinto(buffer))
        except self._error as error:
            raise zipfile.BadZipFile(str(error)) from error


def optional_module(name: str, *, extra: str, why: str) -> ModuleType:
    """A module that comes with an extra, or an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".")[0]
        raise ValueError(f"{why}; reading it needs {package}: pip install 'polyweave-torch[{extra}]'") from error
