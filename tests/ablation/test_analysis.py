"""The statistics: against pandas and statsmodels, against counting by hand, and the words that they earn."""

import json
import math
import random
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
import torch
from scipy.stats import chi2
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from polyweave_torch.ablation import (
    Analysis,
    CondStats,
    Outcome,
    PairTest,
    SimulatedEvaluator,
    analyze_outcomes,
    baseline_conditions,
    read_outcomes,
    run_ablation,
)
from polyweave_torch.functional import target_per_stratum
from tests.ablation.runs import ARMS, STRATA, make_cases, outcome

Change = Callable[[Outcome], Outcome]


def table(only_a: int, only_b: int, both: int = 0, neither: int = 0, stratum: str = "s") -> list[Outcome]:
    """Outcomes of conditions A and B with these counts."""
    kinds = [(True, False)] * only_a + [(False, True)] * only_b + [(True, True)] * both + [(False, False)] * neither
    return [
        Outcome(f"{stratum}-{case}", stratum, name, right, right, 1)
        for case, rights in enumerate(kinds)
        for name, right in zip("AB", rights, strict=True)
    ]


def overall(analysis: Analysis) -> list[PairTest]:
    return [pair for pair in analysis.pairwise if not pair.stratum]


def stats_of(analysis: Analysis, condition: str, stratum: str = "") -> CondStats:
    (stats,) = [s for s in analysis.per_condition if (s.condition, s.stratum) == (condition, stratum)]
    return stats


@pytest.mark.parametrize(
    ("only_a", "only_b", "words", "p"),
    [
        (0, 0, "INCONCLUSIVE (no discordant pairs)", 1.0),
        (24, 0, "INCONCLUSIVE: nominally significant but UNDERPOWERED", 1.1920929e-7),
        (1, 9, "INCONCLUSIVE: nominally significant but UNDERPOWERED", 0.021484375),
        (5, 5, "INCONCLUSIVE: not significant, UNDERPOWERED", 1.0),
        (25, 0, "SIGNIFICANT (Holm)", float(chi2.sf(23.04, 1))),
        (20, 5, "SIGNIFICANT (Holm)", 0.00511026),
        (13, 12, "not significant", 1.0),
    ],
)
def test_the_words_of_a_pair(only_a: int, only_b: int, words: str, p: float) -> None:
    pair, in_stratum = analyze_outcomes(table(only_a, only_b, both=7, neither=3)).pairwise
    for found in (pair, in_stratum):
        assert found.verdict == words
        assert (int(found.result.b), int(found.result.c), found.n) == (only_a, only_b, only_a + only_b + 10)
        assert float(found.result.p_value) == pytest.approx(p, rel=1e-6)


def test_a_pair_that_holm_takes_the_significance_from_is_not_significant() -> None:
    # p = .028 alone; with two equal arms it stands three times among the pairs.
    outcomes = table(35, 18, both=7)
    outcomes += [found._replace(condition="C") for found in outcomes if found.condition == "A"]
    pairs = {(pair.a, pair.b): pair for pair in overall(analyze_outcomes(outcomes))}
    alone = analyze_outcomes(table(35, 18, both=7)).pairwise[0]
    assert alone.verdict == "SIGNIFICANT (Holm)"
    assert float(pairs["A", "B"].result.p_value) == float(alone.result.p_value) < 0.05 < pairs["A", "B"].holm_p
    assert pairs["A", "B"].verdict == "not significant"
    assert analyze_outcomes(table(35, 18), alpha=0.01).pairwise[0].verdict == "not significant"


def frame_of(path: Path) -> Any:
    """The file as pandas reads it, with the outcome that counts."""
    pandas: Any = import_module("pandas")
    frame = pandas.read_json(path, lines=True)
    frame["failed"] = frame["refused"] | frame["error"].notna()
    frame["right"] = frame["first_try"] & ~frame["failed"]
    frame["done"] = frame["converged"] & ~frame["failed"]
    return frame


def statsmodels_p(first: Any, second: Any) -> float:
    b, c = int((first & ~second).sum()), int((~first & second).sum())
    if b == c:  # statsmodels' correction takes 1 off a difference of 0, too, and its exact p of 0 pairs is 0
        return 1.0
    return float(mcnemar([[0, b], [c, 0]], exact=b + c < 25, correction=True).pvalue)


def check_family(pairs: Sequence[PairTest], p_values: Sequence[float]) -> None:
    assert [float(pair.result.p_value) for pair in pairs] == pytest.approx(p_values, rel=1e-9)
    assert [pair.holm_p for pair in pairs] == pytest.approx(multipletests(p_values, method="holm")[1], rel=1e-9)


