"""The verdict is the first of the documented conditions that holds, and carries all that held."""

import itertools

import pytest

from polyweave_torch.evallogs.verdicts import ACTIONS, GATES, judge


@pytest.mark.parametrize("delta", [-0.1, 0.0, 0.1])
def test_the_first_documented_condition_decides(delta: float) -> None:
    for significant, slice_down, prompts, equivalent, few in itertools.product(
        (False, True), (False, True), (False, True), (None, False, True), (False, True)
    ):
        conditions = {
            "REGRESS": significant and delta < 0,
            "CAUTIOUS": slice_down or prompts,
            "PROGRESS": significant and delta > 0,
            "EQUIVALENT": equivalent is True,
            "UNDERPOWERED": few,
            "NOISE": True,
        }
        verdict = judge(
            significant=significant,
            delta=delta,
            discordant=3,
            underpowered=few,
            slices_down=["s"] if slice_down else [],
            prompts_differ=prompts,
            equivalent=equivalent,
        )
        assert verdict.label == next(label for label, holds in conditions.items() if holds)


def test_every_reason_that_held_is_named() -> None:
    verdict = judge(
        significant=True,
        delta=-0.1,
        discordant=12,
        underpowered=True,
        slices_down=["algebra", "law: tort"],
        prompts_differ=True,
        equivalent=False,
    )
    assert verdict.label == "REGRESS"
    assert verdict.reasons == [
        "significantly-down",
        "slice-down:algebra",
        "slice-down:law: tort",
        "prompts-differ",
        "not-equivalent",
        "underpowered",
    ]


def test_no_change_at_all_is_said() -> None:
    verdict = judge(significant=False, delta=0.0, discordant=0, underpowered=True)
    assert verdict == ("UNDERPOWERED", ["not-significant", "no-discordants"])


def test_an_undefined_difference_is_neither_up_nor_down() -> None:
    assert judge(significant=False, delta=float("nan"), discordant=0, underpowered=True).label == "UNDERPOWERED"


def test_every_verdict_has_an_action_and_the_gates_name_verdicts() -> None:
    labels = list(ACTIONS)
    assert set(labels) == {"REGRESS", "CAUTIOUS", "PROGRESS", "EQUIVALENT", "UNDERPOWERED", "NOISE"}
    assert set(GATES["regress"]) < set(GATES["cautious"]) < set(labels)
