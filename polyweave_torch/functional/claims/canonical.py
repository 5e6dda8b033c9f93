"""One form for all the ways to write the same claim."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, TypeAlias

from polyweave_torch.functional.claims.sentences import (
    Claim,
    Term,
    antecedents,
    as_claim,
    is_variable,
    printed_form,
    symbols,
)

MAX_WORK = 400_000
"""Symbols that may be compared to bring one claim into its canonical form."""

Colours: TypeAlias = dict[str, int]
Key: TypeAlias = tuple[Any, ...]
"""A term with colours for its variables, nested as the term is, so that any two of them compare."""


def canonical_claim(claim: Claim, *, symmetric: Collection[str] = ()) -> Claim:
    """The form that a claim shares with exactly those that say the same.

    Two claims have one canonical form where they differ only by the names of variables (one for one), the order of a
    rule's antecedents, and the order of a symmetric predicate's arguments. Variables are named ``?1``, ``?2``, ... as
    they come in that form. Variables that look alike are told apart by colour refinement; where it can't, by a search
    for the smallest form that goes one way only among ways that an automorphism maps onto each other.

    Args:
        claim: a fact, rule or exception.
        symmetric: predicates whose arguments may stand in any order.

    Raises:
        ValueError: where it is no claim, or a rule so large and regular that 400,000 comparisons don't suffice.

    References:
        McKay and Piperno, "Practical graph isomorphism, II", Journal of Symbolic Computation 60, 2014.

    Example:
        >>> one = ("implies", (("lion", "?a"), ("spared", "?a", "?b")), ("kind", "?a"))
        >>> canonical_claim(one)
        ('implies', (('lion', '?1'), ('spared', '?1', '?2')), ('kind', '?1'))
        >>> other = ("implies", (("spared", "?x", "?y"), ("lion", "?x")), ("kind", "?x"))
        >>> canonical_claim(other) == canonical_claim(one)
        True
        >>> canonical_claim(("friends", "TomA", "AnnA"), symmetric={"friends"})
        ('friends', 'AnnA', 'TomA')
    """
    return canonical_form(as_claim(claim), symmetric)[0]


def canonical_form(claim: Claim, symmetric: Collection[str]) -> tuple[Claim, dict[str, str]]:
    """:func:`canonical_claim` of what is known to be a claim, and how its variables are named there."""
    variables = [symbol for symbol in symbols(claim) if is_variable(symbol)]
    if variables:
        leaf = _Search(claim, symmetric).run(dict.fromkeys(variables, 0)).best
    else:
        leaf = _Leaf(_key(claim, {}, symmetric), {})
    names: dict[int, str] = {}
    form: Claim = _term(leaf.key, names)
    return form, {variable: names[colour] for variable, colour in leaf.colours.items()}


class _Leaf(NamedTuple):
    """A form in which every variable has a colour of its own."""

    key: Key
    colours: Colours


class _Branch(NamedTuple):
    """What lies below one set of colours."""

    best: _Leaf
    first: _Leaf
    """The one that is reached by the first choice at each turn."""
    automorphisms: list[dict[str, str]]
    """Renamings of the variables that change nothing, and move none that had a colour of its own."""


class _Search:
    def __init__(self, claim: Claim, symmetric: Collection[str]) -> None:
        self.claim = claim
        self.symmetric = symmetric
        self.work = 0
        self.parts: dict[str, list[tuple[int, Claim, int]]] = {}
        for role, part in _parts(claim):
            held = list(symbols(part))
            for variable in {symbol for symbol in held if is_variable(symbol)}:
                self.parts.setdefault(variable, []).append((role, part, len(held)))

    def run(self, colours: Colours) -> _Branch:
        colours = self.refine(colours)
        cell = _first_cell(colours)
        if not cell:
            leaf = _Leaf(_key(self.claim, colours, self.symmetric), colours)
            return _Branch(leaf, leaf, [])
        best, first, automorphisms = self.run(_single_out(cell[0], colours))
        explored, seen = [first], {cell[0]}
        for variable in cell[1:]:
            if not seen.isdisjoint(_orbit(variable, automorphisms)):
                continue
            leaf = self.first_leaf(_single_out(variable, colours))
            twin = next((other for other in explored if other.key == leaf.key), None)
            if twin is None:
                branch = self.run(_single_out(variable, colours))
                best = min(best, branch.best, key=lambda candidate: candidate.key)
                automorphisms += branch.automorphisms
                explored.append(leaf)
            else:
                back = {colour: name for name, colour in leaf.colours.items()}
                automorphisms.append({name: back[colour] for name, colour in twin.colours.items()})
            seen.add(variable)
        return _Branch(best, first, automorphisms)

    def first_leaf(self, colours: Colours) -> _Leaf:
        colours = self.refine(colours)
        while cell := _first_cell(colours):
            colours = self.refine(_single_out(cell[0], colours))
        return _Leaf(_key(self.claim, colours, self.symmetric), colours)

    def refine(self, colours: Colours) -> Colours:
        """Split colours by where their variables stand, until that splits no more. Order and names play no part."""
        while True:
            signatures = {variable: (colour, self.places(variable, colours)) for variable, colour in colours.items()}
            ranks = {signature: rank for rank, signature in enumerate(sorted(set(signatures.values())))}
            refined = {variable: ranks[signature] for variable, signature in signatures.items()}
            if len(ranks) == len(set(colours.values())):
                return refined
            colours = refined

    def places(self, variable: str, colours: Colours) -> Key:
        marked = {**colours, variable: -1}
        places = []
        for role, part, size in self.parts[variable]:
            self.work += size
            places.append((role, _key(part, marked, self.symmetric)))
        if self.work > MAX_WORK:
            text = printed_form(self.claim)
            raise ValueError(
                f"the claim is too large and too regular for a canonical form (over {MAX_WORK:,} comparisons for "
                f"{len(colours)} variables): {text if len(text) <= 200 else text[:200] + '...'}; split it"
            )
        return tuple(sorted(places))


def _key(term: Term, colours: Colours, symmetric: Collection[str]) -> Key:
    """The term with colours for variables, and what may stand in any order sorted."""
    if isinstance(term, str):
        return (1, colours[term]) if is_variable(term) else (0, term)
    head = term[0]
    if head == "implies":
        body = sorted(_key(antecedent, colours, symmetric) for antecedent in antecedents(term[1]))
        return (2, (0, head), (2, *body), _key(term[2], colours, symmetric))
    rest = [_key(part, colours, symmetric) for part in term[1:]]
    if isinstance(head, str) and head in symmetric:
        rest.sort()
    return (2, _key(head, colours, symmetric), *rest)


def _parts(claim: Any) -> Iterator[tuple[int, Claim]]:
    """The claims that a claim is made of, with the role of each."""
    if claim[0] == "exceptWhen":
        yield from _parts(claim[1])
        yield 2, claim[2]
    elif claim[0] == "implies":
        yield from ((0, antecedent) for antecedent in antecedents(claim[1]))
        yield 1, claim[2]
    else:
        yield 0, claim


def _first_cell(colours: Colours) -> list[str]:
    """The variables of the lowest colour that several have; none where each has its own."""
    cells: dict[int, list[str]] = {}
    for variable, colour in colours.items():
        cells.setdefault(colour, []).append(variable)
    return min(((colour, cell) for colour, cell in cells.items() if len(cell) > 1), default=(0, []))[1]


def _single_out(variable: str, colours: Colours) -> Colours:
    return {name: 2 * colour + (name != variable) for name, colour in colours.items()}


def _orbit(variable: str, automorphisms: list[dict[str, str]]) -> set[str]:
    orbit, todo = {variable}, [variable]
    while todo:
        name = todo.pop()
        for image in {automorphism[name] for automorphism in automorphisms} - orbit:
            orbit.add(image)
            todo.append(image)
    return orbit


def _term(key: Key, names: dict[int, str]) -> Any:
    kind, *rest = key
    if kind == 0:
        return rest[0]
    if kind == 1:
        return names.setdefault(rest[0], f"?{len(names) + 1}")
    return tuple(_term(part, names) for part in rest)
