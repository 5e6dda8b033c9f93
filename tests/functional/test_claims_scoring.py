import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.functional.claims import (
    Claim,
    ClaimCounts,
    ClaimScores,
    KnowledgeBase,
    align_claims,
    claims_line,
    claims_table,
    format_claim,
    parse_claims,
    rename_claim,
    score_claims,
)
from polyweave_torch.functional.claims.alignment import Method
from polyweave_torch.functional.claims.scoring import claim_counts
from polyweave_torch.functional.claims.sentences import Malformed, symbols
from tests.functional.claim_cases import SYMMETRIC, replaced, same_claim

GOLD = """
(lion LionA) (mouse MouseA) (spared LionA MouseA) (trapped LionA) (freed MouseA LionA)
(implies ((spared ?a ?b) (freed ?b ?a)) (repaidKindness ?b ?a))
"""
READING = """
(lion Lion1) (mouse Mouse1) (spared Lion1 Mouse1) (trapped Lion1) (freed Mouse1 Lion1)
(implies ((freed ?x ?y) (spared ?y ?x)) (repaidKindness ?x ?y))
"""

names = st.sampled_from(["LionA", "MouseA", "LionB", "Leo", "Mo", "Mia"])
kinds = st.sampled_from(["lion", "mouse", "brave"])
claims = st.lists(
    st.one_of(
        st.tuples(kinds, names),
        st.tuples(st.sampled_from(["saw", "friends"]), names, names),
        st.tuples(names, st.just("x")),
    ),
    max_size=10,
)
methods: list[Method] = ["greedy", "optimal"]


def fable(text: str = GOLD, **options: Any) -> KnowledgeBase:
    kb = KnowledgeBase(**options)
    for claim in parse_claims(text):
        kb.assert_claim(claim, "fable")
    return kb


def typed(claims: list[Any], name: str) -> set[str]:
    return {claim[0] for claim in claims if claim[1:] == (name,)}


def overlap(gold: list[Any], candidates: list[Any], pairs: Any) -> int:
    return sum(len(typed(gold, name) & typed(candidates, candidate)) for candidate, name in pairs)


def test_a_full_reading_under_other_names() -> None:
    scores = score_claims(fable(), "fable", parse_claims(READING))
    assert scores.renaming == {"Lion1": "LionA", "Mouse1": "MouseA"}
    assert scores.strict == ClaimCounts(1, 6, 0, 6, 1 / 6, 1 / 6, 1 / 6)
    assert scores.aligned == ClaimCounts(6, 6, 0, 6, 1.0, 1.0, 1.0)
    assert scores.missing == scores.spurious == []


def test_two_characters_are_not_merged_into_one() -> None:
    scores = score_claims(fable(), "fable", parse_claims("(lion LionX) (trapped LionX) (lion LionY) (trapped LionY)"))
    assert scores.renaming == {"LionX": "LionA"}
    assert (scores.aligned.matched, scores.aligned.candidates, scores.aligned.precision) == (2, 4, 0.5)
    assert scores.spurious == [("lion", "LionY"), ("trapped", "LionY")]


def test_saying_it_again_buys_nothing() -> None:
    scores = score_claims(fable(), "fable", [("lion", "Lion1")] * 3)
    assert (scores.aligned.candidates, scores.aligned.matched) == (1, 1)
    rules = parse_claims("(implies ((spared ?a ?b) (freed ?b ?a)) (repaidKindness ?b ?a))" + READING)
    scores = score_claims(fable(), "fable", rules)
    assert (scores.aligned.candidates, scores.aligned.matched, scores.aligned.precision) == (7, 6, 6 / 7)


def test_rates_of_counts() -> None:
    counts = claim_counts(matched=3, candidates=11, derivable=1, gold=6)
    assert (counts.precision, counts.recall, counts.f1) == (0.3, 0.5, 0.375)
    assert claim_counts(0, 0, 0, 0)[4:] == claim_counts(0, 2, 2, 3)[4:] == claim_counts(0, 2, 0, 0)[4:] == (0.0,) * 3


