"""Mixtures of slices against sums by hand and the pooled truth."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch

from polyweave_torch.functional import channel_counts, estimate_channel, mixture_shift_bias
from tests.quantization import published_rows


def qwen_slices() -> dict[str, Any]:
    rows = [r for r in published_rows() if r.model == "Qwen2.5-1.5B-Instruct" and r.after == "int4"]
    return {r.benchmark: estimate_channel([r.counts[:2], r.counts[2:]], smoothing=0) for r in rows}


@pytest.mark.parametrize(
    ("support", "weights", "expected"),
    [
        ("group", None, -0.03407),
        ("total", None, -0.03601),
        ("group", "by count", -0.03411),
        ("total", "by count", -0.03604),
    ],
)
def test_pooling_qwen_int4(support: Any, weights: str | None, expected: float) -> None:
    channels = qwen_slices()
    sizes = {name: float(channel.total) for name, channel in channels.items()}
    bias = mixture_shift_bias(channels, None if weights is None else sizes, support=support)
    share = {name: (1 / 3 if weights is None else size / sum(sizes.values())) for name, size in sizes.items()}
    p0 = sum(share[name] * float(channel.p0) for name, channel in channels.items())
    delta = (1 - p0) * float(bias.slice_conditioned_c) - p0 * float(bias.slice_conditioned_gamma)
    assert round(delta, 5) == expected
    if support == "group" and weights == "by count":
        assert delta == pytest.approx(float(Fraction(-101, 2961)), abs=1e-15)
        # Deployment mixes as calibration did, so there is no bias.
        assert float(bias.bias_c) == pytest.approx(0.0, abs=1e-15)


def test_mixture_means_by_hand() -> None:
    channels = {"b": estimate_channel([[6, 2], [1, 1]]), "a": estimate_channel([[1, 1], [4, 14]])}
    c, gamma = ([float(channels[k].c), float(channels[k].gamma)] for k in ("a", "b"))
    bias = mixture_shift_bias(channels, {"a": 3.0, "b": 1.0})
    assert bias.slice_keys == ["a", "b"]
    assert float(bias.pooled_c) == pytest.approx((20 * c[0] + 10 * gamma[0]) / 30)
    assert float(bias.slice_conditioned_c) == pytest.approx((3 * c[0] + gamma[0]) / 4)
    assert float(bias.bias_gamma) == pytest.approx(float(bias.pooled_gamma) - float(bias.slice_conditioned_gamma))
    weighed = mixture_shift_bias(channels, {"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    assert float(weighed.pooled_c) == pytest.approx((c[0] + gamma[0]) / 2)


def test_an_empty_slice_has_no_weight_unless_given() -> None:
    channels = {"full": estimate_channel([[2, 2], [2, 2]]), "empty": estimate_channel([[0, 0], [0, 0]])}
    bias = mixture_shift_bias(channels)
    assert float(bias.pooled_c) == float(bias.slice_conditioned_c) == float(channels["full"].c)
    with pytest.raises(ValueError, match="without samples: \\['empty'\\]"):
        mixture_shift_bias(channels, {"full": 1.0, "empty": 1.0})


def test_group_pooling_of_raw_rates_is_the_pooled_table() -> None:
    generator = torch.Generator().manual_seed(3)
    before, after = (torch.randint(2, (400,), generator=generator).bool() for _ in range(2))
    index = torch.randint(5, (400,), generator=generator)
    tables = channel_counts(before, after, slice_index=index)
    pooled = estimate_channel(tables.sum(0), smoothing=0)
    channels = {str(k): estimate_channel(table, smoothing=0) for k, table in enumerate(tables)}
    bias = mixture_shift_bias(channels, support="group")
    assert float(bias.pooled_c) == pytest.approx(float(pooled.c), rel=1e-12)
    assert float(bias.pooled_gamma) == pytest.approx(float(pooled.gamma), rel=1e-12)


@pytest.mark.parametrize(
    "weights",
    [
        {"a": 1.0},
        {"a": 1.0, "b": 1.0, "x": 1.0},
        {"a": -1.0, "b": 2.0},
        {"a": 0.0, "b": 0.0},
        {"a": math.nan, "b": 1.0},
    ],
)
def test_bad_weights_are_named(weights: dict[str, float]) -> None:
    channels = {"a": estimate_channel([[1, 1], [1, 1]]), "b": estimate_channel([[1, 1], [1, 1]])}
    with pytest.raises(ValueError, match="deployment_weights"):
        mixture_shift_bias(channels, weights)
    with pytest.raises(ValueError, match="calibration_weights"):
        mixture_shift_bias(channels, None, weights)


def test_bad_input_is_named() -> None:
    counts = [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="the channel of slice 'a' holds 2 tables"):
        mixture_shift_bias({"a": estimate_channel([counts] * 2)})
    with pytest.raises(ValueError, match="at least one slice"):
        mixture_shift_bias({})
    with pytest.raises(ValueError, match="support must be"):
        mixture_shift_bias({"a": estimate_channel(counts)}, support="all")  # type: ignore[arg-type]
