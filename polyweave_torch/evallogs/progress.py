"""A progress bar over the bytes that are read: on a terminal, and not in a pipe."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from polyweave_torch.evallogs.source import watch_reading
from polyweave_torch.layout import shown


@contextlib.contextmanager
def reading_bar(path: Path) -> Iterator[None]:
    """Show how much of a file or folder has been read, where tqdm is installed and errors go to a terminal."""
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        yield
        return
    with tqdm(total=_size(path), desc=shown(path.name), unit="B", unit_scale=True, disable=None, leave=False) as bar:
        if bar.disable:
            yield
            return
        with watch_reading(bar.update):
            yield


def _size(path: Path) -> int | None:
    """Bytes of a file; a folder can hold more than is read."""
    return os.path.getsize(path) if path.is_file() else None
