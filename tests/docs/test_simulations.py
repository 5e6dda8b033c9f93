"""The printed tables of docs/simulations, held against short runs."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "simulations"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_alarms_of_the_significance_monitor() -> None:
    runs, validations = 40, 40
    found = load("significance_alarms").alarm_rates(runs=runs, validations=validations, samples=1000, seed=1)
    printed = {"previous": 0.044, "first": 0.048, "best": 0.184}
    for name, rate in printed.items():
        # Validations of one run share a reference: count a run as one observation, which is the widest error.
        error = math.sqrt(rate * (1 - rate) / runs)
        assert found[name] == pytest.approx(rate, abs=3 * error)
    assert found["best"] > 2 * found["previous"]
