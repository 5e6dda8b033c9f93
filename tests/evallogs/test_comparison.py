"""Comparisons against numbers from elsewhere: a separate program's truth, scipy, statsmodels, plain Python."""

import json
import math
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from polyweave_torch.evallogs import Comparison, compare_outcomes, compare_runs, read_run
from polyweave_torch.evallogs.json_values import read_document
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.universe import universe_ids
from polyweave_torch.functional import estimate_channel, phase_plane_diagnosis, quadrant_names

TRUTH: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "evallogs" / "TRUTH.json").read_text())
TABLES = {name: entry for name, entry in TRUTH.items() if "n00" in entry}

CONTRACT = {
    "runs": {"name", "path", "format", "n", "accuracy", "low", "high"},
    "alignment": {"aligned", "only_before", "only_after", "unscored", "errors"},
    "counts": {"n00", "n01", "n10", "n11"},
    "intervals": {"c", "gamma", "delta"},
    "mcnemar": {"method", "discordant", "statistic", "p_value", "p_exact", "p_midp", "underpowered"},
    "equivalence": {"margin", "p_value", "equivalent"},
    "verdict": {"label", "reasons"},
    "slices": {"counts", "c", "gamma", "delta", "p_value", "p_adjusted", "quadrant", "activate"},
}
TOP = {"schema", *CONTRACT, "c", "gamma", "delta", "quadrant", "cochran_q", "pairs", "warnings"}


def arms(n00: int, n01: int, n10: int, n11: int) -> tuple[list[int], list[int]]:
    return [0] * (n00 + n01) + [1] * (n10 + n11), [0] * n00 + [1] * n01 + [0] * n10 + [1] * n11


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def run(
    name: str,
    correct: Any = None,
    *,
    scores: Any = None,
    slices: list[str] | None = None,
    answers: list[str | None] | None = None,
    prompts: list[str] | None = None,
) -> Run:
    items = len(scores if correct is None else correct)
    return Run(
        name=name,
        path=f"{name}.csv",
        format="csv",
        ids=[f"q{item}" for item in range(items)],
        correct=np.full(items, -1, np.int8) if correct is None else np.asarray(correct, np.int8),
        errors=np.zeros(items, np.bool_),
        slices=slices,
        answers=answers,
        scores=None if scores is None else np.asarray(scores, np.float64),
        prompts=prompts,
    )


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_number_of_the_truth_follows_from_its_table(name: str) -> None:
    truth = TABLES[name]
    before, after = arms(*(truth[cell] for cell in ("n00", "n01", "n10", "n11")))
    found = compare_outcomes(before, after, margin=0.02).to_dict()
    assert found["counts"] == {cell: truth[cell] for cell in ("n00", "n01", "n10", "n11")}
    for key in ("c", "gamma", "delta"):
        assert found[key] == close(truth[key])
    assert found["smoothed"]["c"] == close(truth["c_jeffreys"])
    assert found["smoothed"]["gamma"] == close(truth["gamma_jeffreys"])
    for arm, accuracy in zip(found["runs"], ("before", "after"), strict=True):
        assert arm["accuracy"] == close(truth[f"acc_{accuracy}"])
        assert [arm["low"], arm["high"]] == close(truth[f"wilson_{accuracy}"])
    for rate in ("c", "gamma"):
        assert found["intervals"][rate] == close(truth[f"wilson_{rate}"])
    assert found["intervals"]["delta"] == found["difference"]["tango"]
    test = found["mcnemar"]
    assert test["p_exact"] == close(truth["mcnemar_exact_p"])
    # At b = c the truth has another convention than DECISIONS.md, where it is 1.
    assert test["p_midp"] == close(1.0 if truth["n01"] == truth["n10"] else truth["mcnemar_midp"])
    if test["discordant"] >= 25:
        assert test["method"] == "chi2-edwards"
        assert test["statistic"] == close(truth["mcnemar_chi2_cc"])
        assert test["p_value"] == close(truth["mcnemar_chi2_cc_p"])
    else:
        assert test["p_value"] == close(truth["mcnemar_exact_p"])
    assert found["flip_rates"]["churn"] == close(truth["churn"])
    if "tost_z_0.02" in truth:
        wald = found["equivalence"]["wald"]
        assert [wald["p_lower"], wald["p_upper"]] == close(list(truth["tost_z_0.02"].values()))


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_intervals_of_the_difference_are_the_truth_s(level: float) -> None:
    for truth in TABLES.values():
        before, after = arms(*(truth[cell] for cell in ("n00", "n01", "n10", "n11")))
        found = compare_outcomes(before, after, level=level).to_dict()["difference"]
        key = f"delta_ci{100 * level:.0f}_"
        assert found["wald"] == pytest.approx(truth[key + "wald"], abs=1e-9)
        assert found["tango"] == pytest.approx(truth[key + "tango"], abs=1e-9)
        if level == 0.95:
            assert found["newcombe"] == pytest.approx(truth[key + "newcombe10"], abs=1e-9)


