"""Claims: sentences of nested tuples, scored against what people wrote by hand."""

from polyweave_torch.functional.claims.alignment import align_claims, rename_claim
from polyweave_torch.functional.claims.canonical import canonical_claim
from polyweave_torch.functional.claims.knowledge import KnowledgeBase
from polyweave_torch.functional.claims.scoring import ClaimCounts, ClaimScores, score_claims
from polyweave_torch.functional.claims.sentences import Claim, format_claim, parse_claims
from polyweave_torch.functional.claims.table import claims_line, claims_table

__all__ = [
    "Claim",
    "ClaimCounts",
    "ClaimScores",
    "KnowledgeBase",
    "align_claims",
    "canonical_claim",
    "claims_line",
    "claims_table",
    "format_claim",
    "parse_claims",
    "rename_claim",
    "score_claims",
]
