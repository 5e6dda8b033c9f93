"""Sections of prose and tables, laid out as text or markdown. Whatever came from a file is escaped."""

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from polyweave_torch.functional._tables import clipped, markdown_text, printable, shown

__all__ = [
    "WIDTH",
    "Section",
    "Table",
    "clipped",
    "counted",
    "print_report",
    "printable",
    "shown",
    "to_markdown",
    "to_text",
]

WIDTH = 100
"""Columns of the text."""

_NARROWEST = 8
_GAP = "  "


class Table(NamedTuple):
    """Rows of cells under a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    """A letter a column: "l" is text, which text output may shorten in its middle; "r" is numbers."""


class Section(NamedTuple):
    """A title and what stands under it: paragraphs, lists of points, tables."""

    title: str
    blocks: Sequence[str | list[str] | Table]


def to_text(sections: Sequence[Section]) -> str:
    """The sections for a terminal, at most 100 columns wide."""
    return "\n\n".join(_text_section(section) for section in sections) + "\n"


def to_markdown(sections: Sequence[Section]) -> str:
    """The sections as markdown."""
    return "\n\n".join(_markdown_section(section) for section in sections) + "\n"


def counted(number: int, noun: str) -> str:
    """A number of things: one item, two items."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_report(text: str) -> None:
    """Print what a command found, whoever reads it.

    A name that the terminal can't show must not end a report. Nor must a reader, such as head, that has what it wanted:
    the exit code stays that of the work.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.rstrip("\n").encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends, and would fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _text_section(section: Section) -> str:
    title = printable(section.title)[:WIDTH]
    return f"{title}\n{'-' * len(title)}\n" + "\n\n".join(map(_text_block, section.blocks))


def _text_block(block: str | list[str] | Table) -> str:
    if isinstance(block, Table):
        return _text_table(block)
    if isinstance(block, str):
        return _wrap(block)
    return "\n".join(_wrap(point, first="- ", other="  ") for point in block)


def _wrap(text: str, *, first: str = "", other: str = "") -> str:
    return textwrap.fill(printable(text), WIDTH, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)


def _text_table(table: Table) -> str:
    lines = [[printable(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [min(WIDTH, max(map(len, column))) for column in zip(*lines, strict=True)]
    texts = [column for column, side in enumerate(table.align) if side == "l"]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > WIDTH:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return "\n".join(
        _GAP.join(
            clipped(cell, width).ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(line, widths, table.align, strict=True)
        ).rstrip()
        for line in lines
    )


def _markdown_section(section: Section) -> str:
    return "\n\n".join([f"## {markdown_text(section.title)}", *map(_markdown_block, section.blocks)])


def _markdown_block(block: str | list[str] | Table) -> str:
    if isinstance(block, str):
        return markdown_text(block)
    if isinstance(block, list):
        return "\n".join(f"- {markdown_text(point)}" for point in block)
    rule = ["---:" if side == "r" else "---" for side in block.align]
    lines = [[markdown_text(shown(cell)) for cell in row] for row in (block.head, *block.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))