@pytest.mark.parametrize("name", [name for name in sorted(TABLES) if "slices" in TABLES[name]])
def test_slices_are_the_truth_s_with_holm_over_them(name: str) -> None:
    before: list[int] = []
    after: list[int] = []
    labels: list[str] = []
    truth = TABLES[name]["slices"]
    for label, part in truth.items():
        first, second = arms(*(part[cell] for cell in ("n00", "n01", "n10", "n11")))
        before, after, labels = before + first, after + second, labels + [label] * len(first)
    found = compare_outcomes(before, after, slices=labels, method="exact").to_dict()["slices"]
    assert list(found) == sorted(truth)
    adjusted = multipletests([truth[label]["mcnemar_exact_p"] for label in found], method="holm")[1]
    for label, p_adjusted in zip(found, adjusted, strict=True):
        row, part = found[label], truth[label]
        assert row["counts"] == {cell: part[cell] for cell in ("n00", "n01", "n10", "n11")}
        for key in ("c", "gamma"):
            assert row[key] == (None if part[key] is None else pytest.approx(part[key]))
        assert row["delta"] == pytest.approx(part["delta"])
        assert row["p_value"] == pytest.approx(part["mcnemar_exact_p"], rel=1e-9)
        assert row["p_adjusted"] == pytest.approx(p_adjusted, rel=1e-9)


def test_a_random_comparison_against_plain_python_scipy_and_statsmodels() -> None:
    rng = np.random.default_rng(7)
    before, after, labels = rng.random(211) < 0.6, rng.random(211) < 0.7, rng.choice(["x", "y", "z"], 211)
    found = compare_outcomes(before, after, slices=labels).to_dict()
    cells = Counter(zip(before.tolist(), after.tolist(), strict=True))
    assert [found["counts"][key] for key in ("n00", "n01", "n10", "n11")] == [
        cells[False, False],
        cells[False, True],
        cells[True, False],
        cells[True, True],
    ]
    assert found["c"] == float(Fraction(cells[False, True], cells[False, False] + cells[False, True]))
    assert found["delta"] == pytest.approx(after.mean() - before.mean())
    table = [[cells[True, True], cells[True, False]], [cells[False, True], cells[False, False]]]
    exact, edwards = statsmodels_mcnemar(table, exact=True), statsmodels_mcnemar(table, exact=False, correction=True)
    assert found["mcnemar"]["p_exact"] == pytest.approx(exact.pvalue, rel=1e-9)
    assert found["mcnemar"]["p_value"] == pytest.approx(edwards.pvalue, rel=1e-9)
    assert found["mcnemar"]["smallest_p"] == pytest.approx(
        stats.chi2.sf((found["mcnemar"]["discordant"] - 1) ** 2 / found["mcnemar"]["discordant"], 1), rel=1e-9
    )
    low, high = proportion_confint(int(after.sum()), 211, method="wilson")
    assert [found["runs"][1]["low"], found["runs"][1]["high"]] == pytest.approx([low, high], rel=1e-9)
    for label, row in found["slices"].items():
        inside = labels == label
        lost, gained = int((before & ~after & inside).sum()), int((~before & after & inside).sum())
        assert (row["counts"]["n10"], row["counts"]["n01"]) == (lost, gained)
        assert row["p_exact"] == pytest.approx(stats.binomtest(lost, lost + gained).pvalue, rel=1e-9)


