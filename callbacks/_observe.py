"""``observe``: one line in a step that hands outcomes to the monitors that listen."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from torch import Tensor


class Observed(NamedTuple):
    """The arguments of one call of :func:`observe`."""

    preds: Tensor | None
    target: Tensor | None
    correct: Tensor | None
    votes: Tensor | None
    ids: Any
    slices: Any


_listening: ContextVar[list[Observed] | None] = ContextVar("polyweave_torch_observed", default=None)


def observe(
    preds: Tensor | None = None,
    target: Tensor | None = None,
    *,
    correct: Tensor | None = None,
    votes: Tensor | None = None,
    ids: Tensor | Sequence[Any] | None = None,
    slices: Tensor | Sequence[Any] | None = None,
) -> None:
    """Hand this batch's predictions or outcomes to the monitors. Does nothing where no monitor listens.

    Call it once in ``validation_step``, with one row a sample, in the order of the batch.

    Args:
        preds: ``[N]`` classes, or ``[N, C]`` logits or probabilities.
        target: ``[N]`` right classes.
        correct: ``[N]`` whether each sample is right, in place of ``preds`` and ``target``.
        votes: ``[N, M]`` classes predicted by the M members of an ensemble.
        ids: one id a sample, where the monitors cannot find it themselves.
        slices: one slice label a sample.

    Raises:
        ValueError: where neither ``preds`` with ``target`` nor ``correct`` nor ``votes`` came.

    Example:
        >>> import torch
        >>> from polyweave_torch.callbacks import observe
        >>> observe(torch.tensor([1, 0]), torch.tensor([1, 1]))  # outside of a monitored step: nothing happens
    """
    if correct is None and votes is None and (preds is None or target is None):
        raise ValueError("observe needs preds with target, or correct, or votes; pass one of them")
    calls = _listening.get()
    if calls is not None:
        calls.append(Observed(preds, target, correct, votes, ids, slices))


def listen() -> list[Observed]:
    """Open a batch: calls of :func:`observe` go into the returned list until :func:`stop_listening`.

    All who listen to one batch share its list; the first to close it leaves the others what is in it.
    """
    calls = _listening.get()
    if calls is None:
        calls = []
        _listening.set(calls)
    return calls


def stop_listening() -> None:
    """Close the batch."""
    _listening.set(None)
