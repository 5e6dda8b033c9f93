"""Makes the reStructuredText in our docstrings (roles, mathematics, tables) Markdown, for mkdocstrings."""

import re
from importlib import import_module
from typing import Any

import griffe

PACKAGES = [
    f"polyweave_torch{room}"
    for room in ("", ".functional", ".callbacks", ".evallogs", ".plot", ".ablation", ".claims", ".metrics")
]
PUBLIC = {name: f"{package}.{name}" for package in reversed(PACKAGES) for name in import_module(package).__all__}
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):`~?\.?([\w.]+)`")
TABLE = re.compile(
    r"^ *(?P<rule>=+(?: +=+)+)\n(?P<head>.*)\n *(?P=rule)\n(?P<rows>(?:.*\n)+?) *(?P=rule)$", re.MULTILINE
)
DISPLAY = re.compile(r"^( *)\.\. math::(.*(?:\n(?: *|\1 +.*)(?=\n|$))*)", re.MULTILINE)


class RestructuredText(griffe.Extension):
    """Rewrites every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each object, once it is complete."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with links for roles, ``$`` for mathematics, and the section name that griffe knows."""
    text = TABLE.sub(_table, text)
    text = DISPLAY.sub(_display, text)
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = ROLE.sub(_link, text)
    return re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)


def _table(match: re.Match[str]) -> str:
    columns = [column.span() for column in re.finditer("=+", match["rule"])]
    indent = len(match[0]) - len(match[0].lstrip())
    lines = [match["head"], *match["rows"].rstrip("\n").split("\n")]
    # The last column may be wider than its rule.
    ends = [end for _, end in columns[:-1]] + [None]
    cells = [
        [line[indent + start : end and indent + end].strip() for (start, _), end in zip(columns, ends, strict=True)]
        for line in lines
    ]
    cells.insert(1, ["---"] * len(columns))
    return "\n".join(f"{' ' * indent}| {' | '.join(row)} |" for row in cells)


def _display(match: re.Match[str]) -> str:
    indent, body = match.groups()
    lines = [line.strip() for line in body.strip().split("\n")]
    return "\n".join(["", f"{indent}$$", *(indent + line for line in lines if line), f"{indent}$$", ""])


def _link(match: re.Match[str]) -> str:
    path = match[1]
    name = path.rpartition(".")[2]
    if path.startswith("torchmetrics") or name not in PUBLIC:
        return f"`{name}`"
    return f'<autoref identifier="{PUBLIC[name]}" optional><code>{name}</code></autoref>'
