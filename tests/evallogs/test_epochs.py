"""Attempts become items, against a plain loop."""

import math
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyweave_torch.evallogs.epochs import EPOCHS, epoch_order, epoch_warnings, reduce_epochs

Attempt = tuple[int, int, float]
attempts = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.sampled_from([0.0, 1.0, math.nan])),
    min_size=1,
    unique_by=lambda attempt: attempt[:2],
)


def plain(rows: list[Attempt], how: str) -> list[float]:
    values = []
    for _, group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[0]):
        epochs = [value for _, _, value in group]
        scored = [value for value in epochs if not math.isnan(value)]
        if how == "first":
            values.append(epochs[0])
        elif not scored:
            values.append(math.nan)
        else:
            right, number = sum(scored), len(scored)
            values.append(
                {"mean": right / number, "majority": right > number / 2, "any": right > 0, "all": right == number}[how]
            )
    return values


@given(attempts, st.sampled_from(EPOCHS))
def test_reductions_agree_with_a_loop(rows: list[Attempt], how: str) -> None:
    places = {item: place for place, item in enumerate(sorted({item for item, _, _ in rows}))}
    items = np.array([places[item] for item, _, _ in rows])
    values = np.array([value for _, _, value in rows])
    order = epoch_order([epoch for _, epoch, _ in rows])
    reduced, _, first = reduce_epochs(items, order, values, np.isnan(values), how)
    np.testing.assert_allclose(reduced, plain(rows, how))
    assert [rows[row][1] for row in first.tolist()] == [
        min(epoch for item, epoch, _ in rows if places[item] == place) for place in range(len(places))
    ]


def test_epochs_are_numbers_where_they_can_be() -> None:
    assert epoch_order(["10", "9", "2"]).tolist() == [2, 1, 0]
    assert epoch_order(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert epoch_order([None, None]).tolist() == [0, 1]


def test_an_item_failed_where_all_of_its_attempts_did() -> None:
    items, order = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    values = np.array([math.nan, 1.0, math.nan, math.nan])
    failed = np.array([True, False, True, True])
    assert reduce_epochs(items, order, values, failed, "mean")[1].tolist() == [False, True]
    assert reduce_epochs(items, order, values, failed, "first")[1].tolist() == [True, True]


@pytest.mark.parametrize(
    ("items", "values", "how", "warnings"),
    [
        ([0, 0, 1, 1], [1.0, 1.0, 1.0, 0.0], "mean", []),
        (
            [0, 0, 1, 1],
            [1.0, 1.0, 1.0, 0.0],
            "majority",
            ["1 items are an even split of their epochs, which counts as wrong"],
        ),
        (
            [*range(40), 39],
            [1.0] * 40 + [0.0],
            "mean",
            [
                "items have 1 to 2 epochs each",
                "1 of 40 items has a score between 0 and 1, so the bootstrap decides and not McNemar's test; "
                "--epochs majority keeps McNemar",
            ],
        ),
        ([*range(40), 39], [1.0] * 41, "mean", ["items have 1 to 2 epochs each"]),
        ([*range(40), 39], [0.5] * 41, "mean", ["items have 1 to 2 epochs each"]),
        ([*range(20), 19], [1.0] * 20 + [0.0], "mean", ["items have 1 to 2 epochs each"]),
        ([0, 0, 1], [1.0, 1.0, 1.0], "any", ["items have 1 to 2 epochs each"]),
        ([0, 0], [1.0, math.nan], "all", ["1 of 2 attempts failed or are unscored, and have no part in all"]),
        ([0, 0], [1.0, math.nan], "first", []),
    ],
)
def test_what_should_be_known_is_said(items: list[int], values: list[float], how: str, warnings: list[str]) -> None:
    assert epoch_warnings(np.array(items), np.array(values), how) == warnings
