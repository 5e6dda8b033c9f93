import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.functional.claims import Claim, canonical_claim, format_claim
from tests.functional.claim_cases import SYMMETRIC, atoms, rewritten, rules, same_claim

RULE = ("implies", (("lion", "?x"), ("spared", "?x", "?y")), ("kind", "?x"))


Edges = list[tuple[str, str]]


def cycle(names: str) -> Edges:
    return list(zip(names, names[1:] + names[:1], strict=True))


def graph(edges: Edges) -> Claim:
    """A rule whose antecedents are the edges of a graph."""
    return ("implies", tuple(("friends", f"?{one}", f"?{other}") for one, other in edges), ("graph", "G"))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_renaming_and_reordering_give_one_form(data: st.DataObject) -> None:
    rule = data.draw(rules())
    other = data.draw(rewritten(rule))
    assert canonical_claim(rule, symmetric=SYMMETRIC) == canonical_claim(other, symmetric=SYMMETRIC)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_exceptions_share_the_variables_of_their_rule(data: st.DataObject) -> None:
    claim = ("exceptWhen", data.draw(rules(4)), data.draw(atoms))
    other = data.draw(rewritten(claim))
    assert canonical_claim(claim, symmetric=SYMMETRIC) == canonical_claim(other, symmetric=SYMMETRIC)


# Few words, so that a rule with one antecedent changed is often still the same.
few = st.tuples(st.just("saw"), st.sampled_from(["?a", "?b", "?c"]), st.sampled_from(["?a", "?b", "?c"]))


@pytest.mark.parametrize(("words", "largest"), [(few, 6), (atoms, 5)], ids=["few words", "all words"])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_forms_agree_exactly_where_brute_force_finds_one_rule(data: st.DataObject, words: Any, largest: int) -> None:
    rule = data.draw(st.tuples(st.just("implies"), st.lists(words, max_size=largest).map(tuple), words))
    _, body, consequent = data.draw(rewritten(rule))
    claims = [*body, consequent]
    claims[data.draw(st.integers(0, len(body)))] = data.draw(words)
    other = ("implies", tuple(claims[:-1]), claims[-1])
    same = canonical_claim(rule, symmetric=SYMMETRIC) == canonical_claim(other, symmetric=SYMMETRIC)
    assert same == same_claim(rule, other)


@settings(max_examples=150, deadline=None)
@given(rules(5))
def test_the_form_says_the_same_and_is_its_own_form(rule: Claim) -> None:
    form = canonical_claim(rule, symmetric=SYMMETRIC)
    assert same_claim(rule, form)
    assert canonical_claim(form, symmetric=SYMMETRIC) == form


def test_variables_are_numbered_as_they_come() -> None:
    assert format_claim(canonical_claim(RULE)) == "(implies ((lion ?1) (spared ?1 ?2)) (kind ?1))"


def test_antecedents_are_a_multiset_of_any_spelling() -> None:
    once, twice = ("implies", (("lion", "?x"),), ("cat", "?x")), ("implies", (("lion", "?x"),) * 2, ("cat", "?x"))
    assert canonical_claim(once) != canonical_claim(twice)
    assert canonical_claim(("implies", ("lion", "?x"), ("cat", "?x"))) == canonical_claim(once)
    assert canonical_claim(("implies", ("and", *RULE[1]), RULE[2])) == canonical_claim(RULE)


def test_facts_with_different_arguments_differ() -> None:
    assert canonical_claim(("spared", "LionA", "MouseA")) == ("spared", "LionA", "MouseA")
    assert canonical_claim(("spared", "LionA", "MouseA")) != canonical_claim(("spared", "MouseA", "LionA"))
    friends = [canonical_claim(("friends", *pair), symmetric={"friends"}) for pair in (("A", "B"), ("B", "A"))]
    assert friends[0] == friends[1] == ("friends", "A", "B")


# No refinement of colours tells these apart: every variable stands in as many places of the same kind.
REGULAR = {
    "one cycle of 6, two of 3": (cycle("abcdef"), cycle("abc") + cycle("def")),
    "one cycle of 8, two of 4": (cycle("abcdefgh"), cycle("abcd") + cycle("efgh")),
    "complete on 3 and 3, prism": (
        [(x, y) for x in "abc" for y in "def"],
        cycle("abc") + cycle("def") + [("a", "d"), ("b", "e"), ("c", "f")],
    ),
}


@pytest.mark.parametrize("pair", REGULAR.values(), ids=list(REGULAR))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_regular_rules_are_told_apart(data: st.DataObject, pair: tuple[Edges, Edges]) -> None:
    one, other = (
        {canonical_claim(data.draw(rewritten(graph(edges))), symmetric=SYMMETRIC) for _ in range(2)} for edges in pair
    )
    assert len(one) == len(other) == 1
    assert one != other


# In each, colours agree on variables that no automorphism exchanges, so that the search must try more than one way.
MIXED = {
    "cycles of 6, 3 and 3": cycle("abcdef") + cycle("ghi") + cycle("jkl"),
    "cycles of 5 and 3": cycle("abcde") + cycle("fgh"),
    "complete on 3 and 3, and the prism": [
        *REGULAR["complete on 3 and 3, prism"][0],
        *((one.upper(), other.upper()) for one, other in REGULAR["complete on 3 and 3, prism"][1]),
    ],
}


@pytest.mark.parametrize("edges", MIXED.values(), ids=list(MIXED))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_rules_of_unlike_regular_pieces_have_one_form(data: st.DataObject, edges: Edges) -> None:
    assert len({canonical_claim(data.draw(rewritten(graph(edges))), symmetric=SYMMETRIC) for _ in range(3)}) == 1


INTERCHANGEABLE: dict[str, list[Any]] = {
    "one variable each": [("lion", f"?x{i}") for i in range(12)],
    "two variables each": [("saw", f"?x{i}", f"?y{i}") for i in range(12)],
    "symmetric": [("friends", f"?x{i}", f"?y{i}") for i in range(12)],
    "a shared variable": [("saw", "?x", f"?y{i}") for i in range(12)],
    "all the same": [("lion", "?x")] * 12,
    "every pair of twelve": [("friends", f"?x{i}", f"?x{j}") for i in range(12) for j in range(i)],
    "four triangles": [("saw", f"?{k}{i}", f"?{k}{(i + 1) % 3}") for k in range(4) for i in range(3)],
}


@pytest.mark.parametrize("antecedents", INTERCHANGEABLE.values(), ids=list(INTERCHANGEABLE))
def test_twelve_interchangeable_antecedents_take_no_time(antecedents: list[Any]) -> None:
    rule = ("implies", tuple(antecedents), ("pride", "PrideA"))
    start = time.process_time()
    form = canonical_claim(rule, symmetric=SYMMETRIC)
    assert time.process_time() - start < 1.0
    assert canonical_claim(("implies", rule[1][::-1], rule[2]), symmetric=SYMMETRIC) == form


def test_past_the_bound_is_a_clear_error() -> None:
    rule = ("implies", tuple(("saw", f"?x{i}", f"?y{i}") for i in range(300)), ("pride", "PrideA"))
    start = time.process_time()
    with pytest.raises(ValueError, match=r"too large and too regular .* 600 variables"):
        canonical_claim(rule)
    assert time.process_time() - start < 5.0
