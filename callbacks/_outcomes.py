"""From what a step gives to one outcome a sample."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.callbacks._observe import Observed

OutcomeFunction = Callable[[Any, Any, Any], Any]

SOURCES = ("auto", "observe", "outputs", "metric")
PREDICTION_NAMES = ("preds", "pred", "predictions", "y_hat", "logits", "probs")
TARGET_NAMES = ("target", "targets", "label", "labels", "y", "y_true")
IGNORED = -1


class BatchOutcomes(NamedTuple):
    """One batch, one row a sample, on the device it came from. Values are checked at the end of the epoch."""

    correct: Tensor
    """``[N]`` bool or 0/1; :data:`IGNORED` leaves a sample out."""
    target: Tensor | None
    """``[N]`` int64 classes."""
    prediction: Tensor | None
    """``[N]`` int64 classes."""
    num_classes: int | None
    """Classes that the predictions know, where that is known."""
    votes: Tensor | None = None
    """``[N, M]`` int64 classes of an ensemble's members."""


class OwnSource(NamedTuple):
    """A monitor's own way to read a batch, which sees what was observed too."""

    read: Callable[[Any, Any, Any, list[Observed]], BatchOutcomes]


Source = str | OutcomeFunction | OwnSource


def from_outputs(outputs: Any, batch: Any, *, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    """Outcomes of what ``validation_step`` returned, the target if need be from the batch."""
    preds, target = named(outputs, PREDICTION_NAMES), named(outputs, TARGET_NAMES)
    target = batch_target(batch) if target is None else target
    if preds is None or target is None:
        raise ValueError(nothing_found(outputs, "predictions" if preds is None else "targets"))
    return compare(preds, target, threshold=threshold, ignore_index=ignore_index)


def from_function(result: Any, *, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    """Outcomes of a user's function: bools, or ``(preds, target)``."""
    if isinstance(result, tuple) and len(result) == 2:
        return compare(*result, threshold=threshold, ignore_index=ignore_index)
    return from_correct(result)


def from_observed(observed: list[Observed], *, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    """Outcomes of the one call of ``observe`` in this batch."""
    call = one_call(observed)
    if call.correct is not None:
        return from_correct(call.correct)
    if call.preds is None or call.target is None:
        raise ValueError("observe was called with votes only; this monitor needs preds with target, or correct")
    return compare(call.preds, call.target, threshold=threshold, ignore_index=ignore_index)


def one_call(observed: list[Observed]) -> Observed:
    """The call of ``observe`` that speaks for this batch."""
    if len(observed) != 1:
        raise ValueError(
            f"observe was called {len(observed)} times in one step; call it once a batch, with one row a sample "
            "(watch several heads with one monitor each and outcomes=function)"
        )
    return observed[0]


def from_correct(correct: Any) -> BatchOutcomes:
    """Outcomes that are already whether each sample is right."""
    correct = as_values(correct, "correct")
    if correct.dim() != 1:
        raise ValueError(f"correct must have one outcome a sample, shape [N], but came with {list(correct.shape)}")
    return BatchOutcomes(correct, None, None, None)


def as_values(values: Any, what: str) -> Tensor:
    """A tensor, or what a tensor can be made of: a list of numbers, an array."""
    if isinstance(values, Tensor):
        return values.detach()
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{what} must be a tensor with one row a sample, but came as {type(values).__name__}; a function for "
            "outcomes= returns one bool a sample, or a tuple (preds, target)"
        ) from error


def compare(preds: Any, target: Any, *, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    """Outcomes of classes or scores against targets, one a sample."""
    preds, target = as_values(preds, "preds"), as_values(target, "target")
    if preds.dim() == 0 or target.dim() == 0 or len(preds) != len(target):
        raise ValueError(
            f"predictions of shape {list(preds.shape)} and targets of shape {list(target.shape)} do not go together; "
            "both must have one row a sample"
        )
    if preds.is_floating_point():
        return _compare_scores(preds, target, threshold, ignore_index)
    if preds.dim() != 1 or target.dim() != 1:
        raise ValueError(_per_element(preds, target))
    return _compare_classes(preds.to(torch.int64), target, None, ignore_index)


def batch_target(batch: Any) -> Tensor | None:
    """The targets of a batch where it is plain which they are: a pair, or a mapping with a usual name."""
    if isinstance(batch, (tuple, list)):
        return batch[1] if len(batch) == 2 and isinstance(batch[1], Tensor) else None
    return named(batch, TARGET_NAMES)


def named(holder: Any, names: tuple[str, ...]) -> Tensor | None:
    """The first tensor of these names in a mapping's entries or an object's attributes."""
    for name in names:
        found = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
        if isinstance(found, Tensor):
            return found
    return None


def nothing_found(outputs: Any, what: str) -> str:
    """Say what a step returned in place of outcomes, and what to do."""
    if outputs is None:
        returned = "nothing"
    elif isinstance(outputs, Mapping):
        returned = f"a mapping with the keys {sorted(map(str, outputs))}, of which tensors are read"
    else:
        returned = f"a {type(outputs).__name__}"
    return (
        f"no {what} found: validation_step returned {returned}. Add observe(preds, target) to the step "
        "(from polyweave_torch.callbacks import observe), return a dict with 'preds' and 'target', update a "
        "torchmetrics metric of the module, or pass outcomes=function(pl_module, batch, outputs)"
    )


def _compare_scores(preds: Tensor, target: Tensor, threshold: float | None, ignore_index: int | None) -> BatchOutcomes:
    if preds.dim() == 2 and target.dim() == 1 and preds.shape[1] > 1:
        classes = _compare_classes(preds.argmax(1), target, preds.shape[1], ignore_index)
        return _nan_is_wrong(classes, preds.isnan().any(1))
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
        return _nan_is_wrong(_compare_classes(chosen.to(torch.int64), labels, 2, ignore_index), scores.isnan())
    # A multi-label sample is right where all of its labels are; it has no single class to keep.
    return BatchOutcomes((chosen == labels.to(torch.bool)).all(1) & ~scores.isnan().any(1), None, None, None)


def _nan_is_wrong(outcomes: BatchOutcomes, undefined: Tensor) -> BatchOutcomes:
    """A model that diverged predicts nothing, not its first class."""
    return outcomes._replace(correct=outcomes.correct.masked_fill(undefined & (outcomes.correct != IGNORED), 0))


def _compare_classes(
    classes: Tensor, target: Tensor, num_classes: int | None, ignore_index: int | None
) -> BatchOutcomes:
    labels = target.to(torch.int64)
    correct = (classes == labels).to(torch.int8)
    if ignore_index is not None:
        correct = correct.masked_fill(labels == ignore_index, IGNORED)
    return BatchOutcomes(correct, labels, classes, num_classes)


def _per_element(preds: Tensor, target: Tensor) -> str:
    return (
        f"predictions of shape {list(preds.shape)} with targets of shape {list(target.shape)} have one outcome an "
        "element, not one a sample; say when a sample is right: observe(correct=...) with shape [N]"
        + ("; or did you swap preds and target?" if target.dim() > preds.dim() else "")
    )
