"""The demo's ``predictions.npz``: what the members of each arm predicted, and the targets."""

import io
import math
import tokenize
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from polyweave_torch.evallogs.archives import read_member
from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.options import Options, choose
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.rows import Rows
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.source import MAX_PIECE
from polyweave_torch.functional.votes import majority_vote

NAME = "predictions"
OPTIONS = frozenset({"arm"})

_TARGET = "test_target"
_HEADER = (SyntaxError, tokenize.TokenError, TypeError, LookupError, OverflowError, RecursionError, MemoryError)
"""What numpy raises beside ValueError where it can't parse the head of an array."""


def sniff(shape: Outline) -> bool:
    """An archive of arrays, the targets among them."""
    return shape.kind == "zip" and f"{_TARGET}.npy" in shape.names


def read(paths: list[Path], options: Options) -> Run:
    """Read one arm: an item is right where the members' majority vote is the target."""
    path, options = one_file(paths, options)
    if not sniff(outline(path)):
        raise ValueError(f"{path}: expected an archive of arrays with {_TARGET}, as the demo writes it")
    arrays = _arrays(path, options)
    target = torch.from_numpy(arrays.target)
    votes = majority_vote(torch.from_numpy(arrays.members))
    rows = Rows(path)
    right = (votes == target).tolist()
    for item, (vote, correct) in enumerate(zip(votes.tolist(), right, strict=True)):
        rows.add(f"{path}: {arrays.arm}", item, float(correct), epoch=0, answer=str(vote))
    details = {"model": f"majority of {len(arrays.members)} {arrays.arm} members"}
    return rows.finish(options, format=NAME, details=details, warnings=[])


class _Arm(NamedTuple):
    arm: str
    members: NDArray[np.int64]
    """``[M, N]``."""
    target: NDArray[np.int64]
    """``[N]``."""


def _arrays(path: Path, options: Options) -> _Arm:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > MAX_PIECE:
            raise ValueError(f"{path}: unpacks to {size} bytes, more than {MAX_PIECE // 2**20} MiB")
        arms = [name.removesuffix("_test.npy") for name in archive.namelist() if name.endswith("_test.npy")]
        arm = choose(options.arm, arms, option="arm", where=str(path), what="arm")
        members, target = (_array(archive, name, path) for name in (f"{arm}_test", _TARGET))
    integers = np.issubdtype(members.dtype, np.integer) and np.issubdtype(target.dtype, np.integer)
    if not integers or target.ndim != 1 or members.ndim != 2 or members.shape[1:] != target.shape:
        raise ValueError(
            f"{path}: expected classes, {arm}_test [members, samples] and {_TARGET} [samples], but found "
            f"{members.dtype} {list(members.shape)} and {target.dtype} {list(target.shape)}"
        )
    return _Arm(arm, members.astype(np.int64), target.astype(np.int64))


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    content = io.BytesIO(read_member(archive, f"{name}.npy", str(path)))
    try:
        _check_size(content)
        content.seek(0)
        return np.lib.format.read_array(content, allow_pickle=False)
    except (ValueError, *_HEADER) as error:
        # Objects, which would have to be unpickled, and damaged heads.
        raise ValueError(f"{path}: {name} is no array of numbers: {error}") from error


def _check_size(content: io.BytesIO) -> None:
    """Refuse an array that is not as large as its head says, for which numpy would take the memory first."""
    version = np.lib.format.read_magic(content)
    heads = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in heads:
        raise ValueError(f"its version {version} is not one that arrays of numbers have")
    shape, _, dtype = heads[version](content)
    wanted, found = math.prod(shape) * dtype.itemsize, len(content.getbuffer()) - content.tell()
    if wanted != found and not dtype.hasobject:
        raise ValueError(f"its head says {wanted} bytes, but it has {found}")
