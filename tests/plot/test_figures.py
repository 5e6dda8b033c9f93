"""Each figure shows the numbers it was given, for few, many, undefined and extreme ones."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from statsmodels.stats.proportion import proportion_confint

from polyweave_torch import AccuracyDelta, ChannelCounts, McNemarPValue
from polyweave_torch.ablation import Outcome, analyze_outcomes
from polyweave_torch.evallogs import compare_outcomes, compare_runs, read_run
from polyweave_torch.evallogs.figures import draw_figures
from polyweave_torch.functional import estimate_channel, mcnemar_pairs, outcome_gram, paired_difference_interval
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.plot import forest, gate_growth, phase_plane, significance_matrix, success_rates, verdict_plot
from polyweave_torch.plot.style import shorten


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(draw: Any, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    """Figure and axes, without matplotlib's unions of types."""
    figure, axes = draw(*arguments, **options)
    return figure, axes


def points(axes: Any) -> list[tuple[float, float]]:
    clouds: list[Any] = [c for c in axes.collections if isinstance(c, PathCollection)]
    return [tuple(cloud.get_offsets()[0]) for cloud in clouds]


def test_the_phase_plane_has_one_point_a_slice_at_its_rates() -> None:
    channels = {name: estimate_channel([[10, k], [3 * k, 50]]) for k, name in enumerate(("a", "b", "c"), start=1)}
    figure, axes = drawn(phase_plane, channels)
    expected = [(float(c.gamma), float(c.c)) for c in channels.values()]
    assert torch.tensor(points(axes)).flatten().tolist() == pytest.approx(torch.tensor(expected).flatten().tolist())
    assert {text.get_text() for text in axes.texts} == set(channels)
    figure.canvas.draw()


@pytest.mark.parametrize("slices", [1, 50])
def test_the_phase_plane_takes_few_and_many_slices(slices: int) -> None:
    tables = torch.randint(0, 40, (slices, 2, 2), generator=torch.Generator().manual_seed(0))
    named = {f"a rather long name of slice {index}": estimate_channel(table) for index, table in enumerate(tables)}
    figure, axes = drawn(phase_plane, named)
    assert len(points(axes)) == slices
    figure.canvas.draw()


@pytest.mark.parametrize("p0", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("table", [[[0, 0], [0, 0]], [[0, 0], [2, 5]], [[2, 5], [0, 0]], [[0, 5], [0, 0]]])
def test_the_phase_plane_takes_undefined_rates_and_extreme_accuracies(table: Any, p0: float | None) -> None:
    figure, axes = drawn(phase_plane, estimate_channel(table), p0=p0)
    assert len(points(axes)) == (1 if sum(map(sum, table)) else 0)
    figure.canvas.draw()


def crosses(axes: Any) -> list[tuple[list[float], list[float]]]:
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("break-even")]
    return [([*map(float, line.get_xdata())], [*map(float, line.get_ydata())]) for line in lines]


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_crosses_are_wilson_intervals_of_the_level(level: float) -> None:
    _, axes = drawn(phase_plane, estimate_channel([[49, 32], [114, 305]]), level=level)
    across, up = crosses(axes)
    assert across[0] == pytest.approx(proportion_confint(114, 419, alpha=1 - level, method="wilson"))
    assert up[1] == pytest.approx(proportion_confint(32, 81, alpha=1 - level, method="wilson"))
    assert across[1] == pytest.approx([32.5 / 82] * 2)
    assert up[0] == pytest.approx([114.5 / 420] * 2)


def test_a_comparison_draws_its_own_level(tmp_path: Path) -> None:
    """49 wrong both times, 32 corrected, 114 corrupted, 305 right both times."""
    before, after = [0] * 81 + [1] * 419, [0] * 49 + [1] * 32 + [0] * 114 + [1] * 305
    for name, outcomes in (("before", before), ("after", after)):
        rows = "".join(f"{number},{right}\n" for number, right in enumerate(outcomes))
        (tmp_path / f"{name}.csv").write_text("id,correct\n" + rows)
    runs = [read_run(tmp_path / f"{name}.csv") for name in ("before", "after")]
    figures = {figure.name: figure for figure in draw_figures(compare_runs(runs, level=0.8).to_dict())}
    across, up = crosses(figures["phase_plane"].canvas.axes[0])
    assert across[0] == pytest.approx(proportion_confint(114, 419, alpha=0.2, method="wilson"))
    assert up[1] == pytest.approx(proportion_confint(32, 81, alpha=0.2, method="wilson"))


