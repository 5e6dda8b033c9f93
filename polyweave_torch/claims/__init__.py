"""Claims in files: read them, and score a folder of documents against another."""

from polyweave_torch.claims.folders import ScoredFolder, score_folder
from polyweave_torch.claims.readers import read_candidates, read_claims
from polyweave_torch.functional.claims.sentences import Malformed

__all__ = ["Malformed", "ScoredFolder", "read_candidates", "read_claims", "score_folder"]
