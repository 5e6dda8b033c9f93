"""Members of zip files that nobody vouches for: in bounded pieces, and never written to a path that a file names."""

import io
import struct
import zipfile
import zlib
from types import ModuleType
from typing import IO, Any

from polyweave_torch.evallogs.source import MAX_PIECE, optional_module

UNPACKING = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)
"""What a damaged, encrypted or strangely packed member raises."""
_OPENING = (*UNPACKING, ValueError, struct.error)
"""Beside these, what a damaged directory raises."""
_ZSTANDARD = 93


def read_member(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    """One member of a zip, of at most ``MAX_PIECE`` bytes however small it is packed."""
    with open_member(archive, name, where) as file:
        try:
            content = file.read(MAX_PIECE + 1)
        except _OPENING as error:
            raise ValueError(f"{where}: {name} can't be unpacked: {error}") from error
    if len(content) > MAX_PIECE:
        raise ValueError(f"{where}: {name} unpacks to more than {MAX_PIECE // 2**20} MiB")
    return content


def open_member(archive: zipfile.ZipFile, name: str, where: str) -> IO[bytes]:
    """A member of a zip to read from, stored, deflated or packed with zstd."""
    member = archive.getinfo(name)
    try:
        return _open_zstandard(archive, member) if member.compress_type == _ZSTANDARD else archive.open(member)
    except _OPENING as error:
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
