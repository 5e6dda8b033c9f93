"""How many of the claims that people wrote by hand a reader of the text got."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from polyweave_torch.functional.claims.alignment import Method, align_names
from polyweave_torch.functional.claims.canonical import canonical_form
from polyweave_torch.functional.claims.knowledge import KnowledgeBase, StoredClaims
from polyweave_torch.functional.claims.sentences import Claim, as_claim, find_fault, printed_form, substitute


class ClaimCounts(NamedTuple):
    """Claims of one pass. A rate whose denominator is 0 is 0.0."""

    matched: int
    """Different gold claims that a candidate matches."""
    candidates: int
    """Different candidates as written."""
    derivable: int
    """Candidates that the context derives by itself: neither right nor wrong."""
    gold: int
    """Gold claims."""
    precision: float
    """matched / (candidates - derivable)"""
    recall: float
    """matched / gold"""
    f1: float
    """2 matched / (candidates - derivable + gold), the harmonic mean of the two."""


class ClaimScores(NamedTuple):
    """Candidates of one document against its gold."""

    strict: ClaimCounts
    """With names as written."""
    aligned: ClaimCounts
    """After renaming individuals onto the gold's."""
    renaming: dict[str, str]
    """Gold names by candidate name."""
    missing: list[Claim]
    """Gold that no aligned candidate matches, sorted by text."""
    spurious: list[Any]
    """Aligned candidates that match nothing stored, sorted by text; what is no claim is here as it came."""


def score_claims(
    kb: KnowledgeBase, context: str, sentences: Iterable[Any], *, method: Method = "greedy"
) -> ClaimScores:
    """Score a reading of one document against the claims asserted in its context.

    Scored twice: as written, and after :func:`align_claims` has renamed the individuals, whose names no reader of the
    text could know. Claims are compared in canonical form. Candidates are counted as written, so saying one thing in
    two ways counts twice and matches once. A candidate that is no claim, or too large and regular for a canonical form,
    counts and matches nothing. The result depends on the set of sentences only, and the knowledge base stays as it is.

    Args:
        kb: the knowledge base with the gold.
        context: the document's context.
        sentences: the candidates.
        method: of the alignment, see :func:`align_claims`.

    Raises:
        ValueError: where the context is unknown, or derives claims without end.
        TypeError: where ``sentences`` is a text; parse it first.

    Example:
        >>> kb = KnowledgeBase()
        >>> for claim in (("lion", "LionA"), ("mouse", "MouseA"), ("spared", "LionA", "MouseA")):
        ...     kb.assert_claim(claim, "fable")
        >>> scores = score_claims(kb, "fable", [("lion", "Leo"), ("mouse", "Mo"), ("spared", "Mo", "Leo")])
        >>> scores.strict.matched, scores.aligned.matched, scores.renaming
        (0, 2, {'Leo': 'LionA', 'Mo': 'MouseA'})
        >>> scores.missing, scores.spurious
        ([('spared', 'LionA', 'MouseA')], [('spared', 'MouseA', 'LionA')])
    """
    if isinstance(sentences, str):
        raise TypeError("sentences must be claims, but came as a text; read it with parse_claims first")
    stored = kb.stored(context)
    candidates, malformed = _distinct(sentences)
    renaming = align_names(stored.gold.values(), candidates, method)
    symmetric = frozenset(kb.symmetric)
    forms = {claim: _form(claim, symmetric) for claim in candidates}
    renamed = {claim: substitute(renaming, claim) for claim in candidates}
    aligned = {
        claim: forms[claim] if renamed[claim] == claim else _form(renamed[claim], symmetric) for claim in candidates
    }
    found = set(aligned.values())
    spurious = [renamed[claim] for claim in candidates if not _is_stored(aligned[claim], stored)]
    return ClaimScores(
        strict=_count(forms, len(malformed), stored),
        aligned=_count(aligned, len(malformed), stored),
        renaming=renaming,
        missing=sorted((claim for form, claim in stored.gold.items() if form not in found), key=printed_form),
        spurious=sorted([*spurious, *malformed], key=printed_form),
    )


def claim_counts(matched: int, candidates: int, derivable: int, gold: int) -> ClaimCounts:
    """Counts with their rates."""
    judged = candidates - derivable
    return ClaimCounts(
        matched=matched,
        candidates=candidates,
        derivable=derivable,
        gold=gold,
        precision=matched / judged if judged else 0.0,
        recall=matched / gold if gold else 0.0,
        f1=2 * matched / (judged + gold) if judged + gold else 0.0,
    )


def total_counts(counts: Iterable[ClaimCounts]) -> ClaimCounts:
    """The counts of several documents together: rates of the sums, so that a long document weighs more."""
    sums = [sum(column) for column in zip(*(each[:4] for each in counts), strict=True)]
    return claim_counts(*(sums or [0, 0, 0, 0]))


def _distinct(sentences: Iterable[Any]) -> tuple[list[Claim], list[Any]]:
    """Different claims, and different things that are none."""
    candidates: dict[Claim, None] = {}
    malformed: dict[str, Any] = {}
    for sentence in sentences:
        if find_fault(sentence) is None:
            candidates[as_claim(sentence)] = None
        else:
            malformed[printed_form(sentence)] = sentence
    return list(candidates), list(malformed.values())


def _form(claim: Claim, symmetric: frozenset[str]) -> Claim | None:
    try:
        return canonical_form(claim, symmetric)[0]
    except ValueError:  # past the bound: what nobody can compare matches nothing
        return None


def _is_stored(form: Claim | None, stored: StoredClaims) -> bool:
    return form in stored.gold or form in stored.derived


def _count(forms: Mapping[Claim, Claim | None], malformed: int, stored: StoredClaims) -> ClaimCounts:
    return claim_counts(
        matched=len(stored.gold.keys() & set(forms.values())),
        candidates=len(forms) + malformed,
        derivable=sum(form in stored.derived for form in forms.values()),
        gold=len(stored.gold),
    )
