"""Bounds from totals against every table with these totals."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyweave_torch.functional import bounds_from_totals, check_accounting


def all_tables(n: int, right_before: set[int], right_after: set[int]) -> list[tuple[int, int, int, int]]:
    cells = itertools.product(range(n + 1), repeat=3)
    tables = [(n - a - b - c, a, b, c) for a, b, c in cells if a + b + c <= n]
    return [t for t in tables if t[2] + t[3] in right_before and t[1] + t[3] in right_after]


def extremes(values: list[float]) -> tuple[float, float]:
    defined = [value for value in values if not math.isnan(value)]
    return (min(defined), max(defined)) if defined else (math.nan, math.nan)


@given(st.integers(1, 9), st.data())
def test_bounds_are_the_extremes_over_all_tables(n: int, data: st.DataObject) -> None:
    decimals = data.draw(st.sampled_from([None, 1, 2]))
    k0, k1 = (data.draw(st.integers(0, n)) for _ in range(2))
    acc0, acc1 = (k / n if decimals is None else round(k / n, decimals) for k in (k0, k1))
    half = 1e-9 if decimals is None else 0.5 * 10**-decimals + 1e-9
    fits = [{k for k in range(n + 1) if abs(k / n - acc) <= half} for acc in (acc0, acc1)]
    tables = all_tables(n, *fits)
    bounds = bounds_from_totals(n, acc0, acc1, decimals=decimals)
    expected = {
        "n01": extremes([t[1] for t in tables]),
        "n10": extremes([t[2] for t in tables]),
        "c": extremes([t[1] / (t[0] + t[1]) if t[0] + t[1] else math.nan for t in tables]),
        "gamma": extremes([t[2] / (t[2] + t[3]) if t[2] + t[3] else math.nan for t in tables]),
    }
    for name, (low, high) in expected.items():
        found = getattr(bounds, name)
        assert float(found.low) == pytest.approx(low, nan_ok=True), name
        assert float(found.high) == pytest.approx(high, nan_ok=True), name


def test_published_totals() -> None:
    bounds = bounds_from_totals(200, 191 / 200, 183 / 200)
    assert [int(end) for end in bounds.n10] == [8, 17]
    assert [round(float(end), 4) for end in bounds.gamma] == [0.0419, 0.0890]
    assert [float(end) for end in bounds.c] == [0.0, 1.0]


def test_rounded_accuracies_widen_the_bounds() -> None:
    with pytest.raises(ValueError, match="decimals="):
        bounds_from_totals(1319, 0.724, 0.762)
    rounded = bounds_from_totals(1319, 0.724, 0.762, decimals=3)
    assert int(rounded.n10.high) >= 1319 - math.ceil(1319 * 0.7625)
    assert int(rounded.n01.low) <= int(1319 * 0.762) - int(1319 * 0.724)


def test_bounds_are_vectorised() -> None:
    bounds = bounds_from_totals(200, torch.tensor([0.955, 0.5]), torch.tensor([0.915, 0.5]))
    assert bounds.n10.high.tolist() == [17, 100]


@pytest.mark.parametrize("n", [0, -3, 2.5])
def test_n_must_be_a_number_of_samples(n: float) -> None:
    with pytest.raises(ValueError, match="whole number of samples"):
        bounds_from_totals(n, 0.5, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, 71.4, math.nan])
def test_accuracies_are_shares(accuracy: float) -> None:
    with pytest.raises(ValueError, match="accuracy_before"):
        bounds_from_totals(10, accuracy, 0.5)


def test_accounting_holds_for_tables_and_fails_for_slips() -> None:
    assert bool(check_accounting(0.838, 0.674, 0.064, 0.228))
    assert bool(check_accounting(0.838, 0.6745, 0.064, 0.228))
    assert not bool(check_accounting(0.838, 0.6751, 0.064, 0.228))
    assert not bool(check_accounting(math.nan, 0.5, 0.1, 0.1))
    assert not bool(check_accounting(0.5, 0.5, math.nan, 0.0))
    lint = check_accounting(torch.tensor([0.5, 0.5]), torch.tensor([0.6, 0.7]), 0.2, 0.1)
    assert lint.tolist() == [True, False]


@pytest.mark.parametrize("name", ["accuracy_before", "accuracy_after", "share_corrected", "share_corrupted"])
@pytest.mark.parametrize("share", [80, -0.1, torch.tensor([0.1, 1.1])])
def test_accounting_takes_shares_not_percentages(name: str, share: float | torch.Tensor) -> None:
    figures: dict[str, Any] = {
        "accuracy_before": 0.8,
        "accuracy_after": 0.7,
        "share_corrected": 0.1,
        "share_corrupted": 0.2,
    }
    assert bool(check_accounting(**figures))
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\].*divide percentages by 100"):
        check_accounting(**{**figures, name: share})
