"""What came of a case under a condition, and the file that keeps it: one JSON line an outcome."""

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from polyweave_torch.evallogs.json_values import parse
from polyweave_torch.evallogs.source import byte_lines, decode
from polyweave_torch.layout import clipped, shown

_LINE_START = b'{"case_id": '
COUNT_LIMIT = 2**63
"""Counts lie below it: they are kept in 64 bits."""


class Condition(NamedTuple):
    """One arm: a name, and the options that make it what it is."""

    name: str
    """What reports call it."""
    options: Mapping[str, Any] = {}
    """What the evaluator needs to know to put it into force."""


class Outcome(NamedTuple):
    """One case under one condition: what the pairs are made of."""

    case_id: str
    """The case's id."""
    stratum: str
    """The case's stratum."""
    condition: str
    """The condition's name."""
    first_try: bool
    """Right at the first attempt: the outcome that the tests compare."""
    converged: bool
    """Right within the budget of attempts."""
    iterations: int
    """Attempts made, up to the right one where there is one."""
    struct_errors0: int = 0
    """Structural errors of the first attempt."""
    sem_errors0: int = 0
    """Semantic errors of the first attempt."""
    refused: bool = False
    """Whether the model declined to answer."""
    input_tokens: int = 0
    """Tokens that were read, over all attempts."""
    output_tokens: int = 0
    """Tokens that were written, over all attempts."""
    cost_usd: float = 0.0
    """What all attempts cost, in US dollars."""
    engaged: Mapping[str, bool] = {}
    """Of each treatment that the condition asked for, whether it was really in force, or fell back to plain."""
    error: str | None = None
    """What went wrong, where the case could not be evaluated."""

    @property
    def failed(self) -> bool:
        """Refused, or an error."""
        return self.refused or bool(self.error)

    def plain(self) -> Self:
        """The same in Python's own types, as it comes back from a file; numbers may have been numpy's or torch's.

        Raises:
            ValueError: where a flag is neither true nor false, a count no whole number, or the cost not finite.
        """
        case = clipped(str(self.case_id))
        engaged = self.engaged
        if not isinstance(engaged, Mapping):
            raise ValueError(_unlike("engaged", case, "a mapping of names to true or false", engaged))
        return self._replace(
            first_try=_flag(self.first_try, "first_try", case),
            converged=_flag(self.converged, "converged", case),
            iterations=_count(self.iterations, "iterations", case),
            struct_errors0=_count(self.struct_errors0, "struct_errors0", case),
            sem_errors0=_count(self.sem_errors0, "sem_errors0", case),
            refused=_flag(self.refused, "refused", case),
            input_tokens=_count(self.input_tokens, "input_tokens", case),
            output_tokens=_count(self.output_tokens, "output_tokens", case),
            cost_usd=_cost(self.cost_usd, case),
            engaged={str(name): _flag(on, "engaged", case) for name, on in engaged.items()},
            error=str(self.error) if self.error else None,
        )


class SimulatedOutcome(Outcome):
    """An outcome that no model had a part in. Every analysis with one among its outcomes is marked SIMULATED."""

    __slots__ = ()


def python_number(value: Any) -> Any:
    """A number of numpy's or torch's as Python's own; anything else as it is."""
    shape = getattr(value, "shape", None)
    return value if shape is None or math.prod(shape) != 1 else value.item()


def _flag(value: Any, name: str, case: str) -> bool:
    if value is True or value is False:
        return bool(value)
    flag = python_number(value)
    if isinstance(flag, (bool, int, float)) and flag in (0, 1):
        return bool(flag)
    raise ValueError(_unlike(name, case, "true or false", value))


def _count(value: Any, name: str, case: str) -> int:
    count = python_number(value)
    whole = isinstance(count, int) or (isinstance(count, float) and count.is_integer())
    if whole and abs(count) < COUNT_LIMIT:
        return int(count)
    raise ValueError(_unlike(name, case, "a whole number of at most 64 bits", value))


def _cost(value: Any, case: str) -> float:
    cost = python_number(value)
    # A whole number may be larger than any float.
    if isinstance(cost, (int, float)) and abs(cost) <= sys.float_info.max:
        return float(cost)
    raise ValueError(f"{_unlike('cost_usd', case, 'a finite number', value)}; give 0.0 where it is not known")


def _unlike(name: str, case: str, expected: str, value: Any) -> str:
    return f"{name} of case {case!r} is {shown(repr(value), 60)}, but must be {expected}"


def append_outcomes(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write one line an outcome, and wait until the disk has them."""
    lines = "".join(json.dumps(outcome._asdict(), allow_nan=False) + "\n" for outcome in outcomes)
    with open(path, "ab") as file:
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def parse_outcomes(path: Path, kind: type[Outcome] = Outcome) -> Iterator[tuple[Outcome, int]]:
    """Each outcome of a file with the byte where its line ends. A torn last line, of a run that was killed while it
    wrote, is left out.

    Raises:
        ValueError: where another line is no outcome.
    """
    end = 0
    lines = byte_lines(path)
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            return
        try:
            outcome = _outcome(line, f"{path}:{number}", kind)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            if next(lines, None) is None:
                return
            raise ValueError(
                f"{path}:{number} is no outcome ({error}), and as it is not the last line, no killed run explains "
                "it; take it out to have its case evaluated again, or start over with resume=False (--restart)"
            ) from error
        end += len(line)
        yield outcome, end


def _outcome(line: bytes, where: str, kind: type[Outcome]) -> Outcome:
    outcome = kind(**parse(decode(line, where).strip(), where))
    for name in ("case_id", "stratum", "condition"):
        if not isinstance(getattr(outcome, name), str):
            raise TypeError(f"{name} must be text, but is {clipped(repr(getattr(outcome, name)), 60)}")
    return outcome.plain()


def recover_outcomes(path: Path, kind: type[Outcome] = Outcome) -> tuple[list[Outcome], int]:
    """The outcomes of a file, and how many bytes of a torn last line were cut off its end.

    Raises:
        ValueError: where another line is no outcome, or the file is not one of outcomes; it is left as it is then.
    """
    lines = list(parse_outcomes(path, kind))
    end = lines[-1][1] if lines else 0
    torn = path.stat().st_size - end
    if torn:
        with open(path, "r+b") as file:
            start = file.read(len(_LINE_START))
            if not _LINE_START.startswith(start):
                raise ValueError(
                    f"{path} holds no outcomes, but begins with {start!r}; choose another file to write to"
                )
            file.truncate(end)
            os.fsync(file.fileno())
    return [outcome for outcome, _ in lines], torn


def by_pair(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Outcome]:
    """The outcomes by case and condition.

    Raises:
        ValueError: where a pair of case and condition comes twice.
    """
    pairs: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = (outcome.case_id, outcome.condition)
        if key in pairs:
            raise ValueError(twice(*key))
        pairs[key] = outcome
    return pairs


def twice(case_id: str, condition: str) -> str:
    """What to say of a pair that comes twice."""
    case_id, condition = clipped(case_id), clipped(condition)
    return f"case {case_id!r} has two outcomes under condition {condition!r}; a pair of case and condition must be one"
