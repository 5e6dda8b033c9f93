"""Every block of code in the documentation and the README runs, and prints what the page says.

``python`` runs as it stands, ``pycon`` as a doctest, ``console`` as the command. Blocks of a page share their names and
an empty working folder; commands run where their last ``$ cd`` says, from the root of the repository.
"""

import doctest
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from polyweave_torch import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN, SHOWN = ("python", "pycon", "console"), ("text", "yaml", "json")
# The README's Lightning example has the reader's own loaders: tests/test_readme.py.
ELSEWHERE = {("README.md", "python", 0), ("README.md", "python", 1)}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """One fenced block."""

    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    ]


def run_session(block: Block, names: dict[str, Any], page: Path) -> None:
    session = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line)
    session.globs = names
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(session, out=report.append, clear_globs=False)
    assert not failed, "".join(report)
    assert tried


def run_commands(block: Block, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for said in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = said.partition("\n")
        command, asks_code, _ = command.partition("; echo $?")
        words = shlex.split(command)
        if words[0] == "cd":
            monkeypatch.chdir(ROOT / words[1])
            continue
        assert words[0] == "polyweave-torch", command
        capsys.readouterr()
        code = cli.main(words[1:])
        printed = "".join(capsys.readouterr()) + (f"{code}\n" if asks_code else "")
        expected = re.sub(r"^\.\.\.\n\Z", "...", expected, flags=re.MULTILINE)
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), f"{command}\nprinted:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    seen = dict.fromkeys(RUN, 0)
    for block in blocks(page):
        assert block.language in RUN + SHOWN, f"{page}:{block.line}: what language is this block?"
        if block.language in SHOWN:
            continue
        index, seen[block.language] = seen[block.language], seen[block.language] + 1
        if (page.name, block.language, index) in ELSEWHERE:
            continue
        monkeypatch.chdir(tmp_path)
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
        elif block.language == "pycon":
            run_session(block, names, page)
        else:
            run_commands(block, capsys, monkeypatch)


def test_blocks_are_found_by_language() -> None:
    readme = [block.language for block in blocks(ROOT / "README.md")]
    assert readme.count("python") >= 3
    assert "console" in readme
    assert sum(block.language in RUN for page in PAGES for block in blocks(page)) > 60


def test_a_wrong_output_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_session(Block("pycon", ">>> 1 + 1\n3\n", 1), {}, ROOT / "README.md")
    with pytest.raises(AssertionError, match="printed"):
        run_commands(Block("console", "$ polyweave-torch compare a b\nPROGRESS\n", 1), capsys, monkeypatch)