def test_totals_come_from_summed_counts() -> None:
    kb = fable()
    for index in range(13):
        kb.assert_claim(("step", f"Step{index}"), "race")
    scored = [("lion", score_claims(kb, "fable", parse_claims(READING))), ("race", score_claims(kb, "race", []))]
    assert claims_table(scored).splitlines() == [
        "| document | gold | cand | prec | rec | f1 | strict prec | strict rec |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| lion | 6 | 6 | 100 % | 100 % | 100 % | 17 % | 17 % |",
        "| race | 13 | 0 | 0 % | 0 % | 0 % | 0 % | 0 % |",
        "| total | 19 | 6 | 100 % | 32 % | 48 % | 17 % | 5 % |",
    ]
    assert claims_table([]).splitlines()[-1] == "| total | 0 | 0 | 0 % | 0 % | 0 % | 0 % | 0 % |"


@pytest.mark.parametrize(
    ("matched", "gold", "percent"), [(1, 8, 13), (1, 200, 1), (1, 201, 0), (57, 200, 29), (23, 200, 12), (2, 3, 67)]
)
def test_percentages_are_rounded_half_up(matched: int, gold: int, percent: int) -> None:
    counts = claim_counts(matched, matched, 0, gold)
    line = claims_line("a | b\nc", ClaimScores(counts, counts, {}, [], []))
    assert line.startswith(f"| a &#124; b c | {gold} | {matched} | 100 % | {percent} % |")


def test_what_the_context_derives_is_neither_right_nor_wrong() -> None:
    kb = fable(GOLD + "(implies ((lion ?x)) (animal ?x))")
    candidates = parse_claims("(lion Leo) (animal Leo) (repaidKindness MouseA Leo) (cat Leo)")
    scores = score_claims(kb, "fable", candidates)
    assert (scores.strict.derivable, scores.aligned.derivable) == (0, 2), "derivable only after renaming"
    assert scores.strict.precision == 0.0
    assert scores.aligned.precision == 1 / 2
    assert scores.spurious == [("cat", "LionA")]
    assert len(scores.missing) == 6
    strict = score_claims(kb, "fable", parse_claims("(animal LionA) (lion LionA)")).strict
    assert (strict.matched, strict.candidates, strict.derivable, strict.precision) == (1, 2, 1, 1.0)


def test_a_claim_that_is_asserted_and_derivable_is_gold() -> None:
    kb = fable("(lion LionA) (animal LionA) (implies ((lion ?x)) (animal ?x))")
    scores = score_claims(kb, "fable", [("animal", "LionA")])
    assert (scores.strict.matched, scores.strict.derivable, scores.strict.gold) == (1, 0, 3)


def test_inherited_claims_are_not_gold() -> None:
    kb = fable("(lion LionA)")
    kb.assert_claim(("wise", "OwlA"), "world")
    kb.inherits("fable", "world")
    scores = score_claims(kb, "fable", [("wise", "OwlA")])
    assert scores.strict == ClaimCounts(0, 1, 0, 1, 0.0, 0.0, 0.0)
    assert scores.spurious == [("wise", "OwlA")]


def test_exceptions_are_gold() -> None:
    text = "(exceptWhen (implies ((bird ?x)) (flies ?x)) (penguin ?x))"
    kb = fable(text)
    scores = score_claims(kb, "fable", parse_claims(text.replace("?x", "?bird")))
    assert (scores.strict.matched, scores.strict.gold) == (1, 1)
    assert score_claims(kb, "fable", parse_claims("(implies ((bird ?x)) (flies ?x))")).strict.matched == 0


def test_missing_and_spurious_are_sorted_by_text() -> None:
    candidates = [
        ("spared", "LionA", "Zoe"),
        ("cat", "Zoe"),
        ("brave", ("very", "Zoe")),
        ("implies", (), ("sad", "Zoe")),
    ]
    scores = score_claims(fable(), "fable", candidates)
    freed, implies, lion, mouse, spared, trapped = sorted(parse_claims(GOLD), key=format_claim)
    assert scores.missing == [freed, implies, lion, mouse, spared, trapped]
    assert implies[0] == "implies"
    assert scores.spurious == [candidates[2], candidates[1], candidates[3], candidates[0]]