@pytest.mark.parametrize("errors", ["wrong", "drop"])
def test_statistics_are_those_of_pandas_and_statsmodels_from_the_file(tmp_path: Path, errors: Any) -> None:
    draw = random.Random(1)

    def evaluate(cases: Any, arm: Any) -> list[Outcome]:
        share = {"old": 0.5, "new": 0.62, "newest": 0.75}[arm.name]
        outcomes = []
        for case in cases:
            if draw.random() < 0.03:
                raise RuntimeError("lost")
            right, sooner = draw.random() < share, draw.randint(2, 6)
            outcomes.append(
                outcome(case, arm)._replace(
                    first_try=right, converged=right or sooner < 6, iterations=1 if right else sooner,
                    refused=draw.random() < 0.03,
                )
            )  # fmt: skip
        return outcomes

    out = tmp_path / "run.jsonl"
    run_ablation(make_cases(90), ARMS, evaluate, out=out)
    analysis = analyze_outcomes(read_outcomes(out), errors=errors)
    frame = frame_of(out)
    assert frame["failed"].sum() > 20
    if errors == "drop":
        frame = frame[~frame["failed"]]
    assert analysis.counts == dict.fromkeys(STRATA, 90)
    assert (analysis.total_cases, analysis.conditions) == (270, [arm.name for arm in ARMS])

    wide = frame.pivot(index="case_id", columns="condition", values="right")
    complete = wide.dropna()
    expected_q = cochrans_q(complete.to_numpy().astype(int))
    assert analysis.cochran is not None
    assert float(analysis.cochran.statistic) == pytest.approx(expected_q.statistic, rel=1e-9)
    assert float(analysis.cochran.p_value) == pytest.approx(expected_q.pvalue, rel=1e-9)
    assert (int(analysis.cochran.n), analysis.incomplete) == (len(complete), 270 - len(complete))

    def p_of(first: str, second: str, rows: Any = slice(None)) -> float:
        both = wide.loc[rows][[first, second]].dropna().astype(bool)
        return statsmodels_p(both[first], both[second])

    check_family(overall(analysis), [p_of(a, b) for a, b in combinations(analysis.conditions, 2)])
    in_strata = [pair for pair in analysis.pairwise if pair.stratum]
    assert [(pair.a, pair.b, pair.stratum) for pair in in_strata] == [("old", "newest", name) for name in STRATA]
    check_family(in_strata, [p_of("old", "newest", wide.index.str.startswith(name)) for name in STRATA])

    assert len(analysis.per_condition) == 12
    for stats in analysis.per_condition:
        arm = frame[frame["condition"] == stats.condition]
        arm = arm[arm["stratum"] == stats.stratum] if stats.stratum else arm
        done, low_high = arm[arm["done"]], proportion_confint(arm["right"].sum(), len(arm), method="wilson")
        assert (stats.n, stats.first_try_success, stats.non_converged) == (
            len(arm), arm["right"].sum(), len(arm) - len(done),
        )  # fmt: skip
        found = [stats.p_sem, stats.wilson_lo, stats.wilson_hi, stats.mean_iter, stats.median_iter, stats.mean_cost_usd]
        found += [stats.theoretical_iid_bound, stats.mean_struct_err0, stats.mean_sem_err0]
        assert (stats.phat, stats.theo_iid_bound) == (stats.p_sem, stats.theoretical_iid_bound)
        rate = arm["right"].mean()
        expected = [rate, *low_high, done["iterations"].mean(), done["iterations"].median(), arm["cost_usd"].mean()]
        expected += [1 / rate, arm["struct_errors0"].mean(), arm["sem_errors0"].mean()]
        assert found == pytest.approx(expected, rel=1e-9)
        engaged = sum(bool(each.get("tuned")) for each in arm["engaged"])
        assert stats.engaged == ({"tuned": engaged} if stats.condition != "old" else {})


def test_errors_and_refusals_count_as_wrong_or_not_at_all() -> None:
    outcomes = table(0, 3, both=5)
    outcomes[0] = outcomes[0]._replace(first_try=True, converged=True, refused=True)
    outcomes[3] = outcomes[3]._replace(first_try=True, error="lost")
    wrong, dropped = analyze_outcomes(outcomes), analyze_outcomes(outcomes, errors="drop")
    for analysis, n, b_right in ((wrong, 8, 7), (dropped, 7, 7)):
        assert (stats_of(analysis, "A").n, stats_of(analysis, "A").refused, stats_of(analysis, "A").errors) == (n, 1, 0)
        assert stats_of(analysis, "A").first_try_success == 5
        assert (stats_of(analysis, "B").n, stats_of(analysis, "B").errors) == (n, 1)
        assert stats_of(analysis, "B").first_try_success == b_right
    assert stats_of(wrong, "A").non_converged == 3
    assert (wrong.incomplete, dropped.incomplete) == (0, 2)
    assert (overall(wrong)[0].n, overall(dropped)[0].n) == (8, 6)
    assert dropped.total_cases == 8


