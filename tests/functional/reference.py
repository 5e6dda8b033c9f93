"""Peers: rows of tests/data/stats_reference.json, each section with its size so that none goes missing, and scipy."""

import functools
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from torch import Tensor

SIZES = {
    "mcnemar": 155,
    "cochran_q": 109,
    "holm": 112,
    "holm_nan_conventions": 1,
    "wilson": 124,
    "jeffreys": 101,
    "permutation_cochran": 21,
    "shaffer_static": 4,
    "paired_diff_ci": 115,
    "tost_paired": 106,
    "power": 12,
    "exact_power": 10,
    "exact_n": 9,
    "seed_power_claim": 8,
    "clustered_mcnemar": 17,
    "bootstrap_exact": 22,
    "pearson": 20,
    "textbook.mcnemar": 15,
    "textbook.holm": 4,
    "textbook.wilson": 6,
}


@functools.cache
def _file() -> Any:
    return json.loads((Path(__file__).parents[1] / "data" / "stats_reference.json").read_text())


def section(name: str) -> Any:
    found = functools.reduce(lambda part, key: part[key], name.split("."), _file())
    assert len(found) == SIZES[name]
    return found


def close(value: float) -> Any:
    """The reference's own bar: nine digits; absolute only where the value rounds to 0."""
    return pytest.approx(value, rel=1e-9, abs=1e-300)


def printed(value: float) -> Any:
    """Equal to as many digits as a book printed."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    assert isinstance(exponent, int)
    return pytest.approx(value, rel=0, abs=0.5000001 * 10.0**exponent)


def scipy_paired_bootstrap(control: Tensor, treatment: Tensor) -> Any:
    """Percentile bootstrap of the mean difference, 8000 resamples."""
    return stats.bootstrap(
        (control.numpy(), treatment.numpy()),
        lambda c, t, axis=-1: (t - c).mean(axis),
        n_resamples=8000,
        method="percentile",
        paired=True,
        batch=500,
        rng=np.random.default_rng(0),
    )
