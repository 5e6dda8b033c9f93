import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from polyweave_torch.functional._verdict_text import _SENTENCES
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.functional.verdict_words import Reason, Verdict

nan = math.nan


def constant(*scores: float, n: int = 20) -> Tensor:
    return torch.tensor([scores] * n, dtype=torch.float64)


@pytest.fixture
def report() -> VerdictReport:
    treatment = constant(5.0, 3.4)
    treatment[0] = nan
    treatment[1, 1] = nan
    marks = torch.tensor([[1.0, 5.0], [2.0, 4.0], [4.0, 4.5], [5.0, 1.0]] * 5)
    return verdict(
        constant(4.0, 4.0),
        {"a|b\nc": treatment, "good": constant(4.5, 4.5)},
        layer_names=("fact", "jud|ge"),
        control_marks=marks,
        wished_power=0.9,
        provenance={"good": {"prompt": "x"}},
    )


def test_the_dict_is_plain_and_undefined_numbers_are_null(report: VerdictReport) -> None:
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert {"schema", "label", "exit_code", "action", "reasons", "pairs", "estimator"} <= plain.keys()
    assert (plain["schema"], plain["label"], plain["exit_code"], plain["action"]) == (1, "REGRESS", 1, "do not ship")
    assert plain["estimator"] == {"id": report.estimator.id, "version": 1}
    fell, good = plain["pairs"]
    assert (fell["name"], fell["label"], fell["action"]) == ("a|b\nc", "REGRESS", "do not ship")
    assert (good["label"], good["action"]) == ("CAUTIOUS", "investigate first")
    # 18 pairs of (1 - .6)/2 = .2, and the one without a mark of 1.
    assert fell["estimate"] == pytest.approx((18 * 0.2 + 1.0) / 19)
    assert (fell["pairs"], fell["incomplete"], fell["unlike"]) == (19, 1, 1)
    assert fell["layers"]["jud|ge"]["treatment"] == pytest.approx(3.4)
    assert fell["layers"]["jud|ge"]["fell"] is True
    assert fell["pearson"][1] is None
    assert fell["audit"]["judges_agree"] is False
    assert plain["settings"]["gate"] == 3.5
    assert plain["provenance"] == {"control": {}, "a|b\nc": {}, "good": {"prompt": "x"}}
    assert [run["name"] for run in plain["runs"]] == ["good", "a|b\nc", "control"]
    assert "layers-differ" in plain["reasons"]


def test_no_pair_is_null_in_the_dict() -> None:
    plain = verdict(constant(nan), constant(nan), layer_names=["fact"]).to_dict()
    assert plain["pairs"][0]["estimate"] is None
    assert plain["pairs"][0]["low"] is None
    assert plain["runs"][0]["composite"] is None


def test_text_and_markdown_say_the_words_reasons_and_actions(report: VerdictReport) -> None:
    for text, bar in ((str(report), "|"), (report.to_markdown(), "&#124;")):
        assert text.count("\n\n\n") == 0
        assert "REGRESS: do not ship" in text
        assert f"a{bar}b c against the control: REGRESS (do not ship)" in text
        assert "good against the control: CAUTIOUS (investigate first)" in text
        for pair in report.pairs:
            for reason in pair.reasons:
                assert f"- {reason}: " in text
        assert f"- layer-fell-under-gate: jud{bar}ge: fell under the gate 3.5, which the control passes" in text
        assert "which do not compare: 1" in text
        assert "judges agree: no (r -0." in text
        assert "prompt" in text
        assert f"{report.estimator.id} v1" in text


def test_tables_of_markdown_keep_their_columns(report: VerdictReport) -> None:
    tables = [block for block in report.to_markdown().split("\n\n") if block.startswith("| ")]
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table.split("\n")}) == 1


def test_the_difference_is_shown_with_its_level(report: VerdictReport) -> None:
    # Two treatments: the composite's level is 1 - .05/2, a layer's 1 - .05/4.
    lines = str(report).split("\n")
    composite = next(line for line in lines if line.startswith("composite"))
    assert "97.5 %" in composite
    assert "19 (1 incomplete)" in composite
    assert any(line.startswith("fact") and "98.75 %" in line and "4.000    5.000" in line for line in lines)


def test_other_layers_are_marked_in_the_ranking() -> None:
    report = verdict(constant(4.0, 4.0), constant(4.5, nan), layer_names=("fact", "judge"))
    assert "treatment *" in str(report)
    assert "* has other layers than the control" in str(report)
    assert "missing" in str(report)


def test_only_a_gain_is_trivial() -> None:
    names: dict[str, Any] = {"layer_names": ("fact", "judge"), "trivial_difference": 0.5}
    up = verdict(constant(4.0, 4.0), constant(4.0, 4.2), **names)
    assert "trivial: the composite's gain of 0.1 is below trivial_difference, 0.5\n" in str(up)
    down = verdict(constant(4.0, 4.0), constant(4.0, 3.8), **names)
    assert (up.label, down.label) == ("CAUTIOUS", "REGRESS")
    assert "trivial" not in down.reasons
    # The composite gains .1, and a layer fell under its gate: both held.
    fell = verdict(constant(4.0, 4.0), constant(4.8, 3.4), **names)
    assert {"composite-up", "trivial", "layer-fell-under-gate"} <= set(fell.reasons)
    assert (fell.label, up.pairs[0].reasons[-1]) == ("REGRESS", "trivial")


def test_solo_says_what_is_missing() -> None:
    text = str(verdict(constant(3.0), None, layer_names=["fact"]))
    assert text.startswith("SOLO: add a control\n")
    assert "- gate-failed: " in text
    assert "failed" in text.split("gate-failed")[1]


def test_every_word_has_an_action_and_a_code_and_every_reason_a_sentence() -> None:
    assert len({word.action for word in Verdict}) == len(Verdict) == 6
    assert sorted(word.code for word in Verdict) == [-1, 0, 1, 2, 3, 4]
    assert set(_SENTENCES) == set(Reason)


def test_json_of_any_provenance() -> None:
    declared: dict[str, Any] = {"path": torch.device("cpu"), "levels": (1, 2), "rate": math.inf}
    plain = verdict(constant(4.0), None, layer_names=["fact"], provenance=declared).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False))["provenance"]["control"] == {
        "path": "cpu",
        "levels": [1, 2],
        "rate": None,
    }
