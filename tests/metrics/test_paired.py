"""PairedOutcomes and the p-values against loops, statsmodels and the functional forms on the data itself."""

import itertools
from typing import Any

import pytest
import torch
from statsmodels.stats import contingency_tables
from torch import Tensor
from torchmetrics import MetricCollection

from polyweave_torch import ChannelCounts, CochranQPValue, McNemarPValue, PairedOutcomes
from polyweave_torch.functional import cochran_q, holm_bonferroni, wilson_interval
from tests.contract.entries import same
from tests.quantization import letters


def outcomes(n: int, k: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    skill = torch.rand(n, 1, generator=generator)
    return torch.rand(n, k, generator=generator) < 0.3 + 0.5 * skill


@pytest.mark.parametrize("k", [2, 5, 12])
def test_tables_and_tests_equal_statsmodels_on_the_rows(k: int) -> None:
    correct = outcomes(300, k)
    metric = PairedOutcomes(k)
    for batch in torch.split(correct, 77):
        metric.update(batch)
    tables, pairs = metric.compute(), metric.mcnemar("exact")
    p_values = []
    for row, (i, j) in enumerate(itertools.combinations(range(k), 2)):
        table = [[int(((correct[:, i] == a) & (correct[:, j] == b)).sum()) for b in (0, 1)] for a in (0, 1)]
        assert tables[i, j].tolist() == table
        assert tables[j, i].tolist() == [list(column) for column in zip(*table, strict=True)]
        peer = contingency_tables.mcnemar(table, exact=True)
        p_values.append(peer.pvalue)
        assert (int(pairs.first[row]), int(pairs.second[row])) == (i, j)
    assert pairs.result.p_value.tolist() == pytest.approx(p_values, rel=1e-9)
    assert same(pairs.adjusted_p, holm_bonferroni(pairs.result.p_value))
    assert pairs.family == "all pairs"
    q = metric.cochran_q()
    peer = contingency_tables.cochrans_q(correct.numpy().astype(int))
    assert [float(q.statistic), float(q.p_value)] == pytest.approx([peer.statistic, peer.pvalue], rel=1e-9)
    assert int(metric.n) == int(q.n) == 300


def test_strata_are_families_of_their_own_and_pool() -> None:
    correct, stratum = outcomes(200, 3), torch.arange(200) % 4 % 3
    metric = PairedOutcomes(3, slices=["easy", "medium", "hard"])
    metric.update(correct, stratum)
    pairs = metric.mcnemar()
    assert pairs.family == "all pairs of each stratum"
    whole = PairedOutcomes(3)
    whole.update(correct)
    for s in range(3):
        alone = PairedOutcomes(3)
        alone.update(correct[stratum == s])
        assert torch.equal(metric.compute()[s], alone.compute())
        assert same(pairs.adjusted_p[s], alone.mcnemar().adjusted_p)
        assert float(metric.cochran_q().p_value[s]) == float(alone.cochran_q().p_value)
        assert int(metric.n[s]) == int((stratum == s).sum())
    assert same(metric.mcnemar(pooled=True), whole.mcnemar())
    assert same(metric.cochran_q(permutation=True, pooled=True), whole.cochran_q(permutation=True))
    assert same(metric.intervals(pooled=True), whole.intervals())


def test_missing_outcomes_leave_pairs_and_accuracies() -> None:
    correct = outcomes(120, 3)
    seen = torch.rand(120, 3, generator=torch.Generator().manual_seed(5)) < 0.7
    metric = PairedOutcomes(3)
    # What stands behind a mask is not even looked at.
    metric.update(correct.long().masked_fill(~seen, 99), mask=seen)
    for i in range(3):
        for j in range(3):
            both = seen[:, i] & seen[:, j]
            table = [
                [int((both & (correct[:, i] == a) & (correct[:, j] == b)).sum()) for b in (False, True)]
                for a in (False, True)
            ]
            assert metric.compute()[i, j].tolist() == table
    right = [int((correct & seen)[:, i].sum()) for i in range(3)]
    observed = seen.sum(0).tolist()
    assert metric.accuracies().tolist() == pytest.approx([r / n for r, n in zip(right, observed, strict=True)])
    assert same(metric.intervals(0.9), wilson_interval(torch.tensor(right), torch.tensor(observed), level=0.9))
    assert same(metric.cochran_q(), cochran_q(correct[seen.all(1)]))
    assert int(metric.n) == int(seen.any(1).sum())


def test_the_p_values_share_the_tables_of_their_collection() -> None:
    before, after = outcomes(80, 2).unbind(1)
    collection = MetricCollection([ChannelCounts(), McNemarPValue()])
    for part in (slice(0, 50), slice(50, 80)):
        collection.update(before=before[part], after=after[part])
    assert list(collection.compute_groups.values()) == [["ChannelCounts", "McNemarPValue"]]
    n10, n01 = int((before & ~after).sum()), int((~before & after).sum())
    peer = contingency_tables.mcnemar([[0, n01], [n10, 0]], exact=n10 + n01 < 25)
    assert float(collection.compute()["McNemarPValue"]) == pytest.approx(peer.pvalue, rel=1e-9)
    paired = MetricCollection([PairedOutcomes(2), CochranQPValue(2)])
    correct = torch.stack([before, after], 1)
    paired.update(correct=correct[:50])
    paired.update(correct=correct[50:])
    assert len(paired.compute_groups) == 1
    assert float(paired.compute()["CochranQPValue"]) == float(cochran_q(correct).p_value)


def test_one_collection_holds_pairs_and_channels() -> None:
    correct = outcomes(60, 3)
    before, after = correct[:, 0], correct[:, 1]
    collection = MetricCollection([PairedOutcomes(3), CochranQPValue(3), McNemarPValue(), ChannelCounts()])
    collection.update(before=before, after=after, correct=correct)
    collection.update(before=before, after=after, correct=correct)
    alone = McNemarPValue()
    alone.update(torch.cat([before, before]), torch.cat([after, after]), None, torch.ones(120, dtype=torch.bool))
    assert float(collection.compute()["McNemarPValue"]) == float(alone.compute())


def test_mcnemar_takes_both_outcomes_as_columns_too() -> None:
    correct = outcomes(60, 2)
    by_columns, by_name, by_pair = McNemarPValue(), McNemarPValue(), McNemarPValue(method="midp")
    by_columns.update(correct)
    by_name.update(correct=correct)
    by_pair.update(correct[:, 0], correct[:, 1])
    assert float(by_columns.compute()) == float(by_name.compute())
    assert float(by_pair.compute()) < float(by_columns.compute())


def test_the_method_can_decide() -> None:
    # Pooled int8 of the five models of the quantisation article: 312 against 264 discordants.
    counts = torch.tensor([[0, 264], [312, 0]])
    p_values = {}
    for method in ("exact", "edwards", "midp"):
        metric = McNemarPValue(method=method)
        metric.channel_counts = counts.flatten()
        metric._update_count = 1
        p_values[method] = round(float(metric.compute()), 4)
    assert p_values == {"exact": 0.0501, "edwards": 0.0502, "midp": 0.0456}


def test_real_runs_give_the_published_tables() -> None:
    models = [f"Qwen2.5-1.5B-Instruct/{precision}" for precision in ("fp16", "int8", "int4")]
    correct = torch.stack([letters(model) == letters("answer") for model in models], 1)
    metric = PairedOutcomes(3)
    metric.update(correct)
    # The sum of the article's three rows of fp16 to int4.
    assert metric.compute()[0, 2].tolist() == [[229 + 337 + 185, 18 + 43 + 37], [68 + 86 + 45, 685 + 509 + 719]]


@pytest.mark.parametrize(
    ("build", "arguments", "message"),
    [
        (lambda: PairedOutcomes(3), {"correct": torch.zeros(4, 2)}, r"shape \[N, 3\]"),
        (lambda: PairedOutcomes(2), {"correct": torch.full((4, 2), 2)}, "binary"),
        (lambda: PairedOutcomes(2, slices=2), {"correct": torch.zeros(4, 2)}, "slice_index is missing"),
        (
            lambda: PairedOutcomes(2, slices=2),
            {"correct": torch.zeros(4, 2), "slice_index": torch.full((4,), 2)},
            "slice_index",
        ),
        (McNemarPValue, {"correct": torch.zeros(4, 3)}, r"correct \[N, 2\]"),
        (McNemarPValue, {}, "none came"),
    ],
)
def test_bad_input_is_named(build: Any, arguments: dict[str, Tensor], message: str) -> None:
    metric = build()
    with pytest.raises(ValueError, match=message):
        metric.update(**arguments)
    assert metric.update_count == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slice_index": torch.zeros(4)}, "slice_index must be integers"),
        ({"slice_index": [0, 1, 0, 1]}, "slice_index must be a tensor, but is a list"),
        ({"mask": torch.ones(4, 2, dtype=torch.int64)}, "mask must be bool"),
        ({"mask": torch.ones(4, dtype=torch.int64)}, "mask must be bool"),
        ({"mask": [True] * 4}, "mask must be a tensor, but is a list"),
        ({"mask": torch.ones(3, dtype=torch.bool)}, r"one value a sample, shape \[4\] like correct"),
        ({"mask": torch.ones(4, 3, dtype=torch.bool)}, r"one value an outcome, shape \[4, 2\] like correct"),
        ({"correct": torch.zeros(4, 2, dtype=torch.complex64)}, "correct must hold outcomes"),
    ],
)
def test_arguments_of_the_wrong_kind_change_nothing(arguments: dict[str, Any], message: str) -> None:
    metric = PairedOutcomes(2, slices=2)
    valid = {"correct": torch.ones(4, 2), "slice_index": torch.tensor([0, 1, 1, 1])}
    metric.update(**valid)
    before = metric.compute()
    with pytest.raises((TypeError, ValueError), match=message):
        metric.update(**{**valid, **arguments})
    assert torch.equal(metric.compute(), before)


