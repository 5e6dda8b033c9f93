"""What the reports share: tables that keep their columns, and plain data."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyweave_torch.functional._tables import (
    clipped,
    markdown_row,
    markdown_table,
    markdown_text,
    plain,
    printable,
    shown,
    text_table,
)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(("a", "long head"), [("wide cell", 1), ("x", "two  words\nin one")]) == (
        "a          long head\nwide cell  1\nx          two words in one"
    )
    assert text_table(("a", "b"), []) == "a  b"


def test_numbers_stand_on_the_right_where_the_caller_says_so() -> None:
    assert markdown_table(("a", "b"), [("x", 1)]) == "| a | b |\n| --- | --- |\n| x | 1 |"
    assert markdown_table(("a", "b"), [("x", 1)], align="lr").split("\n")[1] == "| --- | ---: |"


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), max_size=4))
def test_no_cell_ends_its_row_or_its_column(rows: list[list[str]]) -> None:
    lines = markdown_table(("a", "b", "c"), rows).split("\n")
    assert len(lines) == len(rows) + 2
    assert {line.count("|") for line in lines} == {4}
    for line, row in zip(lines[2:], rows, strict=True):
        assert line == markdown_row(row)


@given(st.text(), st.integers(0, 400))
def test_a_name_from_outside_is_short_and_can_be_printed(name: str, repeats: int) -> None:
    found = shown(name * repeats)
    assert len(found) <= 300
    assert found.isprintable()
    if name.isprintable() and len(name) * repeats <= 300:
        assert found == name * repeats


def test_what_a_terminal_or_a_page_would_obey_is_written_out() -> None:
    assert printable("\x1b[31m \u202e \udcff") == "\\x1b[31m \\u202e \\udcff"
    assert clipped("a" * 500 + "b" * 500) == "a" * 149 + ".." + "b" * 149
    assert markdown_row(["<b>", "`a`|[x](y)", "\x1b"]) == "| &lt;b> | \\`a\\`&#124;[x\\](y) | \\\\x1b |"
    assert text_table(("a",), [("\x1b[31m<b>",)]) == "a\n\\x1b[31m<b>"


class Inner(NamedTuple):
    rate: torch.Tensor
    name: str = "inner"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.tensor([0.5, math.nan]), [0.5, None]),
        (torch.tensor(3), 3),
        (torch.tensor(True), True),
        (Inner(torch.tensor(math.inf)), {"rate": None, "name": "inner"}),
        ({1: (Inner(torch.tensor(0.25)), None)}, {"1": [{"rate": 0.25, "name": "inner"}, None]}),
        (torch.device("cpu"), "cpu"),
    ],
    ids=str,
)
def test_results_become_what_json_holds(value: object, expected: object) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


def test_no_name_turns_into_markup() -> None:
    assert markdown_text("__base__ _t_ ~~x~~ snake_case") == r"\_\_base\_\_ \_t\_ \~\~x\~\~ snake_case"


def test_numbers_of_numpy_are_numbers() -> None:
    assert plain({"h": np.int64(3), "b": np.bool_(True), "x": np.float32(0.5), "nan": np.float64("nan")}) == {
        "h": 3,
        "b": True,
        "x": 0.5,
        "nan": None,
    }