def test_a_case_that_lacks_a_condition_is_left_out_of_the_pairs_that_need_it() -> None:
    outcomes = [found for found in (outcome(c, arm) for c in make_cases(10) for arm in ARMS) if not found.refused]
    lacking = [o for o in outcomes if not (o.case_id == "media-003" and o.condition == "new")]
    assert len(lacking) == len(outcomes) - 1
    before, after = analyze_outcomes(outcomes), analyze_outcomes(lacking)
    assert after.incomplete == before.incomplete + 1
    assert [b.n - a.n for b, a in zip(overall(before), overall(after), strict=True)] == [1, 0, 1]
    assert after.total_cases == before.total_cases


def test_iterations_are_of_converged_outcomes_only() -> None:
    counts = [1, 1, 2, 4, 9]
    outcomes = [Outcome(str(n), "s", "A", n == 1, n < 9, n) for n in counts[1:]]
    stats = stats_of(analyze_outcomes(outcomes), "A")
    assert (stats.mean_iter, stats.median_iter, stats.non_converged) == (mean([1, 2, 4]), median([1, 2, 4]), 1)
    none = stats_of(analyze_outcomes([Outcome("a", "s", "A", False, False, 5)]), "A")
    assert (none.mean_iter, none.median_iter, none.theoretical_iid_bound, none.p_sem) == (None, None, None, 0.0)


def test_order_is_as_declared_or_as_it_comes_and_strangers_are_refused() -> None:
    outcomes = [outcome(case, arm) for case in make_cases(2) for arm in ARMS]
    assert list(analyze_outcomes(outcomes).counts) == list(STRATA)
    turned = analyze_outcomes(outcomes, strata=STRATA[::-1], conditions=ARMS[::-1])
    assert list(turned.counts) == list(STRATA[::-1])
    assert turned.conditions == ["newest", "new", "old"]
    assert (turned.pairwise[0].a, turned.pairwise[0].b) == ("newest", "new")
    assert (turned.pairwise[-1].a, turned.pairwise[-1].b, turned.pairwise[-1].stratum) == ("newest", "old", "simple")
    with pytest.raises(ValueError, match="an outcome is of condition 'newest', but declared are 'old', 'new'"):
        analyze_outcomes(outcomes, conditions=["old", "new"])
    with pytest.raises(ValueError, match="an outcome is of stratum 'media', but declared are 'simple'"):
        analyze_outcomes(outcomes, strata=["simple"])


def test_the_order_of_outcomes_changes_no_number() -> None:
    outcomes = [outcome(case, arm) for case in make_cases(20) for arm in ARMS]
    declared: dict[str, Any] = {"strata": STRATA, "conditions": ARMS}
    shuffled = random.Random(0).sample(outcomes, len(outcomes))
    one, other = (json.loads(analyze_outcomes(iter(o), **declared).to_json()) for o in (outcomes, shuffled))
    for a, b in zip(one.pop("per_condition"), other.pop("per_condition"), strict=True):
        assert a.pop("mean_cost_usd") == pytest.approx(b.pop("mean_cost_usd"), rel=1e-12)
        assert a == b
    assert one == other


