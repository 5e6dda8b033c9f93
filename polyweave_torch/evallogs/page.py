"""One HTML page of sections and figures that opens offline. What came from a file is text in it, and nothing more."""

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import NamedTuple

from polyweave_torch.layout import Section, Table, printable


class Picture(NamedTuple):
    """A figure of the page."""

    title: str
    svg: bytes


def to_html(sections: Sequence[Section], pictures: Sequence[Picture] = ()) -> str:
    """The sections as one page; pictures stand after the first section.

    The page loads nothing. Its one script sorts tables and holds no data; the page's policy names the script by its
    hash, so that a browser runs no other one even if something unescaped were to slip in. Pictures are images, in which
    nothing runs either.
    """
    title = html.escape(printable(sections[0].title)) if sections else ""
    parts = [_section(section) for section in sections]
    if pictures:
        figures = "\n".join(map(_picture, pictures))
        parts.insert(1, f'<section>\n<h2>Figures</h2>\n<div class="figures">\n{figures}\n</div>\n</section>')
    return _PAGE.format(policy=_POLICY, title=title, style=_STYLE, body="\n".join(parts), script=_SCRIPT)


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f"<section>\n<h2>{_text(section.title)}</h2>\n{blocks}\n</section>"


def _block(block: str | list[str] | Table) -> str:
    if isinstance(block, str):
        return f"<p>{_text(block)}</p>"
    if isinstance(block, list):
        return "<ul>\n" + "\n".join(f"<li>{_text(point)}</li>" for point in block) + "\n</ul>"
    head = _row(block.head, block.align, "th")
    rows = "\n".join(_row(row, block.align, "td") for row in block.rows)
    return f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _row(cells: Sequence[str], align: str, tag: str) -> str:
    return (
        "<tr>" + "".join(f'<{tag} class="{s}">{_text(c)}</{tag}>' for c, s in zip(cells, align, strict=True)) + "</tr>"
    )


def _picture(picture: Picture) -> str:
    source = base64.b64encode(picture.svg).decode("ascii")
    title = _text(picture.title)
    return (
        f'<figure><img alt="{title}" src="data:image/svg+xml;base64,{source}"><figcaption>{title}</figcaption></figure>'
    )


def _text(text: str) -> str:
    return html.escape(printable(text), quote=True)


_SCRIPT = """
for (const head of document.querySelectorAll("th")) {
  head.tabIndex = 0;
  const sort = () => {
    const row = head.parentElement;
    const body = row.closest("table").tBodies[0];
    const column = [...row.cells].indexOf(head);
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of row.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = (line) => line.cells[column].textContent;
    const number = (line) => parseFloat(text(line).replace(/^</, ""));
    const compare = head.className === "r"
      ? (a, b) => Number.isNaN(number(a)) - Number.isNaN(number(b)) || (up ? 1 : -1) * (number(a) - number(b)) || 0
      : (a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", {numeric: true});
    body.append(...[...body.rows].sort(compare));
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}
"""
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode("ascii")
_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{_HASH}'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.15rem; margin-top: 2rem; overflow-wrap: anywhere; }
section:first-of-type h2 { font-size: 1.6rem; }
p, li { overflow-wrap: anywhere; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
table + table { margin-top: 1rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #8886; vertical-align: top; }
th { cursor: pointer; }
th[aria-sort="ascending"]::after { content: " \\25B2"; }
th[aria-sort="descending"]::after { content: " \\25BC"; }
.l { text-align: left; max-width: 24rem; overflow-wrap: break-word; min-width: 4rem; }
.l:first-child { overflow-wrap: anywhere; }
.r { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; align-items: start; }
figure { margin: 0; flex: 1 1 20rem; max-width: 34rem; }
figure img { width: 100%; background: white; border-radius: .4rem; border: 1px solid #8886; }
figcaption { text-align: center; font-size: .9rem; }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""
