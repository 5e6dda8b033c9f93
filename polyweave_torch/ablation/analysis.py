"""The statistics of an ablation, from outcomes that may stream: nothing is kept but a few bytes of each."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyweave_torch.ablation.columns import Columns, read_columns
from polyweave_torch.ablation.outcomes import Condition, Outcome
from polyweave_torch.ablation.record import LIVE, SIMULATED
from polyweave_torch.functional import (
    CochranQResult,
    McNemarResult,
    OutcomeGram,
    cochran_q,
    holm_bonferroni,
    mcnemar,
    mcnemar_pairs,
    outcome_gram,
    paired_tables,
    target_per_stratum,
    wilson_interval,
)
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional.gram import gram_update

TARGET_PER_STRATUM = 120
"""The cases that are commonly planned for a stratum. It presumes .70 -> .80 at 80 % power with about .16 discordant
pairs, by the uncorrected chi-square, which then has 83 %. The test that decides here has 76 %, and needs 132 cases for
80 %; 25 discordant ones, fewer being called underpowered, take 156 cases, and independent arms 296."""

NO_DISCORDANTS = "INCONCLUSIVE (no discordant pairs)"
NOMINAL = "INCONCLUSIVE: nominally significant but UNDERPOWERED"
UNDERPOWERED = "INCONCLUSIVE: not significant, UNDERPOWERED"
SIGNIFICANT = "SIGNIFICANT (Holm)"
NOT_SIGNIFICANT = "not significant"


class CondStats(NamedTuple):
    """One condition, overall or in one stratum. What is undefined is None."""

    condition: str
    """Its name."""
    stratum: str
    """Empty: overall."""
    n: int
    """Outcomes that count: with ``errors="drop"`` those without error or refusal."""
    first_try_success: int
    """Of them, right at the first try."""
    p_sem: float | None
    """first_try_success / n."""
    wilson_lo: float
    """Lower end of Wilson's 95 % interval of ``p_sem``."""
    wilson_hi: float
    """Upper end."""
    mean_iter: float | None
    """Of the iterations of converged outcomes, as they were counted."""
    median_iter: float | None
    """Of the same."""
    non_converged: int
    """Outcomes that were not right within the budget of attempts."""
    theoretical_iid_bound: float | None
    """1 / p_sem: the mean iterations of independent attempts. A reference only; attempts are not independent."""
    mean_struct_err0: float | None
    """Structural errors of the first attempt, a case."""
    mean_sem_err0: float | None
    """Semantic errors of the first attempt, a case."""
    mean_cost_usd: float | None
    """US dollars a case."""
    engaged: dict[str, int]
    """In how many outcomes each treatment that the condition asked for was in force."""
    errors: int
    """Outcomes with an error, counted as wrong or left out."""
    refused: int
    """Outcomes without an error that were refused, likewise."""

    @property
    def phat(self) -> float | None:
        """``p_sem``, under the name that the document of the paired evaluation gives it."""
        return self.p_sem

    @property
    def theo_iid_bound(self) -> float | None:
        """``theoretical_iid_bound``, likewise."""
        return self.theoretical_iid_bound


class PairTest(NamedTuple):
    """Two conditions compared on the cases that both have, overall or in one stratum."""

    a: str
    """The one condition."""
    b: str
    """The other."""
    stratum: str
    """Empty: overall."""
    result: McNemarResult
    """0-d; ``b`` counts cases that a has right and b wrong, ``c`` the reverse."""
    holm_p: float
    """Adjusted in its family: all overall pairs, or the pairs of the strata."""
    verdict: str
    """One of the five verdict words."""
    n: int
    """Cases that both have."""
    cases_needed: int | None
    """Cases for 80 % power of the uncorrected chi-square at alpha / (tests of the family), and 25 discordant pairs, if
    the shares of discordant pairs seen here were the true ones; None where both are equal. See
    :func:`~polyweave_torch.functional.target_per_stratum`."""


