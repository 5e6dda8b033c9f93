"""The tables of docs/trust as printed, and the scripts that made them."""

import importlib
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BOTH = re.compile(r"([\d.]+) \(([\d.]+)\)")
# Hundreds of numbers are compared, so one in a thousand may not be too far off by chance.
ERRORS = 4.5


class Printed(NamedTuple):
    """A table of a page."""

    columns: list[str]
    rows: list[list[str]]
    caption: str

    def column(self, name: str) -> list[str]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def cell(self, column: str, *labels: str) -> str:
        """The cell of a column in the row that starts with these labels."""
        (row,) = (row for row in self.rows if tuple(row[: len(labels)]) == labels)
        return row[self.columns.index(column)]

    @property
    def sets(self) -> int:
        """Data sets a row of the simulation."""
        found = re.search(r"([\d,]+) data sets", self.caption)
        assert found is not None
        return int(found[1].replace(",", ""))


def script(name: str) -> ModuleType:
    """A script of docs/simulations, which import each other as if run from there."""
    folder = str(DOCS / "simulations")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def page(name: str) -> str:
    return (DOCS / "trust" / name).read_text(encoding="utf-8")


def printed(page_name: str, table: str) -> Printed:
    """The table between its markers."""
    found = re.search(rf"<!-- table: {table} -->\n(.*?)<!-- end -->", page(page_name), re.DOTALL)
    assert found is not None, f"{page_name} has no table {table}"
    lines = [line for line in found[1].splitlines() if line]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[0] == "|")
    return Printed(header, rows, "\n".join(line for line in lines if line[0] != "|"))


def sentences_and_tables(name: str) -> tuple[str, str]:
    """A page without its tables, and its tables, their captions left out."""
    lines = re.sub(r"^\*.*\*\n`.*`$", "", page(name), flags=re.MULTILINE).splitlines()
    prose, tables = (" ".join(line for line in lines if line.startswith("|") == table) for table in (False, True))
    return prose, tables


def first(cell: str) -> float:
    """The first number of a cell."""
    return float(cell.split()[0].rstrip(","))


def within(share: float, *sets: int, decimals: int = 1) -> Any:
    """Near enough to a share in per cent, of which one side or both were simulated."""
    p = min(max(share / 100.0, 0.0), 1.0)
    error = math.sqrt(p * (1.0 - p) * sum(1.0 / size for size in sets)) + 1.0 / min(sets)
    return pytest.approx(share, abs=100.0 * ERRORS * error + 0.6 * 10.0**-decimals)


def compare(old: Printed, new: Any, *, labels: int, sets: int, enumerated: bool) -> Iterator[str]:
    """What a page prints beside a fresh table: enumerated numbers are equal, simulated ones near the truth.

    A number in brackets is simulated and stands behind the truth; one without is enumerated, or simulated like the
    fresh one.
    """
    assert list(new.columns) == old.columns
    assert len(new.rows) == len(old.rows)
    for before, after in zip(old.rows, new.rows, strict=True):
        assert list(after[:labels]) == before[:labels]
        for there, here in zip(before[labels:], after[labels:], strict=True):
            where = f"{before[:labels]}: {there} printed, {here} now"
            pair = BOTH.fullmatch(there)
            if pair is not None:
                again = BOTH.fullmatch(here)
                assert again is not None, where
                truth = float(pair[1])
                assert again[1] == pair[1], where
                assert float(pair[2]) == within(truth, old.sets), where
                assert float(again[2]) == within(truth, sets), where
            elif enumerated or there == "–":
                assert here == there, where
            else:
                share = sorted((float(there), float(here)), key=lambda value: abs(value - 50.0))[0]
                assert float(here) - float(there) + share == within(share, old.sets, sets), where
            yield there
