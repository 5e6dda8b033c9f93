"""Flips against worked and published examples."""

from typing import Any

import pytest
import torch

from polyweave_torch.functional import answer_churn, channel_counts, estimate_channel, flip_rates
from tests.quantization import published_rows


def test_answers_must_be_one_a_sample() -> None:
    with pytest.raises(ValueError, match="one value a sample"):
        answer_churn([1, 2], [1], [1, 2])
    assert all(share.isnan() for share in answer_churn([], [], []))


def test_flip_rates_of_the_worked_example() -> None:
    new, old, y = (torch.tensor(v) for v in ([1, 3, 0, 3], [2, 1, 0, 2], [3, 3, 0, 2]))
    rates = flip_rates(channel_counts(old == y, new == y))
    shown = (rates.negative_flip_rate, rates.positive_flip_rate, rates.negative_flip_impact, rates.positive_flip_impact)
    assert [float(rate) for rate in shown] == [0.25, 0.25, 0.5, 0.5]
    assert float(rates.churn) == 0.5
    assert float(rates.backward_trust) == 0.5


@pytest.mark.parametrize("row", published_rows(), ids=lambda row: f"{row.model}-{row.benchmark}-{row.after}")
def test_quantization_tables_equal_the_published_ones(row: Any) -> None:
    before, after, answer = row.answers()
    assert channel_counts(before == answer, after == answer).flatten().tolist() == row.counts
    churn = answer_churn(before, after, answer)
    assert float(churn.wrong_to_other_wrong) * row.n == pytest.approx(row.wrong_to_other_wrong)
    assert float(churn.churn) * row.n == pytest.approx(row.counts[1] + row.counts[2] + row.wrong_to_other_wrong)
    assert float(churn.accuracy_churn) == pytest.approx(float(flip_rates([row.counts[:2], row.counts[2:]]).churn))


def test_standing_accuracy_hides_flips() -> None:
    row = next(r for r in published_rows() if (r.model, r.benchmark, r.after) == ("gemma-2-2b-it", "mmlu", "int4"))
    counts = [row.counts[:2], row.counts[2:]]
    assert float(estimate_channel(counts).delta) == 0.0
    assert round(float(flip_rates(counts).churn), 3) == 0.094


def test_counts_whose_sum_leaves_int64_are_refused() -> None:
    for function in (estimate_channel, flip_rates):
        with pytest.raises(ValueError, match=r"counts must sum to less than 2\^63"):
            function([[[1, 1], [1, 1]], [[2**62, 2**62], [1, 1]]])
        function([[2**62, 2**61], [1, 1]])
