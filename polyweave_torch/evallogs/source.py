"""Read bytes and lines of files that nobody vouches for: in bounded pieces, errors with their place.

Nothing here, nor in what stands on it, is evaluated or unpickled, and nothing is written to a path that a file names.
"""

import contextlib
import importlib
import io
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import IO, Any

MAX_PIECE = 64 * 2**20
"""The most bytes that one line, one element of a JSON array or one member of a zip may have."""
HEAD = 2**18
"""Bytes that a format is told from."""
_watcher: ContextVar[Callable[[int], object] | None] = ContextVar("watcher", default=None)


def head(path: Path) -> bytes:
    """The first bytes of a regular file."""
    with open_regular(path) as file, named_errors(path):
        return file.read(HEAD)


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which may wait or go on for ever; to open a folder is an error of its own."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is not a regular file; save what it gives to a file first")


def open_regular(path: Path) -> IO[bytes]:
    """A regular file to read from."""
    check_regular(path)
    return path.open("rb")


@contextlib.contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Let what can't be read say which file it is."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def watch_reading(watcher: Callable[[int], object]) -> Iterator[None]:
    """Tell a watcher how many bytes are read, as they are read, by whatever runs inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


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
    check_regular(path)
    # Blocks of a quarter MiB: the watcher is asked a few times a second, not at each line.
    return path.open("rb") if watcher is None else io.BufferedReader(_Watched(path, watcher), 2**18)


def raw_lines(path: Path) -> Iterator[str]:
    """Every line of UTF-8 text with its end."""
    for number, line in enumerate(byte_lines(path), start=1):
        text = line.decode() if line.isascii() else decode(line, f"{path}:{number}")
        yield text if number > 1 else text.removeprefix("\ufeff")


def byte_lines(path: Path) -> Iterator[bytes]:
    """Every line of a file with its end."""
    with open_log(path) as file, named_errors(path):
        number = 0
        while line := file.readline(MAX_PIECE + 1):
            number += 1
            if len(line) > MAX_PIECE:
                raise ValueError(f"{path}:{number}: the line is longer than {MAX_PIECE // 2**20} MiB")
            yield line


def decode(content: bytes, where: str) -> str:
    """UTF-8 bytes as text."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: not UTF-8 text at byte {error.start} ({error.reason})") from error


def repeated(names: Iterable[str]) -> list[str]:
    """The names that come more than once, in the order in which they first come."""
    return [name for name, number in Counter(names).items() if number > 1]


def optional_module(name: str, *, extra: str, why: str) -> ModuleType:
    """A module that comes with an extra, or an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".")[0]
        raise ValueError(f"{why}; reading it needs {package}: pip install 'polyweave-torch[{extra}]'") from error
