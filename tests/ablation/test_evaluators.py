"""The adapters and the simulator."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polyweave_torch.ablation import (
    Case,
    Condition,
    FunctionEvaluator,
    ModuleEvaluator,
    Outcome,
    SimulatedEvaluator,
    SimulatedOutcome,
    baseline_conditions,
    run_ablation,
)
from polyweave_torch.ablation.evaluators import DEEP_FAULT, ENVELOPE_FAULT, SEMANTIC_FAULT
from tests.ablation.runs import ARMS, make_cases, outcome

_MANY = [Case(f"case {number}", "s") for number in range(4000)]


def test_a_function_may_return_a_flag_or_an_outcome() -> None:
    right, *_ = cases = make_cases(1)
    assert FunctionEvaluator(lambda case, arm: case.id == right.id)(cases[:2], ARMS[0]) == [
        Outcome("simple-000", "simple", "old", True, True, 1),
        Outcome("media-000", "media", "old", False, False, 1),
    ]
    assert FunctionEvaluator(outcome)(cases, ARMS[1]) == [outcome(case, ARMS[1]) for case in cases]


class _Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))
        self.dropout = nn.Dropout(0.5)
        self.frozen = nn.Dropout(0.5).eval()

    def forward(self, x: Tensor, shift: Tensor | None = None) -> Tensor:
        scaled: Tensor = self.frozen(self.dropout(x * self.factor))
        return scaled if shift is None else scaled + shift


def _numbers(cases: Sequence[Case]) -> Tensor:
    return torch.tensor([float(case.gold["answer"]) for case in cases])


def _even(output: Tensor, cases: Sequence[Case]) -> Tensor:
    assert not output.requires_grad
    return output % 2 == 0


@pytest.mark.parametrize("form", ["tensor", "tuple", "dict"])
def test_a_module_answers_in_eval_mode_and_is_left_as_it_was(form: str) -> None:
    module, cases = _Scale(1.0), make_cases(4)
    encodings = {
        "tensor": _numbers,
        "tuple": lambda cases: (_numbers(cases), torch.zeros(1)),
        "dict": lambda cases: {"x": _numbers(cases), "shift": torch.zeros(1)},
    }
    outcomes = ModuleEvaluator(module, encodings[form], _even)(cases, ARMS[0])
    assert [found.first_try for found in outcomes] == [case.gold["answer"] % 2 == 0 for case in cases]
    assert (module.training, module.dropout.training, module.frozen.training) == (True, True, False)


def test_each_condition_may_have_its_own_module() -> None:
    modules = {"old": _Scale(1.0), "new": _Scale(2.0)}
    evaluate = ModuleEvaluator(modules, _numbers, _even)
    outcomes = run_ablation(make_cases(4), ARMS[:2], evaluate, batch_size=5)
    assert all(found.first_try for found in outcomes if found.condition == "new")
    assert sum(found.first_try for found in outcomes if found.condition == "old") == 6


def test_the_simulator_depends_on_nothing_but_seed_case_condition_and_attempt() -> None:
    plain, _, _ = baseline_conditions()
    evaluate = SimulatedEvaluator(seed=3)
    one_by_one = [evaluate([case], plain)[0] for case in _MANY[:50]]
    assert SimulatedEvaluator(seed=3)(_MANY[:50][::-1], plain)[::-1] == one_by_one
    assert SimulatedEvaluator(seed=4)(_MANY[:50], plain) != one_by_one
    assert {type(found) for found in one_by_one} == {SimulatedOutcome}
    # Fewer attempts: the same first ones.
    for less, more in zip(SimulatedEvaluator(3, max_attempts=2)(_MANY, plain), evaluate(_MANY, plain), strict=True):
        assert less.first_try == more.first_try
        assert less.iterations == min(more.iterations, 2)
        assert less.converged == (more.converged and more.iterations <= 2)


@pytest.mark.parametrize(
    ("arm", "structural"), list(zip(baseline_conditions(), [(1, 1), (0, 1), (0, 0)], strict=True)), ids=lambda x: str(x)
)
def test_each_arm_shows_the_faults_it_can_show_independently(arm: Condition, structural: tuple[int, int]) -> None:
    outcomes = SimulatedEvaluator()(_MANY, arm)
    rates = [ENVELOPE_FAULT * structural[0], DEEP_FAULT * structural[1], SEMANTIC_FAULT]
    error = 4 * 0.5 / len(_MANY) ** 0.5
    found = np.array([(o.struct_errors0, o.sem_errors0, o.first_try, o.iterations, o.converged) for o in outcomes])
    assert found[:, 0].mean() == pytest.approx(rates[0] + rates[1], abs=2 * error)
    assert (found[:, 0] == 2).mean() == pytest.approx(rates[0] * rates[1], abs=error)
    assert found[:, 1].mean() == pytest.approx(rates[2], abs=error)
    assert ((found[:, 0] > 0) & (found[:, 1] > 0)).mean() == pytest.approx(
        (1 - (1 - rates[0]) * (1 - rates[1])) * rates[2], abs=error
    )
    assert ((found[:, 0] + found[:, 1] == 0) == found[:, 2]).all()
    valid = float(np.prod([1 - rate for rate in rates]))
    assert found[:, 2].mean() == pytest.approx(valid, abs=error)
    assert (found[:, 3] == 2).mean() == pytest.approx(valid * (1 - valid), abs=error)
    assert found[:, 4].mean() == pytest.approx(1 - (1 - valid) ** 5, abs=error)
    assert ((found[:, 3] == 1) == found[:, 2]).all()
    assert {tuple(o.engaged.items()) for o in outcomes} == {tuple((name, True) for name in arm.options)}


def test_a_budget_of_no_attempt_is_refused() -> None:
    with pytest.raises(ValueError, match="max_attempts must be at least 1, but is 0"):
        SimulatedEvaluator(max_attempts=0)
