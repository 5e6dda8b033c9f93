"""From two runs to the events of :class:`~polyweave_torch.ProtocolChannels`."""

from collections.abc import Iterator
from typing import TypedDict

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.run import Run


class Event(TypedDict):
    """The arguments of :meth:`~polyweave_torch.ProtocolChannels.record`."""

    before_correct: bool
    """Whether it was right before the step."""
    after_correct: bool
    """Whether it was right after it."""
    protocol_id: str
    """The name of the step."""
    slice: str
    """The slice of the item; ``default_slice`` where no run knows one."""


def to_events(
    run_before: Run, run_after: Run, *, protocol_id: str | None = None, default_slice: str = "all"
) -> Iterator[Event]:
    """One event for each item that both runs have an outcome of.

    Args:
        run_before: the run before the step.
        run_after: the run after it.
        protocol_id: the name of the step; None: ``<before> -> <after>``.
        default_slice: the slice of all items where no run knows one.

    Raises:
        ValueError: where the runs have scores that are not 0 and 1, or can't be aligned.

    Example:
        >>> import numpy as np
        >>> from polyweave_torch import ProtocolChannels
        >>> from polyweave_torch.evallogs import Run
        >>> none = np.zeros(2, bool)
        >>> before = Run("base", "base.csv", "csv", ["a", "b"], np.array([0, 1], np.int8), none)
        >>> after = Run("tuned", "tuned.csv", "csv", ["b", "a"], np.array([1, 1], np.int8), none)
        >>> channels = ProtocolChannels()
        >>> for event in to_events(before, after):
        ...     estimate = channels.record(**event)
        >>> channels.counts("base -> tuned").tolist()
        [[0, 1], [0, 1]]
    """
    aligned = align([run_before, run_after])
    if aligned.scores is not None:
        raise ValueError("runs with scores have no right and wrong; read them with threshold=")
    step = f"{run_before.name} -> {run_after.name}" if protocol_id is None else protocol_id
    # Rows go out one by one: a list of events would take more memory than the runs.
    return (
        Event(
            before_correct=before,
            after_correct=after,
            protocol_id=step,
            slice=default_slice if aligned.slices is None else aligned.slices[item],
        )
        for item, (before, after) in enumerate(aligned.correct.tolist())
    )
