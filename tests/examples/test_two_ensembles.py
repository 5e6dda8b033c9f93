"""examples/two_ensembles.py: every line by loops over samples and pairs, kappa and McNemar by statsmodels."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import fleiss_kappa
from statsmodels.stats.proportion import proportion_confint

from tests.examples.running import Ran, load, normal, run, shown

TARGET = load_digits().target[300:]


@pytest.fixture(scope="module")
def ran() -> Ran:
    return run(load("two_ensembles").main)


def vote(preds: Any) -> Any:
    """Of each sample the class with most votes, the lowest of equals."""
    return np.array([np.bincount(labels, minlength=10).argmax() for labels in preds.T])


def measures(preds: Any) -> list[float]:
    right = preds == TARGET
    pairs = list(combinations(range(len(preds)), 2))
    votes_right = right.sum(0)
    ratings = np.stack([votes_right, len(preds) - votes_right], 1)
    ensemble = (vote(preds) == TARGET).mean()
    return [
        right.mean(),
        ensemble,
        ensemble - right.mean(),
        np.mean([len(set(labels)) > 1 for labels in preds.T]),
        np.mean([(preds[a] != preds[b]).mean() for a, b in pairs]),
        np.mean([(right[a] != right[b]).mean() for a, b in pairs]),
        np.mean([(~right[a] & ~right[b]).mean() for a, b in pairs]),
        fleiss_kappa(ratings),
    ]


def test_each_line_is_what_loops_find(ran: Ran) -> None:
    table = [line.split()[-2:] for line in ran.printed.split("\n\n")[0].splitlines()[1:]]
    columns = [measures(ran.result[name].numpy()) for name in ("dense", "convolutional")]
    assert [[float(cell) for cell in row] for row in table] == [
        [pytest.approx(value, abs=0.00051) for value in row] for row in zip(*columns, strict=True)
    ]


def test_the_votes_are_compared_sample_by_sample(ran: Ran) -> None:
    before, after = (vote(ran.result[name].numpy()) == TARGET for name in ("dense", "convolutional"))
    corrected, corrupted = int((~before & after).sum()), int((before & ~after).sum())
    said = ran.printed.split("\n\n")[1]
    assert f"corrected {corrected}, corrupted {corrupted} of {len(TARGET)}" in said
    assert f"{(corrected - corrupted) / len(TARGET):+.4f}" in said
    p = mcnemar([[0, corrupted], [corrected, 0]], exact=False, correction=True).pvalue
    assert f"p = {p:.2g}" in said
    # Tango's interval lies near that of the share of corrections among the changed images, scaled.
    low, high = (float(word) for word in said.split("interval ")[1].split(",")[0].split(" to "))
    share_low, share_high = proportion_confint(corrected, corrected + corrupted, method="wilson")
    scale = (corrected + corrupted) / len(TARGET)
    assert (low, high) == pytest.approx(((2 * share_low - 1) * scale, (2 * share_high - 1) * scale), abs=0.001)


def test_the_page_quotes_the_output(ran: Ran) -> None:
    assert normal(ran.printed) == shown("two_ensembles")
