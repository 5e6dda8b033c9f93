import copy
import pickle
import time
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyweave_torch.functional.claims import KnowledgeBase
from tests.functional.claim_cases import SYMMETRIC, replaced, same_claim, variables_of

NAMES = ["A", "B", "C"]
PREDICATES = {"lion": 1, "tame": 1, "saw": 2, "friends": 2}

LION = ("implies", (("lion", "?x"),), ("animal", "?x"))


def base(*claims: Any, symmetric: frozenset[str] = frozenset(), **options: Any) -> KnowledgeBase:
    kb = KnowledgeBase(symmetric=symmetric, **options)
    for claim in claims:
        kb.assert_claim(claim, "fable")
    return kb


def predicated(arguments: Any) -> Any:
    return st.one_of(*(st.tuples(st.just(name), *[arguments] * size) for name, size in PREDICATES.items()))


facts = predicated(st.sampled_from(NAMES))
patterns = predicated(st.sampled_from(["?x", "?y", "?z", "A"]))
horn = st.tuples(st.just("implies"), st.lists(patterns, max_size=3).map(tuple), patterns)


def turned(claim: Any) -> Any:
    return (claim[0], *sorted(claim[1:])) if claim[0] in SYMMETRIC else claim


def ground(claims: list[Any]) -> list[tuple[set[Any], Any, list[set[Any]]]]:
    """Every instance of every rule over the names: antecedents, consequent, and exceptions, each of which is one of
    several facts."""
    instances = []
    rules: dict[Any, list[Any]] = {}
    for claim in claims:
        if claim[0] == "implies":
            rules.setdefault(claim, [])
        elif claim[0] == "exceptWhen":
            rules.setdefault(claim[1], []).append(claim[2])
    for rule, exceptions in rules.items():
        if not variables_of(rule[2]) <= variables_of(rule[1]):
            continue
        held = sorted(variables_of(rule[1]))
        for values in product(NAMES, repeat=len(held)):
            names = dict(zip(held, values, strict=True))
            body = {turned(replaced(antecedent, names)) for antecedent in rule[1]}
            blocked = [
                {
                    turned(replaced(replaced(exception, names), dict(zip(free, others, strict=True))))
                    for others in product(NAMES, repeat=len(free))
                }
                for exception in exceptions
                for free in [sorted(variables_of(exception) - set(held))]
            ]
            instances.append((body, turned(replaced(rule[2], names)), blocked))
    return instances


def least_model(known: set[Any], instances: list[Any], blocking: set[Any]) -> set[Any]:
    model = set(known)
    while True:
        new = {
            head
            for body, head, exceptions in instances
            if body <= model and not any(exception & blocking for exception in exceptions)
        }
        if new <= model:
            return model
        model |= new


@settings(max_examples=200, deadline=None)
@given(st.lists(facts, max_size=6), st.lists(horn, max_size=4))
def test_what_follows_is_what_brute_force_over_all_instances_finds(known: list[Any], rules: list[Any]) -> None:
    kb = base(("lion", "A"), *known, *rules, symmetric=SYMMETRIC)
    start = {turned(fact) for fact in [("lion", "A"), *known]}
    assert set(kb.derived("fable")) == least_model(start, ground(rules), set()) - start


@settings(max_examples=200, deadline=None)
@given(
    st.lists(facts, max_size=5),
    st.lists(horn, max_size=2),
    st.lists(st.tuples(st.just("exceptWhen"), horn, patterns), max_size=3),
    st.randoms(use_true_random=False),
)
def test_exceptions_hold_back_what_the_well_founded_model_lacks(
    known: list[Any], rules: list[Any], exceptions: list[Any], random: Any
) -> None:
    # That rules written in different ways are one rule has a test of its own.
    stated = [*rules, *(claim[1] for claim in exceptions)]
    assume(not any(same_claim(one, other) for one, other in combinations(stated, 2)))
    claims = [*known, *rules, *exceptions]
    random.shuffle(claims)
    start = {turned(fact) for fact in known}
    instances = ground(claims)
    certain: set[Any] = set()
    while True:
        possible = least_model(start, instances, certain)
        found = least_model(start, instances, possible)
        if found == certain:
            break
        certain = found
    kb = base(("raining",), *claims, symmetric=SYMMETRIC)
    assert set(kb.derived("fable")) == certain - start


