import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from torch import Tensor

from polyweave_torch.functional.verdict import verdict
from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.plot.style import HARM, HELP, NEUTRAL
from polyweave_torch.plot.verdict import verdict_plot

nan = math.nan
LAYERS = ("fact", "behavior", "judge")


def arms() -> tuple[Tensor, Tensor]:
    """Facts rise from 4 to 4 or 5 by turns, behavior falls from 4 to 3, the judge marks one arm only."""
    control = torch.tensor([[4.0, 4.0, nan]] * 20)
    treatment = torch.tensor([[4.0, 3.0, 4.0], [5.0, 3.0, 4.0]] * 10)
    return control, treatment


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(report: VerdictReport) -> tuple[Axes, list[str]]:
    figure, axes = verdict_plot(report)
    figure.canvas.draw()
    return axes, [label.get_text() for label in axes.get_yticklabels()]


def points(axes: Axes) -> dict[int, float]:
    """Estimates by row."""
    drawn_points: list[Any] = [c for c in axes.collections if isinstance(c, PathCollection)]
    return {round(float(y)): float(x) for point in drawn_points for x, y in point.get_offsets()}


def lines(axes: Axes) -> list[tuple[list[float], list[float]]]:
    data: list[Any] = [line.get_data() for line in axes.lines]
    return [([*map(float, x)], [*map(float, y)]) for x, y in data]


def test_every_row_has_its_difference_interval_and_gate() -> None:
    report = verdict(*arms(), layer_names=LAYERS, gate=3.5)
    axes, names = drawn(report)
    pair = report.pairs[0]
    assert names == ["composite", *LAYERS]
    assert points(axes) == {
        0: pytest.approx(pair.estimate.item()),
        1: pytest.approx(0.5),
        2: pytest.approx(-1.0),
    }
    fact = pair.layers["fact"]
    assert ([fact.low.item(), fact.high.item()], [1.0, 1.0]) in lines(axes)
    # The treatment's mean is under the gate where the difference is below gate - control: -.5 in both layers.
    for row in (1, 2):
        assert ([-0.5, -0.5], [row - 0.35, row + 0.35]) in lines(axes)
    assert not any(y == [3 - 0.35, 3 + 0.35] for _, y in lines(axes))
    assert "missing" in [text.get_text() for text in axes.texts]


def test_the_trivial_band_is_drawn_around_the_composite_alone() -> None:
    axes, _ = drawn(verdict(*arms(), layer_names=LAYERS, trivial_difference=0.25))
    bands = [c.get_paths()[0].get_extents() for c in axes.collections if not isinstance(c, PathCollection)]
    assert len(bands) == 1
    assert (bands[0].x0, bands[0].x1) == (-0.25, 0.25)
    assert (bands[0].y0, bands[0].y1) == pytest.approx((-0.4, 0.4))


def test_colours_and_legend_say_what_moved() -> None:
    axes, _ = drawn(verdict(*arms(), layer_names=LAYERS))
    legend = axes.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"trivial", "above 0", "below 0", "gate 3.5"}
    colours = {line.get_color() for line in axes.lines}
    assert {HELP, HARM} <= colours
    unclear = verdict(arms()[0], arms()[0], layer_names=LAYERS)
    assert NEUTRAL in {line.get_color() for line in drawn(unclear)[0].lines}


def test_several_treatments_stand_one_below_the_other() -> None:
    control, treatment = arms()
    report = verdict(control, {"new": treatment, "a name of more than twenty": control}, layer_names=LAYERS)
    axes, names = drawn(report)
    assert names == [
        f"new: {report.pairs[0].label}",
        *LAYERS,
        f"a name of …an twenty: {report.pairs[1].label}",
        *LAYERS,
    ]
    assert axes.get_title() == f"{report.label}: {report.action}"


def test_given_axes_are_drawn_on_and_units_are_named() -> None:
    figure, axes = plt.subplots()
    assert verdict_plot(verdict(*arms(), layer_names=LAYERS, standardize="z"), ax=axes) == (figure, axes)
    assert "composites in standard deviations" in axes.get_xlabel()


def test_one_pair_has_a_point_and_no_interval() -> None:
    axes, _ = drawn(verdict([[4.0]], [[5.0]], layer_names=["fact"]))
    assert points(axes) == {0: 1.0, 1: 1.0}
    assert all(math.isnan(x[0]) for x, y in lines(axes) if y in ([0.0, 0.0], [1.0, 1.0]))


def test_solo_has_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="a SOLO report has no difference to draw"):
        verdict_plot(verdict([[4.0]], None, layer_names=["fact"]))
