"""What reports share: tables as text and as markdown, and results as plain data."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

Rows = Sequence[Sequence[object]]

NAME_LIMIT = 300
"""The most characters of a name from outside that a message or a report shows."""


def text_table(head: Sequence[str], rows: Rows) -> str:
    """Columns of text, each as wide as its widest cell."""
    lines = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(head: Sequence[str], rows: Rows, *, align: str = "") -> str:
    """A markdown table.

    Args:
        head: names of the columns.
        rows: cells, anything that has a text.
        align: a letter a column, "l" or "r"; by default all to the left.
    """
    rule = ["---:" if side == "r" else "---" for side in align or "l" * len(head)]
    return "\n".join(map(markdown_row, (head, rule, *rows)))


def markdown_row(cells: Sequence[object]) -> str:
    """One row of a markdown table; no cell ends it or its column, or holds markup."""
    return "| " + " | ".join(markdown_text(one_line(cell)) for cell in cells) + " |"


def one_line(cell: object) -> str:
    """A text without line breaks and spaces in a row, otherwise as :func:`shown`."""
    return shown(" ".join(str(cell).split()))


def shown(name: object, limit: int = NAME_LIMIT) -> str:
    """A name from outside as a message may hold it: printable, and what is long without its middle."""
    return clipped(printable(clipped(str(name), limit)), limit)


def clipped(text: str, limit: int = NAME_LIMIT) -> str:
    """A text of at most ``limit`` characters, without its middle where it is longer."""
    if len(text) <= limit:
        return text
    tail = (limit - 2) // 2
    return f"{text[: limit - 2 - tail]}..{text[len(text) - tail :]}"


def printable(text: str) -> str:
    """The text with control characters, line breaks and lone surrogates written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def markdown_text(text: str) -> str:
    """The text with all that markdown would read as a cell border, markup or a link made literal."""
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return re.sub(r"([\\`*~]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:]))", r"\\\1", escaped)


def plain(value: Any) -> Any:
    """Data for JSON: tensors as numbers, NamedTuples as dicts; what is not finite becomes None, as JSON has no word."""
    if isinstance(value, (Tensor, np.generic)):
        value = value.tolist()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int)) else str(value)
