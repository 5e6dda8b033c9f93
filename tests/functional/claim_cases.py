"""Random claims, and their brute-force comparison: every order, every pairing of variables."""

from collections.abc import Collection, Iterator
from itertools import permutations
from typing import Any

from hypothesis import strategies as st

from polyweave_torch.functional.claims import Claim

SYMMETRIC = frozenset({"friends"})

variables = st.sampled_from(["?a", "?b", "?c", "?d"])
terms = st.one_of(variables, st.sampled_from(["LionA", "MouseA"]))
atoms: Any = st.one_of(
    st.tuples(st.just("lion"), terms),
    st.tuples(st.sampled_from(["saw", "friends"]), terms, terms),
    st.tuples(st.just("says"), terms, st.tuples(st.just("friends"), terms, terms)),
)


def rules(largest: int = 6) -> Any:
    return st.tuples(st.just("implies"), st.lists(atoms, max_size=largest).map(tuple), atoms)


def variables_of(term: Any) -> set[str]:
    if isinstance(term, str):
        return {term} if term.startswith("?") else set()
    return set().union(*map(variables_of, term))


def replaced(term: Any, names: dict[str, str]) -> Any:
    return names.get(term, term) if isinstance(term, str) else tuple(replaced(part, names) for part in term)


@st.composite
def rewritten(draw: st.DrawFn, claim: Claim) -> Any:
    """The same claim with its variables renamed, its antecedents shuffled, its symmetric arguments turned."""
    held = sorted(variables_of(claim))
    names = draw(st.permutations([*held, "?new", "?1", "?2", "?10"]))
    return _shuffled(replaced(claim, dict(zip(held, names, strict=False))), draw)


def _shuffled(term: Any, draw: st.DrawFn) -> Any:
    if isinstance(term, str):
        return term
    if term[:1] == ("implies",):
        body = draw(st.permutations(list(term[1])))
        return ("implies", tuple(_shuffled(part, draw) for part in body), _shuffled(term[2], draw))
    rest = [_shuffled(part, draw) for part in term[1:]]
    return (term[0], *(draw(st.permutations(rest)) if term[0] in SYMMETRIC else rest))


def same_claim(first: Any, second: Any, symmetric: Collection[str] = SYMMETRIC) -> bool:
    """Whether some order of antecedents and symmetric arguments, and some pairing of variables, makes them one."""
    return any(
        len(set(pairs)) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
        for pairs in _pairings(first, second, symmetric)
    )


def _pairings(first: Any, second: Any, symmetric: Collection[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Which variable meets which, for each order in which everything else agrees."""
    if isinstance(first, str) or isinstance(second, str):
        if first == second and not str(first).startswith("?"):
            yield ()
        elif isinstance(first, str) and isinstance(second, str) and first[0] == second[0] == "?":
            yield ((first, second),)
        return
    if len(first) != len(second):
        return
    if first[:1] == second[:1] == ("implies",):
        for body in permutations(second[1]):
            yield from _in_order((*first[1], first[2]), (*body, second[2]), symmetric)
    elif first and first[0] == second[0] and first[0] in symmetric:
        for rest in permutations(second[1:]):
            yield from _in_order(first[1:], rest, symmetric)
    else:
        yield from _in_order(first, second, symmetric)


def _in_order(first: Any, second: Any, symmetric: Collection[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    if len(first) != len(second):
        return
    if not first:
        yield ()
        return
    for pairs in _pairings(first[0], second[0], symmetric):
        if len(set(pairs)) == len({one for one, _ in pairs}) == len({other for _, other in pairs}):
            yield from (pairs + rest for rest in _in_order(first[1:], second[1:], symmetric))
