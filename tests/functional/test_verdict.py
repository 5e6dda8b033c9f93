"""The six words, their order and their reasons, from inputs whose outcome follows on paper.

Most arms here differ by a constant c, of which every resample has the mean c: the interval is [c, c].
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from polyweave_torch.functional._verdict_pairs import decide
from polyweave_torch.functional.bootstrap import exact_binary_bootstrap, paired_bootstrap
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.functional.verdict_results import PairVerdict
from polyweave_torch.functional.verdict_words import Reason, Verdict
from tests.functional.reference import scipy_paired_bootstrap

nan = math.nan
LAYERS = ("fact", "judge")


def arm(fact: float | list[float], judge: float | list[float], n: int = 20) -> Tensor:
    """Scores of n samples; a list is repeated."""
    columns = [[value] if isinstance(value, float) else value for value in (fact, judge)]
    return torch.tensor([[column[i % len(column)] for column in columns] for i in range(n)], dtype=torch.float64)


def judged(control: Any, treatment: Any, **options: Any) -> PairVerdict:
    """The only pair's verdict, which is the report's."""
    report = verdict(control, treatment, layer_names=LAYERS, **options)
    (pair,) = report.pairs
    assert (report.label, report.reasons) == (pair.label, pair.reasons)
    return pair


def marks_with(correlation: float, n: int = 20) -> Tensor:
    """Marks of two judges who agree so far, all positive."""
    first = torch.linspace(-1.0, 1.0, n, dtype=torch.float64)
    other = first.square() - first.square().mean()  # uncorrelated with it, by symmetry
    second = correlation * first / first.norm() + math.sqrt(1.0 - correlation**2) * other / other.norm()
    return 3.0 + torch.stack([first, second], 1)


# One thing differs in each pair of inputs: what the difference does is what the order of checks says.

FLAT = arm(4.0, 4.0)
# Composites differ by .5; sd .5 of the differences, since they are 0 and 1 by turns.
UNEVEN = arm([4.0, 5.0], [4.0, 5.0])


@pytest.mark.parametrize(
    ("control", "treatment", "options", "label", "reason"),
    [
        # Up by .5 in both layers, which pass the gate, from 20 pairs.
        (FLAT, arm(4.5, 4.5), {}, "PROGRESS", "composite-up"),
        # The same from 19 pairs.
        (arm(4.0, 4.0, 19), arm(4.5, 4.5, 19), {}, "CAUTIOUS", "few-pairs"),
        (arm(4.0, 4.0, 19), arm(4.5, 4.5, 19), {"min_pairs": 19}, "PROGRESS", "composite-up"),
        # Up by .05 < .1; by .1 it is not below it, though 4.1 - 4.0 is in floats.
        (FLAT, arm(4.05, 4.05), {}, "CAUTIOUS", "trivial"),
        (FLAT, arm(4.1, 4.1), {}, "PROGRESS", "composite-up"),
        (FLAT, arm(4.05, 4.05), {"trivial_difference": 0.05}, "PROGRESS", "composite-up"),
        # The judge stays at 3.4 < 3.5, in both arms; at 3.5 it is not under the gate.
        (arm(4.0, 3.4), arm(5.0, 3.4), {}, "CAUTIOUS", "layer-under-gate"),
        (arm(4.0, 3.5), arm(5.0, 3.5), {}, "PROGRESS", "composite-up"),
        (arm(4.0, 3.4), arm(5.0, 3.4), {"gate": 3.4}, "PROGRESS", "composite-up"),
        # The judge falls by .2, above the gate, and the composite rises by .4.
        (FLAT, arm(5.0, 3.8), {}, "CAUTIOUS", "layer-down"),
        # It falls under the gate that the control passes; the composite still rises, by .2.
        (FLAT, arm(5.0, 3.4), {}, "REGRESS", "layer-fell-under-gate"),
        # It falls under a gate that the control does not pass either.
        (arm(3.5, 3.4), arm(4.5, 3.3), {}, "CAUTIOUS", "layer-down"),
        # The composite falls by .5, however few pairs there are.
        (FLAT, arm(3.5, 3.5), {}, "REGRESS", "composite-down"),
        (arm(4.0, 4.0, 2), arm(3.5, 3.5, 2), {}, "REGRESS", "composite-down"),
        # A layer up by .5, another down by .5: the composite's differences are all 0.
        (FLAT, arm(4.5, 3.5), {}, "CAUTIOUS", "layer-up"),
        (arm(4.0, 4.0, 5), arm(4.5, 3.5, 5), {}, "CAUTIOUS", "layer-up"),
        # Nothing differs: with 20 pairs noise, with 19 too few to say so.
        (FLAT, FLAT, {}, "NOISE", "composite-unclear"),
        (arm(4.0, 4.0, 19), arm(4.0, 4.0, 19), {}, "UNDERPOWERED", "few-pairs"),
        (arm(4.0, 3.0), arm(4.0, 3.0), {}, "NOISE", "layer-under-gate"),
        # 19 of 20 at the top are over 90 %, 18 are not; one layer with room is enough to differ in.
        (arm([5.0] * 19 + [4.0], 5.0), arm(5.0, [5.0] * 19 + [4.0]), {}, "UNDERPOWERED", "all-saturated"),
        (arm([5.0] * 18 + [4.0] * 2, 5.0), arm([5.0] * 18 + [4.0] * 2, 5.0), {}, "NOISE", "saturated"),
        (arm(5.0, 4.0), arm(5.0, 4.0), {}, "NOISE", "saturated"),
        (arm(4.0, 4.0), arm(4.0, 4.0), {"top": 4.0}, "UNDERPOWERED", "all-saturated"),
        # ((1.959964 + .841621)·.512989 / .1)² = 206.5 pairs; with a trivial difference of .5 only 8.3.
        (FLAT, UNEVEN, {"wished_power": 0.8}, "CAUTIOUS", "below-wished-power"),
        (FLAT, UNEVEN, {"wished_power": 0.8, "trivial_difference": 0.5}, "PROGRESS", "composite-up"),
        (UNEVEN, UNEVEN.roll(1, 0), {"wished_power": 0.8}, "UNDERPOWERED", "below-wished-power"),
        (UNEVEN, UNEVEN.roll(1, 0), {}, "NOISE", "composite-unclear"),
        # Judges of either arm who correlate at .39 < .4, or at .41; or not at all definably.
        (FLAT, arm(4.5, 4.5), {"control_marks": marks_with(0.39)}, "CAUTIOUS", "judges-disagree"),
        (FLAT, arm(4.5, 4.5), {"treatment_marks": marks_with(0.39)}, "CAUTIOUS", "judges-disagree"),
        (FLAT, arm(4.5, 4.5), {"control_marks": marks_with(0.41)}, "PROGRESS", "composite-up"),
        (FLAT, arm(4.5, 4.5), {"control_marks": marks_with(0.41), "dissent": 0.5}, "CAUTIOUS", "judges-disagree"),
        (FLAT, arm(4.5, 4.5), {"control_marks": torch.full((20, 2), 3.0)}, "PROGRESS", "judges-undefined"),
        # Disagreement only ever takes PROGRESS away.
        (FLAT, FLAT, {"control_marks": marks_with(0.0)}, "NOISE", "judges-disagree"),
        # What is said and decides nothing.
        (torch.cat([FLAT, arm(nan, nan, 1)]), arm(4.5, 4.5, 21), {}, "PROGRESS", "incomplete-pairs"),
        (FLAT, torch.cat([arm(4.5, 4.5, 19), arm(4.5, nan, 1)]), {}, "PROGRESS", "layers-differ"),
        (FLAT, arm(4.5, 5.5), {}, "PROGRESS", "outside-scale"),
        (
            torch.cat([FLAT, arm(0.5, 4.0, 1)]),
            torch.cat([arm(4.5, 4.5), arm(4.5, 4.5, 1)]),
            {},
            "PROGRESS",
            "outside-scale",
        ),
        (FLAT, arm(4.5, 4.5), {"provenance": {"control": {"prompt": "a"}}}, "PROGRESS", "provenance-differs"),
        # No layer has pairs: composites of facts against composites of marks.
        (arm(4.0, nan), arm(nan, 4.5), {}, "CAUTIOUS", "no-layers"),
        (arm(nan, nan), arm(nan, nan), {}, "UNDERPOWERED", "no-layers"),
    ],
)
def test_one_difference_decides(control: Tensor, treatment: Tensor, options: Any, label: str, reason: str) -> None:
    pair = judged(control, treatment, **options)
    assert pair.label == label
    assert reason in pair.reasons


def test_reasons_are_all_that_held_and_nothing_else() -> None:
    assert judged(FLAT, arm(4.5, 4.5)).reasons == ("composite-up", "layer-up")
    assert judged(FLAT, FLAT).reasons == ("composite-unclear",)
    fell = judged(arm(4.0, 4.0, 3), arm(5.0, 3.4, 3), control_marks=marks_with(0.0, 3))
    assert fell.reasons == (
        "composite-up",
        "layer-up",
        "layer-down",
        "layer-fell-under-gate",
        "layer-under-gate",
        "few-pairs",
        "judges-disagree",
    )
    assert (fell.layers["judge"].fell, fell.layers["fact"].fell) == (True, False)
    assert (fell.layers["judge"].under_gate, fell.layers["fact"].under_gate) == (True, False)


def step_by_step(held: set[str]) -> str:
    """The decided order once more, in its own words."""
    if "composite-down" in held or "layer-fell-under-gate" in held:  # step 2
        return "REGRESS"
    moved = [reason for reason in ("composite-up", "layer-up", "layer-down") if reason in held]
    if not moved:  # step 3
        for reason in ("few-pairs", "below-wished-power", "all-saturated"):
            if reason in held:
                return "UNDERPOWERED"
        return "NOISE"
    if "composite-up" in held:  # step 4
        for doubt in (
            "few-pairs",
            "below-wished-power",
            "layer-under-gate",
            "no-layers",
            "layer-down",
            "trivial",
            "judges-disagree",
        ):
            if doubt in held:
                return "CAUTIOUS"
        return "PROGRESS"
    return "CAUTIOUS"  # step 5


def test_the_order_over_every_combination_of_reasons() -> None:
    said_only = ("composite-unclear", "saturated", "incomplete-pairs", "layers-differ", "provenance-differs")
    deciding = [reason for reason in Reason if reason not in said_only and not reason.startswith("gate")]
    assert len(deciding) == 14
    for size in range(len(deciding) + 1):
        for held in itertools.combinations(deciding, size):
            assert decide({*held}) == step_by_step({*held})
    assert decide({Reason(reason) for reason in said_only}) == "NOISE"


# SOLO.


@pytest.mark.parametrize(
    ("control", "reasons", "exit_code"),
    [
        (arm(4.0, 3.5), ("gate-passed",), 0),
        (arm(4.0, nan), ("gate-passed",), 0),
        (arm(5.0, 3.4), ("layer-under-gate", "gate-failed"), 1),
        (arm(nan, nan), ("no-layers", "gate-failed"), 1),
        (arm(nan, nan, 0), ("no-layers", "gate-failed"), 1),
        (arm(5.5, 4.0), ("outside-scale", "gate-passed"), 0),
    ],
)
@pytest.mark.parametrize("nothing", [None, {}])
def test_solo(control: Tensor, reasons: tuple[str, ...], exit_code: int, nothing: Any) -> None:
    report = verdict(control, nothing, layer_names=LAYERS)
    assert report.label is Verdict.SOLO
    assert report.reasons == reasons
    assert (report.exit_code, report.action, report.pairs) == (exit_code, "add a control", ())
    assert [run.name for run in report.runs] == ["control"]


# Words, codes, roll-up.

EXAMPLES = {
    "PROGRESS": arm(4.5, 4.5),
    "NOISE": FLAT,
    "CAUTIOUS": arm(4.5, 3.5),
    "REGRESS": arm(3.5, 3.5),
    "UNDERPOWERED": torch.cat([arm(4.0, 4.0, 19), arm(nan, nan, 1)]),
}


@pytest.mark.parametrize(
    ("label", "action", "exit_code"),
    [
        ("PROGRESS", "ship", 0),
        ("CAUTIOUS", "investigate first", 1),
        ("REGRESS", "do not ship", 1),
        ("NOISE", "no call", 1),
        ("UNDERPOWERED", "add cases", 1),
    ],
)
def test_each_word_has_its_action_and_exit_code(label: str, action: str, exit_code: int) -> None:
    report = verdict(FLAT, EXAMPLES[label], layer_names=LAYERS)
    assert (report.label, report.action, report.exit_code) == (label, action, exit_code)
    assert report.label is Verdict(label)


def test_the_worst_treatment_decides_for_all() -> None:
    worst_first = ["REGRESS", "CAUTIOUS", "UNDERPOWERED", "NOISE", "PROGRESS"]
    assert sorted(worst_first, key=lambda word: -Verdict(word).code) == worst_first
    for first, second in itertools.product(worst_first, repeat=2):
        report = verdict(FLAT, {"a": EXAMPLES[first], "b": EXAMPLES[second]}, layer_names=LAYERS)
        assert [pair.label for pair in report.pairs] == [first, second]
        assert report.label == min(first, second, key=worst_first.index)
        assert set(report.reasons) == {*report.pairs[0].reasons, *report.pairs[1].reasons}
        assert report.exit_code == (0 if first == second == "PROGRESS" else 1)


# Intervals.


def mixed(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    arms = 3.0 + torch.rand(2, n, 2, generator=generator, dtype=torch.float64)
    arms = arms.masked_fill(torch.rand(2, n, 2, generator=generator) < 0.1, nan)
    return arms[0], arms[1] + 0.1


def composites(scores: Tensor) -> Tensor:
    return torch.from_numpy(np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in scores.numpy()]))


def test_published_target() -> None:
    report = verdict([[1], [2], [3], [4]], [[2], [4], [4], [5]], layer_names=["judge"])
    pair = report.pairs[0]
    assert pair.estimate.item() == 1.25
    # A mean of 4 of the differences 1, 2, 1, 1 is 1 + k/4, k ~ Binomial(4, 1/4): P(k = 0) = .32, P(k = 4) = .004.
    assert (pair.low.item(), pair.high.item()) == (1.0, 1.75)
    assert pair.audit.significant
    assert (pair.label, pair.pairs.item(), pair.incomplete.item()) == ("CAUTIOUS", 4, 0)


def test_intervals_are_those_of_the_paired_bootstrap_at_adjusted_levels() -> None:
    control, first = mixed(60)
    second = mixed(60, seed=5)[1]
    report = verdict(control, {"a": first, "b": second}, layer_names=LAYERS, resamples=300, seed=4, alpha=0.1)
    for pair, treatment in zip(report.pairs, (first, second), strict=True):
        whole = paired_bootstrap(composites(control), composites(treatment), level=0.95, resamples=300, seed=4)
        assert (pair.estimate, pair.low, pair.high) == (whole.estimate, whole.low, whole.high)
        assert pair.level == pytest.approx(0.95)
        assert pair.pairs.item() == whole.pairs.item() == 60 - pair.incomplete.item()
        for column, name in enumerate(LAYERS):
            alone = paired_bootstrap(control[:, column], treatment[:, column], level=0.975, resamples=300, seed=4)
            layer = pair.layers[name]
            assert (layer.estimate, layer.low, layer.high) == (alone.estimate, alone.low, alone.high)
            assert layer.level == pytest.approx(0.975)
            both = ~(control[:, column].isnan() | treatment[:, column].isnan())
            assert layer.control.item() == pytest.approx(control[both, column].mean().item())
            assert layer.treatment.item() == pytest.approx(treatment[both, column].mean().item())
            assert layer.pairs.item() == int(both.sum())


def test_the_composites_interval_agrees_with_scipy() -> None:
    control, treatment = mixed(80)
    pair = judged(control, treatment, resamples=8000)
    before, after = composites(control), composites(treatment)
    kept = ~(before.isnan() | after.isnan())
    peer = scipy_paired_bootstrap(before[kept], after[kept])
    assert pair.low.item() == pytest.approx(peer.confidence_interval.low, abs=0.15 * peer.standard_error)
    assert pair.high.item() == pytest.approx(peer.confidence_interval.high, abs=0.15 * peer.standard_error)


def binary_arms(n00: int, n01: int, n10: int, n11: int) -> tuple[Tensor, Tensor]:
    """One layer of 1 (nothing passed) and 5 (all did)."""
    pairs = [(1.0, 1.0)] * n00 + [(1.0, 5.0)] * n01 + [(5.0, 1.0)] * n10 + [(5.0, 5.0)] * n11
    control, treatment = torch.tensor(pairs, dtype=torch.float64).T.unsqueeze(2)
    return control, treatment


@pytest.mark.parametrize("cell", [(5, 6, 2, 8), (60, 30, 14, 90)])
def test_a_binary_layers_interval_agrees_with_its_exact_law(cell: tuple[int, int, int, int]) -> None:
    exact = exact_binary_bootstrap(torch.tensor(cell).view(2, 2))
    (pair,) = verdict(*binary_arms(*cell), layer_names=["fact"], resamples=20_000).pairs
    step = 4.0 / sum(cell) + 1e-9
    assert pair.estimate.item() == pytest.approx(4.0 * exact.estimate.item())
    assert abs(pair.low - 4.0 * exact.low) <= step
    assert abs(pair.high - 4.0 * exact.high) <= step


def test_more_resamples_converge_to_the_exact_law() -> None:
    control, treatment = binary_arms(60, 30, 14, 90)
    exact = exact_binary_bootstrap([[60, 30], [14, 90]])

    def spread(resamples: int) -> float:
        lows = [
            verdict(control, treatment, layer_names=["fact"], resamples=resamples, seed=seed).pairs[0].low.item()
            for seed in range(12)
        ]
        return float(np.sqrt(np.mean((np.array(lows) - 4.0 * exact.low.item()) ** 2)))

    # The error of a quantile falls with the square root of the resamples: 6 times here; 3 leaves room.
    assert spread(7200) < spread(200) / 3.0


ARMS = st.lists(st.tuples(*[st.sampled_from([nan, 0.0, 1.0, 2.5, 3.0, 4.0, 5.0])] * 4), min_size=0, max_size=12).map(
    lambda rows: torch.tensor(rows, dtype=torch.float64).reshape(-1, 4)
)


def ends(pair: PairVerdict) -> list[tuple[float, float, float]]:
    found = [(pair.estimate, pair.low, pair.high), *((x.estimate, x.low, x.high) for x in pair.layers.values())]
    return [(float(estimate), float(low), float(high)) for estimate, low, high in found]


@given(ARMS)
@settings(max_examples=50, deadline=None)
def test_swapping_the_arms_mirrors_every_interval(rows: Tensor) -> None:
    forward, backward = judged(rows[:, :2], rows[:, 2:]), judged(rows[:, 2:], rows[:, :2])
    for (estimate, low, high), mirrored in zip(ends(forward), ends(backward), strict=True):
        # Exactly, but for the last bit of the mean.
        assert mirrored == pytest.approx((-estimate, -high, -low), rel=1e-12, abs=1e-12, nan_ok=True)


@given(ARMS, st.sampled_from([0.25, 1.0, 7.0]))
@settings(max_examples=50, deadline=None)
def test_adding_a_constant_to_both_arms_changes_no_interval(rows: Tensor, constant: float) -> None:
    rows = torch.where(rows > 0.0, rows, nan)
    plain, moved = judged(rows[:, :2], rows[:, 2:]), judged(rows[:, :2] + constant, rows[:, 2:] + constant)
    for found, wanted in zip(ends(moved), ends(plain), strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True)


def test_another_order_of_samples_is_another_draw_within_its_error() -> None:
    control, treatment = mixed(200)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    plain = judged(control, treatment, resamples=8000)
    shuffled = judged(control[order], treatment[order], resamples=8000)
    assert shuffled.estimate.item() == pytest.approx(plain.estimate.item(), rel=1e-12)
    width = (plain.high - plain.low).item()
    assert shuffled.low.item() == pytest.approx(plain.low.item(), abs=0.04 * width)
    assert shuffled.high.item() == pytest.approx(plain.high.item(), abs=0.04 * width)
    assert (shuffled.label, shuffled.reasons) == (plain.label, plain.reasons)
    # With few distinct values in many samples, how often each is drawn matters, and order doesn't.
    few, more = binary_arms(60, 30, 14, 90)
    order = torch.randperm(194, generator=torch.Generator().manual_seed(1))
    pairs = [verdict(c, t, layer_names=["fact"]).pairs[0] for c, t in ((few, more), (few[order], more[order]))]
    assert ends(pairs[0]) == ends(pairs[1])


# Degenerate and missing.


@pytest.mark.parametrize("scores", [arm(4.0, 4.0, 1), arm(4.0, 4.0, 0), arm(nan, nan, 5), arm(0.0, -1.0, 5)])
def test_fewer_than_two_pairs_show_nothing(scores: Tensor) -> None:
    pair = judged(scores, scores)
    assert pair.label is Verdict.UNDERPOWERED
    assert pair.low.isnan()
    assert pair.high.isnan()
    assert not pair.audit.significant
    assert pair.pairs.item() + pair.incomplete.item() == len(scores)


def test_a_failed_judgement_is_no_mark() -> None:
    treatment = arm(4.5, [4.5, 0.0])
    pair = judged(FLAT, treatment)
    assert pair.layers["judge"].pairs.item() == 10
    assert pair.layers["judge"].treatment.item() == 4.5
    # The composites of the other ten are of facts alone.
    assert (pair.pairs.item(), pair.unlike.item()) == (20, 10)
    assert pair.estimate.item() == 0.5


def test_a_layer_that_one_arm_lacks_is_missing_and_not_gated() -> None:
    pair = judged(arm(4.0, nan), arm(4.5, 2.0))
    assert pair.layers["judge"].pairs.item() == 0
    assert pair.layers["judge"].control.isnan()
    assert not pair.layers["judge"].under_gate
    assert Reason.LAYER_UNDER_GATE not in pair.reasons
    assert Reason.LAYERS_DIFFER in pair.reasons
    assert pair.unlike.item() == 20


def test_runs_of_other_layers_are_flagged_in_the_ranking() -> None:
    report = verdict(FLAT, {"a": arm(5.0, nan), "b": arm(4.5, 4.5)}, layer_names=LAYERS)
    assert [(run.name, run.composite.item(), run.comparable) for run in report.runs] == [
        ("a", 5.0, False),
        ("b", 4.5, True),
        ("control", 4.0, True),
    ]


# Options.


def test_declared_weights_by_name_or_in_order() -> None:
    treatment = arm(5.0, 4.5)
    for weights in ({"judge": 1.0, "fact": 3.0}, [3.0, 1.0]):
        # (3·1 + 1·.5)/4
        assert judged(FLAT, treatment, weights=weights).estimate.item() == 0.875
    alone = judged(arm(4.0, [4.0, nan]), arm(4.5, 4.5), weights=[1.0, 0.0])
    assert alone.unlike.item() == 0


@pytest.mark.parametrize("how", ["z", "rank"])
def test_standardized_composites_are_in_standard_deviations_and_gates_raw(how: Any) -> None:
    control, treatment = mixed(40)
    pair = judged(control, treatment, standardize=how)
    both = torch.cat([control, treatment]).numpy()
    if how == "rank":
        both = stats.rankdata(both, axis=0, nan_policy="omit")
    standard = composites(torch.from_numpy(stats.zscore(both, axis=0, nan_policy="omit")))
    wanted = (standard[40:] - standard[:40]).nanmean()
    assert pair.estimate.item() == pytest.approx(wanted.item(), rel=1e-9)
    assert pair.layers == judged(control, treatment).layers


def test_pairs_that_a_power_needs() -> None:
    control, treatment = mixed(50)
    report = verdict(
        control, {"a": treatment, "b": control}, layer_names=LAYERS, wished_power=0.9, trivial_difference=0.2, alpha=0.1
    )
    differences = (composites(treatment) - composites(control)).numpy()
    deviation = np.std(differences[~np.isnan(differences)], ddof=1)
    needed = ((stats.norm.ppf(1 - 0.1 / 4) + stats.norm.ppf(0.9)) * deviation / 0.2) ** 2
    assert report.pairs[0].pairs_needed.item() == math.ceil(needed)
    # No spread needs no pairs; without a wish, or a spread, nothing is known.
    assert report.pairs[1].pairs_needed.item() == 0.0
    assert judged(control, treatment).pairs_needed.isnan()
    assert judged(control[:1], treatment[:1], wished_power=0.9).pairs_needed.isnan()


def test_the_four_audit_marks() -> None:
    people = torch.linspace(1.0, 5.0, 20, dtype=torch.float64)
    judge = people.square() / 5.0 + 0.1
    treatment = torch.stack([torch.full((20,), 5.0, dtype=torch.float64), judge], 1)
    control = arm(5.0, 1.0)
    pair = judged(control, treatment, human_marks=people, treatment_marks=marks_with(0.7))
    assert (pair.audit.judges_agree, pair.audit.significant, pair.audit.saturated) == (True, True, True)
    assert pair.pearson.tolist() == pytest.approx([nan, 0.7], nan_ok=True)
    # Marks stand for the layer where there are any; the control's constant judge agrees with nobody, definably.
    by_marks = stats.pearsonr(marks_with(0.7).mean(1).numpy(), people.numpy()).statistic
    assert pair.audit.agrees_with_people.tolist() == pytest.approx([nan, by_marks], nan_ok=True)
    by_layer = stats.pearsonr(judge.numpy(), people.numpy()).statistic
    plain = judged(control, treatment, human_marks={"treatment": torch.stack([people, people], 1)})
    assert plain.audit.agrees_with_people.tolist() == pytest.approx([nan, by_layer], nan_ok=True)
    assert plain.audit.judges_agree is None
    # People decide nothing.
    opposed = judged(control, treatment, human_marks=6.0 - people)
    assert (opposed.label, opposed.reasons) == (plain.label, plain.reasons)
    assert opposed.audit.agrees_with_people[1].item() == pytest.approx(-by_layer)
    nobody = verdict(control[:, :1], treatment[:, :1], layer_names=["fact"], human_marks=people).pairs[0]
    assert nobody.audit.agrees_with_people.isnan().all()


def test_provenance_is_shared_or_by_run() -> None:
    declared = {"debias": True, "new": {"prompt": "b"}, "control": {"prompt": "a"}, "same": {"prompt": "a"}}
    treatments = {"new": arm(4.5, 4.5), "same": arm(4.5, 4.5)}
    report = verdict(FLAT, treatments, layer_names=LAYERS, provenance=declared)
    assert report.provenance == {
        "control": {"debias": True, "prompt": "a"},
        "new": {"debias": True, "prompt": "b"},
        "same": {"debias": True, "prompt": "a"},
    }
    assert [Reason.PROVENANCE_DIFFERS in pair.reasons for pair in report.pairs] == [True, False]


def test_float32_integers_and_lists_are_scores() -> None:
    wanted = judged(FLAT, arm(4.5, 4.5))
    for found in (judged(FLAT.float(), arm(4.5, 4.5).float()), judged([[4, 4]] * 20, [[4.5, 4.5]] * 20)):
        assert ends(found) == ends(wanted)
        assert found.estimate.dtype == torch.float64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"treatments": arm(4.0, 4.0, 19)}, "treatment came with 19 samples, but the control with 20"),
        ({"treatments": {"new": arm(4.0, 4.0, 21)}}, "new came with 21 samples"),
        ({"treatments": torch.ones(20, 3)}, r"treatment must have shape \[N, 2\].*fact.*judge"),
        ({"treatments": {"control": FLAT}}, "no treatment can be named 'control'"),
        ({"layer_names": ("fact",)}, r"control must have shape \[N, 1\]"),
        ({"layer_names": ("fact", "fact")}, "one or more different names"),
        ({"layer_names": "ab"}, "one or more different names"),
        ({"layer_names": ()}, "one or more different names"),
        ({"weights": {"fact": 1.0}}, r"weights must name each of the layers \['fact', 'judge'\]"),
        ({"weights": [1.0]}, "one number for each of the 2 layers"),
        ({"control_marks": torch.ones(19, 2)}, "the marks of 'control' came with 19 samples"),
        ({"treatment_marks": {"old": torch.ones(20, 2)}}, r"treatment_marks names \['old'\]"),
        ({"treatments": {"a": FLAT, "b": FLAT}, "treatment_marks": torch.ones(20, 2)}, "must be a dict by treatment"),
        ({"human_marks": {"old": torch.ones(20)}}, r"human_marks names \['old'\]"),
        ({"human_marks": torch.ones(2, 20, 2)}, r"must have shape \[N, J\]"),
        ({"provenance": {"prompt": {"control": "a"}}}, r"provenance names \['prompt'\]"),
        ({"alpha": 1.0}, "alpha must lie strictly between 0 and 1"),
        ({"wished_power": 0.0}, "wished_power must lie strictly between 0 and 1"),
        ({"wished_power": 0.8, "trivial_difference": 0.0}, "no number of pairs shows a difference of 0"),
        ({"min_pairs": -1}, "must not be negative"),
        ({"resamples": 1}, "resamples must be at least 2"),
        ({"standardize": "max"}, "standardize must be None or one of"),
    ],
)
def test_what_does_not_fit_is_a_clear_error(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"treatments": arm(4.5, 4.5), "layer_names": LAYERS, **options}
    with pytest.raises(ValueError, match=message):
        verdict(FLAT, arguments.pop("treatments"), **arguments)


def test_the_report_names_its_estimator_and_settings() -> None:
    report = verdict(FLAT, arm(4.5, 4.5), layer_names=LAYERS, gate=3.0, seed=3)
    assert isinstance(report, VerdictReport)
    assert report.estimator.id
    assert report.estimator.version == 1
    assert (report.settings.gate, report.settings.seed, report.settings.layer_names) == (3.0, 3, LAYERS)


@pytest.mark.parametrize("option", ["gate", "trivial_difference", "dissent", "top"])
def test_an_undefined_option_never_ships(option: str) -> None:
    arms: Any = ([[4.0, 4.0]] * 30, [[4.0, 5.0]] * 30)
    undefined: Any = {option: float("nan")}
    with pytest.raises(ValueError, match=f"{option} must be a finite number"):
        verdict(*arms, layer_names=["a", "b"], **undefined)
