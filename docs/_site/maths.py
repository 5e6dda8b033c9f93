"""Turns the mathematics of a page into MathML, which browsers draw without a script from elsewhere."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

SPAN = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **kwargs: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    return SPAN.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    return convert(html.unescape(match[2]).strip(), display="block" if match[1] == "div" else "inline")
