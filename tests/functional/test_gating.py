"""The phase plane and gating, at the edges where a step starts to pay."""

import math
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from polyweave_torch.functional import (
    Quadrant,
    estimate_channel,
    estimate_slice_channels,
    mcnemar,
    paired_difference_interval,
    phase_plane_diagnosis,
    quadrant_names,
    should_activate_step,
    slice_gating_decisions,
)
from tests.functional.test_channel import cells


def channel(*table: int, smoothing: float = 0.5) -> Any:
    return estimate_channel([table[:2], table[2:]], smoothing=smoothing)


def test_the_documents_synopsis() -> None:
    easy = channel(0, 2, 0, 1)
    assert [round(float(v), 4) for v in (easy.c, easy.gamma, easy.delta, easy.predicted_delta)] == [
        0.8333,
        0.25,  # by the document's own formula; its comment says 0.167
        0.6667,
        0.4722,
    ]
    diagnosis = phase_plane_diagnosis(easy)
    assert round(float(diagnosis.surplus), 4) == 0.7083
    assert quadrant_names(diagnosis.quadrant) == "HELPFUL"
    hard = channel(0, 0, 1, 0)
    assert quadrant_names(phase_plane_diagnosis(hard).quadrant) == "HARMFUL"
    decisions = slice_gating_decisions({"hard": hard, "easy": easy})
    assert [(d.slice, d.activate) for d in decisions] == [("easy", True), ("hard", False)]


@given(cells, st.floats(0.01, 0.99))
def test_surplus_and_gain_agree_in_sign(table: list[int], p0: float) -> None:
    diagnosis = phase_plane_diagnosis(channel(*table), p0=p0)
    gain, surplus = float(diagnosis.expected_gain), float(diagnosis.surplus)
    assume(abs(gain) > 1e-12)
    assert math.copysign(1, gain) == math.copysign(1, surplus)
    assert gain == pytest.approx(surplus * (1 - p0), abs=1e-12)


@given(cells, st.floats(0, 1), st.floats(-1, 1), st.floats(0, 1))
def test_a_dearer_step_is_never_activated_where_a_cheaper_is_not(
    table: list[int], p0: float, cost: float, more: float
) -> None:
    cheap = should_activate_step(p0, channel(*table), cost_threshold=cost)
    dear = should_activate_step(p0, channel(*table), cost_threshold=cost + more)
    assert bool(cheap.activate) or not bool(dear.activate)


def test_activation_needs_more_than_the_threshold() -> None:
    step = channel(0, 1, 0, 1, smoothing=0)  # c = 1, gamma = 0: the gain at p0 = 0.5 is 0.5
    assert not should_activate_step(0.5, step, cost_threshold=0.5).activate
    assert should_activate_step(0.5, step, cost_threshold=0.4999).activate


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((10, 10, 10, 10), "MARGINAL"),  # c = gamma, p0 = 1/2: surplus 0
        ((1000, 951, 1000, 951), "MARGINAL"),
        ((10, 12, 10, 10), "HELPFUL"),
        ((12, 10, 8, 14), "HELPFUL"),
        ((12, 10, 14, 8), "HARMFUL"),
    ],
)
def test_quadrants_of_the_surplus(table: tuple[int, ...], expected: str) -> None:
    raw = channel(*table, smoothing=0)
    assert quadrant_names(phase_plane_diagnosis(raw).quadrant) == expected


def test_the_marginal_band_is_half_open() -> None:
    # Raw rates at p0 = 1/2: surplus = c - gamma in twentieths; -0.05 itself is harmful.
    # In floats some of these differences, such as .45 - .5, come out a little above it.
    for corrected in range(19):
        by_surplus = phase_plane_diagnosis(
            channel(20 - corrected, corrected, corrected + 1, 19 - corrected, smoothing=0)
        )
        by_gain = phase_plane_diagnosis(
            channel(20 - corrected, corrected, corrected + 2, 18 - corrected, smoothing=0), by="gain"
        )
        assert (float(by_surplus.surplus), float(by_gain.expected_gain)) == pytest.approx((-0.05, -0.05))
        assert quadrant_names(by_surplus.quadrant) == quadrant_names(by_gain.quadrant) == "HARMFUL"
    inside = channel(100, 100, 109, 91, smoothing=0)
    assert quadrant_names(phase_plane_diagnosis(inside).quadrant) == "MARGINAL"
    outside = channel(100, 100, 111, 89, smoothing=0)
    assert quadrant_names(phase_plane_diagnosis(outside).quadrant) == "HARMFUL"


