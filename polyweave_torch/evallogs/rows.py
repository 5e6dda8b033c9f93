"""From the rows of a log to a run: one outcome an item, in arrays."""

import hashlib
import json
import math
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyweave_torch.evallogs.epochs import EPOCHS, epoch_order, epoch_warnings, reduce_epochs
from polyweave_torch.evallogs.options import Options
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.layout import clipped, shown

_T = TypeVar("_T")
_WANTED = "expected an outcome (true or false, yes or no, a number)"
_WORDS = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "correct", "right", "resolved", "1"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed", "incorrect", "wrong", "unresolved", "0"), 0.0),
    **dict.fromkeys(("", "nan", "none", "null", "na", "n/a"), math.nan),
}


def outcome(value: Any, where: str) -> float:
    """A logged outcome as a number: 1 right, 0 wrong, NaN unscored, else a score."""
    if value is True or value is False:
        return float(value)
    if value is None:
        return math.nan
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
    if isinstance(value, (str, bool, int, float)):
        try:
            number = float(value)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{where}: {_WANTED}, but found {clipped(str(value))!r}") from error
        if math.isinf(number):
            raise ValueError(f"{where}: {_WANTED}, but found an infinite score")
        return number
    parts = f" with {shown(', '.join(map(str, value)))}" if isinstance(value, Mapping) and value else ""
    raise ValueError(f"{where}: {_WANTED}, but found {type(value).__name__}{parts}")


def fingerprint(value: Any) -> str:
    """A short hash of anything that JSON can hold, the same in every process."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Rows:
    """The rows of one log as they are read; memory grows with their number, not with their size."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        self._items: dict[str, int] = {}
        self._codes = array("q")
        self._values = array("d")
        self._failed = bytearray()
        self._epochs: list[float | str | None] = []
        self._slices: list[str | None] = []
        self._answers: list[str | None] = []
        self._prompts: list[str] = []
        self._hashes: list[str] = []
        self._texts: dict[str, str] = {}
        self._whole_numbers = True

    def __len__(self) -> int:
        return len(self._values)

    @property
    def repeated(self) -> bool:
        """Whether an item has more than one row."""
        return len(self._items) < len(self._values)

    def add(
        self,
        where: str,
        item: Any,
        value: float,
        *,
        failed: bool = False,
        epoch: float | str | None = None,
        slice: str | None = None,
        answer: str | None = None,
        prompt: str = "",
        content: str = "",
    ) -> None:
        """Take one row.

        Args:
            where: its place, for errors.
            item: its id.
            value: see :func:`outcome`.
            failed: whether the run failed on it; its value doesn't count then.
            epoch: which attempt this is; None where rows of one item are attempts in the order of the file.
            slice: its slice.
            answer: what the run answered.
            prompt: a hash of what was asked.
            content: a hash of the item.
        """
        if epoch is not None and not isinstance(epoch, (int, float, str)):
            raise ValueError(f"{where}: expected the number or name of an epoch, but found {str(epoch)[:40]!r}")
        self._codes.append(self._items.setdefault(self._name(item, where), len(self._items)))
        self._values.append(math.nan if failed else value)
        self._failed.append(failed)
        self._epochs.append(epoch)
        self._slices.append(None if slice is None else self._text(slice))
        self._answers.append(None if answer is None else self._text(answer))
        self._prompts.append(self._text(prompt) if prompt else "")
        self._hashes.append(content)

    def _name(self, item: Any, where: str) -> str:
        if isinstance(item, str) and item:
            self._whole_numbers = False
            return printable(item)
        if isinstance(item, float) and item.is_integer():
            item = int(item)
        if isinstance(item, int) and not isinstance(item, bool):
            return str(item)
        raise ValueError(f"{where}: expected an id (text or a whole number), but found {str(item)[:40]!r}")

    def _text(self, text: str) -> str:
        # Slices, answers and prompts repeat: one string serves all rows.
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = printable(text)
        return known

    def finish(self, options: Options, *, format: str, details: Mapping[str, str], warnings: list[str]) -> Run:
        """One row an item: repeats reduced as asked, outcomes told from scores. The run has no name yet."""
        if not self._values:
            raise ValueError(f"{self.path}: no rows to compare")
        values, failed = np.array(self._values), np.frombuffer(bytes(self._failed), np.bool_)
        details, warnings = {**details}, list(warnings)
        if options.threshold is not None:
            values = np.where(np.isnan(values), values, values >= options.threshold)
        rows = np.arange(len(values))
        if self.repeated:
            codes, order = np.array(self._codes), epoch_order(self._epochs)
            self._check_attempts(codes, order)
            how = self._how(options, values)
            warnings += epoch_warnings(codes, values, how)
            values, failed, rows = reduce_epochs(codes, order, values, failed, how)
            details["epochs"] = how
        # An item's mean is a score even where all of them happen to be 0 or 1 in this run.
        scores = None if is_binary(values) and details.get("epochs") != "mean" else values
        correct = np.nan_to_num(values, nan=-1) if scores is None else np.full(len(values), -1)
        lone = not self.repeated or options.epochs == "first"
        return Run(
            name="",
            path=self.path,
            format=format,
            ids=list(self._items),
            correct=correct.astype(np.int8),
            errors=failed,
            slices=[name or "(none)" for name in _taken(self._slices, rows)] if any(self._slices) else None,
            answers=_taken(self._answers, rows) if lone and any(self._answers) else None,
            scores=scores,
            prompts=_taken(self._prompts, rows) if any(self._prompts) else None,
            details={key: printable(value) for key, value in details.items()},
            warnings=warnings,
            id_kind="int" if self._whole_numbers else "text",
            hashes=_taken(self._hashes, rows) if any(self._hashes) else None,
        )

    def _how(self, options: Options, values: NDArray[np.float64]) -> str:
        if options.epochs is None:
            number = np.bincount(np.array(self._codes))
            item = int(np.argmax(number > 1))
            raise ChoiceError(
                f"{self.path} has {len(self)} rows for {len(self._items)} items, for instance {number[item]} of "
                f"{clipped(list(self._items)[item])!r}, and repeats of an item are not items",
                option="epochs",
                choices=EPOCHS,
            )
        if options.epochs not in EPOCHS:
            raise ValueError(f"epochs must be one of {', '.join(EPOCHS)}, but is {options.epochs!r}")
        if options.epochs in ("majority", "any", "all") and not is_binary(values):
            raise ChoiceError(
                f"{self.path} has scores that are not 0 and 1, of which epochs={options.epochs!r} can't be taken",
                option="threshold",
            )
        return options.epochs

    def _check_attempts(self, codes: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        _, first, number = np.unique(codes * (order.max() + 1) + order, return_index=True, return_counts=True)
        if number.max() > 1:
            row = int(first[number > 1][0])
            names = list(self._items)
            raise ValueError(
                f"{self.path}: {int((number > 1).sum())} items stand twice, such as {clipped(names[codes[row]])!r}"
                + (f" in epoch {self._epochs[row]}" if len(set(order.tolist())) > 1 else "")
                + "; each must have one row (choose another id with id=, --id)"
            )


def is_binary(values: NDArray[np.float64]) -> bool:
    """Whether all that is scored is 0 or 1."""
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())


def printable(text: str) -> str:
    """Text that can be written as UTF-8: JSON can hold halves of characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _taken(values: list[_T], rows: NDArray[np.int64]) -> list[_T]:
    return values if len(rows) == len(values) else [values[row] for row in rows.tolist()]