def test_quadrant_and_gating_follow_the_library_s_smoothed_rates() -> None:
    found = compare_outcomes(*arms(3, 2, 4, 20), slices=["all"] * 29).to_dict()
    channel = estimate_channel([[3, 2], [4, 20]])
    assert found["quadrant"] == quadrant_names(phase_plane_diagnosis(channel).quadrant)
    gain = (1 - 24 / 29) * (2.5 / 6) - 24 / 29 * (4.5 / 25)
    assert found["slices"]["all"]["activate"] == (gain > 0)


def test_arrays_tensors_and_lists_of_any_type_give_the_same() -> None:
    before, after = arms(5, 9, 3, 20)
    wanted = compare_outcomes(before, after).to_dict()
    others: list[tuple[Any, Any]] = [
        (np.array(before), np.array(after, dtype=bool)),
        (torch.tensor(before, dtype=torch.bool), torch.tensor(after, dtype=torch.float32, requires_grad=True)),
    ]
    for first, second in others:
        assert compare_outcomes(first, second).to_dict() == wanted


def test_labels_of_any_type_become_text() -> None:
    found = compare_outcomes([0, 1, 1], [1, 0, 1], slices=torch.tensor([3, 3, 1]), ids=np.array([10, 20, 30])).to_dict()
    assert list(found["slices"]) == ["1", "3"]
    assert [item["id"] for item in found["flipped"]["corrupted"]] == ["20"]
    assert [item["id"] for item in found["flipped"]["corrected"]] == ["10"]


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([0, 1], [0, 1, 1]), {}, "one value a sample"),
        (([0, 2], [0, 1]), {}, "before must be binary"),
        (([0, 1], [0.5, 1]), {}, "after must be binary"),
        (([0, 1], [0, 1]), {"slices": ["a"]}, "slices must hold one label an item, 2 like before, but holds 1"),
        (([0, 1], [0, 1]), {"ids": ["a", "b", "c"]}, "ids must hold"),
        (([0, 1], [0, 1]), {"margin": 0.0}, "margin"),
        (([0, 1], [0, 1]), {"level": 1.0}, "level"),
        (([0, 1], [0, 1]), {"alpha": 0.0}, "alpha"),
        (([0, 1], [0, 1]), {"method": "wald"}, "method"),
    ],
)
def test_bad_input_is_refused_with_what_was_wanted(arguments: Any, options: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compare_outcomes(*arguments, **options)


def check_contract(found: dict[str, Any]) -> None:
    assert found["schema"] == 1
    assert set(found) >= TOP
    for key, names in CONTRACT.items():
        value = found[key]
        rows = value if key == "runs" else list(value.values()) if key == "slices" else [value] if value else []
        for row in rows:
            assert set(row) >= names, key
    json.loads(json.dumps(found, allow_nan=False))


@pytest.mark.parametrize(
    ("before", "after"),
    [([], []), ([1, 1], [1, 1]), ([0, 0], [0, 0]), ([1, 0], [1, 0]), ([0], [1]), ([1] * 30, [0] * 30)],
)
def test_what_is_undefined_is_null_and_the_contract_holds(before: list[int], after: list[int]) -> None:
    comparison = compare_outcomes(before, after, slices=["s"] * len(before), margin=0.1)
    found = comparison.to_dict()
    check_contract(found)
    assert (found["c"] is None) == (0 not in before)
    assert (found["gamma"] is None) == (1 not in before)
    assert (found["delta"] is None) == (not before)
    for text in (str(comparison), comparison.to_markdown(), comparison.to_html()):
        assert "nan" not in text.lower().split()


def test_no_outcome_of_few_discordants_can_be_significant_and_it_says_so() -> None:
    found = compare_outcomes(*arms(10, 5, 0, 10))
    assert found.label == "UNDERPOWERED"
    assert found.to_dict()["mcnemar"]["smallest_p"] == pytest.approx(2 * 0.5**5)
    assert "No outcome of so few can reach p < 0.05" in " ".join(str(found).split())


def test_the_requested_method_decides() -> None:
    # 312 against 264: exact .0501, mid-p .0456.
    before, after = arms(100, 264, 312, 300)
    assert compare_outcomes(before, after, method="exact").label == "NOISE"
    assert compare_outcomes(before, after, method="midp").label == "REGRESS"


def test_three_runs_are_compared_in_all_pairs() -> None:
    rng = np.random.default_rng(3)
    outcomes = np.stack([rng.random(150) < p for p in (0.5, 0.62, 0.7)], 1)
    found = compare_runs([run(name, outcomes[:, i]) for i, name in enumerate("abc")]).to_dict()
    check_contract(found)
    reference = cochrans_q(outcomes.astype(int))
    assert found["cochran_q"]["statistic"] == pytest.approx(reference.statistic, rel=1e-9)
    assert found["cochran_q"]["p_value"] == pytest.approx(reference.pvalue, rel=1e-9)
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    raw = []
    for pair in found["pairs"]:
        first, second = outcomes[:, pair["first_index"]], outcomes[:, pair["second_index"]]
        assert pair["counts"]["n10"] == int((first & ~second).sum())
        table = [[0, int((first & ~second).sum())], [int((~first & second).sum()), 0]]
        raw.append(statsmodels_mcnemar(table, exact=pair["discordant"] < 25, correction=True).pvalue)
        assert pair["p_value"] == pytest.approx(raw[-1], rel=1e-9)
    assert [pair["p_adjusted"] for pair in found["pairs"]] == pytest.approx(list(multipletests(raw, method="holm")[1]))
    two = compare_runs([run("a", outcomes[:, 0]), run("c", outcomes[:, 2])]).to_dict()
    for key in ("counts", "c", "gamma", "delta", "intervals", "mcnemar", "verdict"):
        assert found[key] == two[key]


def test_prompts_that_differ_make_a_gain_cautious() -> None:
    before, after = arms(10, 40, 5, 40)
    asked = [f"p{item}" for item in range(95)]
    same = compare_runs([run("a", before, prompts=asked), run("b", after, prompts=asked)])
    other = compare_runs([run("a", before, prompts=asked), run("b", after, prompts=["x", *asked[1:]])])
    assert (same.label, other.label) == ("PROGRESS", "CAUTIOUS")
    assert other.to_dict()["verdict"]["reasons"] == ["significantly-up", "prompts-differ"]
    assert "--prompts-may-differ" in str(other)


@pytest.mark.parametrize("kind", ["correct", "scores"])
def test_prompts_that_are_the_change_are_not_flagged(kind: str) -> None:
    before, after = arms(10, 40, 5, 40)
    runs = [
        run("a", **{kind: before}, prompts=["old"] * 95),  # type: ignore[arg-type]
        run("b", **{kind: after}, prompts=["new"] * 95),  # type: ignore[arg-type]
    ]
    assert compare_runs(runs).label == "CAUTIOUS"
    found = compare_runs(runs, prompts_may_differ=True).to_dict()
    assert found["verdict"]["label"] == "PROGRESS"
    assert found["verdict"]["reasons"] == ["significantly-up"]
    assert (found["warnings"], found["prompts_differ"]) == ([], 95)


def test_a_slice_that_falls_makes_a_gain_cautious() -> None:
    up, down = arms(10, 60, 5, 40), arms(5, 0, 12, 20)
    comparison = compare_outcomes(up[0] + down[0], up[1] + down[1], slices=["up"] * 115 + ["down"] * 37)
    found = comparison.to_dict()
    assert found["slices"]["down"]["p_adjusted"] == pytest.approx(2 * 0.5**12)
    assert comparison.label == "CAUTIOUS"
    assert found["verdict"]["reasons"] == ["significantly-up", "slice-down:down"]
    assert found["heterogeneity"]["p_value"] < 0.001


def test_equivalence_is_the_verdict_where_it_is_shown() -> None:
    before, after = arms(300, 20, 20, 660)
    assert compare_outcomes(before, after).label == "NOISE"
    comparison = compare_outcomes(before, after, margin=0.05)
    assert comparison.label == "EQUIVALENT"
    # TOST by the score form is Tango's interval of level 1 - 2·alpha inside the margin.
    low, high = compare_outcomes(before, after, level=0.9).to_dict()["difference"]["tango"]
    assert -0.05 < low < high < 0.05


def test_answer_churn_counts_each_wrong_answer_once() -> None:
    rng = np.random.default_rng(5)
    target = rng.integers(4, size=80)
    given = [rng.integers(4, size=80) for _ in range(2)]
    answers: list[list[str | None]] = [[f"({answer})" for answer in arm] for arm in given]
    answers[0][3], answers[1][9] = None, None
    known = [item for item in range(80) if item not in (3, 9)]
    found = compare_runs(
        [run(name, arm == target, answers=said) for name, arm, said in zip("ab", given, answers, strict=True)]
    )
    churn = found.to_dict()["answers"]
    assert churn["n"] == 78
    assert churn["churn"] == pytest.approx(sum(given[0][i] != given[1][i] for i in known) / 78)
    assert churn["wrong_to_other_wrong"] == pytest.approx(
        sum(len({target[i], given[0][i], given[1][i]}) == 3 for i in known) / 78
    )
    assert churn["same_answer_scored_differently"] == 0
    assert found.to_dict()["warnings"] == []


def test_one_answer_that_is_right_here_and_wrong_there_is_warned_of() -> None:
    found = compare_runs([run("a", [1, 0], answers=["4", "5"]), run("b", [0, 0], answers=["4", "5"])]).to_dict()
    assert any("1 of 2 items have one answer in both runs" in warning for warning in found["warnings"])


def test_flips_name_the_items_and_their_answers() -> None:
    comparison = compare_runs(
        [
            run("a", [1, 0, 1, 0], answers=["r", "w", "r", None], slices=["s", "s", "t", "t"]),
            run("b", [0, 1, 1, 0], answers=["v", "r", "r", "x"]),
        ]
    )
    assert list(comparison.flips(corrupted=True)) == [
        {
            "id": "q0",
            "slice": "s",
            "direction": "corrupted",
            "before": True,
            "after": False,
            "answer_before": "r",
            "answer_after": "v",
        }
    ]
    assert [flip["id"] for flip in comparison.flips(corrupted=False)] == ["q1"]
    assert [(flip["id"], flip["direction"]) for flip in comparison.flips()] == [
        ("q0", "corrupted"),
        ("q1", "corrected"),
    ]
    assert comparison.to_dict(flips=0)["flipped"] == {"corrupted": [], "corrected": []}


def scored(before: Any, after: Any, **options: Any) -> Comparison:
    slices = options.pop("slices", None)
    return compare_runs([run("a", scores=before, slices=slices), run("b", scores=after)], **options)


def test_scores_are_compared_by_bootstrap_and_t() -> None:
    rng = np.random.default_rng(11)
    before = rng.random(120)
    after = np.clip(before + rng.normal(0.05, 0.1, 120), 0, 1)
    comparison = scored(before, after, margin=0.2)
    found = comparison.to_dict()
    check_contract(found)
    differences = after - before
    resampled = differences[rng.integers(120, size=(20_000, 120))].mean(1)
    assert found["delta"] == pytest.approx(differences.mean())
    assert found["intervals"]["delta"] == pytest.approx(np.quantile(resampled, [0.025, 0.975]), abs=0.003)
    t = stats.ttest_rel(after, before)
    assert found["scores"]["t_test"]["p_value"] == pytest.approx(t.pvalue)
    assert found["scores"]["t_test"]["low"] == pytest.approx(t.confidence_interval().low)
    assert (found["scores"]["up"], found["scores"]["down"]) == ((differences > 0).sum(), (differences < 0).sum())
    assert comparison.label == "PROGRESS"
    assert scored(after, before).label == "REGRESS"
    assert found["equivalence"]["equivalent"] is True
    assert found["counts"] == dict.fromkeys(("n00", "n01", "n10", "n11"))


def test_scores_that_hardly_change_are_underpowered() -> None:
    before = np.linspace(0.1, 0.9, 40)
    after = before.copy()
    after[:3] += [0.1, -0.1, 0.05]
    assert scored(before, after).label == "UNDERPOWERED"


def test_equal_scores_have_no_t_and_say_nothing_changed() -> None:
    comparison = scored([0.5] * 30, [0.5] * 30)
    found = comparison.to_dict()
    assert found["verdict"]["reasons"] == ["not-significant", "no-discordants"]
    assert found["scores"]["t_test"]["p_value"] is None
    assert "no item changed" in str(comparison)


def test_slices_and_pairs_of_scores_hold_together() -> None:
    rng = np.random.default_rng(2)
    values = [np.concatenate([rng.random(60), rng.random(60) - drop]) for drop in (0.0, 0.1, 0.9)]
    labels = ["kept"] * 60 + ["fell"] * 60
    found = compare_runs(
        [run(name, scores=arm, slices=labels) for name, arm in zip("abc", values, strict=True)]
    ).to_dict()
    check_contract(found)
    assert found["slices"]["fell"]["significant"]
    assert not found["slices"]["kept"]["significant"]
    assert found["slices"]["fell"]["level"] == pytest.approx(1 - 0.05 / 2)
    assert [pair["level"] for pair in found["pairs"]] == pytest.approx([1 - 0.05 / 3] * 3)
    assert "slice-down:fell" in found["verdict"]["reasons"]


@pytest.mark.parametrize("margin", [math.inf, math.nan, 0.0])
def test_a_margin_of_scores_is_positive_and_finite(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must be a positive, finite difference of mean scores, but is"):
        scored([0.1, 0.2, 0.4], [0.2, 0.2, 0.3], margin=margin)


def test_a_method_that_scores_do_not_have_is_warned_of() -> None:
    said = "method=exact means nothing for scores, where the bootstrap decides"
    assert said in scored([0.1] * 30, [0.2] * 30, method="exact").to_dict()["warnings"]
    assert scored([0.1] * 30, [0.2] * 30).to_dict()["warnings"] == []


def test_few_scores_are_warned_of() -> None:
    assert any("too few" in warning for warning in scored([0.1, 0.2, 0.3], [0.2, 0.3, 0.5]).to_dict()["warnings"])


def test_runs_without_a_shared_outcome_are_refused() -> None:
    with pytest.raises(ValueError, match="no item has an outcome in every run"):
        compare_runs([run("a", [-1, -1]), run("b", [1, 1])])


def test_slices_partition_the_items() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random((2, 50_000)) < 0.5
    found = compare_outcomes(before, after, slices=rng.integers(40, size=50_000)).to_dict()
    for cell in ("n00", "n01", "n10", "n11"):
        assert sum(row["counts"][cell] for row in found["slices"].values()) == found["counts"][cell]


def test_an_item_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'b' comes more than once"):
        compare_outcomes([1, 0, 1], [0, 1, 1], ids=["a", "b", "b"])


def test_a_name_that_comes_twice_is_found_among_many(tmp_path: Path) -> None:
    # The last of 200,000: looking for each name among all of them takes minutes.
    names = [*(f"n{number}" for number in range(200_000)), "n199999"]
    ones = np.ones(len(names), np.int8)
    document = ", ".join(f'"{name}": 1' for name in names)
    (tmp_path / "object.json").write_text("{" + document + "}")
    (tmp_path / "header.csv").write_text(f"{','.join(names)}\n")
    start = time.perf_counter()
    with pytest.raises(ValueError, match="'n199999' comes more than once"):
        compare_outcomes(ones, ones, ids=names)
    with pytest.raises(ValueError, match="names 1 item more than once, such as 'n199999'"):
        universe_ids(names, [])
    with pytest.raises(ValueError, match="the key 'n199999' stands twice"):
        read_document(tmp_path / "object.json")
    with pytest.raises(ValueError, match="the column 'n199999' stands 2 times"):
        read_run(tmp_path / "header.csv", id="n0", correct="n1", format="csv")
    assert time.perf_counter() - start < 20.0