class Analysis(NamedTuple):
    """Everything that the report says, as plain data."""

    mode: str
    """"LIVE", or "SIMULATED" where any outcome is a simulator's."""
    model: str
    """What was evaluated, as it was named; empty where it was not."""
    counts: dict[str, int]
    """Cases of each stratum, strata in their order."""
    total_cases: int
    """Cases of all strata."""
    conditions: list[str]
    """Their names, in their order."""
    per_condition: list[CondStats]
    """All conditions overall, then stratum by stratum."""
    pairwise: list[PairTest]
    """All pairs overall, one Holm family; then the first against the last condition in each stratum, another."""
    cochran: CochranQResult | None
    """Over the cases that have all conditions; None for fewer than three conditions, or without such a case."""
    note: str
    """A line that its author added."""
    alpha: float = 0.05
    """Of the tests."""
    errors: str = "wrong"
    """What became of errors and refusals: "wrong" or "drop"."""
    incomplete: int = 0
    """Cases that lack a condition, and are left out of the pairs that need it and of Cochran's Q."""
    error_examples: Mapping[str, str] = {}
    """The first error of each condition that has any."""

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON object, which :meth:`from_json` reads.

        Args:
            indent: spaces of each level, to be read by people; None: all on one line.
        """
        fields = {
            **self._asdict(),
            "per_condition": [stats._asdict() for stats in self.per_condition],
            "pairwise": [{**pair._asdict(), "result": _plain(pair.result)} for pair in self.pairwise],
            "cochran": None if self.cochran is None else _plain(self.cochran),
        }
        return json.dumps({"schema": 1, **fields}, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The analysis that :meth:`to_json` wrote."""
        fields = json.loads(text)
        cochran = fields["cochran"]
        pairs = [{**pair, "result": McNemarResult(**_tensors(pair["result"]))} for pair in fields["pairwise"]]
        return cls(
            **{name: fields[name] for name in cls._fields}
            | {
                "per_condition": [CondStats(**stats) for stats in fields["per_condition"]],
                "pairwise": [PairTest(**pair) for pair in pairs],
                "cochran": None if cochran is None else CochranQResult(**_tensors(cochran)),
            }
        )


def analyze_outcomes(
    outcomes: Iterable[Outcome],
    *,
    alpha: float = 0.05,
    strata: Sequence[str] | None = None,
    conditions: Sequence[str | Condition] | None = None,
    errors: Literal["wrong", "drop"] = "wrong",
    mode: str = LIVE,
    model: str = "",
    note: str = "",
) -> Analysis:
    """Compare conditions on the cases that they share.

    Success is being right at the first try. Pairs of conditions are tested by McNemar's test, exact below 25 discordant
    cases, else with Edwards' correction, in two Holm families: all pairs overall; and the first against the last
    condition in each stratum. Three and more conditions are compared by Cochran's Q, too.

    Args:
        outcomes: any order; they may be read one at a time (:func:`read_outcomes`).
        alpha: error rate of the tests.
        strata: in their order; by default as they first come. An empty stratum counts overall only.
        conditions: in their order, names or :class:`Condition`; by default as they first come.
        errors: errors and refusals count as not right at the first try, or are left out (``"drop"``). They count by
            default, since the harness has run each case itself and an arm that fails to answer has not answered right;
            :func:`~polyweave_torch.evallogs.compare_runs`, whose logs come from elsewhere, leaves them out.
        mode: "LIVE" or "SIMULATED"; simulated outcomes that :class:`SimulatedEvaluator` made are marked anyway.
        model: what was evaluated.
        note: a line for the report.

    Returns:
        The :class:`Analysis`.

    Raises:
        ValueError: where a field of an outcome is not of its kind (``first_try="false"``), a case has two outcomes
            under a condition or is in two strata, or a stratum or condition is not among those declared.

    Example:
        >>> right = {"old": [0, 0, 0, 1, 1, 1, 1, 1], "new": [1, 1, 1, 1, 1, 1, 1, 1]}
        >>> outcomes = [
        ...     Outcome(str(case), "all", name, bool(right[name][case]), True, 1) for case in range(8) for name in right
        ... ]
        >>> analysis = analyze_outcomes(outcomes)
        >>> (pair, _) = analysis.pairwise
        >>> print(f"{pair.result.b} {pair.result.c} {pair.result.p_value:.2f} {pair.verdict}")
        0 3 0.25 INCONCLUSIVE: not significant, UNDERPOWERED
    """
    check_open_unit(alpha, name="alpha")
    if errors not in ("wrong", "drop"):
        raise ValueError(f'errors must be "wrong" or "drop", but is {errors!r}')
    if mode not in (LIVE, SIMULATED):
        raise ValueError(f"mode must be {LIVE} or {SIMULATED}, but is {mode!r}")
    names = None if conditions is None else [c.name if isinstance(c, Condition) else c for c in conditions]
    columns = read_columns(outcomes, strata=strata, conditions=names)
    correct, observed = columns.outcome_matrix(kept=columns.kept(errors))
    gram = outcome_gram(correct, mask=observed)
    return Analysis(
        mode=SIMULATED if columns.simulated else mode,
        model=model,
        counts=columns.counts(),
        total_cases=len(columns.cases),
        conditions=list(columns.conditions),
        per_condition=_per_condition(columns, errors),
        pairwise=[
            *_overall_pairs(gram, columns.conditions, alpha),
            *_stratum_pairs(correct, observed, columns, alpha),
        ],
        cochran=cochran_q(gram=gram) if len(columns.conditions) > 2 and int(gram.complete_n) > 0 else None,
        note=note,
        alpha=alpha,
        errors=errors,
        incomplete=len(columns.cases) - int(gram.complete_n),
        error_examples=columns.error_examples,
    )


