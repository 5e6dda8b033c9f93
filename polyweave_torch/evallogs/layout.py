"""Sections of prose and tables, laid out as text, markdown or one HTML page. Whatever came from a file is escaped."""

import html
import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

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


def to_html(sections: Sequence[Section]) -> str:
    """The sections as one page that loads and runs nothing."""
    title = html.escape(printable(sections[0].title)) if sections else ""
    body = "\n".join(_html_section(section) for section in sections)
    return _PAGE.format(title=title, body=body)


def printable(text: str) -> str:
    """The text with control characters, line breaks and lone surrogates written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


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
            _shorten(cell, width).ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(line, widths, table.align, strict=True)
        ).rstrip()
        for line in lines
    )


def _shorten(cell: str, width: int) -> str:
    if len(cell) <= width:
        return cell
    tail = (width - 2) // 2
    return f"{cell[: width - 2 - tail]}..{cell[len(cell) - tail :]}"


def _markdown_section(section: Section) -> str:
    return "\n\n".join([f"## {_markdown(section.title)}", *map(_markdown_block, section.blocks)])


def _markdown_block(block: str | list[str] | Table) -> str:
    if isinstance(block, str):
        return _markdown(block)
    if isinstance(block, list):
        return "\n".join(f"- {_markdown(point)}" for point in block)
    rule = ["---:" if side == "r" else "---" for side in block.align]
    lines = [[_markdown(cell) for cell in row] for row in (block.head, *block.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _markdown(text: str) -> str:
    """The text with all that markdown would read as a cell border, markup or a link made literal."""
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return re.sub(r"([\\`*]|\](?=[(\[:]))", r"\\\1", escaped)


def _html_section(section: Section) -> str:
    blocks = "\n".join(_html_block(block) for block in section.blocks)
    return f"<section>\n<h2>{_html(section.title)}</h2>\n{blocks}\n</section>"


def _html_block(block: str | list[str] | Table) -> str:
    if isinstance(block, str):
        return f"<p>{_html(block)}</p>"
    if isinstance(block, list):
        return "<ul>\n" + "\n".join(f"<li>{_html(point)}</li>" for point in block) + "\n</ul>"
    head = _html_row(block.head, block.align, "th")
    rows = "\n".join(_html_row(row, block.align, "td") for row in block.rows)
    return f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _html_row(cells: Sequence[str], align: str, tag: str) -> str:
    return (
        "<tr>" + "".join(f'<{tag} class="{s}">{_html(c)}</{tag}>' for c, s in zip(cells, align, strict=True)) + "</tr>"
    )


def _html(text: str) -> str:
    return html.escape(printable(text), quote=True)


# The policy holds even if something unescaped were to slip in: no script, no request.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ font-size: 1.15rem; margin-top: 2rem; }}
section:first-of-type h2 {{ font-size: 1.6rem; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
table + table {{ margin-top: 1rem; }}
th, td {{ padding: .25rem .7rem; border-bottom: 1px solid #8886; vertical-align: top; }}
.l {{ text-align: left; max-width: 24rem; overflow-wrap: break-word; }}
.r {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
