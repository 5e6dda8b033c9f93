"""docs/trust/tests.md: its tables against fresh ones and other arithmetic, its sentences against its tables."""

import math
import re
from typing import Any, get_args

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from polyweave_torch.functional import channel_counts, mcnemar_power
from polyweave_torch.functional.mcnemar import Method
from tests.docs.trust_tables import BOTH, compare, first, page, printed, script, sentences_and_tables

SETS, SEED = 500, 11
PAGE = "tests.md"
METHODS: tuple[Method, ...] = get_args(Method)
# Table, function of the script, leading columns that name the row, whether numbers without brackets are enumerated.
SIMULATED = [
    ("mcnemar-error", "mcnemar_error", 3, True),
    ("mcnemar-choice", "mcnemar_choice", 3, True),
    ("equivalence-error", "equivalence_error", 3, True),
    ("cochran-error", "cochran_error", 3, False),
    ("clustered-error", "clustered_error", 3, False),
    ("strata-error", "strata_error", 2, False),
    ("family-error", "family_error", 2, False),
]
tests = script("paired_tests")


@pytest.mark.parametrize(("name", "function", "labels", "enumerated"), SIMULATED, ids=[row[0] for row in SIMULATED])
def test_a_short_run_with_another_seed_agrees(name: str, function: str, labels: int, enumerated: bool) -> None:
    fresh = getattr(tests, function)(sets=SETS, rng=np.random.default_rng(SEED))
    assert (fresh.name, fresh.page) == (name, PAGE)
    compared = compare(printed(PAGE, name), fresh, labels=labels, sets=SETS, enumerated=enumerated)
    assert len(list(compared)) == sum(len(row) - labels for row in fresh.rows)


@pytest.mark.parametrize("name", ["mcnemar-worst", "mcnemar-power", "equivalence-worst"])
def test_a_fresh_enumeration_prints_the_same(name: str) -> None:
    fresh = getattr(tests, name.replace("-", "_"))()
    assert [list(row) for row in fresh.rows] == printed(PAGE, name).rows


def test_every_table_of_the_script_is_on_the_page() -> None:
    assert {function.__name__ for function in tests.SIMULATED} == {row[1] for row in SIMULATED}
    assert page(PAGE).count("<!-- table: ") == len(SIMULATED) + 3
    assert page(PAGE).count("--seed 0 --write") == len(SIMULATED) + 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [1 / 2, 2 / 3, 3 / 4])
def test_the_enumeration_is_the_power_by_critical_counts(method: Method, share: float) -> None:
    for discordance in tests.DISCORDANCES:
        power = mcnemar_power(discordance * (1 - share), discordance * share, torch.tensor(tests.SIZES), method=method)
        enumerated = [tests.mcnemar_rejection(method, discordance, n, share=share) for n in tests.SIZES]
        assert enumerated == pytest.approx(power.tolist(), abs=1e-10)


def by_hand(n: int, p10: float, p01: float, p_value: Any) -> float:
    """The probability of p < alpha over all tables, in plain Python."""
    return sum(
        math.comb(n, b) * math.comb(n - b, c) * p10**b * p01**c * (1 - p10 - p01) ** (n - b - c)
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if b + c and p_value(b, c) < tests.ALPHA
    )


def test_the_enumeration_by_others_p_values() -> None:
    exact = by_hand(20, 0.2, 0.2, lambda b, c: binomtest(b, b + c).pvalue)
    assert tests.mcnemar_rejection("exact", 0.4, 20) == pytest.approx(exact, abs=1e-12)
    for method, correction in (("asymptotic", False), ("edwards", True)):
        chi_square = by_hand(
            20,
            0.1,
            0.2,
            lambda b, c, correction=correction: (
                statsmodels_mcnemar([[0, b], [c, 0]], exact=False, correction=correction).pvalue
            ),
        )
        # statsmodels' correction turns b = c into a difference of 1, which no level of .05 rejects.
        assert tests.mcnemar_rejection(method, 0.3, 20, share=2 / 3) == pytest.approx(chi_square, abs=1e-12)


def test_drawn_tables_have_the_shares_that_were_asked_for() -> None:
    shared = script("trust")
    counts = shared.simulated_tables(0.1, 0.3, 50, sets=4000, rng=np.random.default_rng(0))
    assert bool((counts.sum((1, 2)) == 50).all())
    shares = counts.double().mean(0) / 50
    expected = torch.tensor([[0.3 * 0.6, 0.3], [0.1, 0.7 * 0.6]], dtype=torch.float64)
    assert torch.allclose(shares, expected, atol=4 * 0.5 / math.sqrt(4000 * 50))
    # Loss is right, then wrong: the index is [before, after].
    lost = shared.simulated_tables(1.0, 0.0, 3, sets=1, rng=np.random.default_rng(0))[0]
    assert torch.equal(lost, channel_counts([1, 1, 1], [0, 0, 0]))


def test_enumerated_tables_are_all_tables() -> None:
    found = script("trust").enumerated_tables(0.1, 0.25, 6)
    assert len(found.probability) == math.comb(6 + 2, 2)
    for (_, (n01, n10)), probability in zip(
        ((None, (table[0][1], table[1][0])) for table in found.counts.tolist()), found.probability, strict=True
    ):
        ways = math.comb(6, n10) * math.comb(6 - n10, n01)
        assert probability == pytest.approx(ways * 0.1**n10 * 0.25**n01 * 0.65 ** (6 - n10 - n01), rel=1e-9)


