"""Load an example, run it, and find what docs/examples.md says that it prints."""

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tests.scripts import load_script

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "examples.md"


class Ran(NamedTuple):
    """What ``main`` returned and printed."""

    result: Any
    printed: str


def load(name: str) -> ModuleType:
    return load_script(ROOT / "examples" / f"{name}.py")


def run(main: Callable[..., Any], **options: Any) -> Ran:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = main(**options)
    return Ran(result, printed.getvalue())


def section(name: str) -> str:
    """The page's section of an example, which starts with how to run it."""
    (found,) = (part for part in PAGE.read_text().split("\n## ") if f"python examples/{name}.py\n" in part)
    return found


def shown(name: str) -> str:
    """The output that the page quotes, which follows the command."""
    _, *outputs = re.findall(r"```text\n(.*?)```", section(name), re.DOTALL)
    (output,) = outputs
    return str(output)


def normal(printed: str) -> str:
    """A printed text as the page holds it: no blanks before line ends."""
    return "\n".join(line.rstrip() for line in printed.strip().splitlines()) + "\n"