def verdict_words(result: McNemarResult, adjusted_p: float, alpha: float) -> str:
    """What may be said of a pair. Fewer than 25 discordant cases are never called significant.

    Args:
        result: the test of the pair.
        adjusted_p: its p, adjusted in its family.
        alpha: error rate of the tests.

    Returns:
        One of the five verdict words.

    Example:
        >>> verdict_words(mcnemar(24, 0), 1.2e-7, 0.05)
        'INCONCLUSIVE: nominally significant but UNDERPOWERED'
    """
    if int(result.discordant) == 0:
        return NO_DISCORDANTS
    if bool(result.underpowered):
        return NOMINAL if float(result.p_value) < alpha else UNDERPOWERED
    return SIGNIFICANT if adjusted_p < alpha else NOT_SIGNIFICANT


def _per_condition(columns: Columns, errors: str) -> list[CondStats]:
    named = [code for code, stratum in enumerate(columns.strata) if stratum]
    stats = []
    for stratum in (None, *named):
        inside = True if stratum is None else columns.stratum == stratum
        for code, name in enumerate(columns.conditions):
            label = "" if stratum is None else columns.strata[stratum]
            arm = np.flatnonzero(inside & (columns.condition == code))
            stats.append(_cond_stats(columns, arm, errors, condition=name, stratum=label))
    return stats


def _cond_stats(columns: Columns, arm: NDArray[np.int64], errors: str, *, condition: str, stratum: str) -> CondStats:
    kept = arm[columns.kept(errors)[arm]]
    n, successes = len(kept), int(columns.right[kept].sum())
    wilson = wilson_interval(successes, n)
    iterations = columns.iterations[kept[columns.converged[kept]]]
    return CondStats(
        condition=condition,
        stratum=stratum,
        n=n,
        first_try_success=successes,
        p_sem=float(wilson.p) if n else None,
        wilson_lo=float(wilson.low),
        wilson_hi=float(wilson.high),
        mean_iter=_mean(iterations),
        median_iter=float(np.median(iterations)) if iterations.size else None,
        non_converged=n - len(iterations),
        theoretical_iid_bound=n / successes if successes else None,
        mean_struct_err0=_mean(columns.struct_errors[kept]),
        mean_sem_err0=_mean(columns.sem_errors[kept]),
        mean_cost_usd=_mean_cost(columns.cost[kept]),
        engaged=columns.engaged(kept),
        errors=int(columns.error[arm].sum()),
        refused=int((columns.refused[arm] & ~columns.error[arm]).sum()),
    )


def _overall_pairs(gram: OutcomeGram, conditions: Sequence[str], alpha: float) -> list[PairTest]:
    if len(conditions) < 2:
        return []
    first, second = np.triu_indices(len(conditions), 1)
    pairs = mcnemar_pairs(gram)
    labels = [(conditions[i], conditions[j], "") for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    return _pair_tests(labels, pairs.result, pairs.adjusted_p, gram.n[first, second], alpha)


def _stratum_pairs(correct: Tensor, observed: Tensor, columns: Columns, alpha: float) -> list[PairTest]:
    """The first against the last condition in each stratum that has a case of both."""
    if len(columns.conditions) < 2:
        return []
    ends = [0, len(columns.conditions) - 1]
    gram = gram_update(
        correct[:, ends],
        mask=observed[:, ends],
        slice_index=torch.from_numpy(columns.case_stratum),
        num_slices=len(columns.strata),
    )
    n = gram.n[:, 0, 1]
    tested = [code for code, stratum in enumerate(columns.strata) if stratum and n[code] > 0]
    result = mcnemar(counts=paired_tables(gram)[tested, 0, 1])
    labels = [(columns.conditions[0], columns.conditions[-1], columns.strata[code]) for code in tested]
    return _pair_tests(labels, result, holm_bonferroni(result.p_value), n[tested], alpha)


def _pair_tests(
    labels: Sequence[tuple[str, str, str]], results: McNemarResult, adjusted: Tensor, n: Tensor, alpha: float
) -> list[PairTest]:
    """The tests of one family."""
    tests = []
    for index, (a, b, stratum) in enumerate(labels):
        result = McNemarResult(*(field[index] for field in results))
        pairs, holm_p = int(n[index]), float(adjusted[index])
        needed = _cases_needed(result, pairs, alpha / len(labels))
        tests.append(PairTest(a, b, stratum, result, holm_p, verdict_words(result, holm_p, alpha), pairs, needed))
    return tests


def _cases_needed(result: McNemarResult, n: int, alpha: float) -> int | None:
    losses, gains = int(result.b), int(result.c)
    return None if losses == gains else target_per_stratum(losses / n, gains / n, alpha=alpha)


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None


def _mean_cost(costs: NDArray[np.float64]) -> float | None:
    """None where the sum is larger than any float."""
    with np.errstate(over="ignore"):
        mean = _mean(costs)
    return mean if mean is None or math.isfinite(mean) else None


def _plain(result: McNemarResult | CochranQResult) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, Tensor) else value for name, value in result._asdict().items()}


def _tensors(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, str) else _tensor(value) for name, value in fields.items()}


def _tensor(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
