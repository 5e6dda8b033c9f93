"""The figure of an ablation shows the rates it was given."""

from collections.abc import Iterator
from typing import Any

import pytest
from matplotlib import pyplot as plt

from polyweave_torch.ablation import Outcome, SimulatedEvaluator, analyze_outcomes, baseline_conditions, run_ablation
from polyweave_torch.plot.ablation import success_rates
from tests.ablation.runs import make_cases


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def test_each_condition_and_stratum_has_its_rate_and_interval() -> None:
    analysis = analyze_outcomes(run_ablation(make_cases(12), baseline_conditions(), SimulatedEvaluator()))
    figure, axes = success_rates(analysis)
    drawn: list[Any] = list(axes.lines)
    lines = [[float(x) for x in line.get_xdata()] for line in drawn]
    expected = [[[s.wilson_lo, s.wilson_hi], [s.p_sem]] for s in analysis.per_condition]
    assert lines == [line for pair in expected for line in pair]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all", "simple", "media", "compleja"]
    legend: Any = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == analysis.conditions
    assert axes.get_title() == "SIMULATED"
    figure.canvas.draw()


@pytest.mark.parametrize("arms", [1, 12])
def test_few_and_many_conditions_fit_and_an_empty_one_has_no_point(arms: int) -> None:
    names = [f"a rather long name of condition {number}" for number in range(arms)]
    outcomes = [Outcome("a", "s", names[0], False, False, 1, error="lost")]
    outcomes += [Outcome("a", "s", name, True, True, 1) for name in names[1:]]
    figure, axes = success_rates(analyze_outcomes(outcomes, errors="drop"), ax=plt.subplots()[1])
    assert len(axes.lines) == 2 * (2 * arms - 1)
    assert axes.get_title() == ""
    figure.canvas.draw()