@given(st.integers(0, 500), st.integers(1, 60), st.integers(0, 500))
def test_equal_corrections_and_corruptions_neither_help_nor_run(n00: int, flips: int, n11: int) -> None:
    # The gain is 0 in exact arithmetic; in floats it came out above 0 for three tables of ten.
    step = channel(n00, flips, flips, n11, smoothing=0)
    for rule in ("surplus", "gain", "interval"):
        assert quadrant_names(phase_plane_diagnosis(step, by=rule).quadrant) == "MARGINAL"
    assert not should_activate_step(step.p0, step).activate


def test_the_rules_of_the_band_differ() -> None:
    # p0 = 0.9, surplus -0.09: harmful in units of c, while the gain is only -0.009 and its interval contains 0.
    step = channel(10, 0, 1, 89, smoothing=0)
    assert float(phase_plane_diagnosis(step).surplus) == pytest.approx(-9 / 90)
    by = [quadrant_names(phase_plane_diagnosis(step, by=rule).quadrant) for rule in ("surplus", "gain", "interval")]
    assert by == ["HARMFUL", "MARGINAL", "MARGINAL"]
    clear = channel(10, 0, 40, 50, smoothing=0)
    assert quadrant_names(phase_plane_diagnosis(clear, by="interval").quadrant) == "HARMFUL"
    better = channel(10, 40, 0, 50, smoothing=0)
    assert quadrant_names(phase_plane_diagnosis(better, by="interval").quadrant) == "HELPFUL"


def test_the_interval_of_the_gain_at_a_given_accuracy() -> None:
    step, p0, z = channel(40, 20, 10, 30, smoothing=0), 0.6, 1.959963984540054
    c, gamma = 20 / 60, 10 / 40
    gain = (1 - p0) * c - p0 * gamma
    half = z * math.sqrt((1 - p0) ** 2 * c * (1 - c) / 60 + p0**2 * gamma * (1 - gamma) / 40)
    expected = "HELPFUL" if gain - half > 0 else "HARMFUL" if gain + half < 0 else "MARGINAL"
    assert quadrant_names(phase_plane_diagnosis(step, p0=p0, by="interval").quadrant) == expected == "MARGINAL"
    narrow = phase_plane_diagnosis(step, p0=0.1, by="interval")
    assert quadrant_names(narrow.quadrant) == "HELPFUL"


@pytest.mark.parametrize(("gamma_cells", "expected"), [((0, 5), "MARGINAL"), ((1, 4), "HARMFUL")])
def test_at_full_accuracy_the_gain_decides(gamma_cells: tuple[int, int], expected: str) -> None:
    raw = channel(0, 0, *gamma_cells, smoothing=0)
    diagnosis = phase_plane_diagnosis(raw)
    assert float(diagnosis.amplification) == math.inf
    assert float(diagnosis.break_even_c) == math.inf
    assert float(diagnosis.surplus) == -math.inf
    assert float(diagnosis.expected_gain) == -gamma_cells[0] / 5
    assert quadrant_names(diagnosis.quadrant) == expected


def test_at_accuracy_zero_every_correction_pays() -> None:
    diagnosis = phase_plane_diagnosis(channel(3, 1, 0, 0, smoothing=0))
    assert (float(diagnosis.break_even_c), float(diagnosis.expected_gain)) == (0.0, 0.25)
    assert quadrant_names(diagnosis.quadrant) == "HELPFUL"


@pytest.mark.parametrize(
    ("table", "p0"),
    [((0, 0, 0, 0), None), ((0, 0, 0, 0), 0.5), ((0, 0, 0, 0), 0.0), ((0, 0, 1, 9), 0.5), ((1, 9, 0, 0), 0.5)],
)
def test_no_data_is_unknown_and_never_activated(table: tuple[int, ...], p0: float | None) -> None:
    step = channel(*table)
    for rule in ("surplus", "gain", "interval"):
        diagnosis = phase_plane_diagnosis(step, p0=p0, by=rule)
        assert int(diagnosis.quadrant) == Quadrant.UNKNOWN
    at = float(step.p0) if p0 is None else p0
    assert not should_activate_step(at, step, cost_threshold=-1.0).activate


