"""The printed table of docs/simulations/bootstrap_coverage.py, against theory and against a short run."""

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "simulations" / "bootstrap_coverage.py"
SETS = 1000


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap_coverage", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(script: ModuleType) -> dict[int, tuple[float, float]]:
    """Error under no change and coverage, by number of pairs."""
    row = re.compile(r"^ +(\d+) +([\d.]+) % \([ \d.]+ %\) +([\d.]+) % \([ \d.]+ %\)$", re.MULTILINE)
    found = row.findall(script.__doc__ or "")
    return {int(pairs): (float(error) / 100, float(coverage) / 100) for pairs, error, coverage in found}


def close(share: float, sets: int) -> object:
    """Within three Monte Carlo errors."""
    return pytest.approx(share, abs=3.0 * math.sqrt(share * (1.0 - share) / sets))


def test_the_table_is_what_theory_says_of_normal_differences(script: ModuleType) -> None:
    table = printed(script)
    assert list(table) == [5, 10, 20, 50, 100]
    # The errors that were decided upon: 16, 11, 7 and 5 %; and those of Student's t.
    for pairs, decided in ((5, 0.16), (10, 0.11), (20, 0.07), (50, 0.05)):
        assert table[pairs][0] == close(decided, SETS)
    for pairs, (error, coverage) in table.items():
        assert error == close(script.expected_error(pairs), SETS)
        assert coverage == close(1.0 - script.expected_error(pairs), SETS)


def test_fifty_pairs_cover_as_printed(script: ModuleType) -> None:
    error, coverage = script.error_and_coverage(pairs=50, sets=400, resamples=500, seed=1)
    assert error == close(script.expected_error(50), 400)
    assert coverage == close(printed(script)[50][1], 400)


def test_five_pairs_are_wrong_three_times_as_often(script: ModuleType) -> None:
    error, _ = script.error_and_coverage(pairs=5, sets=400, resamples=500, seed=1)
    assert error == close(printed(script)[5][0], 400)
    assert error > 0.1