def test_gold_is_what_the_context_itself_asserts() -> None:
    kb = KnowledgeBase()
    kb.assert_claim(LION, "world")
    kb.assert_claim(("wise", "OwlA"), "world")
    kb.assert_claim(("lion", "LionA"), "fable")
    kb.assert_claim(("mortal", "LionA"), "fable")
    kb.assert_claim(("implies", (("animal", "?x"),), ("mortal", "?x")), "fable")
    kb.inherits("fable", "world")
    assert kb.gold("fable") == [
        ("lion", "LionA"),
        ("mortal", "LionA"),
        ("implies", (("animal", "?x"),), ("mortal", "?x")),
    ]
    assert kb.derived("fable") == [("animal", "LionA")], "asserted and derivable is gold; inherited is neither"
    assert kb.gold("world") == [LION, ("wise", "OwlA")]
    assert kb.derived("world") == []


def test_inheritance_reaches_over_several_contexts_and_may_go_in_a_circle() -> None:
    kb = base(("lion", "LionA"))
    kb.assert_claim(LION, "world")
    kb.inherits("fable", "fables")
    kb.inherits("fables", "world")
    kb.inherits("world", "fable")
    assert kb.derived("fable") == [("animal", "LionA")]
    assert kb.gold("fables") == []


def test_forms_of_one_claim_are_one_gold_claim() -> None:
    other = ("implies", (("lion", "?other"),), ("animal", "?other"))
    for claims in ((LION, other, LION), (other, LION)):
        assert base(*claims).gold("fable") == [other], "the one that prints first, in any order"


def test_symmetric_predicates_may_be_declared_at_any_time() -> None:
    kb = base(("friends", "B", "A"), ("friends", "A", "B"), ("implies", (("friends", "?x", "B"),), ("glad", "?x")))
    assert len(kb.gold("fable")) == 3
    kb.symmetric.add("friends")
    assert len(kb.gold("fable")) == 2
    assert kb.derived("fable") == [("glad", "A")]
    kb.symmetric.clear()
    assert len(kb.gold("fable")) == 3


def test_an_exception_states_its_rule_and_holds_it_back() -> None:
    flies = ("implies", (("bird", "?x"),), ("flies", "?x"))
    renamed = ("implies", (("bird", "?b"),), ("flies", "?b"))
    exception = ("exceptWhen", renamed, ("penguin", "?b"))
    birds = (("bird", "TweetyA"), ("bird", "OpusA"), ("penguin", "OpusA"))
    for claims in ((exception,), (flies, exception), (exception, flies)):
        kb = base(*birds, *claims)
        assert kb.derived("fable") == [("flies", "TweetyA")]
        assert exception in kb.gold("fable")


def test_every_exception_of_a_rule_counts() -> None:
    def rule(x: str, y: str) -> Any:
        return ("implies", (("older", x, y), ("near", x, y)), ("helps", x, y))

    kb = base(
        *((name, *pair) for pair in (("A", "B"), ("B", "C"), ("C", "A")) for name in ("older", "near")),
        ("exceptWhen", rule("?x", "?y"), ("tired", "?x")),
        ("exceptWhen", rule("?y", "?x"), ("proud", "?x")),
        ("tired", "A"),
        ("proud", "C"),
    )
    assert kb.derived("fable") == [("helps", "C", "A")]


def test_exceptions_that_depend_on_conclusions() -> None:
    kb = base(
        ("bird", "OpusA"),
        ("implies", (("swims", "?x"),), ("penguin", "?x")),
        ("swims", "OpusA"),
        ("exceptWhen", ("implies", (("bird", "?x"),), ("flies", "?x")), ("penguin", "?x")),
    )
    assert kb.derived("fable") == [("penguin", "OpusA")], "the exception is drawn in the same round as the conclusion"


def test_derived_claims_may_be_given() -> None:
    kb = base(("lion", "LionA"), ("implies", (("animal", "?x"),), ("mortal", "?x")))
    kb.give_derived(("animal", "LionA"), "fable")
    kb.give_derived(("lion", "LionA"), "fable")
    assert kb.derived("fable") == [("animal", "LionA"), ("mortal", "LionA")]
    assert ("animal", "LionA") not in kb.gold("fable")