def test_a_points_area_grows_with_its_support() -> None:
    tables = {"small": [[5, 5], [5, 5]], "twice": [[10, 10], [10, 10]], "all": [[50, 50], [50, 50]]}
    _, axes = drawn(phase_plane, {name: estimate_channel(table) for name, table in tables.items()})
    sizes = [float(c.get_sizes()[0]) for c in axes.collections if isinstance(c, PathCollection)]
    assert sizes[2] - sizes[0] == pytest.approx(9 * (sizes[1] - sizes[0]))
    assert sizes[0] > 0


def test_the_trail_runs_through_its_points_in_order() -> None:
    trail = [(0.5, 0.1), (0.4, 0.2), (0.3, math.nan), (0.2, 0.3)]
    figure, axes = drawn(phase_plane, estimate_channel([[49, 32], [114, 305]]), trail=trail)
    arrows = [text for text in axes.texts if text.get_text() == ""]
    assert [(arrow.xyann, arrow.xy) for arrow in arrows] == [(trail[0], trail[1]), (trail[1], trail[3])]
    assert arrows[0].arrow_patch.get_alpha() < arrows[1].arrow_patch.get_alpha()
    assert axes.get_xlim()[1] > 0.5
    figure.canvas.draw()


def test_the_axes_reach_as_far_as_the_crosses() -> None:
    """A good model's channel: c about 0.1, gamma about 0.01."""
    _, axes = drawn(phase_plane, estimate_channel([[300, 40], [60, 4600]]))
    right, top = max(x[-1] for x, _ in crosses(axes)), max(y[-1] for _, y in crosses(axes))
    assert axes.get_xlim()[1] == pytest.approx(1.05 * right)
    assert axes.get_ylim()[1] == pytest.approx(1.05 * top)
    assert top < 0.2
    assert axes.get_xlim()[0] < 0 < axes.get_xlim()[1], "the line of break-even starts at the origin"
    assert axes.get_ylim()[0] < 0


def test_names_of_near_points_stay_apart_and_inside() -> None:
    near = {f"slice number {k}": estimate_channel([[290 + k, 40 + k], [60, 4600]]) for k in range(5)}
    right = {"far to the right": estimate_channel([[300, 20], [120, 4600]])}
    figure, axes = drawn(phase_plane, near | right, ax=Figure(figsize=(5, 5), layout="constrained").subplots())
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    inside = axes.get_window_extent().padded(3)
    assert all(inside.contains(*corner) for box in boxes for corner in (box.min, box.max))


def test_the_break_even_line_has_the_slope_of_the_accuracy() -> None:
    _, axes = drawn(phase_plane, estimate_channel([[49, 32], [114, 305]]), p0=0.8)
    line = next(line for line in axes.lines if str(line.get_label()).startswith("break-even"))
    gamma, c = line.get_xdata(), line.get_ydata()
    assert float(c[10] / gamma[10]) == pytest.approx(4.0)


def test_a_channel_metric_draws_its_phase_plane() -> None:
    metric = ChannelCounts(slices=["day", "night"])
    metric.update(torch.tensor([0, 1, 1, 0]), torch.tensor([1, 1, 0, 0]), torch.tensor([0, 0, 1, 1]))
    _, axes = drawn(metric.plot)
    assert {text.get_text() for text in axes.texts} == {"day", "night"}
    with pytest.raises(ValueError, match="one table"):
        phase_plane({"two": estimate_channel(metric.compute())})


@pytest.mark.parametrize("metric_class", [AccuracyDelta, McNemarPValue])
def test_a_scalar_metric_draws_its_values(metric_class: Any) -> None:
    metric = metric_class()
    values = [metric(torch.zeros(10, dtype=torch.int64), (torch.arange(10) < corrected).long()) for corrected in (1, 8)]
    figure, axes = metric.plot(values)
    assert [float(y) for y in axes.lines[0].get_ydata()] == [float(value) for value in values]
    assert values[0] != values[1]
    figure.canvas.draw()


def test_the_forest_has_a_row_a_difference() -> None:
    tables = {
        "better": [[20, 40], [5, 35]],
        "worse": [[20, 5], [40, 35]],
        "open": [[20, 6], [5, 35]],
        "none": [[0, 0], [0, 0]],
    }
    differences = {name: paired_difference_interval(table) for name, table in tables.items()}
    figure, axes = drawn(forest, differences, margin=0.05)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(tables)
    ends = [float(end) for line in axes.lines[1::2] for end in line.get_xdata()]
    assert ends == pytest.approx([float(end) for d in differences.values() for end in (d.low, d.high)])
    figure.canvas.draw()


