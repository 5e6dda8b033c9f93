"""Scoring of extracted claims: canonical forms, forward chaining, alignment and both passes, document by document."""

import random
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.workload import Contestant, Workload
from polyweave_torch.functional.claims import Claim, ClaimScores, KnowledgeBase, score_claims

_EVERY_ORDER = "every order of antecedents"
_KINDS = ("lion", "mouse", "fox", "crow", "wolf", "ant")
_CLAIMS, _RULES, _PEOPLE = 50, 6, 12


class Documents(NamedTuple):
    """Gold and candidates of each document, and a knowledge base that has scored them before."""

    gold: list[list[Claim]]
    candidates: list[list[Claim]]
    kb: KnowledgeBase


def _documents(device: torch.device, documents: int) -> Documents:
    """Twelve characters, facts about them and six rules each; four candidates of five are right, under other names."""
    chance = random.Random(0)
    both = [_document(chance) for _ in range(documents)]
    gold, candidates = [one for one, _ in both], [other for _, other in both]
    inputs = Documents(gold, candidates, _knowledge(gold))
    _score(inputs)
    return inputs


def _document(chance: random.Random) -> tuple[list[Claim], list[Claim]]:
    kinds = [_KINDS[place % len(_KINDS)] for place in range(_PEOPLE)]
    claims: list[Any] = [(kind, f"{kind.title()}{place}") for place, kind in enumerate(kinds)]
    names = [claim[1] for claim in claims]
    while len(claims) < _CLAIMS - _RULES:
        fact = (chance.choice(("saw", "spared", "met")), *chance.sample(names, 2))
        claims += [] if fact in claims else [fact]
    for kind in _KINDS[:_RULES]:
        body = [("saw", "?x", "?y"), ("spared", "?y", "?x"), (kind, "?x")]
        claims.append(("implies", tuple(chance.sample(body, 3)), (f"{kind}Thanks", "?x", "?y")))
    other = {**{name: f"Some{name}" for name in names}, "?x": "?one", "?y": "?other"}
    read = [_renamed(other, claim) for claim in claims]
    return claims, [claim if chance.random() < 0.8 else ("odd", f"Odd{place}") for place, claim in enumerate(read)]


def _renamed(names: dict[str, str], term: Any) -> Any:
    return names.get(term, term) if isinstance(term, str) else tuple(_renamed(names, part) for part in term)


def _knowledge(gold: Sequence[Sequence[Claim]]) -> KnowledgeBase:
    kb = KnowledgeBase()
    for place, claims in enumerate(gold):
        for claim in claims:
            kb.assert_claim(claim, str(place))
    return kb


def _score(documents: Documents) -> list[ClaimScores]:
    return [score_claims(documents.kb, str(place), claims) for place, claims in enumerate(documents.candidates)]


def _from_nothing(documents: Documents) -> list[ClaimScores]:
    return _score(documents._replace(kb=_knowledge(documents.gold)))


def _matched(_: Documents, scored: list[ClaimScores]) -> Tensor:
    return torch.tensor([(scores.strict.matched, scores.aligned.matched) for scores in scored])


def _every_order(documents: Documents) -> list[tuple[int, int]]:
    """The smallest form over all orders of the antecedents, without chaining."""
    matched = []
    for gold, candidates in zip(documents.gold, documents.candidates, strict=True):
        forms = {_smallest(claim) for claim in gold}
        names = _aligned(gold, candidates)
        passes = ({_smallest(_renamed(renaming, claim)) for claim in candidates} for renaming in ({}, names))
        strict, aligned = (len(forms & found) for found in passes)
        matched.append((strict, aligned))
    return matched


def _smallest(claim: Any) -> str:
    if claim[0] != "implies":
        return str(claim)
    forms = []
    for body in permutations(claim[1]):
        names: dict[str, str] = {}
        forms.append(str(_numbered((body, claim[2]), names)))
    return min(forms)


def _numbered(term: Any, names: dict[str, str]) -> Any:
    if isinstance(term, str):
        return names.setdefault(term, f"?{len(names)}") if term.startswith("?") else term
    return tuple(_numbered(part, names) for part in term)


def _aligned(gold: list[Claim], candidates: list[Claim]) -> dict[str, str]:
    """One type a character: the first of the gold by name to the first of the candidates, and so on."""
    pairs: dict[str, str] = {}
    for kind in _KINDS:
        ours, theirs = (sorted(str(claim[1]) for claim in side if claim[0] == kind) for side in (gold, candidates))
        pairs.update(zip(theirs, ours, strict=False))
    return pairs


def _workload(documents: int, name: str, about: str, ours: Any) -> Workload[Documents]:
    return Workload(
        name=f"claims{name}-{documents}x{_CLAIMS}",
        about=f"{documents:,} documents of {_CLAIMS} candidates against {_CLAIMS} gold claims, {about}",
        samples=documents,
        make=_documents,
        ours=Contestant(ours, _matched),
        peers={_EVERY_ORDER: Contestant(_every_order)},
        devices=("cpu",),
    )


WORKLOADS: list[Workload[Any]] = [
    # Two sizes, to see that time grows with documents and no faster.
    *(_workload(size, "", "from an empty knowledge base, with chaining", _from_nothing) for size in (250, 1_000)),
    _workload(1_000, "-again", "which the knowledge base has seen before", _score),
]
