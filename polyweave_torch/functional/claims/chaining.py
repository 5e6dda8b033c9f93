"""What follows from facts and rules: forward chaining to a fixpoint."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from polyweave_torch.functional.claims.canonical import canonical_form
from polyweave_torch.functional.claims.sentences import (
    Claim,
    Term,
    antecedents,
    find_fault,
    is_variable,
    printed_form,
    substitute,
    symbols,
)

MAX_WORK = 2_000_000
"""Comparisons of antecedents with facts, and with each other, for one context."""

Binding: TypeAlias = dict[str, Term]


class Rule(NamedTuple):
    """A Horn rule in canonical form."""

    antecedents: tuple[Any, ...]
    consequent: Any
    exceptions: tuple[Any, ...]
    """Under a binding for which one of these holds, the rule concludes nothing."""


def forward_chain(
    facts: Collection[Claim], rules: Iterable[Rule], *, symmetric: Collection[str], limit: int
) -> set[Claim]:
    """Everything that rules conclude from facts, beyond the facts.

    Exceptions may depend on conclusions, so what they hold back is settled in turns: what is possible when only the
    certain ones count, then what is certain when all possible ones count, until the two agree or nothing more is
    certain (the well-founded model). The order of facts and rules plays no part. A rule whose consequent has a variable
    that no antecedent binds concludes nothing.

    Args:
        facts: canonical claims without variables.
        rules: from :func:`read_rules`.
        symmetric: predicates whose arguments may stand in any order.
        limit: conclusions at most.

    Raises:
        ValueError: where there are more conclusions, one nests too deep, or antecedents match too widely.

    References:
        Van Gelder, "The alternating fixpoint of logic programs with negation", Journal of Computer and System Sciences
        47, 1993.
    """
    chainer = _Chainer(facts, rules, symmetric, limit)
    certain = set(facts)
    while True:
        possible = chainer.fixpoint(_Facts(certain))
        found = chainer.fixpoint(_Facts(possible)) if chainer.defeasible else possible
        if found in (possible, certain):
            return found - set(facts)
        certain = found


def read_rules(claims: Iterable[Claim], symmetric: Collection[str]) -> list[Rule]:
    """The rules among canonical claims, each with its exceptions. An exception states its rule, too.

    Args:
        claims: canonical claims; facts are passed over.
        symmetric: predicates whose arguments may stand in any order.
    """
    exceptions: dict[Any, set[Claim]] = {}
    for claim in claims:
        if claim[0] == "implies":
            exceptions.setdefault(claim, set())
        elif claim[0] == "exceptWhen":
            rule: Any = claim[1]
            # The rule alone may number its variables in another way than together with the exception.
            alone, names = canonical_form(rule, symmetric)
            others = {name: f"?other{name[1:]}" for name in symbols(claim) if is_variable(name)}
            exceptions.setdefault(alone, set()).add(substitute({**others, **names}, claim[2]))
    return [
        Rule(antecedents(rule[1]), rule[2], tuple(sorted(held, key=printed_form))) for rule, held in exceptions.items()
    ]


class _Facts:
    """Claims without variables, found by what stands where in them."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self.claims: set[Claim] = set()
        self.places: dict[tuple[int, Term], list[Claim]] = {}
        for claim in claims:
            self.add(claim)

    def add(self, claim: Claim) -> None:
        self.claims.add(claim)
        for place in enumerate(claim):
            self.places.setdefault(place, []).append(claim)

    def candidates(self, pattern: Claim, binding: Binding, symmetric: Collection[str]) -> Collection[Claim]:
        """Claims that may match, by the place that narrows them down most."""
        fixed = pattern[:1] if pattern[0] in symmetric or is_variable(pattern[0]) else pattern
        known = [
            self.places.get((place, binding.get(term, term)), [])
            for place, term in enumerate(fixed)
            if isinstance(term, str) and (term in binding or not is_variable(term))
        ]
        return min(known, key=len, default=self.claims)


