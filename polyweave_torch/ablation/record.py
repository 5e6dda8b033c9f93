"""The record of a run: the file of outcomes, and beside it a manifest of the cases and conditions that it is of."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from polyweave_torch.ablation.cases import Case
from polyweave_torch.ablation.outcomes import Condition, Outcome, SimulatedOutcome, parse_outcomes
from polyweave_torch.evallogs.json_values import read_document
from polyweave_torch.layout import clipped, counted

LIVE, SIMULATED = "LIVE", "SIMULATED"

_SHOWN = 5


class Manifest(NamedTuple):
    """What a run is of. Outcomes of two manifests don't belong into one file."""

    mode: str
    model: str
    cases: dict[str, str]
    """A digest of each case by id, in the run's order."""
    conditions: dict[str, str]
    """A digest of each condition's options by name."""
    evaluator: str = ""
    """What the evaluator calls itself; empty where that is not known."""

    @classmethod
    def of(
        cls,
        cases: Sequence[Case],
        conditions: Sequence[Condition],
        *,
        model: str,
        simulated: bool,
        evaluator: str = "",
    ) -> Self:
        """The manifest of a run over these."""
        return cls(
            SIMULATED if simulated else LIVE,
            model,
            {case.id: _digest(case._asdict(), f"case {_named(case.id)}") for case in cases},
            {c.name: _digest(c.options, f"condition {_named(c.name)}") for c in conditions},
            evaluator,
        )

    @property
    def outcome(self) -> type[Outcome]:
        """What the lines of its outcomes are."""
        return SimulatedOutcome if self.mode == SIMULATED else Outcome

    def changes(self, now: Self) -> list[str]:
        """What differs in ``now``, in words."""
        facts = [("the mode", self.mode, now.mode), ("the model", self.model, now.model)]
        # Files that were begun before evaluators were recorded go on.
        facts += [("the evaluator", self.evaluator, now.evaluator)] if self.evaluator else []
        changed = [
            f"{what} was {_named(before)} and is {_named(after)}" for what, before, after in facts if before != after
        ]
        return [
            *changed,
            *_changes("case", self.cases, now.cases),
            *_changes("condition", self.conditions, now.conditions),
        ]

    def write(self, outcomes: Path) -> None:
        """Put it beside the file of outcomes, whole or not at all."""
        path = manifest_path(outcomes)
        draft = path.with_name(path.name + ".new")
        with open(draft, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, **self._asdict()}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        sync_folder(path.parent)


def manifest_path(outcomes: Path) -> Path:
    """Where the manifest of a file of outcomes lies."""
    return outcomes.with_name(outcomes.name + ".manifest")


def read_manifest(outcomes: Path) -> Manifest | None:
    """The manifest beside a file of outcomes; None where there is none.

    Raises:
        ValueError: where the file there is no manifest.
    """
    path = manifest_path(outcomes)
    if not path.exists():
        return None
    try:
        fields = read_document(path)
        manifest = Manifest(**{name: fields[name] for name in Manifest._fields if name in fields})
        if not isinstance(manifest.cases, dict) or not isinstance(manifest.conditions, dict):
            raise TypeError("cases and conditions must be objects")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no manifest of a run ({error}); remove it if it isn't ours") from error
    return manifest


def read_outcomes(path: str | Path) -> Iterator[Outcome]:
    """The outcomes of a file that :func:`run_ablation` wrote, one at a time; a torn last line is left out.

    Those of a simulator come as :class:`SimulatedOutcome`, which the manifest beside the file knows.

    Args:
        path: the file, the ``out`` of the run.

    Yields:
        :class:`Outcome`, in the order of the file.

    Raises:
        ValueError: where a line other than the last one is no outcome.

    Example:
        >>> import tempfile
        >>> from polyweave_torch.ablation import FunctionEvaluator, run_ablation
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     out, arms = Path(folder) / "run.jsonl", [Condition("old"), Condition("new")]
        ...     evaluate = FunctionEvaluator(lambda case, condition: condition.name == "new")
        ...     _ = run_ablation([Case("a", "easy")], arms, evaluate, out=out)
        ...     [(outcome.condition, outcome.first_try) for outcome in read_outcomes(out)]
        [('old', False), ('new', True)]
    """
    manifest = read_manifest(Path(path))
    kind = Outcome if manifest is None else manifest.outcome
    return (outcome for outcome, _ in parse_outcomes(Path(path), kind))


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder; Windows has no such call."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _changes(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    kinds = {
        "gone": [name for name in before if name not in now],
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and before[name] != now[name]],
    }
    changes = [f"{counted(len(names), what)} {kind} ({_listed(names)})" for kind, names in kinds.items() if names]
    if not changes and list(before) != list(now):
        changes = [f"the order of the {what}s changed"]
    return changes


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(_named, names[:_SHOWN])) + more


def _named(name: object) -> str:
    return repr(clipped(str(name)))


def _digest(value: Any, what: str) -> str:
    # What JSON has no form for goes by its type: a repr may hold an address, which is another one in every process.
    try:
        text = json.dumps(
            value, sort_keys=True, default=lambda other: f"{type(other).__module__}.{type(other).__qualname__}"
        )
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply") from error
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
