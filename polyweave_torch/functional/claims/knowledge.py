"""What people wrote by hand: claims in contexts, and what follows from them."""

from collections.abc import Iterable
from typing import NamedTuple

from polyweave_torch.functional.claims.canonical import canonical_form
from polyweave_torch.functional.claims.chaining import forward_chain, read_rules
from polyweave_torch.functional.claims.sentences import Claim, as_claim, is_variable, printed_form, symbols


class StoredClaims(NamedTuple):
    """The claims of one context, in canonical form."""

    gold: dict[Claim, Claim]
    """Those that somebody asserted in it, with the form in which they were written."""
    derived: frozenset[Claim]
    """Those that it holds and nobody asserted."""


class KnowledgeBase:
    """Claims by context. A context sees the contexts it inherits from; what follows there is its own.

    Derived claims come from Horn rules, forward from the facts and rules that the context sees, to a fixpoint.
    ``("exceptWhen", rule, exception)`` states the rule and holds it back wherever the exception holds.

    Attributes:
        symmetric: predicates whose arguments may stand in any order; may be changed at any time.

    Args:
        symmetric: the first of those.
        max_derived: derived claims that one context may have.

    Raises:
        ValueError: in ``assert_claim``, where it is no claim; in ``gold`` and ``derived``, where the context is unknown
            or has more than ``max_derived`` derived claims.

    Example:
        >>> kb = KnowledgeBase()
        >>> kb.assert_claim(("implies", (("lion", "?x"),), ("animal", "?x")), "world")
        >>> kb.assert_claim(("lion", "LionA"), "fable")
        >>> kb.inherits("fable", "world")
        >>> kb.gold("fable")
        [('lion', 'LionA')]
        >>> kb.derived("fable")
        [('animal', 'LionA')]
    """

    def __init__(self, *, symmetric: Iterable[str] = (), max_derived: int = 10_000) -> None:
        self.symmetric = set(symmetric)
        self.max_derived = max_derived
        self._asserted: dict[str, dict[Claim, None]] = {}
        self._given: dict[str, dict[Claim, None]] = {}
        self._parents: dict[str, list[str]] = {}
        # What was worked out so far, under these symmetric predicates.
        self._worked_under = frozenset(self.symmetric)
        self._forms: dict[Claim, Claim] = {}
        self._stored: dict[str, StoredClaims] = {}

    def assert_claim(self, claim: Claim, context: str) -> None:
        """Store a claim that somebody wrote."""
        self._store(claim, context, self._asserted)

    def give_derived(self, claim: Claim, context: str) -> None:
        """Store a claim as derived in a context, where it was derived elsewhere."""
        self._store(claim, context, self._given)

    def inherits(self, context: str, parent: str) -> None:
        """Let a context see all that another one sees."""
        for name in (context, parent):
            _check_context(name)
            self._parents.setdefault(name, [])
        self._parents[context].append(parent)
        self._stored.clear()

    def gold(self, context: str) -> list[Claim]:
        """The claims asserted in a context itself, as written, in that order; of several forms of one, one."""
        return list(self.stored(context).gold.values())

    def derived(self, context: str) -> list[Claim]:
        """The claims that a context holds and nobody asserted in what it sees, sorted by their text."""
        return sorted(self.stored(context).derived, key=printed_form)

    def stored(self, context: str) -> StoredClaims:
        """Both, in canonical form."""
        if context not in self._parents:
            known = ", ".join(repr(name) for name in sorted(self._parents)[:10])
            raise ValueError(
                f"the context {context!r} is unknown; there are {len(self._parents)}{': ' if known else ''}{known}. "
                "Assert its claims first"
            )
        self._forget_if_symmetric_changed()
        if context not in self._stored:
            self._stored[context] = self._work_out(context)
        return self._stored[context]

    def _store(self, claim: Claim, context: str, claims: dict[str, dict[Claim, None]]) -> None:
        _check_context(context)
        self._forget_if_symmetric_changed()
        checked = as_claim(claim)
        self._form(checked)
        claims.setdefault(context, {})[checked] = None
        self._parents.setdefault(context, [])
        self._stored.clear()

    def _work_out(self, context: str) -> StoredClaims:
        gold: dict[Claim, Claim] = {}
        for claim in self._asserted.get(context, ()):
            form = self._form(claim)
            gold[form] = min(gold[form], claim, key=printed_form) if form in gold else claim
        visible = self._visible(context)
        asserted, given = (
            {self._form(claim) for name in visible for claim in claims.get(name, ())}
            for claims in (self._asserted, self._given)
        )
        chained = forward_chain(
            {form for form in asserted | given if _is_fact(form)},
            read_rules(asserted | given, self._worked_under),
            symmetric=self._worked_under,
            limit=self.max_derived,
        )
        return StoredClaims(gold, frozenset((chained | given) - asserted))

    def _visible(self, context: str) -> set[str]:
        visible, todo = {context}, [context]
        while todo:
            new = set(self._parents[todo.pop()]) - visible
            visible |= new
            todo += new
        return visible

    def _form(self, claim: Claim) -> Claim:
        if claim not in self._forms:
            self._forms[claim] = canonical_form(claim, self._worked_under)[0]
        return self._forms[claim]

    def _forget_if_symmetric_changed(self) -> None:
        if self._worked_under != frozenset(self.symmetric):
            self._worked_under = frozenset(self.symmetric)
            self._forms.clear()
            self._stored.clear()


def _is_fact(form: Claim) -> bool:
    return form[0] not in ("implies", "exceptWhen") and not any(map(is_variable, symbols(form)))


def _check_context(context: object) -> None:
    if not isinstance(context, str):
        raise TypeError(f"a context is named by text, but came as {context!r}")
