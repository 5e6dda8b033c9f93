"""docs/trust/alarms.md, held against a short run of docs/simulations/significance_alarms.py and an enumeration."""

import math

import pytest

from tests.docs.trust_tables import first, page, printed, script

RUNS, VALIDATIONS = 40, 40


def test_alarms_of_the_significance_monitor() -> None:
    table = printed("alarms.md", "alarms")
    found = script("significance_alarms").alarm_rates(runs=RUNS, validations=VALIDATIONS, samples=1000, seed=1)
    assert list(found) == table.column("against")
    for name, alarms in found.items():
        for column, share in zip(table.columns[1:], (alarms.validations, alarms.runs), strict=True):
            rate = first(table.cell(column, name)) / 100
            # Validations of one run share a reference: count a run as one observation, which is the widest error.
            error = math.sqrt(rate * (1 - rate) / RUNS)
            assert share == pytest.approx(rate, abs=3 * error)
    assert found["best"].validations > 2 * found["previous"].validations


def test_alarms_against_previous_are_the_error_of_mcnemars_test() -> None:
    """Chances are the square root of a uniform, so a third of the outcomes differ between two validations."""
    enumerated = 100 * script("paired_tests").mcnemar_rejection("auto", 1 / 3, 1000)
    assert enumerated == pytest.approx(4.4, abs=0.05)
    for name in ("previous", "first"):
        rate, _, error = printed("alarms.md", "alarms").cell("validations with p < 0.05, %", name).split()
        assert float(rate) == pytest.approx(enumerated, abs=3 * float(error))


def test_what_the_page_says() -> None:
    table, text = printed("alarms.md", "alarms"), " ".join(page("alarms.md").split())
    runs, validations = table.columns[2], table.columns[1]
    first_alarms, previous, best = (first(table.cell(validations, name)) for name in ("first", "previous", "best"))
    assert f"{previous} and {first_alarms} % of validations alarm" in text
    assert f"{best} % alarm" in text
    assert 3.5 * 5 < best < 4 * 5
    assert f"{first(table.cell(runs, 'previous')):.0f} % of runs against the previous" in text
    assert f"{first(table.cell(runs, 'first')):.0f} % of runs against the first" in text
    assert first(table.cell(runs, "best")) == 98.0
