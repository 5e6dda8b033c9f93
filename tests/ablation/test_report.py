"""What the report says, and that it shouts where it must."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import binomtest, chi2, multinomial

from examples import ablation_simulated
from polyweave_torch.ablation import Analysis, Outcome, analyze_outcomes, format_analysis
from tests.ablation.runs import ARMS, make_cases, outcome
from tests.ablation.test_analysis import table

_REPORT = Path(ablation_simulated.__file__).with_suffix(".txt")


@pytest.fixture(scope="module")
def example() -> Analysis:
    return ablation_simulated.main()


def row(report: str, *cells: str) -> list[str]:
    """The cells of the first table row that begins with these."""
    (line, *_) = re.findall(rf"^{'  +'.join(map(re.escape, cells))}  +(.*)$", report, flags=re.MULTILINE)
    return re.split(r"  +", str(line))


def test_the_example_is_of_three_arms_and_120_cases_and_shouts(example: Analysis) -> None:
    report = format_analysis(example)
    assert example.counts == {"simple": 40, "media": 40, "compleja": 40}
    assert example.conditions == ["plain", "structured", "array-IR"]
    assert report.startswith("SIMULATED: Paired ablation of 3 conditions on 120 cases")
    assert report.count("SIMULATED! SIMULATED! SIMULATED!") == 2
    assert "mode: SIMULATED" in report
    assert "SIMULATED" not in format_analysis(example._replace(mode="LIVE"))


def test_the_report_that_lies_beside_the_example_is_the_one_it_prints(example: Analysis) -> None:
    assert _REPORT.read_text(encoding="utf-8") == format_analysis(example)


def test_the_report_has_the_numbers_of_the_analysis(example: Analysis) -> None:
    report = format_analysis(example)
    for stats in example.per_condition:
        right, p, interval = row(report, stats.stratum or "all", stats.condition)
        assert right == f"{stats.first_try_success}/{stats.n}"
        assert (p, interval) == (f"{stats.p_sem:.3f}", f"[{stats.wilson_lo:.3f}, {stats.wilson_hi:.3f}]")
    for pair in example.pairwise:
        labels = (pair.stratum,) if pair.stratum else (pair.a, pair.b)
        cells = next(
            r
            for r in re.findall(r"^.*(?:exact|chi2).*$", report, re.MULTILINE)
            if r.split()[: len(labels)] == [*labels]
        )
        n, b, c, *_ = cells.split()[len(labels) :]
        assert (int(n), int(b), int(c)) == (pair.n, int(pair.result.b), int(pair.result.c))
        name = pair.stratum or f"{pair.a} / {pair.b}"
        assert f"- {name}: {pair.verdict}" in report
        assert f"{int(pair.result.discordant)} discordant cases" in report
    assert "all cases: these 3 tests are one Holm family" in report
    assert "(array-IR, b): these 3 tests are another Holm family" in " ".join(report.split())


def test_lines_fit_a_terminal_and_markdown_has_the_same_numbers(example: Analysis) -> None:
    text, markdown = format_analysis(example), format_analysis(example, markdown=True)
    assert max(map(len, text.splitlines())) <= 100
    assert markdown.startswith("## SIMULATED: Paired ablation")
    assert "| all | plain | " in markdown
    assert sorted(re.findall(r"\d\.\d{3,}", text)) == sorted(re.findall(r"\d\.\d{3,}", markdown))


@pytest.mark.parametrize(
    ("only_a", "only_b", "said"),
    [
        (0, 0, "A / B: INCONCLUSIVE (no discordant pairs); 0 discordant cases"),
        (1, 0, "A / B: INCONCLUSIVE: not significant, UNDERPOWERED; 1 discordant case"),
        (24, 0, "A / B: INCONCLUSIVE: nominally significant but UNDERPOWERED; 24 discordant cases"),
        (25, 0, "A / B: SIGNIFICANT (Holm), A is better; 25 discordant cases"),
        (3, 30, "A / B: SIGNIFICANT (Holm), B is better; 33 discordant cases"),
        (14, 15, "A / B: not significant; 29 discordant cases"),
    ],
)
def test_each_verdict_comes_with_its_discordant_cases(only_a: int, only_b: int, said: str) -> None:
    report = format_analysis(analyze_outcomes(table(only_a, only_b, both=9)))
    assert f"- {said}\n" in report


def test_an_arm_that_fell_back_is_warned_of() -> None:
    outcomes = [outcome(case, arm)._replace(refused=False) for case in make_cases(8) for arm in ARMS]
    off = sum(not found.engaged["tuned"] for found in outcomes if found.condition == "new")
    assert off > 0
    report = " ".join(format_analysis(analyze_outcomes(outcomes)).split())
    assert f"new: tuned was in force in {24 - off} of 24 outcomes; in the other {off} this arm measured plain" in report
    assert "old:" not in report
    engaged = [found._replace(engaged=dict.fromkeys(found.engaged, True)) for found in outcomes]
    assert "measured plain" not in format_analysis(analyze_outcomes(engaged))
    # An error in an arm says nothing of its treatment.
    engaged[1] = Outcome(*engaged[1][:3], False, False, 0, error="lost")
    report = format_analysis(analyze_outcomes(engaged))
    assert "measured plain" not in report
    assert "new: 1 error and 0 refusals, counted as wrong; the first error is lost" in report
    assert "new: 1 error and 0 refusals, left out" in format_analysis(analyze_outcomes(engaged, errors="drop"))


def test_incomplete_cases_note_and_model_are_said() -> None:
    analysis = analyze_outcomes(table(3, 4)[1:], model="of mine", note="the first try")
    report = format_analysis(analysis)
    assert "cases that lack a condition: 1 of 7" in report
    assert "model: of mine" in report
    assert "note: the first try" in report


def test_what_the_common_plan_of_120_cases_presumes_is_said() -> None:
    # By enumeration of all tables: the power of the test that decides, and where it stays above 80 %.
    def power(n: int, reject: Callable[[int, int], bool]) -> float:
        return sum(
            multinomial.pmf([lost, gained, n - lost - gained], n, [0.03, 0.13, 0.84])
            for lost in range(26)
            for gained in range(61)
            if reject(lost, gained)
        )

    def deciding(lost: int, gained: int) -> bool:
        if lost + gained < 25:
            return bool(binomtest(lost, lost + gained).pvalue < 0.05) if lost + gained else False
        return bool((abs(lost - gained) - 1) ** 2 / (lost + gained) > chi2.isf(0.05, 1))

    def uncorrected(lost: int, gained: int) -> bool:
        return lost + gained > 0 and bool((lost - gained) ** 2 / (lost + gained) > chi2.isf(0.05, 1))

    small, large = format_analysis(analyze_outcomes(table(3, 4))), format_analysis(analyze_outcomes(table(60, 60)))
    assert "Strata with fewer than 120 cases: s 7." in small
    assert "Every stratum has 120 cases or more." in large
    for report in (small, large):
        said = " ".join(report.split())
        assert f"power of the uncorrected chi-square (exactly {100 * power(120, uncorrected):.0f} %)" in said
        assert f"test that decides here has {100 * power(120, deciding):.0f} %, and needs 132 cases for 80 %" in said
        assert "take 156 cases" in said
        assert "independently 296" in said
    assert power(131, deciding) < 0.8 <= power(132, deciding)


def test_a_report_of_nothing_is_still_one() -> None:
    for outcomes in ([], [Outcome("a", "s", "A", False, False, 0, error="lost")]):
        assert format_analysis(analyze_outcomes(outcomes, errors="drop"))


def test_long_names_lose_their_middle_outside_of_tables_too() -> None:
    long = "x" * 60_000
    found = [
        Outcome(case, f"{long}{case[0]}", f"{long}{arm}", arm == "A", True, 1, refused=False, engaged={long: False})
        for case in [f"{stratum}{number}" for stratum in "st" for number in range(30)]
        for arm in "AB"
    ]
    found[0] = found[0]._replace(error=long)
    report = format_analysis(analyze_outcomes(found, model=long), markdown=True)
    assert max(map(len, report.splitlines())) < 5_000
