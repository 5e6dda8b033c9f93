"""Which invented name stands for which of the modeller's."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyweave_torch.functional.claims.sentences import Claim, as_claim, find_fault, substitute, symbols

Method: TypeAlias = Literal["greedy", "optimal"]

_INDIVIDUAL = re.compile(r"[A-Z][A-Za-z0-9]*")


def align_claims(gold: Iterable[Claim], candidates: Iterable[Claim], *, method: Method = "greedy") -> dict[str, str]:
    """Which gold individual each individual of the candidates stands for.

    Individuals are symbols ``[A-Z][A-Za-z0-9]*``. The types of one are the predicates of the claims made of it alone,
    such as ``("lion", "LionA")``; the overlap of two individuals is the number of types they share. A renaming never
    merges two individuals: names are paired one to one, a candidate's name that stands anywhere in the gold is left
    alone, and a gold name that stands anywhere in the candidates is given to no other.

    Args:
        gold: the claims to align with.
        candidates: the claims whose names are aligned; what is no claim is passed over.
        method: ``"greedy"`` takes pairs of overlap > 0 by falling overlap, then gold name, then candidate name;
            ``"optimal"`` takes the assignment of the largest total overlap.

    Returns:
        Gold names by candidate name, in the order of the candidate names; names that stay are not in it.

    Example:
        >>> gold = [("lion", "LionA"), ("mouse", "MouseA"), ("spared", "LionA", "MouseA")]
        >>> align_claims(gold, [("lion", "Leo"), ("mouse", "Mo"), ("brave", "Mo")])
        {'Leo': 'LionA', 'Mo': 'MouseA'}
    """
    clean = [as_claim(claim) for claim in candidates if find_fault(claim) is None]
    return align_names([as_claim(claim) for claim in gold], clean, method)


def align_names(gold: Collection[Claim], candidates: Collection[Claim], method: Method) -> dict[str, str]:
    """:func:`align_claims` of what is known to be claims."""
    check_method(method)
    overlaps = _overlaps(gold, candidates)
    pairs = _greedy(overlaps) if method == "greedy" else _optimal(overlaps)
    return dict(sorted(pairs))


def check_method(method: str) -> None:
    """Refuse what is no method of alignment."""
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, but is {method!r}")


def rename_claim(mapping: Mapping[str, str], claim: Claim) -> Claim:
    """The claim with every symbol that the mapping has replaced, at any depth, all at once.

    Args:
        mapping: new names by old ones, such as :func:`align_claims` returns.
        claim: a fact, rule or exception.

    Raises:
        ValueError: where it is no claim.

    Example:
        >>> rename_claim({"Leo": "LionA", "Mo": "MouseA"}, ("spared", "Leo", ("friendOf", "Mo")))
        ('spared', 'LionA', ('friendOf', 'MouseA'))
    """
    renamed: Claim = substitute(mapping, as_claim(claim))
    return renamed


def _overlaps(gold: Collection[Claim], candidates: Collection[Claim]) -> Counter[tuple[str, str]]:
    """How many types a gold and a candidate individual share, where they may be paired."""
    used_by_gold, used_by_candidates = (
        {symbol for claim in claims for symbol in symbols(claim)} for claims in (gold, candidates)
    )
    by_type = defaultdict(set)
    for kind, name in _types(gold):
        if name not in used_by_candidates:
            by_type[kind].add(name)
    return Counter(
        (name, candidate)
        for kind, candidate in _types(candidates)
        if candidate not in used_by_gold
        for name in by_type[kind]
    )


def _types(claims: Collection[Claim]) -> set[tuple[str, str]]:
    """Type and individual of the claims that are made of one individual alone."""
    return {
        (claim[0], claim[1])
        for claim in claims
        if len(claim) == 2
        and isinstance(claim[0], str)
        and isinstance(claim[1], str)
        and _INDIVIDUAL.fullmatch(claim[1])
    }


def _greedy(overlaps: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    taken = set()
    for name, candidate in sorted(overlaps, key=lambda pair: (-overlaps[pair], *pair)):
        if name not in taken and candidate not in pairs:
            pairs[candidate] = name
            taken.add(name)
    return list(pairs.items())


def _optimal(overlaps: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    names, candidates = (sorted(set(side)) for side in zip(*overlaps, strict=True)) if overlaps else ([], [])
    weights = np.array([[overlaps[name, candidate] for candidate in candidates] for name in names])
    rows, columns = linear_sum_assignment(weights.reshape(len(names), len(candidates)), maximize=True)
    chosen = [(names[row], candidates[column]) for row, column in zip(rows, columns, strict=True)]
    return [(candidate, name) for name, candidate in chosen if overlaps[name, candidate]]
