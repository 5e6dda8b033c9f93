"""docs/trust/intervals.md: its tables against fresh ones, against other arithmetic, and its sentences against them."""

import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from polyweave_torch.functional import paired_difference_interval
from tests.docs.trust_tables import DOCS, compare, first, page, printed, script

SETS, SEED = 400, 11
PAGE = "intervals.md"
SIMULATED = [
    ("difference-coverage", "difference_coverages", 3),
    ("binary-bootstrap", "binary_bootstrap", 3),
    ("proportion-coverage", "proportion_coverage", 2),
    ("channel-coverage", "channel_coverage", 2),
]
intervals = script("interval_coverage")


@pytest.mark.parametrize(("name", "function", "labels"), SIMULATED, ids=[row[0] for row in SIMULATED])
def test_a_short_run_with_another_seed_agrees(name: str, function: str, labels: int) -> None:
    fresh = getattr(intervals, function)(sets=SETS, rng=np.random.default_rng(SEED))
    assert (fresh.name, fresh.page) == (name, PAGE)
    compared = compare(printed(PAGE, name), fresh, labels=labels, sets=SETS, enumerated=True)
    assert len(list(compared)) == sum(len(row) - labels for row in fresh.rows)


@pytest.mark.parametrize(
    ("name", "function"), [("difference-width", "difference_widths"), ("proportion-worst", "proportion_worst")]
)
def test_a_fresh_enumeration_prints_the_same(name: str, function: str) -> None:
    assert [list(row) for row in getattr(intervals, function)().rows] == printed(PAGE, name).rows


def test_every_table_of_the_script_is_on_the_page() -> None:
    assert {function.__name__ for function in intervals.SIMULATED} == {row[1] for row in SIMULATED}
    # Two that are not simulated, and the verdict's.
    assert page(PAGE).count("<!-- table: ") == len(SIMULATED) + 2 + 1


@pytest.mark.parametrize("method", ["newcombe", "tango", "agresti-min"])
def test_coverage_and_width_of_all_tables_in_plain_python(method: str) -> None:
    n, p10, p01 = 9, 0.1, 0.3
    share = {"n10": p10, "n01": p01, "n11": 0.6 * intervals.RIGHT, "n00": 0.6 * (1 - intervals.RIGHT)}
    coverage = width = 0.0
    for n10 in range(n + 1):
        for n01 in range(n + 1 - n10):
            for n11 in range(n + 1 - n10 - n01):
                n00 = n - n10 - n01 - n11
                ways = math.comb(n, n10) * math.comb(n - n10, n01) * math.comb(n00 + n11, n11)
                cells = {"n10": n10, "n01": n01, "n11": n11, "n00": n00}
                chance = ways * math.prod(share[name] ** number for name, number in cells.items())
                found = paired_difference_interval([[n00, n01], [n10, n11]], method=method)  # type: ignore[arg-type]
                coverage += chance * bool(found.low <= p01 - p10 <= found.high)
                width += chance * float(found.high - found.low)
    assert intervals.difference_coverage(method, p10, p01, n) == pytest.approx((coverage, width), abs=1e-8)


def test_coverage_of_one_rate_by_statsmodels_intervals() -> None:
    table = printed(PAGE, "proportion-coverage")
    ours = {"wilson": "wilson", "jeffreys": "jeffreys", "wald (not offered)": "normal"}
    for p, n in ((0.9, 20), (0.98, 50)):
        for name, theirs in ours.items():
            coverage = 0.0
            for s in range(n + 1):
                low, high = proportion_confint(s, n, method=theirs)
                coverage += math.comb(n, s) * p**s * (1 - p) ** (n - s) * (low <= p <= high)
            assert first(table.cell(name, f"{p}", f"{n}")) == pytest.approx(100 * coverage, abs=0.0501)