def test_contradictions_are_refused() -> None:
    outcomes = table(1, 1)
    with pytest.raises(ValueError, match="case 's-0' has two outcomes under condition 'B'"):
        analyze_outcomes([*outcomes, outcomes[1]])
    with pytest.raises(ValueError, match="case 's-0' is of stratum 's' and of 't'"):
        analyze_outcomes([*outcomes[1:], outcomes[0]._replace(stratum="t")])
    wrongs: list[dict[str, Any]] = [{"errors": "ignore"}, {"alpha": 0.0}, {"mode": "live"}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must"):
            analyze_outcomes(outcomes, **wrong)


def test_one_condition_has_rates_and_nothing_to_compare() -> None:
    analysis = analyze_outcomes([found for found in table(3, 4) if found.condition == "A"])
    assert (analysis.pairwise, analysis.cochran, len(analysis.per_condition)) == ([], None, 2)


def test_no_outcome_gives_nothing_or_the_whole_interval() -> None:
    assert analyze_outcomes([]).per_condition == []
    analysis = analyze_outcomes([], conditions=["A", "B", "C"], strata=["s"])
    assert analysis.counts == {"s": 0}
    stats = stats_of(analysis, "A", "s")
    assert (stats.n, stats.p_sem, stats.wilson_lo, stats.wilson_hi, stats.mean_cost_usd) == (0, None, 0.0, 1.0, None)
    assert analysis.cochran is None
    assert {pair.verdict for pair in analysis.pairwise} == {"INCONCLUSIVE (no discordant pairs)"}
    assert Analysis.from_json(analysis.to_json()) == analysis


def test_costs_whose_sum_no_float_holds_have_no_mean() -> None:
    analysis = analyze_outcomes([found._replace(cost_usd=1e308) for found in table(1, 1)])
    assert stats_of(analysis, "A").mean_cost_usd is None
    assert json.loads(analysis.to_json())["per_condition"][0]["mean_cost_usd"] is None


def test_a_stratum_without_a_pair_is_no_test_of_the_family() -> None:
    outcomes = table(9, 0) + [found for found in table(1, 1, stratum="t") if found.condition == "A"]
    _, *strata = analyze_outcomes(outcomes).pairwise
    assert [(pair.stratum, pair.holm_p) for pair in strata] == [("s", float(strata[0].result.p_value))]


def test_outcomes_without_strata_are_analysed_overall() -> None:
    analysis = analyze_outcomes([found._replace(stratum="") for found in table(3, 9)])
    assert analysis.counts == {"": 12}
    assert {stats.stratum for stats in analysis.per_condition} == {pair.stratum for pair in analysis.pairwise} == {""}


def test_the_cases_needed_are_those_of_the_strictest_step_of_holm() -> None:
    outcomes = table(3, 13, both=72, neither=12) + table(4, 4, both=20, stratum="t")
    pooled, first, second = analyze_outcomes(outcomes).pairwise
    assert pooled.cases_needed == target_per_stratum(7 / 128, 17 / 128)
    assert first.cases_needed == target_per_stratum(0.03, 0.13, alpha=0.025)
    assert second.cases_needed is None


def test_json_gives_the_analysis_back() -> None:
    outcomes = [outcome(case, arm) for case in make_cases(30) for arm in ARMS]
    analysis = analyze_outcomes(outcomes, alpha=0.1, errors="drop", model="m", note="a note ∎")
    again = Analysis.from_json(analysis.to_json())
    assert again == analysis
    assert analysis.cochran is not None
    assert again.cochran is not None
    pairs = [(analysis.cochran, again.cochran)]
    pairs += [(a.result, b.result) for a, b in zip(analysis.pairwise, again.pairwise, strict=True)]  # type: ignore[misc]
    for before, after in pairs:
        for a, b in zip(before, after, strict=True):
            assert a.dtype == b.dtype if isinstance(a, torch.Tensor) else a == b
    parsed = json.loads(analysis.to_json(), parse_constant=lambda text: pytest.fail(text))
    assert list(parsed)[1:10] == list(Analysis._fields[:9])


def test_a_simulator_marks_the_analysis_whatever_the_mode_says() -> None:
    outcomes = run_ablation(make_cases(2), baseline_conditions(), SimulatedEvaluator())
    assert analyze_outcomes(outcomes).mode == "SIMULATED"
    assert analyze_outcomes([Outcome(*found) for found in outcomes]).mode == "LIVE"
    assert analyze_outcomes([Outcome(*found) for found in outcomes], mode="SIMULATED").mode == "SIMULATED"


def test_many_outcomes_are_analysed_as_a_stream_and_counted_exactly() -> None:
    n, k = 20_000, 10

    def right(case: int, arm: int) -> bool:
        return (case * (arm + 3)) % 11 < 7

    stream = (Outcome(str(c), STRATA[c % 3], f"arm {a}", right(c, a), True, 1) for c in range(n) for a in range(k))
    analysis = analyze_outcomes(stream)
    assert analysis.total_cases == n
    for a in range(k):
        assert stats_of(analysis, f"arm {a}").first_try_success == sum(right(c, a) for c in range(n))
    first, *_, last = overall(analysis)
    assert int(first.result.b) == sum(right(c, 0) and not right(c, 1) for c in range(n))
    assert int(last.result.c) == sum(not right(c, 8) and right(c, 9) for c in range(n))
    assert len(overall(analysis)) == math.comb(k, 2)
