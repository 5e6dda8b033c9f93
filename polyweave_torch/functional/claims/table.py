"""Scores of several documents as a markdown table."""

from collections.abc import Iterable

from polyweave_torch.functional._tables import markdown_row, markdown_table
from polyweave_torch.functional.claims.scoring import ClaimCounts, ClaimScores, total_counts

_COLUMNS = ("document", "gold", "cand", "prec", "rec", "f1", "strict prec", "strict rec")


def claims_line(name: str, scores: ClaimScores) -> str:
    """One document as a row of :func:`claims_table`: the aligned pass, and the strict one beside it.

    Args:
        name: the document.
        scores: from :func:`score_claims`.

    Example:
        >>> from polyweave_torch.functional import KnowledgeBase, score_claims
        >>> kb = KnowledgeBase()
        >>> kb.assert_claim(("lion", "LionA"), "fable")
        >>> claims_line("fable", score_claims(kb, "fable", [("lion", "Leo")]))
        '| fable | 1 | 1 | 100 % | 100 % | 100 % | 0 % | 0 % |'
    """
    return markdown_row(_cells(name, scores.strict, scores.aligned))


def claims_table(scored: Iterable[tuple[str, ClaimScores]]) -> str:
    """Documents and their total as a markdown table.

    Percentages are rounded half up. The total is computed from summed counts, so that a short document does not weigh
    as much as a long one.

    Args:
        scored: name and scores of each document.

    Example:
        >>> from polyweave_torch.functional import KnowledgeBase, score_claims
        >>> kb = KnowledgeBase()
        >>> kb.assert_claim(("lion", "LionA"), "fable")
        >>> kb.assert_claim(("brave", "LionA"), "fable")
        >>> print(claims_table([("fable", score_claims(kb, "fable", [("lion", "Leo")]))]))
        | document | gold | cand | prec | rec | f1 | strict prec | strict rec |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | fable | 2 | 1 | 100 % | 50 % | 67 % | 0 % | 0 % |
        | total | 2 | 1 | 100 % | 50 % | 67 % | 0 % | 0 % |
    """
    scored = list(scored)
    strict = total_counts(scores.strict for _, scores in scored)
    aligned = total_counts(scores.aligned for _, scores in scored)
    rows = [*(_cells(name, scores.strict, scores.aligned) for name, scores in scored), _cells("total", strict, aligned)]
    return markdown_table(_COLUMNS, rows, align="l" + "r" * (len(_COLUMNS) - 1))


def _cells(name: str, strict: ClaimCounts, aligned: ClaimCounts) -> list[object]:
    judged = aligned.candidates - aligned.derivable
    return [
        name,
        aligned.gold,
        aligned.candidates,
        _percent(aligned.matched, judged),
        _percent(aligned.matched, aligned.gold),
        _percent(2 * aligned.matched, judged + aligned.gold),
        _percent(strict.matched, strict.candidates - strict.derivable),
        _percent(strict.matched, strict.gold),
    ]


def _percent(part: int, whole: int) -> str:
    """Rounded half up, exactly: from the integers, since 0.285 is no float."""
    return f"{(200 * part + whole) // (2 * whole) if whole else 0} %"