def test_rules_that_bind_too_little_or_speak_of_predicates() -> None:
    kb = base(
        ("lion", "LionA"),
        ("implies", (("lion", "?x"),), ("mother", "?y", "?x")),
        ("implies", (("?kind", "?x"),), ("kindOf", "?x", "?kind")),
        ("implies", (), ("raining",)),
        ("says", "TomA", ("lion", "LionB")),
        ("says", "TomA", ("implies", (), ("raining",))),
        ("implies", (("says", "?x", ("lion", "?y")),), ("knows", "?x", "?y")),
        ("implies", (("says", "?x", ("implies", (), ("raining",))),), ("warns", "?x")),
    )
    assert kb.derived("fable") == [
        ("kindOf", "LionA", "lion"),
        ("kindOf", "TomA", "warns"),
        ("knows", "TomA", "LionB"),
        ("raining",),
        ("warns", "TomA"),
    ]


def test_interchangeable_antecedents_do_not_multiply() -> None:
    rule = ("implies", tuple(("lion", f"?x{i}") for i in range(12)), ("pride", "PrideA"))
    kb = base(rule, *(("lion", f"Lion{i}") for i in range(100)))
    start = time.process_time()
    assert kb.derived("fable") == [("pride", "PrideA")]
    assert time.process_time() - start < 1.0


def test_a_chain_of_a_thousand_steps() -> None:
    steps = [("next", f"S{i}", f"S{i + 1}") for i in range(1000)]
    kb = base(*steps, ("at", "S0"), ("implies", (("at", "?x"), ("next", "?x", "?y")), ("at", "?y")))
    assert len(kb.derived("fable")) == 1000


ENDLESS = {
    "deeper": (
        [("number", "Zero"), ("implies", (("number", "?n"),), ("number", ("successor", "?n")))],
        r"\(implies \(\(number \?1\)\) \(number \(successor \?1\)\)\) derives without end.*nests more than 100 deep",
    ),
    "wider": (
        [("tree", "A"), ("tree", "B"), ("implies", (("tree", "?x"), ("tree", "?y")), ("tree", ("fork", "?x", "?y")))],
        r"more than 10,000 claims are derivable, the last by \(implies .*fork",
    ),
    "every four of sixty": (
        [
            *(("lion", f"Lion{i}") for i in range(60)),
            ("implies", tuple(("lion", f"?{i}") for i in range(4)), ("met", *(f"?{i}" for i in range(4)))),
        ],
        r"more than 10,000 claims are derivable|match too widely: over 2,000,000",
    ),
    "five hundred antecedents": (
        [("implies", tuple(("lion", f"Lion{i}") for i in range(500)), ("pride", "PrideA"))],
        r"the rules are too large or match too widely: over 2,000,000 comparisons",
    ),
}


@pytest.mark.parametrize(("claims", "message"), ENDLESS.values(), ids=list(ENDLESS))
def test_a_rule_that_derives_without_end_is_a_clear_error(claims: list[Any], message: str) -> None:
    kb = base(*claims)
    with pytest.raises(ValueError, match=message):
        kb.derived("fable")
    assert len(kb._asserted["fable"]) == len(claims), "nothing is lost"


def test_the_bound_can_be_raised() -> None:
    claims = [
        *(("lion", f"Lion{i}") for i in range(12)),
        ("implies", (("lion", "?x"), ("lion", "?y")), ("met", "?x", "?y")),
    ]
    with pytest.raises(ValueError, match=r"more than 143 claims are derivable"):
        base(*claims, max_derived=143).derived("fable")
    assert len(base(*claims, max_derived=144).derived("fable")) == 144


def test_bad_input_changes_nothing() -> None:
    kb = base(("lion", "LionA"))
    large = ("implies", tuple(("saw", f"?x{i}", f"?y{i}") for i in range(300)), ("pride", "PrideA"))
    for wrong in ("lion", (), ("implies", "lion"), ("lion", None), large):
        with pytest.raises(ValueError, match=r"is no claim|too large and too regular"):
            kb.assert_claim(wrong, "fable")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a context is named by text, but came as 3"):
        kb.assert_claim(("lion", "LionB"), 3)  # type: ignore[arg-type]
    assert kb.gold("fable") == [("lion", "LionA")]
    with pytest.raises(ValueError, match=r"the context 'fabel' is unknown; there are 1: 'fable'"):
        kb.gold("fabel")
    with pytest.raises(ValueError, match=r"there are 0\. Assert"):
        KnowledgeBase().derived("fable")


def test_copies_are_independent() -> None:
    kb = base(("lion", "LionA"), LION)
    for twin in (copy.deepcopy(kb), pickle.loads(pickle.dumps(kb))):
        twin.assert_claim(("lion", "LionB"), "fable")
        assert len(twin.derived("fable")) == 2
    assert kb.derived("fable") == [("animal", "LionA")]
