"""Claims that a reader of documents got right, over many documents."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.functional._checks import rate_dtype
from polyweave_torch.functional.claims import KnowledgeBase, score_claims
from polyweave_torch.functional.claims.alignment import Method, check_method
from polyweave_torch.functional.claims.scoring import claim_counts
from polyweave_torch.metrics.base import TableMetric


class ClaimScore(TableMetric):
    """Precision, recall and F1 of extracted claims, as written and after aligning invented names.

    The state is six integers: gold, candidates, and for each pass what matched and what was derivable. They add up over
    documents, batches and ranks, so a long document weighs more than a short one.

    As input to ``update``:

    - ``kb``: the knowledge base that holds the gold
    - ``context``: the document's context; or N contexts
    - ``sentences``: the document's candidate claims; or N such sequences

    As output of ``compute``, a dict of 0-d tensors: ``precision``, ``recall``, ``f1`` (aligned), ``strict_precision``,
    ``strict_recall``, ``strict_f1``. 0.0 where a denominator is 0, NaN where there is neither gold nor a candidate.

    Args:
        method: of the alignment, ``"greedy"`` or ``"optimal"``, as in
            :func:`~polyweave_torch.functional.align_claims`.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where a context is unknown, or contexts and sentences differ in number; nothing of
            that update is counted then.

    Example:
        >>> from polyweave_torch.functional import KnowledgeBase
        >>> kb = KnowledgeBase()
        >>> for claim in (("lion", "LionA"), ("mouse", "MouseA"), ("spared", "LionA", "MouseA")):
        ...     kb.assert_claim(claim, "fable")
        >>> metric = ClaimScore()
        >>> metric.update(kb, "fable", [("lion", "Leo"), ("mouse", "Mo"), ("spared", "Mo", "Leo")])
        >>> {name: round(float(value), 2) for name, value in metric.compute().items()}
        {'precision': 0.67, 'recall': 0.67, 'f1': 0.67, 'strict_precision': 0.0, 'strict_recall': 0.0, 'strict_f1': 0.0}
    """

    higher_is_better = True
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(self, *, method: Method = "greedy", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_method(method)
        self.method = method
        self._name = f"claims_{method}"
        self.declare(self._name, torch.zeros(6, dtype=torch.int64))

    def update(self, kb: KnowledgeBase, context: str | Sequence[str], sentences: Sequence[Any]) -> None:
        """Score one document, or several."""
        documents = [(context, sentences)] if isinstance(context, str) else _paired(context, sentences)
        sums = [0] * 6
        for name, candidates in documents:
            strict, aligned, *_ = score_claims(kb, name, candidates, method=self.method)
            counts = (
                strict.matched,
                aligned.matched,
                strict.candidates,
                strict.derivable,
                aligned.derivable,
                strict.gold,
            )
            sums = [before + new for before, new in zip(sums, counts, strict=True)]
        state: Tensor = getattr(self, self._name)
        # Without blocking: the copy of six numbers waits for nothing on the device.
        setattr(self, self._name, state + torch.tensor(sums).to(state.device, non_blocking=True))

    def compute(self) -> dict[str, Tensor]:
        """The rates of all documents together."""
        state: Tensor = getattr(self, self._name)
        strict_matched, matched, candidates, strict_derivable, derivable, gold = state.tolist()
        passes = {
            "": claim_counts(matched, candidates, derivable, gold),
            "strict_": claim_counts(strict_matched, candidates, strict_derivable, gold),
        }
        undefined = float("nan") if candidates + gold == 0 else 0.0
        return {
            f"{prefix}{rate}": torch.tensor(
                getattr(counts, rate) + undefined, dtype=rate_dtype(state.device), device=state.device
            )
            for prefix, counts in passes.items()
            for rate in ("precision", "recall", "f1")
        }


def _paired(contexts: Sequence[str], sentences: Sequence[Any]) -> list[tuple[str, Any]]:
    if len(contexts) != len(sentences):
        raise ValueError(
            f"context and sentences must be as many, but there are {len(contexts)} contexts and {len(sentences)} "
            "sequences of sentences; pass one sequence of claims for each document"
        )
    return list(zip(contexts, sentences, strict=True))