def test_malformed_candidates_count_and_match_nothing() -> None:
    deep: Any = "LionA"
    for _ in range(100_000):
        deep = (deep,)
    large = ("implies", tuple(("saw", f"?x{i}", f"?y{i}") for i in range(300)), ("pride", "PrideA"))
    wrong = ["(lion LionA", "(lion LionA", None, 42, (), ("lion", 3), [["lion"], "LionA"], deep, large]
    wrong += [Malformed("(lion LionA", "line 1"), Malformed("(lion LionA", "line 2"), {"lion": "LionA"}]
    scores = score_claims(fable(), "fable", [*wrong, ("lion", "LionA")])
    assert scores.strict == scores.aligned == claim_counts(1, len(wrong) - 2 + 1, 0, 6)
    assert len(scores.spurious) == len(wrong) - 2, "nothing is lost"
    assert scores.missing == score_claims(fable(), "fable", [("lion", "LionA")]).missing


def test_lists_are_claims_as_json_has_them() -> None:
    scores = score_claims(fable(), "fable", [["lion", "LionA"], ("lion", "LionA")])
    assert (scores.strict.candidates, scores.strict.matched) == (1, 1)


def test_bad_calls_are_clear_errors() -> None:
    with pytest.raises(ValueError, match=r"the context 'fabel' is unknown; there are 1: 'fable'"):
        score_claims(fable(), "fabel", [])
    with pytest.raises(TypeError, match="came as a text; read it with parse_claims"):
        score_claims(fable(), "fable", "(lion LionA)")
    with pytest.raises(ValueError, match=r"method must be one of \('greedy', 'optimal'\), but is 'best'"):
        score_claims(fable(), "fable", [], method="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is no claim"):
        align_claims(["lion"], [])  # type: ignore[list-item]


@settings(max_examples=200, deadline=None)
@given(claims, claims, st.sampled_from(methods))
def test_a_renaming_never_merges_two_characters(gold: list[Any], candidates: list[Any], method: Method) -> None:
    renaming = align_claims(gold, candidates, method=method)
    used = {symbol for claim in candidates for symbol in symbols(claim)}
    assert len({renaming.get(symbol, symbol) for symbol in used}) == len(used)
    named = {symbol for claim in gold for symbol in symbols(claim)}
    assert not renaming.keys() & named, "a candidate's name that the gold uses is left alone"
    assert all(typed(gold, name) & typed(candidates, candidate) for candidate, name in renaming.items())
    renamed = {rename_claim(renaming, claim) for claim in candidates}
    assert len(renamed) == len(set(candidates))


@settings(max_examples=200, deadline=None)
@given(claims, claims)
def test_greedy_takes_the_largest_overlap_then_the_first_names(gold: list[Any], candidates: list[Any]) -> None:
    everywhere = [{symbol for claim in side for symbol in symbols(claim)} for side in (gold, candidates)]
    free = sorted(everywhere[0] - everywhere[1]), sorted(everywhere[1] - everywhere[0])
    expected: dict[str, str] = {}
    while True:
        best = max(
            (
                (overlap(gold, candidates, [(candidate, name)]), name, candidate)
                for name in free[0]
                for candidate in free[1]
                if name not in expected.values() and candidate not in expected
            ),
            key=lambda pair: pair[0],  # the first of the largest, in the order of the names
            default=(0, "", ""),
        )
        if best[0] == 0:
            break
        expected[best[2]] = best[1]
    assert align_claims(gold, candidates) == expected


@settings(max_examples=100, deadline=None)
@given(claims, claims)
def test_optimal_has_the_largest_total_overlap(gold: list[Any], candidates: list[Any]) -> None:
    everywhere = [{symbol for claim in side for symbol in symbols(claim)} for side in (gold, candidates)]

    def largest(left: list[str], free: frozenset[str]) -> int:
        if not left:
            return 0
        shared = {name: overlap(gold, candidates, [(left[0], name)]) for name in free}
        taken = [size + largest(left[1:], free - {name}) for name, size in shared.items() if size]
        return max([largest(left[1:], free), *taken])

    found = align_claims(gold, candidates, method="optimal").items()
    best = largest(sorted(everywhere[1] - everywhere[0]), frozenset(everywhere[0] - everywhere[1]))
    assert overlap(gold, candidates, found) == best
    assert best >= overlap(gold, candidates, align_claims(gold, candidates).items())


