"""Outcomes as columns: a few bytes each, however many there are."""

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyweave_torch.ablation.outcomes import COUNT_LIMIT, Outcome, SimulatedOutcome, twice

Flags = NDArray[np.bool_]

_FLAGS, _COUNTS = ("first_try", "converged", "refused"), ("iterations", "struct_errors0", "sem_errors0")
_KINDS = {**dict.fromkeys(_FLAGS, bool), **dict.fromkeys(_COUNTS, int), "cost_usd": float, "engaged": dict}

# Few enough that a block stays in cache.
_AT_ONCE = 256


class Columns(NamedTuple):
    """One entry an outcome in each array but ``case_stratum``."""

    cases: list[str]
    conditions: list[str]
    strata: list[str]
    case_stratum: NDArray[np.int64]
    """Of each case, its stratum."""
    case: NDArray[np.int32]
    condition: NDArray[np.int32]
    stratum: NDArray[np.int32]
    right: Flags
    """At the first try, and neither refused nor an error."""
    converged: Flags
    refused: Flags
    error: Flags
    iterations: NDArray[np.int64]
    struct_errors: NDArray[np.int64]
    sem_errors: NDArray[np.int64]
    cost: NDArray[np.float64]
    treatment: NDArray[np.int32]
    treatments: list[tuple[tuple[str, bool], ...]]
    """The distinct ``engaged`` of outcomes."""
    simulated: bool
    error_examples: dict[str, str]
    """The first error of each condition that has any."""

    def kept(self, errors: str) -> Flags:
        """Which outcomes count."""
        return ~(self.error | self.refused) if errors == "drop" else np.ones_like(self.error)

    def counts(self) -> dict[str, int]:
        """Cases of each stratum."""
        numbers = np.bincount(self.case_stratum, minlength=len(self.strata)).tolist()
        return dict(zip(self.strata, numbers, strict=True))

    def outcome_matrix(self, *, kept: Flags) -> tuple[Tensor, Tensor]:
        """Right [N, K] and observed [N, K], both bool."""
        cell = self.case.astype(np.int64) * len(self.conditions) + self.condition
        matrices = []
        for where in (kept & self.right, kept):
            flags = np.zeros(len(self.cases) * len(self.conditions), dtype=np.bool_)
            flags[cell[where]] = True
            matrices.append(torch.from_numpy(flags.reshape(len(self.cases), len(self.conditions))))
        return matrices[0], matrices[1]

    def engaged(self, where: NDArray[np.int64]) -> dict[str, int]:
        """In how many of these outcomes each treatment was in force, for all treatments that they name."""
        often = np.bincount(self.treatment[where], minlength=len(self.treatments)).tolist()
        counts: dict[str, int] = {}
        for engaged, number in zip(self.treatments, often, strict=True):
            for name, on in engaged if number else ():
                counts[name] = counts.get(name, 0) + (number if on else 0)
        return counts


# Index of case, condition, stratum and treatment; four flags; three numbers; cost.
_TYPES: tuple[Any, ...] = (*[np.int32] * 4, *[np.bool_] * 4, *[np.int64] * 3, np.float64)


class _Codes:
    """Numbers for values, as declared, or in the order in which they first come."""

    def __init__(self, declared: Sequence[str] = ()) -> None:
        self._declared = len(declared)
        self._code: defaultdict[Any, int] = defaultdict(count().__next__)
        self(declared)

    def __call__(self, values: Iterable[Any]) -> list[int]:
        return list(map(self._code.__getitem__, values))

    def values(self) -> list[Any]:
        return list(self._code)

    def check(self, what: str) -> None:
        """Refuse values that were not declared, where any were."""
        declared, strangers = self.values()[: self._declared], self.values()[self._declared :]
        if declared and strangers:
            raise ValueError(
                f"an outcome is of {what} {strangers[0]!r}, but declared are {', '.join(map(repr, declared))}"
            )