def test_what_the_page_says_of_mcnemars_forms() -> None:
    worst = printed(PAGE, "mcnemar-worst")
    given = "largest for a fixed number of discordants"
    for method in ("auto", "exact", "edwards"):
        assert tests._rejection_of_discordants(method, 0.5).max() < tests.ALPHA
    assert worst.cell(given, "midp") == "7.68"
    assert worst.cell("so many", "midp") == "16"
    assert worst.cell(given, "asymptotic") == "12.50"
    assert worst.cell("so many", "asymptotic") == "4"
    errors = printed(PAGE, "mcnemar-error")
    assert max(map(first, errors.column("midp"))) <= 5.0
    assert first(worst.cell("largest error of the table below", "midp")) < 5.0
    assert max(map(first, errors.column("asymptotic"))) == 5.3
    # Rows of equally many expected discordants are nearly one row.
    for method in METHODS:
        alike = first(errors.cell(method, "0.1", "100")), first(errors.cell(method, "0.05", "200"))
        assert alike[0] == pytest.approx(alike[1], abs=0.11)
    few = [row for row in errors.rows if float(row[2]) <= 5]
    assert all(first(row[errors.columns.index("auto")]) < 1.0 for row in few)


def test_what_the_page_says_of_power() -> None:
    assert printed(PAGE, "mcnemar-power").cell("1000 pairs", "1 : 2", "0.05") == "60.9"
    choice = printed(PAGE, "mcnemar-choice")
    gains = [first(choice.cell("midp", *row[:3])) - first(choice.cell("auto", *row[:3])) for row in choice.rows]
    assert max(gains) == pytest.approx(8.7)
    assert gains[[row[:3] for row in choice.rows].index(["1 : 3", "50", "10"])] == max(gains)
    assert all(gain < 2.0 for gain, row in zip(gains, choice.rows, strict=True) if float(row[2]) >= 100)
    assert first(choice.cell("auto", "1 : 2", "100")) == pytest.approx(25, abs=1)


def test_what_the_page_says_of_cochrans_q() -> None:
    table = printed(PAGE, "cochran-error")
    error = 100 * math.sqrt(0.05 * 0.95 / table.sets)
    assert max(map(float, table.column("chi-square"))) < 5.0 + 3 * error
    permutation = [float(cell) for cell in table.column("permutation") if cell != "–"]
    assert max(permutation) < 5.0 + 3 * 100 * math.sqrt(0.05 * 0.95 / tests.PERMUTED_SETS)


def test_what_the_page_says_of_equivalence() -> None:
    table = printed(PAGE, "equivalence-error")
    score, wald = "equivalent (score), loss = margin", "equivalent (wald), loss = margin"
    over = [row[:3] for row in table.rows if first(row[3]) > 5.0 or first(row[4]) > 5.0]
    assert over == [["0.02", "0.02", "300"]]
    assert first(table.cell(score, "0.02", "0.02", "300")) == 6.0
    assert first(table.cell(wald, "0.02", "0.02", "300")) == 14.6
    assert first(table.cell(wald, "0.05", "0.05", "100")) == 11.2
    worst = printed(PAGE, "equivalence-worst")
    assert max(float(row[1]) for row in worst.rows) == 7.2
    assert all(2 < float(row[0]) * float(row[2]) < 3 for row in worst.rows)
    assert max(float(row[3]) for row in worst.rows) == 5.6
    assert table.cell("equivalent (score), no change", "0.02", "0.1", "1000") == "26.2"
    assert table.cell("equivalent (score), no change", "0.02", "0.1", "3000") == "92.9"


def test_what_the_page_says_of_clusters() -> None:
    table = printed(PAGE, "clustered-error")
    plain = "mcnemar, pairs as independent"
    assert table.cell(plain, "0.2", "50", "20") == "17.2"
    assert table.cell(plain, "0.5", "50", "20") == "30.5"
    error = 100 * math.sqrt(0.05 * 0.95 / table.sets)
    for method in ("obuchowski", "durkalski"):
        assert max(map(float, table.column(method))) < 5.0 + 3 * error
    ten = [row for row in table.rows if row[1] == "10"]
    assert all(2.5 < float(row[-2]) < 3.5 < float(row[-1]) for row in ten)


def test_what_the_page_says_of_strata_and_slices() -> None:
    strata = printed(PAGE, "strata-error")
    error = 100 * math.sqrt(0.05 * 0.95 / strata.sets)
    assert max(map(float, strata.column("losses : gains 1 : 1"))) < 5.0 + 3 * error
    assert {row[-1] for row in strata.rows if row[0] == "20"} == {"0.2", "0.3"}
    family = printed(PAGE, "family-error")
    assert family.cell("raw p", "20", "40") == "49.1"
    assert max(float(cell) for name in ("Holm", "Benjamini-Hochberg") for cell in family.column(name)) < 5.0


@pytest.mark.parametrize("name", ["tests.md", "intervals.md", "alarms.md"])
def test_every_figure_of_a_sentence_stands_in_a_table(name: str) -> None:
    prose, cells = sentences_and_tables(name)
    figures = re.findall(r"\d+\.\d+(?= %| to \d+\.\d+ %| and \d+\.\d+ %)", prose)
    assert len(figures) >= 3
    # A page may round what its table gives to two digits.
    known = {f"{float(number):.1f}" for number in re.findall(r"\d+\.\d+", cells)}
    assert {f"{float(figure):.1f}" for figure in figures} <= known


def test_brackets_hold_the_simulation() -> None:
    """Every cell of an enumerated and simulated table has both numbers."""
    for name in ("mcnemar-error", "mcnemar-choice"):
        assert all(BOTH.fullmatch(cell) for row in printed(PAGE, name).rows for cell in row[3:])
