"""Channel metrics: their own behaviour; what all metrics share is in tests/contract."""

from typing import Any

import numpy as np
import pytest
import torch
from torchmetrics import MetricCollection
from torchmetrics.wrappers import ClasswiseWrapper

from polyweave_torch import (
    AccuracyDelta,
    ChannelCounts,
    ChannelSurplus,
    Churn,
    CorrectionRate,
    CorruptionRate,
    NegativeFlipRate,
    PositiveFlipRate,
)
from polyweave_torch.functional import estimate_channel, flip_rates, phase_plane_diagnosis

TABLE = torch.tensor([[4, 3], [1, 7]])
BEFORE = torch.tensor([0] * 7 + [1] * 8)
AFTER = torch.tensor([0] * 4 + [1] * 3 + [0] + [1] * 7)


def test_the_scalars_are_the_functional_rates() -> None:
    channel, flips = estimate_channel(TABLE), flip_rates(TABLE)
    expected = {
        CorrectionRate: channel.c,
        CorruptionRate: channel.gamma,
        AccuracyDelta: channel.delta,
        ChannelSurplus: phase_plane_diagnosis(channel).surplus,
        NegativeFlipRate: flips.negative_flip_rate,
        PositiveFlipRate: flips.positive_flip_rate,
        Churn: flips.churn,
    }
    for metric_class, value in expected.items():
        metric = metric_class()
        metric.update(BEFORE, AFTER)
        assert float(metric.compute()) == float(value), metric_class.__name__


def test_slices_have_names_and_keep_their_shape() -> None:
    by_number, by_name = ChannelCounts(slices=2), ChannelCounts(slices=["day", "night"])
    assert by_number.slice_names == ("0", "1")
    assert by_name.slice_names == ("day", "night")
    index = torch.arange(15) % 2
    by_name.update(BEFORE, AFTER, index)
    assert by_name.compute().shape == (2, 2, 2)
    assert torch.equal(by_name.compute().sum(0), TABLE)
    one = CorrectionRate(slices=1)
    one.update(BEFORE, AFTER, torch.zeros_like(index))
    assert one.compute().shape == (1,)
    assert one(BEFORE, AFTER, torch.zeros_like(index)).shape == (1,)


def test_one_update_serves_a_collection_of_one_table() -> None:
    collection = MetricCollection([ChannelCounts(), CorrectionRate(), CorruptionRate(smoothing=0), Churn()])
    collection.update(BEFORE, AFTER)
    collection.update(BEFORE, AFTER)
    assert list(collection.compute_groups.values()) == [["ChannelCounts", "CorrectionRate", "CorruptionRate", "Churn"]]
    values = collection.compute()
    assert torch.equal(values["ChannelCounts"], 2 * TABLE)
    assert float(values["CorruptionRate"]) == 1 / 8


def test_a_collection_keeps_sliced_and_plain_tables_apart() -> None:
    collection = MetricCollection(
        {"all": ChannelCounts(), "sliced": ChannelCounts(slices=1), "two": ChannelCounts(slices=2)}
    )
    index = torch.zeros(15, dtype=torch.int64)
    collection.update(BEFORE, AFTER, slice_index=index)
    collection.update(BEFORE, AFTER, slice_index=index + 0)
    assert len(collection.compute_groups) == 3
    assert torch.equal(collection.compute()["all"], collection.compute()["sliced"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"before": BEFORE, "after": AFTER[:-1]}, "one value a sample"),
        ({"before": BEFORE, "after": AFTER + 1}, "binary"),
        ({"before": BEFORE, "after": AFTER, "slice_index": torch.full((15,), 3)}, "slice_index"),
        ({"before": BEFORE, "after": AFTER}, "slice_index is missing"),
        ({"before": BEFORE[None], "after": AFTER[None]}, "shape"),
    ],
)
def test_bad_input_changes_nothing(arguments: dict[str, torch.Tensor], message: str) -> None:
    metric = ChannelCounts(slices=3)
    metric.update(BEFORE, AFTER, torch.zeros(15, dtype=torch.int64))
    before = metric.compute()
    arguments.setdefault("slice_index", torch.zeros(15, dtype=torch.int64))
    if "missing" in message:
        del arguments["slice_index"]
    with pytest.raises(ValueError, match=message):
        metric.update(**arguments)
    assert metric.update_count == 1
    assert torch.equal(metric.compute(), before)


