"""From what a step gives to one outcome a sample."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.callbacks._observe import Observed

OutcomeFunction = Callable[[Any, Any, Any], Any]

PREDICTION_NAMES = ("preds", "pred", "predictions", "y_hat", "logits", "probs")
TARGET_NAMES = ("target", "targets", "label", "labels", "y", "y_true")


class BatchOutcomes(NamedTuple):
    """One batch, one row a sample, on the device it came from. Values are checked at the end of the epoch."""

    correct: Tensor
    """``[N]`` bool or 0/1."""
    target: Tensor | None
    """``[N]`` int64 classes."""
    prediction: Tensor | None
    """``[N]`` int64 classes."""
    num_classes: int | None
    """Classes that the predictions know, where that is known."""


def read_outcomes(
    source: str | OutcomeFunction,
    observed: list[Observed],
    pl_module: Any,
    batch: Any,
    outputs: Any,
    *,
    threshold: float | None,
    ignore_index: int | None,
) -> BatchOutcomes:
    """Find the outcomes of a batch in the decided source."""
    if source == "observe":
        return _from_observed(observed, threshold, ignore_index)
    if callable(source):
        result = source(pl_module, batch, outputs)
        if isinstance(result, tuple) and len(result) == 2:
            return compare(*result, threshold=threshold, ignore_index=ignore_index)
        return _from_correct(torch.as_tensor(result))
    preds, target = _named(outputs, PREDICTION_NAMES), _named(outputs, TARGET_NAMES)
    if target is None:
        target = _named(batch, TARGET_NAMES)
    if target is None and isinstance(batch, (tuple, list)) and len(batch) == 2 and isinstance(batch[1], Tensor):
        target = batch[1]
    if preds is None or target is None:
        raise ValueError(_nothing_found(outputs, "predictions" if preds is None else "targets"))
    return compare(preds, target, threshold=threshold, ignore_index=ignore_index)


def decide_source(outcomes: str | OutcomeFunction, observed: list[Observed], outputs: Any) -> str | OutcomeFunction:
    """Pin ``"auto"`` to a source: ``observe`` if the step called it, else its outputs."""
    if outcomes != "auto":
        if outcomes == "observe" and not observed:
            raise ValueError("outcomes='observe', but the step did not call observe(preds, target); add that line")
        return outcomes
    return "observe" if observed else "outputs"


def compare(preds: Tensor, target: Tensor, *, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    """Outcomes of classes or scores against targets, one a sample."""
    if len(preds) != len(target):
        raise ValueError(f"predictions have {len(preds)} rows, but targets {len(target)}; both must be one a sample")
    if preds.is_floating_point():
        return _compare_scores(preds, target, threshold, ignore_index)
    if preds.dim() != 1 or target.dim() != 1:
        raise ValueError(_per_element(preds, target))
    return _compare_classes(preds.to(torch.int64), target, None, ignore_index)


def _compare_scores(preds: Tensor, target: Tensor, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    if preds.dim() == 2 and target.dim() == 1 and preds.shape[1] > 1:
        return _compare_classes(preds.argmax(1), target, preds.shape[1], ignore_index)
    scores = preds.squeeze(1) if preds.dim() == 2 and preds.shape[1] == 1 else preds
    labels = target.squeeze(1) if target.dim() == 2 and target.shape[1] == 1 else target
    if scores.shape != labels.shape or scores.dim() > 2:
        raise ValueError(_per_element(preds, target))
    if threshold is None:
        raise ValueError(
            f"predictions of shape {list(preds.shape)} with targets of shape {list(target.shape)} are binary or "
            "multi-label scores, which may be logits or probabilities; pass threshold= (0.0 for logits, 0.5 for "
            "probabilities)"
        )
    chosen = scores > threshold
    if scores.dim() == 1:
        return _compare_classes(chosen.to(torch.int64), labels, 2, ignore_index)
    # A multi-label sample is right where all of its labels are; it has no single class to keep.
    return BatchOutcomes((chosen == labels.to(torch.bool)).all(1), None, None, None)


def _compare_classes(
    classes: Tensor, target: Tensor, num_classes: int | None, ignore_index: int | None
) -> BatchOutcomes:
    labels = target.to(torch.int64)
    correct = (classes == labels).to(torch.int8)
    if ignore_index is not None:
        correct = correct.masked_fill(labels == ignore_index, IGNORED)
    return BatchOutcomes(correct, labels, classes, num_classes)


IGNORED = -1


def _from_observed(observed: list[Observed], threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    if len(observed) != 1:
        raise ValueError(
            f"observe was called {len(observed)} times in one step; call it once a batch, with one row a sample "
            "(monitor several heads with one monitor each and outcomes=function)"
        )
    call = observed[0]
    if call.correct is not None:
        return _from_correct(call.correct)
    if call.preds is None or call.target is None:
        raise ValueError("observe was called with votes only; this monitor needs preds with target, or correct")
    return compare(call.preds, call.target, threshold=threshold, ignore_index=ignore_index)


def _from_correct(correct: Tensor) -> BatchOutcomes:
    if correct.dim() != 1:
        raise ValueError(f"correct must have one outcome a sample, shape [N], but came with {list(correct.shape)}")
    return BatchOutcomes(correct, None, None, None)


def _named(holder: Any, names: tuple[str, ...]) -> Tensor | None:
    for name in names:
        found = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
        if isinstance(found, Tensor):
            return found
    return None


def _nothing_found(outputs: Any, what: str) -> str:
    if outputs is None:
        returned = "nothing"
    elif isinstance(outputs, Mapping):
        returned = f"a mapping with the keys {sorted(map(str, outputs))}"
    else:
        returned = f"a {type(outputs).__name__}"
    return (
        f"no {what} found: validation_step returned {returned}. Add observe(preds, target) to the step "
        "(from polyweave_torch.callbacks import observe), return a dict with 'preds' and 'target', "
        "or pass outcomes=function(pl_module, batch, outputs)"
    )


def _per_element(preds: Tensor, target: Tensor) -> str:
    return (
        f"predictions of shape {list(preds.shape)} with targets of shape {list(target.shape)} have one outcome an "
        "element, not one a sample; say when a sample is right: observe(correct=...) with shape [N]"
    )
