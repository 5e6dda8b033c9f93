import math
from typing import Any

import pytest
import torch

from polyweave_torch.functional.claims import KnowledgeBase, parse_claims, score_claims
from polyweave_torch.metrics.claims import ClaimScore

GOLD = "(lion LionA) (mouse MouseA) (spared LionA MouseA) (trapped LionA) (freed MouseA LionA)"
READING = "(lion Leo) (mouse Mo) (spared Leo Mo) (cat Tom) (lion LionA)"


def fables() -> KnowledgeBase:
    kb = KnowledgeBase()
    for claim in parse_claims(GOLD):
        kb.assert_claim(claim, "lion")
    for index in range(13):
        kb.assert_claim(("step", f"Step{index}"), "race")
    kb.assert_claim(("implies", (("step", "?x"),), ("counted", "?x")), "race")
    return kb


def test_rates_are_of_summed_counts() -> None:
    kb, metric = fables(), ClaimScore()
    reading, steps = parse_claims(READING), [("step", "Step0"), ("counted", "Step1"), ("step", "Other")]
    metric.update(kb, "lion", reading)
    metric.update(kb, "race", steps)
    # In the first, Leo can't be LionA, whom the reading names; in the second, one claim of three is derivable.
    lion, race = score_claims(kb, "lion", reading), score_claims(kb, "race", steps)
    assert (lion.strict.matched, lion.aligned.matched, lion.strict.candidates) == (1, 2, 5)
    assert (race.strict.matched, race.aligned.matched, race.aligned.derivable) == (1, 2, 1)
    expected = {
        "precision": 4 / 7,
        "recall": 4 / 19,
        "f1": 8 / 26,
        "strict_precision": 2 / 7,
        "strict_recall": 2 / 19,
        "strict_f1": 4 / 26,
    }
    result = metric.compute()
    assert list(result) == list(expected)
    assert all(value.shape == () and value.dtype == torch.float64 for value in result.values())
    assert {name: float(value) for name, value in result.items()} == pytest.approx(expected, abs=1e-15)


def test_one_update_takes_several_documents() -> None:
    kb, one, several = fables(), ClaimScore(), ClaimScore()
    documents: dict[str, list[Any]] = {"lion": parse_claims(READING), "race": [("step", "Step0")]}
    for context, sentences in documents.items():
        one.update(kb, context, sentences)
    several.update(kb, list(documents), list(documents.values()))
    several.update(kb, [], [])
    assert one.compute() == several.compute()
    with pytest.raises(ValueError, match=r"there are 2 contexts and 1 sequences of sentences; pass one sequence"):
        several.update(kb, ["lion", "race"], [[]])


def test_zero_denominators_are_zero_and_no_data_is_undefined() -> None:
    kb, metric = fables(), ClaimScore()
    kb.inherits("empty", "lion")
    metric.update(kb, "empty", [])
    assert all(math.isnan(value) for value in metric.compute().values())
    metric.update(kb, "lion", [])
    assert set(map(float, metric.compute().values())) == {0.0}
    metric.reset()
    metric.update(kb, "empty", [("lion", "Leo"), "malformed"])
    assert set(map(float, metric.compute().values())) == {0.0}


def test_a_failing_document_leaves_the_others_of_its_update_uncounted() -> None:
    kb, metric = fables(), ClaimScore()
    metric.update(kb, "lion", parse_claims(READING))
    before = metric.compute()
    with pytest.raises(ValueError, match="'unknown' is unknown"):
        metric.update(kb, ["race", "unknown"], [[("step", "Step0")], []])
    with pytest.raises(TypeError, match="parse_claims"):
        metric.update(kb, "lion", READING)
    assert metric.compute() == before


def test_methods_have_states_of_their_own() -> None:
    greedy, optimal = ClaimScore(), ClaimScore(method="optimal")
    gold = [(kind, "A") for kind in ("big", "old", "grey", "kind", "shy")] + [("fast", "B"), ("loud", "B")]
    candidates = [(kind, "X") for kind in ("big", "old", "grey", "fast", "loud")] + [("kind", "Y"), ("shy", "Y")]
    kb = KnowledgeBase()
    for claim in gold:
        kb.assert_claim(claim, "fable")
    for metric in (greedy, optimal):
        metric.update(kb, "fable", candidates)
    assert [float(metric.compute()["recall"]) for metric in (greedy, optimal)] == [3 / 7, 4 / 7]
    with pytest.raises(ValueError, match="configured alike"):
        greedy.merge_state(optimal)
    with pytest.raises(ValueError, match="method must be one of"):
        ClaimScore(method="best")  # type: ignore[arg-type]
