"""A finished evaluation run, and the error of a file that can be read as more than one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyweave_torch.layout import printable, shown

_LISTED = 40
"""Choices that a message shows."""


class ChoiceError(ValueError):
    """More than one reading is possible; names the option that decides and the values that it may take."""

    reason: str
    """What is open, in words, without the choices."""
    option: str
    """The option that decides, as Python calls it."""
    choices: list[str]
    """The values that it may take; empty where any value may do."""

    def __init__(self, message: str, *, option: str, choices: Sequence[str] = ()) -> None:
        self.reason = message
        self.option = option
        self.choices = [str(choice) for choice in choices]
        more = f" and {len(self.choices) - _LISTED} more" if len(self.choices) > _LISTED else ""
        listed = f": {', '.join(map(shown, self.choices[:_LISTED]))}{more}" if self.choices else ""
        super().__init__(f"{printable(message)}; choose with {option}= (on the command line --{option}){listed}")


@dataclass(frozen=True, eq=False)
class Run:
    """One finished evaluation run, one row an item. Rows stand in the order of the file."""

    name: str
    """The arm or model where that is known, else the file."""
    path: str
    """Where it was read from, as it was given."""
    format: str
    """One of the formats of :func:`~polyweave_torch.evallogs.read_run`."""
    ids: list[str]
    """Unique, as the run names its items; whole numbers as decimal text (see ``id_kind``)."""
    correct: NDArray[np.int8]
    """1 right, 0 wrong, -1 unscored or failed (see ``errors``); all -1 where ``scores`` are given."""
    errors: NDArray[np.bool_]
    """Where the run failed on the item."""
    slices: list[str] | None = None
    """The slice of each item, where the run knows one."""
    answers: list[str | None] | None = None
    """What the run answered to each item, where it says so."""
    scores: NDArray[np.float64] | None = None
    """Only where outcomes are not 0 and 1, and no threshold was given; NaN unscored or failed."""
    prompts: list[str] | None = None
    """A hash of what was asked, to see where runs differ in prompts; "" unknown."""
    details: dict[str, str] = field(default_factory=dict)
    """What is known of the run: model, task, n-shot, harness, ..."""
    warnings: list[str] = field(default_factory=list)
    """What should be known before the run is believed."""
    id_kind: Literal["int", "text"] = "text"
    """Whether the file holds ids as numbers or as text."""
    hashes: list[str] | None = None
    """A hash of each item's content, where the run knows one: it must agree with the ids."""
    only_right: bool = False
    """The run names only the items that it got right, so which it got wrong depends on the universe."""
    task: str | None = None
    """The one task of the run, which its ids don't name; in runs over several, ids start with the task and a slash."""
    slice_of: Callable[[str], str] | None = None
    """The slice of an item that the run does not name, where it follows from the id."""