def test_optimal_beats_greedy_where_the_largest_overlap_is_a_trap() -> None:
    gold = [(kind, "A") for kind in ("big", "old", "grey", "kind", "shy")] + [("fast", "B"), ("loud", "B")]
    candidates = [(kind, "X") for kind in ("big", "old", "grey", "fast", "loud")] + [("kind", "Y"), ("shy", "Y")]
    assert align_claims(gold, candidates) == {"X": "A"}
    assert align_claims(gold, candidates, method="optimal") == {"X": "B", "Y": "A"}
    assert align_claims([], candidates, method="optimal") == align_claims(gold, [], method="optimal") == {}


@pytest.mark.parametrize(
    ("candidates", "renaming"),
    [
        ("(lion lion1) (lion Lion_1) (lion 1Lion) (lion Löwe)", {}),
        ("(lion Leo) (saw Mia LionA)", {}),
        ("(lion Leo) (LionA x)", {}),
        ("(lion Leo) (saw Mia (father LionA))", {}),
        ("(lion Leo) (saw MouseA Leo)", {"Leo": "LionA"}),
        ("(mouse LionA) (lion Leo)", {}),
        ("(lion Leo Leo)", {}),
        ("(lion (Leo))", {}),
    ],
)
def test_who_can_be_renamed(candidates: str, renaming: dict[str, str]) -> None:
    assert align_claims(parse_claims(GOLD), parse_claims(candidates)) == renaming


def test_rename_replaces_at_any_depth_at_once() -> None:
    claim = ("saw", "A", ("father", "B", ("A",)))
    assert rename_claim({"A": "B", "B": "A", "saw": "met"}, claim) == ("met", "B", ("father", "A", ("B",)))


@settings(max_examples=150, deadline=None)
@given(claims, claims, st.sampled_from(methods), st.randoms(use_true_random=False))
def test_scores_are_a_function_of_the_sets(
    gold: list[Any], candidates: list[Any], method: Method, chance: random.Random
) -> None:
    scores = []
    for _ in range(2):
        kb = KnowledgeBase(symmetric=SYMMETRIC)
        kb.inherits("fable", "world")
        for claim in gold:
            kb.assert_claim(claim, "fable")
        scores.append(score_claims(kb, "fable", candidates, method=method))
        gold = chance.sample([*gold, *gold], 2 * len(gold))
        candidates = chance.sample([*candidates, *candidates], 2 * len(candidates))
    assert scores[0] == scores[1]


@settings(max_examples=150, deadline=None)
@given(claims, claims)
def test_counts_are_what_comparing_every_pair_finds(gold: list[Any], candidates: list[Any]) -> None:
    kb = KnowledgeBase(symmetric=SYMMETRIC)
    rule = ("implies", (("lion", "?x"),), ("brave", "?x"))
    for claim in [*gold, rule]:
        kb.assert_claim(claim, "fable")
    scores = score_claims(kb, "fable", candidates)
    kept: list[Any] = []
    for claim in [*gold, rule]:
        kept += [] if any(same_claim(claim, other) for other in kept) else [claim]
    derived = [("brave", claim[1]) for claim in kept if claim[0] == "lion" and ("brave", claim[1]) not in kept]
    for counts, renaming in ((scores.strict, {}), (scores.aligned, scores.renaming)):
        renamed = [replaced(claim, renaming) for claim in set(candidates)]
        matched = sum(any(same_claim(claim, other) for other in renamed) for claim in kept)
        derivable = sum(any(same_claim(claim, other) for other in derived) for claim in renamed)
        assert counts == claim_counts(matched, len(set(candidates)), derivable, len(kept))


def test_scoring_leaves_the_knowledge_base_unchanged() -> None:
    kb = fable()
    kb.inherits("fable", "world")
    before = copy.deepcopy((kb.gold("fable"), kb.derived("fable"), kb.gold("world"), kb.symmetric))
    score_claims(kb, "fable", [*parse_claims(READING), ("dog", "Rex"), "(", None])
    assert (kb.gold("fable"), kb.derived("fable"), kb.gold("world"), kb.symmetric) == before


def test_claims_are_nested_tuples() -> None:
    claim: Claim = ("lion", "LionA")
    assert score_claims(fable(), "fable", iter([claim])).strict.matched == 1
