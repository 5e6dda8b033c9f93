"""A folder of documents that a model read, scored against a folder that people wrote."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from polyweave_torch.claims.readers import FORMATS, read_candidates, read_claims
from polyweave_torch.functional.claims import ClaimScores, KnowledgeBase, score_claims
from polyweave_torch.functional.claims.alignment import Method
from polyweave_torch.functional.claims.scoring import total_counts
from polyweave_torch.functional.claims.sentences import Malformed, printed_form

# No document has this name, since a slash is in no file name.
_BACKGROUND = "/background"


class ScoredFolder(NamedTuple):
    """Scores of all documents."""

    documents: list[tuple[str, ClaimScores]]
    """Name and scores of each, sorted by name."""
    warnings: list[str]
    """What could not be read, and what was not there."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; claims as text."""
        return {
            "schema": 1,
            "documents": {name: _scores(scores) for name, scores in self.documents},
            "total": {
                "strict": total_counts(scores.strict for _, scores in self.documents)._asdict(),
                "aligned": total_counts(scores.aligned for _, scores in self.documents)._asdict(),
            },
            "warnings": self.warnings,
        }


def score_folder(
    gold: str | Path,
    candidates: str | Path,
    *,
    background: Iterable[str | Path] = (),
    symmetric: Iterable[str] = (),
    method: Method = "greedy",
) -> ScoredFolder:
    """Score each document of a folder against the document of the same name (without its ending) in another.

    A document without candidates is scored as one of which nothing was read.

    Args:
        gold: folder of what people wrote, in any of the formats of :func:`~polyweave_torch.claims.read_claims`.
        candidates: folder of what a model wrote.
        background: files of claims that every document inherits: they derive, and are not gold.
        symmetric: predicates whose arguments may stand in any order.
        method: of the alignment, see :func:`~polyweave_torch.functional.align_claims`.

    Raises:
        ValueError: where gold is malformed, a folder has no documents, two of one name, or candidates have no gold.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, text in (("gold", "(lion LionA) (brave LionA)"), ("read", "(lion Leo)")):
        ...         Path(folder, name).mkdir()
        ...         _ = Path(folder, name, "fable.sexp").write_text(text)
        ...     scored = score_folder(Path(folder, "gold"), Path(folder, "read"))
        >>> [(name, scores.renaming, scores.aligned.recall) for name, scores in scored.documents]
        [('fable', {'Leo': 'LionA'}, 0.5)]
    """
    kb = KnowledgeBase(symmetric=symmetric)
    for path in background:
        for claim in read_claims(path):
            kb.assert_claim(claim, _BACKGROUND)
    documents, read = _documents(Path(gold)), _documents(Path(candidates))
    unknown = sorted(read.keys() - documents.keys())
    if unknown:
        raise ValueError(f"{read[unknown[0]]}: {gold} has no document of this name to score it against")
    scored, warnings = [], []
    for name, path in sorted(documents.items()):
        kb.inherits(name, _BACKGROUND)
        for claim in read_claims(path):
            kb.assert_claim(claim, name)
        found = read_candidates(read[name]) if name in read else []
        if name not in read:
            warnings.append(f"{candidates} has no document {name}; it counts as one of which nothing was read")
        warnings += [f"{read[name]}: {item.reason}" for item in found if isinstance(item, Malformed)]
        scored.append((name, score_claims(kb, name, found, method=method)))
    return ScoredFolder(scored, warnings)


def _documents(folder: Path) -> dict[str, Path]:
    """Files of a folder by name without ending."""
    documents: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in FORMATS and path.is_file():
            if path.stem in documents:
                raise ValueError(f"{path} and {documents[path.stem]} are one document by name; keep one of them")
            documents[path.stem] = path
    if not documents:
        raise ValueError(f"{folder} has no documents; expected files that end in one of {', '.join(FORMATS)}")
    return documents


def _scores(scores: ClaimScores) -> dict[str, Any]:
    return {
        "strict": scores.strict._asdict(),
        "aligned": scores.aligned._asdict(),
        "renaming": scores.renaming,
        "missing": [printed_form(claim) for claim in scores.missing],
        "spurious": [claim.text if isinstance(claim, Malformed) else printed_form(claim) for claim in scores.spurious],
    }
