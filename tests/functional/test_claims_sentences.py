import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.functional.claims import canonical_claim, format_claim, parse_claims, rename_claim
from polyweave_torch.functional.claims.sentences import MAX_DEPTH, MAX_TEXT, Malformed, find_fault, scan_claims

DEEP = 100_000

words = st.text(min_size=1, max_size=6).filter(lambda word: word not in ("implies", "exceptWhen"))
facts: Any = st.recursive(
    st.tuples(words, words),
    lambda inner: st.tuples(words, st.one_of(words, inner), st.one_of(st.text(max_size=3), inner)),
    max_leaves=6,
)


def nested(depth: int) -> Any:
    claim: Any = ("a",)
    for _ in range(depth - 1):
        claim = ("a", claim)
    return claim


@settings(max_examples=200, deadline=None)
@given(st.lists(facts, max_size=4))
def test_what_is_written_is_read_back(claims: list[Any]) -> None:
    text = "\n".join(format_claim(claim) for claim in claims)
    assert parse_claims(text) == claims
    assert text.count("\n") == max(0, len(claims) - 1), "a claim is on one line"


def test_rules_and_exceptions() -> None:
    text = """
    ; The moral.
    (exceptWhen
      (implies ((spared ?a ?b) (freed ?b ?a))   ; both
               (repaidKindness ?b ?a))
      (ungrateful ?b))(said LionA "I shall (not) eat \\"you\\"")
    """
    rule = ("implies", (("spared", "?a", "?b"), ("freed", "?b", "?a")), ("repaidKindness", "?b", "?a"))
    assert parse_claims(text) == [
        ("exceptWhen", rule, ("ungrateful", "?b")),
        ("said", "LionA", 'I shall (not) eat "you"'),
    ]
    assert parse_claims("") == parse_claims(" ; nothing\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(lion LionA)\n\n (mouse MouseA", "line 3, column 2: the parenthesis is never closed (1 are open at the end)"),
        ("(lion LionA)\n(mouse MouseA))", "line 2, column 15: the closing parenthesis has no opening one"),
        ("(lion LionA)\n  lion", "line 2, column 3: expected an opening parenthesis, but got lion"),
        ('(lion\n "LionA)', "line 2, column 2: the quotation mark is never closed"),
        ("(lion LionA) ()", "line 1, column 14: () is no claim: it holds an empty tuple"),
        ("((lion) LionA)", "line 1, column 1: ((lion) LionA) is no claim: a claim must begin with its predicate"),
        ("(implies (lion ?x))", "a rule must be (implies (antecedent ...) consequent)"),
        ("(implies lion (animal ?x))", "a rule must be (implies (antecedent ...) consequent)"),
        ("(implies ((lion ?x) cat) (animal ?x))", "expected a claim, but got cat"),
        ("(implies ((lion ?x)) animal)", "expected a claim, but got animal"),
        ("(exceptWhen (lion ?x) (tame ?x))", "an exception must be (exceptWhen (implies"),
        ("(believes TomA (implies x))", "a rule must be (implies (antecedent ...) consequent)"),
        ("\n" + "(a " * DEEP, f"line 2, column {3 * MAX_DEPTH + 1}: more than 100 parentheses inside each other"),
        ("(a " * DEEP + ")" * DEEP, "more than 100 parentheses inside each other"),
    ],
)
def test_malformed_text_is_named_by_line_and_column(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        parse_claims(text)
    assert re.match(r"line \d+, column \d+: ", str(caught.value))
    assert len(str(caught.value)) < 300


def test_a_text_has_a_largest_size() -> None:
    with pytest.raises(ValueError, match=r"16,777,217 characters, more than 16,777,216; split it"):
        parse_claims(" " * (MAX_TEXT + 1))


def test_reading_goes_on_after_what_is_malformed() -> None:
    text = "Here are the claims:\n(lion Leo)\n(mouse (Mo\n(spared Leo Mo)\n```"
    read = list(scan_claims(text))
    assert read == [
        Malformed("Here are the claims:", "line 1, column 1: expected an opening parenthesis, but got Here"),
        ("lion", "Leo"),
        Malformed("(mouse (Mo", "line 3, column 1: the parenthesis is never closed (2 are open at the end)"),
        ("spared", "Leo", "Mo"),
        Malformed("```", "line 5, column 1: expected an opening parenthesis, but got ```"),
    ]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='(); "\\\nab?', max_size=40))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    items = list(scan_claims(text))
    malformed = [item for item in items if isinstance(item, Malformed)]
    assert all(find_fault(item) is None for item in items if item not in malformed)
    assert all(re.match(r"line \d+, column \d+: ", item.reason) for item in malformed)
    if malformed:
        with pytest.raises(ValueError, match=re.escape(malformed[0].reason)):
            parse_claims(text)
    else:
        assert parse_claims(text) == items


def test_depth_is_bounded_without_recursion() -> None:
    assert parse_claims(format_claim(nested(MAX_DEPTH))) == [nested(MAX_DEPTH)]
    assert canonical_claim(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    for use in (format_claim, canonical_claim, lambda claim: rename_claim({}, claim)):
        with pytest.raises(ValueError, match=r"\(a \(a .*\.\.\. is no claim: it nests more than 100 deep") as caught:
            use(nested(DEEP))
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("thing", [None, 3, "lion", (), ("lion", 3), ("lion", None), (("lion",), "x"), {"lion": 1}])
def test_what_is_no_claim_is_refused(thing: Any) -> None:
    for use in (format_claim, canonical_claim):
        with pytest.raises(ValueError, match="is no claim"):
            use(thing)


def test_lists_are_tuples() -> None:
    listed: Any = ["implies", [["lion", "?x"]], ["animal", "?x"]]
    assert format_claim(listed) == "(implies ((lion ?x)) (animal ?x))"
    assert canonical_claim(listed) == ("implies", (("lion", "?1"),), ("animal", "?1"))