def test_pairs_can_be_named() -> None:
    metric = PairedOutcomes(3)
    metric.update(outcomes(60, 3))
    pairs = metric.mcnemar(names=["old", "new", "newer"])
    assert list(zip(pairs.first, pairs.second, strict=True)) == [("old", "new"), ("old", "newer"), ("new", "newer")]
    assert torch.equal(pairs.adjusted_p, metric.mcnemar().adjusted_p)


def test_two_conditions_are_one_pair() -> None:
    metric = PairedOutcomes(2)
    metric.update(outcomes(60, 2))
    pairs = metric.mcnemar()
    assert pairs.result.p_value.shape == pairs.adjusted_p.shape == (1,)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="num_conditions must be at least 1"):
        PairedOutcomes(0)
    for build in (lambda: McNemarPValue(slices=2), lambda: CochranQPValue(3, slices=2)):
        with pytest.raises(TypeError, match=r"one p-value and has no slices; use \w+\("):
            build()
    with pytest.raises(ValueError, match="method"):
        McNemarPValue(method="luck")  # type: ignore[arg-type]


def test_one_condition_has_nothing_to_compare() -> None:
    metric = PairedOutcomes(1)
    metric.update(torch.ones(5, 1))
    assert metric.compute().shape == (1, 1, 2, 2)
    assert metric.mcnemar().adjusted_p.shape == (0,)
    assert metric.cochran_q().p_value.isnan()


@pytest.mark.parametrize("validate_args", [True, False])
def test_the_slice_of_a_sample_without_an_outcome_is_not_looked_at(validate_args: bool) -> None:
    metric = PairedOutcomes(2, slices=2, validate_args=validate_args)
    correct = torch.tensor([[1.0, 1.0], [float("nan"), 2.0]])
    metric.update(correct, torch.tensor([0, 9]), torch.tensor([True, False]))
    assert metric.n.tolist() == [1, 0]
    assert metric.compute()[0, 0, 1].tolist() == [[0, 0], [0, 1]]


def test_half_a_change_is_named() -> None:
    right = torch.tensor([1, 0])
    with pytest.raises(ValueError, match="alone; after came"):
        McNemarPValue().update(after=right)
    with pytest.raises(ValueError, match="alone; before, correct came"):
        McNemarPValue().update(before=right, correct=right)