@pytest.mark.parametrize("validate_args", [True, False])
def test_what_the_mask_leaves_out_is_not_looked_at(validate_args: bool) -> None:
    metric = ChannelCounts(slices=3, validate_args=validate_args)
    before, after = torch.cat((BEFORE, torch.tensor([torch.nan, 1.0]))), torch.cat((AFTER, torch.tensor([2.0, 1.0])))
    index, mask = torch.arange(17) % 3, torch.arange(17) < 15
    metric.update(before, after, index.masked_fill(~mask, -7), mask)
    metric.update(before, after, index.masked_fill(~mask, 10**15), mask)
    expected = ChannelCounts(slices=3)
    expected.update(BEFORE, AFTER, index[:15])
    assert torch.equal(metric.compute(), 2 * expected.compute())


@pytest.mark.parametrize("validate_args", [True, False])
@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_slices_are_integers_too(dtype: torch.dtype, validate_args: bool) -> None:
    metric = ChannelCounts(slices=2, validate_args=validate_args)
    metric.update(BEFORE, AFTER, torch.ones(15, dtype=dtype), torch.ones(15, dtype=torch.bool))
    assert torch.equal(metric.compute()[1], TABLE)


@pytest.mark.parametrize("name", ["before", "after", "slice_index", "mask"])
def test_lists_are_refused_by_name(name: str) -> None:
    arguments: dict[str, Any] = {"before": BEFORE, "after": AFTER, "slice_index": BEFORE, "mask": BEFORE > 0}
    metric = ChannelCounts(slices=2)
    metric.update(**arguments)
    with pytest.raises(TypeError, match=f"{name} must be a tensor, but is a list; wrap it in torch.as_tensor"):
        metric.update(**{**arguments, name: arguments[name].tolist()})


def test_the_surplus_of_raw_rates_at_full_accuracy_is_minus_infinity() -> None:
    metric = ChannelSurplus(slices=3, smoothing=0)
    metric.update(torch.tensor([1, 1, 0]), torch.tensor([1, 0, 1]), torch.tensor([0, 0, 1]))
    assert metric.compute().nan_to_num(nan=7.0).tolist() == [torch.finfo(torch.float64).min, 1.0, 7.0]


def test_a_classwise_wrapper_names_the_slices() -> None:
    index = torch.arange(15) % 2
    sliced = CorrectionRate(slices=["day", "night"])
    wrapped = ClasswiseWrapper(sliced.clone(), labels=list(sliced.slice_names or ()))
    sliced.update(BEFORE, AFTER, index)
    wrapped.update(BEFORE, AFTER, index)
    rates = [float(rate) for rate in sliced.compute()]
    found = wrapped.compute()
    assert {name: float(rate) for name, rate in found.items()} == dict(
        zip(("correctionrate_day", "correctionrate_night"), rates, strict=True)
    )
    collection = MetricCollection({"c": ClasswiseWrapper(sliced.clone(), labels=["day", "night"]), "all": Churn()})
    collection.reset()
    for part in (slice(0, 6), slice(6, 15)):
        collection.update(BEFORE[part], AFTER[part], slice_index=index[part])
    together = collection.compute()
    assert sorted(together) == ["all", "correctionrate_day", "correctionrate_night"]
    assert [float(together[f"correctionrate_{name}"]) for name in ("day", "night")] == rates


@pytest.mark.parametrize(("slices", "message"), [([], "at least 1"), (0, "at least 1"), (["a", "a"], "different")])
def test_slices_are_checked_in_the_constructor(slices: list[str] | int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ChannelCounts(slices=slices)


def test_settings_that_can_not_be_are_refused_before_anything_is_counted() -> None:
    for slices in ("abc", True):
        with pytest.raises(TypeError, match="a number of slices or a sequence of names"):
            ChannelCounts(slices=slices)
    assert ChannelCounts(slices=np.int64(3)).slice_names == ("0", "1", "2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="smoothing"):
        CorrectionRate(smoothing=-1)
    with pytest.raises(TypeError, match=r"before must be a tensor, but is a list; wrap it"):
        ChannelCounts().update([1, 0], [0, 1])  # type: ignore[arg-type]