class _Chainer:
    def __init__(self, facts: Collection[Claim], rules: Iterable[Rule], symmetric: Collection[str], limit: int) -> None:
        self.facts = facts
        usable = [rule for rule in rules if _variables(rule.consequent) <= _variables(rule.antecedents)]
        self.defeasible = any(rule.exceptions for rule in usable)
        self.symmetric = symmetric
        self.limit = limit
        self.work = 0
        self.rules = [(rule, list(self.orders(rule.antecedents))) for rule in usable]

    def fixpoint(self, blocking: _Facts) -> set[Claim]:
        """Facts and conclusions, where what is ``blocking`` decides which exceptions hold."""
        known = _Facts(self.facts)
        fresh = known
        while True:
            found: set[Claim] = set()
            for rule, orders in self.rules:
                for conclusion in self.conclusions(rule, orders, known, fresh, blocking):
                    if conclusion not in known.claims:
                        found.add(conclusion)
                    if len(known.claims) + len(found) - len(self.facts) > self.limit:
                        raise ValueError(
                            f"more than {self.limit:,} claims are derivable, the last by {_printed(rule)}; a rule that "
                            "feeds itself derives without end, else build the KnowledgeBase with a higher max_derived"
                        )
            if not found:
                return known.claims
            for claim in found:
                known.add(claim)
            fresh = _Facts(found)

    def conclusions(
        self, rule: Rule, orders: list[list[Claim]], known: _Facts, fresh: _Facts, blocking: _Facts
    ) -> Iterator[Claim]:
        """What a rule concludes where at least one antecedent matches something fresh."""
        keep = _variables(rule.consequent) | _variables(rule.exceptions)
        for order in orders:
            patterns = [(pattern, known if place else fresh) for place, pattern in enumerate(order)]
            for binding in self.join(patterns, keep, {}):
                if any(self.holds(exception, blocking, binding) for exception in rule.exceptions):
                    continue
                conclusion = substitute(binding, rule.consequent)
                fault = find_fault(conclusion)
                if fault is not None:
                    raise ValueError(f"the rule {_printed(rule)} derives without end, or no claim: {fault}")
                yield canonical_form(conclusion, self.symmetric)[0]

    def holds(self, exception: Claim, blocking: _Facts, binding: Binding) -> bool:
        return next(self.join([(exception, blocking)], set(), binding), None) is not None

    def orders(self, patterns: Iterable[Claim]) -> Iterator[list[Claim]]:
        """For each antecedent, all of them from that one on, each next to those that it shares variables with."""
        held = {pattern: _variables(pattern) for pattern in patterns}
        if not held:
            yield []
        for first in held:
            order, bound, rest = [first], held[first], [pattern for pattern in held if pattern != first]
            while rest:
                self.spend(len(rest))
                closest = max(rest, key=lambda pattern: len(held[pattern] & bound) - len(held[pattern] - bound))
                rest.remove(closest)
                order.append(closest)
                bound = bound | held[closest]
            yield order

    def join(self, patterns: list[tuple[Claim, _Facts]], keep: set[str], start: Binding) -> Iterator[Binding]:
        """All bindings of the variables to keep under which every pattern matches a claim of its source."""
        bindings: Iterable[Binding] = [start]
        for place, (pattern, source) in enumerate(patterns):
            # Dropping what nobody asks for any more keeps twelve unrelated antecedents from multiplying.
            needed = keep.union(*(_variables(later) for later, _ in patterns[place + 1 :]))
            bindings = self.extensions(bindings, pattern, source, needed)
            if place + 1 < len(patterns):  # the last ones are used as they come
                bindings = list(bindings)
        yield from bindings

    def extensions(
        self, bindings: Iterable[Binding], pattern: Claim, source: _Facts, needed: set[str]
    ) -> Iterator[Binding]:
        """Bindings of the needed variables under which one more pattern matches."""
        seen = set()
        for binding in bindings:
            for claim in source.candidates(pattern, binding, self.symmetric):
                for match in self.matches(pattern, claim, binding):
                    kept = {name: term for name, term in match.items() if name in needed}
                    key = frozenset(kept.items())
                    if key not in seen:
                        seen.add(key)
                        yield kept

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise ValueError(
                f"the rules are too large or match too widely: over {MAX_WORK:,} comparisons in one context; split the "
                "context, or write rules whose antecedents share variables"
            )

    def matches(self, pattern: Term, term: Term, binding: Binding) -> list[Binding]:
        """The ways to extend a binding so that a pattern becomes a term."""
        self.spend(1)
        if isinstance(pattern, str):
            if is_variable(pattern) and pattern not in binding:
                return [{**binding, pattern: term}]
            return [binding] if binding.get(pattern, pattern) == term else []
        if isinstance(term, str) or len(pattern) != len(term):
            return []
        # Each way so far, with the terms that are left to match. A predicate comes first in any case.
        ways = [(binding, term)]
        for index, part in enumerate(pattern):
            ways = [
                (match, left[:place] + left[place + 1 :])
                for before, left in ways
                for place in range(len(left) if index and term[0] in self.symmetric else 1)
                for match in self.matches(part, left[place], before)
            ]
        return [match for match, _ in ways]


def _variables(term: Any) -> set[str]:
    return {symbol for symbol in symbols(term) if is_variable(symbol)}


def _printed(rule: Rule) -> str:
    return printed_form(("implies", rule.antecedents, rule.consequent))