def read_columns(
    outcomes: Iterable[Outcome], *, strata: Sequence[str] | None, conditions: Sequence[str] | None
) -> Columns:
    """Read outcomes, a block at a time.

    Raises:
        ValueError: where a field of an outcome is not of its kind, a pair of case and condition comes twice, a case is
            in two strata, or a stratum or condition is not among the declared ones.
    """
    codes = (_Codes(), _Codes(conditions or ()), _Codes(strata or ()), _Codes())
    error_examples: dict[str, str] = {}
    arrays, simulated = _grown(outcomes, codes, error_examples)
    codes[1].check("condition")
    codes[2].check("stratum")
    case, condition, stratum, treatment, first, converged, refused, error, iterations, struct, sem, cost = arrays
    cases, conditions_, strata_, treatments = (code.values() for code in codes)
    _check_pairs(case, condition, cases, conditions_)
    failed = refused | error
    return Columns(
        cases=cases,
        conditions=conditions_,
        strata=strata_,
        case_stratum=_case_strata(case, stratum, cases, strata_),
        case=case,
        condition=condition,
        stratum=stratum,
        right=first & ~failed,
        converged=converged & ~failed,
        refused=refused,
        error=error,
        iterations=iterations,
        struct_errors=struct,
        sem_errors=sem,
        cost=cost,
        treatment=treatment,
        treatments=treatments,
        simulated=simulated,
        error_examples=error_examples,
    )


def _grown(
    outcomes: Iterable[Outcome], codes: Sequence[_Codes], error_examples: dict[str, str]
) -> tuple[list[NDArray[Any]], bool]:
    """An array of each of the types, and whether any outcome is a simulator's. Fills ``error_examples``."""
    case, condition, stratum, treatment = codes
    # These grow in place; to join blocks at the end would take the memory twice.
    growing = [array(np.dtype(kind).char.replace("?", "b")) for kind in _TYPES]
    simulated = False
    for block in _blocks(outcomes):
        simulated = simulated or any(issubclass(kind, SimulatedOutcome) for kind in set(map(type, block)))
        (ids, strata, names, first, converged, iterations, struct, sem, refused, _, _, cost, engaged, error) = zip(
            *_checked(block), strict=True
        )
        indices = (case(ids), condition(names), stratum(strata), treatment(tuple(each.items()) for each in engaged))
        flags = (map(bool, values) for values in (first, converged, refused, error))
        for column, values in zip(growing, (*indices, *flags, iterations, struct, sem, cost), strict=True):
            column.extend(values)
        if any(error):
            for name, text in zip(names, error, strict=True):
                if text and name not in error_examples:
                    error_examples[name] = str(text)
    return [np.asarray(column).view(kind) for column, kind in zip(growing, _TYPES, strict=True)], simulated


def _checked(block: list[Outcome]) -> list[Outcome]:
    """The outcomes in Python's own types, which those of a file have already: to see it is faster than to make them."""
    column = dict(zip(Outcome._fields, zip(*block, strict=True), strict=True))
    if (
        all(set(map(type, column[name])) == {kind} for name, kind in _KINDS.items())
        and all(type(on) is bool for engaged in column["engaged"] for on in engaged.values())
        and all(min(column[name]) > -COUNT_LIMIT and max(column[name]) < COUNT_LIMIT for name in _COUNTS)
        and all(map(math.isfinite, column["cost_usd"]))
    ):
        return block
    return [outcome.plain() for outcome in block]


def _blocks(outcomes: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    source = iter(outcomes)
    while block := list(islice(source, _AT_ONCE)):
        yield block


def _check_pairs(
    case: NDArray[np.int32], condition: NDArray[np.int32], cases: Sequence[str], conditions: Sequence[str]
) -> None:
    cell = case.astype(np.int64) * len(conditions) + condition
    often = np.flatnonzero(np.bincount(cell) > 1)
    if often.size:
        row, column = divmod(int(often[0]), len(conditions))
        raise ValueError(twice(cases[row], conditions[column]))


def _case_strata(
    case: NDArray[np.int32], stratum: NDArray[np.int32], cases: Sequence[str], strata: Sequence[str]
) -> NDArray[np.int64]:
    of_case = np.zeros(len(cases), dtype=np.int64)
    of_case[case] = stratum
    torn = np.flatnonzero(of_case[case] != stratum)
    if torn.size:
        one, other = strata[int(stratum[torn[0]])], strata[int(of_case[case[torn[0]]])]
        raise ValueError(f"case {cases[int(case[torn[0]])]!r} is of stratum {one!r} and of {other!r}; it must be one")
    return of_case
