"""Paired tables, p-values and bootstrap intervals against statsmodels, mlxtend, numpy and scipy."""

from collections.abc import Callable
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap
from torch import Tensor

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch.functional import mcnemar, mcnemar_pairs, outcome_gram
from polyweave_torch.functional.bootstrap import BootstrapInterval, paired_bootstrap

_STATSMODELS, _MLXTEND = "statsmodels loop", "mlxtend loop"
_SCIPY = "scipy.stats.bootstrap"
_RESAMPLES = 1000
_INTERVAL: dict[str, Any] = {"n_resamples": _RESAMPLES, "method": "percentile", "rng": 0}


class Outcomes(NamedTuple):
    """Outcomes [N, K], as tensor and array, the pairs that a loop does, and operands for the floor."""

    correct: Tensor
    array: NDArray[np.bool_]
    pairs: list[tuple[int, int]]
    block: Tensor

    @property
    def share(self) -> float:
        """Part of all pairs."""
        conditions = self.correct.shape[1]
        return len(self.pairs) / (conditions * (conditions - 1) // 2)


class PValues(NamedTuple):
    """Of pairs of conditions."""

    raw: NDArray[np.float64]
    adjusted: NDArray[np.float64]


class Tables(NamedTuple):
    """Discordant counts of many tables."""

    b: Tensor
    c: Tensor
    copy: Tensor
    looped: int
    """How many a loop does."""


class Arms(NamedTuple):
    """Numbers [N, C] of the same samples under two conditions, in C columns."""

    control: Tensor
    treatment: Tensor
    copy: Tensor
    words: Tensor


def _outcomes(device: torch.device, samples: int, *, conditions: int, looped: int) -> Outcomes:
    """Conditions of accuracies from .65 to .75 on samples of their own difficulty each."""
    generator = seeded(device)
    accuracy = torch.linspace(0.65, 0.75, conditions, device=device)
    ease = torch.randn((samples, 1), generator=generator, device=device)
    noise = torch.randn((samples, conditions), generator=generator, device=device)
    correct = (ease + noise) / 2**0.5 < torch.special.ndtri(accuracy)
    block = torch.rand((min(samples, 2**18 // conditions), conditions), generator=generator, device=device)
    pairs = list(islice(combinations(range(conditions), 2), looped))
    return Outcomes(correct, correct.cpu().numpy(), pairs, block)


def _all_pairs(outcomes: Outcomes) -> PValues:
    pairs = mcnemar_pairs(outcome_gram(outcomes.correct), method="exact")
    return PValues(pairs.result.p_value.numpy(), pairs.adjusted_p.numpy())


def _statsmodels_pairs(outcomes: Outcomes) -> PValues:
    from statsmodels.stats.contingency_tables import mcnemar as test
    from statsmodels.stats.multitest import multipletests

    p_values = []
    for first, second in outcomes.pairs:
        x, y = outcomes.array[:, first], outcomes.array[:, second]
        table = [[np.sum(x & y), np.sum(x & ~y)], [np.sum(~x & y), np.sum(~x & ~y)]]
        p_values.append(float(test(table, exact=True).pvalue))
    return PValues(np.array(p_values), multipletests(p_values, method="holm")[1])


def _mlxtend_pairs(outcomes: Outcomes) -> PValues:
    from mlxtend.evaluate import mcnemar as test
    from mlxtend.evaluate import mcnemar_table

    target = np.ones(len(outcomes.array), dtype=bool)
    columns = ((outcomes.array[:, first], outcomes.array[:, second]) for first, second in outcomes.pairs)
    p_values = np.array([test(mcnemar_table(target, x, y), exact=True)[1] for x, y in columns])
    return PValues(p_values, _holm(p_values))


def _numpy_pairs(outcomes: Outcomes) -> PValues:
    x = outcomes.array.astype(np.float32)
    gram = (x.T @ x).astype(np.int64)
    first, second = np.triu_indices(len(gram), 1)
    b, c = gram[first, first] - gram[first, second], gram[second, second] - gram[first, second]
    p_values = np.minimum(1.0, 2.0 * binom.cdf(np.minimum(b, c), b + c, 0.5))
    return PValues(p_values, _holm(p_values))


def _holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """As statsmodels' multipletests, whose own takes a tenth of a second for 1,225 values."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1)))
    return adjusted


def _raw_and_adjusted(_: Outcomes, found: PValues) -> Tensor:
    return torch.from_numpy(np.concatenate(found))


def _looped_p_values(outcomes: Outcomes, found: PValues) -> Tensor:
    """A share of the pairs is another family, with other adjusted values."""
    return _raw_and_adjusted(outcomes, found) if outcomes.share == 1.0 else torch.from_numpy(found.raw)


def _matmul(outcomes: Outcomes) -> None:
    for _ in range(0, len(outcomes.correct), len(outcomes.block)):
        outcomes.block.mT @ outcomes.block


def _pairs_workload(conditions: int, samples: int, looped: int, times: float) -> Workload[Outcomes]:
    return Workload(
        name=f"pairs-{conditions}x{samples}",
        about=f"exact McNemar p of all pairs of {conditions} conditions on {samples:,} rows, with Holm",
        samples=samples,
        make=lambda device, size: _outcomes(device, size, conditions=conditions, looped=looped),
        ours=Contestant(_all_pairs, _raw_and_adjusted),
        peers={
            _STATSMODELS: Contestant(
                _statsmodels_pairs, _looped_p_values, share=lambda outcomes: outcomes.share, needs="statsmodels"
            ),
            _MLXTEND: Contestant(
                _mlxtend_pairs, _looped_p_values, share=lambda outcomes: outcomes.share, needs="mlxtend"
            ),
            "numpy Gram": Contestant(_numpy_pairs, _raw_and_adjusted),
        },
        floor=Contestant(_matmul),
        floor_name="matmul of as many float32 rows",
        goals=(Goal("times", times, _STATSMODELS),),
        tolerance=1e-10,
    )


def _tables(device: torch.device, tables: int) -> Tables:
    b, c = torch.randint(0, 500, (2, tables), generator=seeded(device), device=device)
    return Tables(b, c, torch.empty((2, tables), dtype=torch.int64, device=device), min(tables, 1000))


def _statsmodels_tables(tables: Tables) -> NDArray[np.float64]:
    from statsmodels.stats.contingency_tables import mcnemar as test

    pairs = zip(tables.b[: tables.looped].tolist(), tables.c[: tables.looped].tolist(), strict=True)
    return np.array([test([[0, b], [c, 0]], exact=True).pvalue for b, c in pairs])


def _mlxtend_tables(tables: Tables) -> NDArray[np.float64]:
    from mlxtend.evaluate import mcnemar as test

    pairs = zip(tables.b[: tables.looped].tolist(), tables.c[: tables.looped].tolist(), strict=True)
    return np.array([test(np.array([[0, b], [c, 0]]), exact=True)[1] for b, c in pairs])


def _scipy_tables(tables: Tables) -> NDArray[np.float64]:
    b, c = tables.b.cpu().numpy(), tables.c.cpu().numpy()
    return np.asarray(np.minimum(1.0, 2.0 * binom.cdf(np.minimum(b, c), b + c, 0.5)))


def _copy_tables(tables: Tables) -> None:
    tables.copy[0].copy_(tables.b)
    tables.copy[1].copy_(tables.c)


def _looped(tables: Tables) -> float:
    return tables.looped / len(tables.b)


def _arms(device: torch.device, samples: int, *, columns: int, draw: Callable[[Tensor], Tensor]) -> Arms:
    generator = seeded(device)
    normal = torch.randn((2, samples, columns), dtype=torch.float64, generator=generator, device=device)
    control, treatment = draw(normal)
    return Arms(control, treatment, torch.empty_like(normal), torch.empty(2**16, dtype=torch.int64, device=device))


def _real(normal: Tensor) -> Tensor:
    return torch.stack((normal[0], normal.sum(0) + 0.1))


def _binary(normal: Tensor) -> Tensor:
    return (torch.stack((normal[0], normal.sum(0) / 2**0.5 + 0.1)) > -0.5).double()


def _random_bits(arms: Arms) -> None:
    words = len(arms.control) * _RESAMPLES // 16
    for _ in range(0, words, len(arms.words)):
        arms.words.random_()


def _copy_arms(arms: Arms) -> None:
    arms.copy[0].copy_(arms.control)
    arms.copy[1].copy_(arms.treatment)


def _difference_of_means(control: NDArray[np.float64], treatment: NDArray[np.float64], axis: int) -> Any:
    return np.mean(treatment, axis=axis) - np.mean(control, axis=axis)


def _bootstrap(arms: Arms) -> BootstrapInterval:
    return paired_bootstrap(arms.control, arms.treatment, resamples=_RESAMPLES)


def _scipy_bootstrap(arms: Arms) -> Any:
    """All columns in one call, in batches of as many numbers as its call for one column holds."""
    samples = (arms.control.cpu().numpy(), arms.treatment.cpu().numpy())
    batch = _RESAMPLES // arms.control.shape[1]
    result = bootstrap(samples, _difference_of_means, paired=True, batch=batch, **_INTERVAL)
    return result.confidence_interval


def _scipy_bootstrap_at_its_best(arms: Arms) -> Any:
    """Of the differences, in batches that stay in cache."""
    difference = (arms.treatment - arms.control).cpu().numpy()
    result = bootstrap((difference,), np.mean, batch=max(1, 2**18 // difference.size), **_INTERVAL)
    return result.confidence_interval


def _in_standard_errors(arms: Arms, interval: Any) -> Tensor:
    difference = (arms.treatment - arms.control).cpu()
    error = difference.std(0) / len(difference) ** 0.5
    ends = torch.stack([torch.as_tensor(end, dtype=torch.float64) for end in (interval.low, interval.high)])
    return ends.sub(difference.mean(0)).div(error)


def _bootstrap_workload(samples: int, times: float, *, binary: bool = False, columns: int = 1) -> Workload[Arms]:
    kind = "binary" if binary else "real-valued"
    several = f" in each of {columns} columns" if columns > 1 else ""
    return Workload(
        name=f"bootstrap-{kind}-{samples}" + (f"x{columns}" if columns > 1 else ""),
        about=f"paired bootstrap of {samples:,} {kind} differences{several}, {_RESAMPLES:,} resamples",
        samples=samples,
        make=lambda device, size: _arms(device, size, columns=columns, draw=_binary if binary else _real),
        ours=Contestant(_bootstrap, _in_standard_errors),
        peers={
            _SCIPY: Contestant(_scipy_bootstrap, _in_standard_errors),
            "the same, differences in batches": Contestant(_scipy_bootstrap_at_its_best, _in_standard_errors),
        },
        # Binary differences can be drawn by value, not by sample.
        floor=Contestant(_copy_arms if binary else _random_bits),
        floor_name="copy of the input" if binary else "four random bits for each draw",
        goals=(Goal("times", times, _SCIPY), Goal("peak", 32.0)),
        # An end of 1,000 resamples has a standard error of .08: six of the difference's.
        tolerance=0.7,
    )


WORKLOADS: list[Workload[Any]] = [
    _pairs_workload(50, 100_000, looped=1225, times=80.0),
    _pairs_workload(100, 1_000_000, looped=20, times=500.0),
    Workload(
        name="exact-p-100000",
        about="exact McNemar p of 100,000 tables with up to 998 discordant pairs",
        samples=100_000,
        make=_tables,
        ours=Contestant(lambda tables: mcnemar(tables.b, tables.c, method="exact").p_value),
        peers={
            _STATSMODELS: Contestant(_statsmodels_tables, share=_looped, needs="statsmodels"),
            _MLXTEND: Contestant(_mlxtend_tables, share=_looped, needs="mlxtend"),
            "scipy.stats.binom.cdf": Contestant(_scipy_tables),
        },
        floor=Contestant(_copy_tables),
        goals=(Goal("times", 100.0, _STATSMODELS),),
        tolerance=1e-10,
    ),
    *(_bootstrap_workload(samples, 8.0, columns=columns) for columns in (1, 10) for samples in (100, 1_000, 10_000)),
    _bootstrap_workload(100_000, 15.0),
    _bootstrap_workload(10_000, 8.0, binary=True),
    _bootstrap_workload(100_000, 1000.0, binary=True),
]