def test_two_forests_on_shared_axes_stand_the_same_way() -> None:
    differences = {name: paired_difference_interval([[20, 40], [5, 35]]) for name in "abc"}
    figure, (left, right) = plt.subplots(1, 2, sharey=True)
    for axes in (left, right):
        forest(differences, ax=axes)
    assert left.get_ylim() == right.get_ylim() == (2.5, -0.5), "the first row is at the top"
    figure.canvas.draw()
    forest({})[0].canvas.draw()


@pytest.mark.parametrize("conditions", [2, 3, 20])
def test_the_matrix_marks_what_is_significant(conditions: int) -> None:
    correct = torch.rand(80, conditions, generator=torch.Generator().manual_seed(0)) < torch.linspace(
        0.3, 0.9, conditions
    )
    pairs = mcnemar_pairs(outcome_gram(correct), names=[f"model {k}" for k in range(conditions)])
    figure, axes = drawn(significance_matrix, pairs, n=80)
    shown = [text.get_text() for text in axes.texts]
    assert len(shown) == conditions * (conditions - 1)
    assert sum("*" in text for text in shown) == 2 * int((pairs.adjusted_p < 0.05).sum())
    difference = 100 * float(correct[:, 0].double().mean() - correct[:, 1].double().mean())
    assert float(shown[0].rstrip("*")) == pytest.approx(difference, abs=0.051)
    figure.canvas.draw()


def test_gates_that_grow_and_shrink_are_drawn() -> None:
    history = [{"step": float(s), "a/mean": 0.1, "a/growth": 0.01 * s, "b/growth": -0.01 * s} for s in range(5)]
    figure, axes = drawn(gate_growth, history)
    assert [list(line.get_ydata()) for line in axes.lines[1:]] == [
        [0.01 * s for s in range(5)],
        [-0.01 * s for s in range(5)],
    ]
    figure.canvas.draw()
    gate_growth([])[0].canvas.draw()


@pytest.mark.parametrize(("name", "shown"), [("short", "short"), ("checkpoint number 17", "checkpoint number 17")])
def test_names_that_fit_stay(name: str, shown: str) -> None:
    assert shorten(name) == shown


def test_long_names_keep_both_ends() -> None:
    assert shorten("checkpoint number 17", 12) == "checkp…er 17"
    assert len(shorten("x" * 50)) == 20


DOLLARS = ["$_$", "$0-$50", "100$", r"a\$b$", "$a$ and $$ in a name of more than twenty"]


@pytest.mark.parametrize("parse_math", [True, False])
@pytest.mark.parametrize("name", DOLLARS)
def test_a_dollar_in_a_name_is_drawn_as_it_is(name: str, parse_math: bool) -> None:
    name, pixels = name[:20], []
    with plt.rc_context({"text.parse_math": parse_math}):
        for text, plain in ((shorten(name), parse_math), (name, False)):
            figure: Any = plt.figure(figsize=(3, 1))
            figure.text(0.1, 0.5, text, parse_math=plain)
            figure.canvas.draw()
            pixels.append(bytes(figure.canvas.buffer_rgba()))
    assert pixels[0] == pixels[1]


def figures_of(names: list[str]) -> list[Any]:
    """Every kind of figure with these names."""
    channel, difference = estimate_channel([[49, 32], [114, 305]]), paired_difference_interval([[49, 32], [114, 305]])
    correct = torch.rand(80, len(names), generator=torch.Generator().manual_seed(0)) < 0.5
    outcomes = [Outcome(name, name, condition, True, True, 1) for name in names for condition in names]
    marks = [[4.0] * len(names)] * 3
    return [
        phase_plane(dict.fromkeys(names, channel)),
        forest(dict.fromkeys(names, difference)),
        gate_growth([{"step": 1.0, **{f"{name}/growth": 0.1 for name in names}}]),
        significance_matrix(mcnemar_pairs(outcome_gram(correct), names=names)),
        success_rates(analyze_outcomes(outcomes)),
        verdict_plot(verdict(marks, dict.fromkeys(names, marks), layer_names=names)),
    ]


def test_every_figure_draws_names_with_dollars() -> None:
    for figure, axes in figures_of(DOLLARS[:4]):
        figure.canvas.draw()
        texts = " ".join(text.get_text() for text in axes.findobj(Text))
        assert all(shorten(name) in texts for name in DOLLARS[:4])
        assert "$" not in texts.replace(r"\$", "")


def test_a_comparison_draws_names_with_dollars() -> None:
    right = [index % 2 for index in range(40)]
    compared = compare_outcomes(right, right[::-1], slices=[DOLLARS[index % 4] for index in range(40)])
    for figure in draw_figures(compared.to_dict()):
        assert figure.to_svg()
        texts = " ".join(text.get_text() for text in figure.canvas.findobj(Text))
        assert all(shorten(name) in texts for name in DOLLARS[:4])