def test_a_group_without_weight_may_be_empty() -> None:
    assert should_activate_step(0.0, channel(1, 9, 0, 0)).activate
    assert int(phase_plane_diagnosis(channel(1, 9, 0, 0), p0=0.0).quadrant) == Quadrant.HELPFUL


def test_diagnosis_is_vectorised_over_tables_and_accuracies() -> None:
    steps = estimate_channel(torch.tensor([[[49, 32], [114, 305]], [[0, 2], [0, 1]]]))
    grid = phase_plane_diagnosis(steps, p0=torch.tensor([[0.1], [0.9]], dtype=torch.float64))
    assert grid.quadrant.shape == (2, 2)
    for row, p0 in enumerate((0.1, 0.9)):
        for column, table in enumerate(steps.counts):
            single = phase_plane_diagnosis(estimate_channel(table), p0=p0)
            assert int(grid.quadrant[row, column]) == int(single.quadrant)
            assert float(grid.surplus[row, column]) == float(single.surplus)
    assert quadrant_names(grid.quadrant) == [["HELPFUL", "HELPFUL"], ["HARMFUL", "HARMFUL"]]


def test_slices_are_sorted_by_name_and_equal_a_filtered_loop() -> None:
    before, after, slices = [0, 1, 0, 1, 1], [1, 1, 0, 0, 1], ["b", "a", "b", "Z", "a"]
    channels = estimate_slice_channels(before, after, slices)
    assert list(channels) == ["Z", "a", "b"]
    assert channels["b"].counts.tolist() == [[1, 1], [0, 0]]
    assert channels["a"].counts.tolist() == [[0, 0], [0, 2]]
    assert channels["Z"].counts.tolist() == [[0, 0], [1, 0]]


def test_decisions_hold_python_values_and_skip_empty_slices() -> None:
    decisions = slice_gating_decisions({"none": channel(0, 0, 0, 0), "some": channel(1, 9, 1, 9)})
    assert [type(value) for value in decisions[0][:-1]] == [str, float, float, float, float, float, bool]
    assert [decision.activate for decision in decisions] == [False, True]
    assert decisions[1].counts.tolist() == [[1, 9], [1, 9]]


def test_smoothing_alone_may_run_a_step_that_changes_nothing() -> None:
    smoothed, raw = channel(27, 4, 4, 15), channel(27, 4, 4, 15, smoothing=0)
    assert float(smoothed.delta) == 0.0
    (decision,) = slice_gating_decisions({"all": smoothed})
    # (1 - p0)·c - p0·gamma with p0 = 19/50, c = 4.5/32, gamma = 4.5/20.
    assert decision.expected_gain == pytest.approx(31 / 50 * 4.5 / 32 - 19 / 50 * 4.5 / 20)
    assert round(decision.expected_gain, 4) == 0.0017
    assert decision.activate
    assert not slice_gating_decisions({"all": smoothed}, cost_threshold=0.002)[0].activate
    assert not slice_gating_decisions({"all": raw})[0].activate


def test_the_interval_of_few_samples_is_too_narrow() -> None:
    assert quadrant_names(phase_plane_diagnosis(channel(5, 3, 0, 4), by="interval").quadrant) == "HELPFUL"
    assert float(paired_difference_interval([[5, 3], [0, 4]]).low) < 0
    assert float(mcnemar(0, 3).p_value) == 0.25


def test_bad_input_is_named() -> None:
    step = channel(1, 1, 1, 1)
    with pytest.raises(ValueError, match="p0 must be an accuracy"):
        phase_plane_diagnosis(step, p0=1.5)
    with pytest.raises(ValueError, match="by must be"):
        phase_plane_diagnosis(step, by="luck")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NaN"):
        should_activate_step(0.5, step, cost_threshold=math.nan)
    with pytest.raises(TypeError, match="slices must be strings"):
        estimate_slice_channels([0], [1], [3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="one value a sample"):
        estimate_slice_channels([0, 1], [1, 1], ["a"])
    stacked = estimate_channel([[[1, 1], [1, 1]]] * 3)
    with pytest.raises(ValueError, match="the channel of slice 'easy' holds 3 tables; pass one a slice"):
        slice_gating_decisions({"easy": stacked})