def test_coverage_of_a_rate_with_a_random_denominator() -> None:
    n, share, rate = 8, 0.3, 0.3
    coverage = math.pow(1 - share, n)  # without a trial the interval is all of [0, 1]
    for trials in range(1, n + 1):
        for s in range(trials + 1):
            low, high = proportion_confint(s, trials, method="wilson")
            chance = math.comb(n, trials) * share**trials * (1 - share) ** (n - trials)
            coverage += chance * math.comb(trials, s) * rate**s * (1 - rate) ** (trials - s) * (low <= rate <= high)
    assert intervals.rate_coverage("wilson", rate, share, n) == pytest.approx(coverage, abs=1e-12)


def test_what_the_page_says_of_a_difference() -> None:
    coverage, width = printed(PAGE, "difference-coverage"), printed(PAGE, "difference-width")
    smallest = {name: min(map(first, coverage.column(name))) for name in coverage.columns[3:]}
    assert smallest == {"tango": 94.7, "newcombe": 94.8, "wald": 24.6, "agresti-min": 90.8, "bonett-price": 95.0}
    assert first(coverage.cell("agresti-min", "0.002", "0.012", "200")) == 90.8
    assert first(coverage.cell("wald", "0.002", "0.012", "20")) == 24.6
    assert coverage.cell("wald", "0.005", "0.005", "20").startswith("100.0")
    assert round(float(width.cell("tango", "0.005", "0.005", "20"))) == 33
    assert all(float(row[3]) == max(map(float, row[3:])) for row in width.rows if row[0] in ("0.005", "0.002"))
    for row in width.rows:
        spread = max(map(float, row[3:])) - min(map(float, row[3:]))
        assert row[2] not in ("200", "1000") or spread <= (2.0 if row[2] == "200" else 0.25)
    # Twenty pairs without a change leave room for a change of one in ten, of either sign.
    none = paired_difference_interval([[6, 0], [0, 14]])
    assert float(none.high) > 0.1 > -0.1 > float(none.low)


def test_what_the_page_says_of_one_rate() -> None:
    worst = printed(PAGE, "proportion-worst")

    def mean_and_smallest(name: str) -> tuple[list[float], list[float]]:
        cells = [cell.split() for cell in worst.column(f"{name}: mean, smallest")]
        return [float(cell[0].rstrip(",")) for cell in cells], [float(cell[1]) for cell in cells]

    for name, least in (("wilson", 90.4), ("jeffreys", 86.9)):
        means, smallest = mean_and_smallest(name)
        assert all(mean == pytest.approx(95.0, abs=0.5) for mean in means)
        assert min(smallest) == least
    assert mean_and_smallest("wald (not offered)")[1][0] == 9.6
    table = printed(PAGE, "proportion-coverage")
    assert table.cell("width, jeffreys", "0.98", "10") == "24.7"
    assert table.cell("width, wilson", "0.98", "10") == "29.9"
    narrow = [float(row[-1]) <= float(row[-2]) for row in table.rows if row[0] != "0.5"]
    assert all(narrow)


def test_what_the_page_says_of_a_channel() -> None:
    table = printed(PAGE, "channel-coverage")
    rates = table.columns[2:6]
    assert min(first(cell) for name in rates for cell in table.column(name)) >= 94.0
    assert first(table.cell("delta", "0.9", "20")) == 77.3
    assert first(table.cell("delta", "0.7", "20")) == 83.1
    assert all(first(cell) >= 94.0 for cell in table.column("delta, tango"))


def test_monte_carlo_errors_of_the_first_page() -> None:
    rows = [line for line in page("index.md").splitlines() if line.startswith(("| 5 % |", "| 50 % |"))]
    assert len(rows) == 2
    for line in rows:
        share, *errors = (cell.strip().split()[0] for cell in line.strip("|").split("|"))
        p = float(share) / 100
        for error, sets in zip(errors, (2000, 10_000, 20_000), strict=True):
            assert float(error) == pytest.approx(100 * math.sqrt(p * (1 - p) / sets), abs=0.0501)


def test_scripts_and_tests_that_the_first_page_names_exist() -> None:
    named = [word.strip("`.,;") for line in page("index.md").splitlines() for word in line.split()]
    paths = [word for word in named if word.endswith(".py")]
    assert len(paths) >= 6
    assert all((DOCS.parent / path).is_file() for path in paths)
