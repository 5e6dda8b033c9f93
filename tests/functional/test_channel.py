"""Channels against plain Python, published figures and the accounting identity."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from polyweave_torch.functional import (
    channel_counts,
    channel_intervals,
    estimate_channel,
    iterate_channel,
    predict_post_accuracy,
)

ARTICLE = [[49, 32], [114, 305]]
bits = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)
cells = st.lists(st.integers(0, 10**6), min_size=4, max_size=4)


def loop_counts(pairs: list[tuple[bool, bool]]) -> list[list[int]]:
    table = [[0, 0], [0, 0]]
    for before, after in pairs:
        table[before][after] += 1
    return table


@given(bits, st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_order_batches_or_dtype(pairs: list[tuple[bool, bool]], random: Any) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    before = torch.tensor([pair[0] for pair in shuffled], dtype=torch.bool)
    after = torch.tensor([pair[1] for pair in shuffled], dtype=torch.bool)
    expected = loop_counts(pairs)
    assert channel_counts(before, after).tolist() == expected
    for dtype in (torch.uint8, torch.int64, torch.float32, torch.bfloat16):
        assert channel_counts(before.to(dtype), after.to(dtype)).tolist() == expected
    cut = random.randint(0, len(pairs))
    parts = channel_counts(before[:cut], after[:cut]) + channel_counts(before[cut:], after[cut:])
    assert parts.tolist() == expected


def test_counts_by_slice_and_mask_equal_a_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    before, after, keep = (torch.randint(2, (500,), generator=generator).bool() for _ in range(3))
    index = torch.randint(7, (500,), generator=generator)
    expected = torch.zeros(7, 2, 2, dtype=torch.int64)
    for b, a, s, k in zip(before.tolist(), after.tolist(), index.tolist(), keep.tolist(), strict=True):
        expected[s, int(b), int(a)] += k
    assert torch.equal(channel_counts(before, after, slice_index=index, num_slices=7, mask=keep), expected)
    assert torch.equal(channel_counts(before, after, mask=keep), expected.sum(0))
    lists = {"slice_index": index.tolist(), "mask": keep.tolist()}
    assert torch.equal(channel_counts(before.tolist(), after.tolist(), num_slices=7, **lists), expected)
    assert channel_counts([], [], slice_index=[], num_slices=7, mask=[]).shape == (7, 2, 2)


def test_what_the_mask_leaves_out_is_not_looked_at() -> None:
    before, after, keep = [1.0, math.nan, 0.0, 2.0], [1.0, 0.5, 1.0, math.nan], [True, False, True, False]
    assert channel_counts(before, after, mask=keep).tolist() == [[0, 1], [0, 1]]
    expected = [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]
    for beyond in (-1, 9, -(2**63), 2**63 - 1):
        index = [0, beyond, 1, beyond]
        assert channel_counts(before, after, slice_index=index, mask=keep).tolist() == expected
        assert channel_counts(before, after, slice_index=index, num_slices=2, mask=keep).tolist() == expected
    assert channel_counts([1], [1], slice_index=[7], mask=[False]).shape == (0, 2, 2)
    with pytest.raises(ValueError, match="before must be binary"):
        channel_counts(before, after, mask=[True, True, False, False])
    with pytest.raises(ValueError, match="slice_index must lie in"):
        channel_counts([1, 1], [1, 1], slice_index=[5, 9], num_slices=3, mask=[True, False])


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_counts_and_slices_are_integers_too(dtype: torch.dtype) -> None:
    counts = torch.tensor(ARTICLE, dtype=dtype)
    assert torch.equal(estimate_channel(counts).counts, torch.tensor(ARTICLE))
    ones = torch.tensor([1, 1], dtype=dtype)
    for options in ({}, {"num_slices": 2}, {"mask": [True, True]}):
        assert channel_counts([1, 0], [1, 1], slice_index=ones, **options)[1].tolist() == [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match=r"slice_index must lie in \[0, 1\)"):
        channel_counts([1, 0], [1, 1], slice_index=ones, num_slices=1)
    assert channel_counts(ones, ones).tolist() == [[0, 0], [0, 2]]


def test_counts_beyond_int64_are_refused() -> None:
    beyond = torch.tensor([2**63 + 5, 1], dtype=torch.uint64)
    with pytest.raises(ValueError, match=r"counts must be below 2\^63, .* but holds 9223372036854775813"):
        estimate_channel(torch.stack((beyond, beyond)))
    with pytest.raises(ValueError, match=r"slice_index must be below 2\^63"):
        channel_counts([1, 0], [1, 1], slice_index=beyond, num_slices=2)


@given(st.lists(st.integers(0, 10**12), min_size=4, max_size=4) | cells, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
@example([175532, 36784574, 40, 71099542], 0.5)
def test_rates_equal_exact_fractions(table: list[int], smoothing: float) -> None:
    n00, n01, n10, n11 = table
    channel = estimate_channel([[n00, n01], [n10, n11]], smoothing=smoothing)
    s = Fraction(smoothing)

    def rate(part: int, whole: int) -> float:
        return float((part + s) / (whole + 2 * s)) if whole + 2 * s else math.nan

    assert float(channel.c) == pytest.approx(rate(n01, n00 + n01), rel=1e-14, nan_ok=True)
    assert float(channel.gamma) == pytest.approx(rate(n10, n10 + n11), rel=1e-14, nan_ok=True)
    total = sum(table)
    delta = float(Fraction(n01 - n10, total)) if total else math.nan
    assert float(channel.delta) == pytest.approx(delta, rel=1e-14, nan_ok=True)


@given(cells, st.sampled_from([0, 0.0]))
@example([3, 33554435, 5, 7], 0.0)
def test_raw_rates_account_for_delta(table: list[int], smoothing: float) -> None:
    n00, n01, n10, n11 = table
    channel = estimate_channel([[n00, n01], [n10, n11]], smoothing=smoothing)
    assert float(channel.predicted_delta) == pytest.approx(float(channel.delta), abs=1e-12, nan_ok=True)


@given(cells)
def test_a_further_correction_never_lowers_c(table: list[int]) -> None:
    n00, n01, n10, n11 = table
    fewer, more = estimate_channel([[[n00, n01], [n10, n11]], [[n00, n01 + 1], [n10, n11]]]).c
    assert more >= fewer


def test_the_articles_example() -> None:
    raw, smoothed = estimate_channel(ARTICLE, smoothing=0), estimate_channel(ARTICLE)
    assert [round(float(v), 3) for v in (raw.p0, raw.p1)] == [0.838, 0.674]
    assert [round(float(v), 4) for v in (raw.c, raw.gamma, raw.break_even_correction)] == [0.3951, 0.2721, 1.4074]
    assert [round(float(v), 5) for v in (smoothed.c, smoothed.gamma)] == [0.39634, 0.27262]
    assert round(float(smoothed.break_even_correction), 4) == 1.4102
    assert round(float(iterate_channel(0.5, raw, 1).fixed_point), 4) == 0.5922
    assert round(float(iterate_channel(0.5, smoothed, 1).fixed_point), 4) == 0.5925
    bounds = channel_intervals(ARTICLE)
    ends = [bounds.c.low, bounds.c.high, bounds.gamma.low, bounds.gamma.high]
    assert [round(float(v), 4) for v in ends] == [0.2957, 0.5039, 0.2317, 0.3166]


def test_delta_interval_equals_the_written_formula() -> None:
    n01, n10, total = 32, 114, 500
    half = 1.959963984540054 * math.sqrt(n01 + n10 - (n01 - n10) ** 2 / total) / total
    low, high = channel_intervals(ARTICLE).delta
    assert float(low) == pytest.approx((n01 - n10) / total - half, rel=1e-13)
    assert float(high) == pytest.approx((n01 - n10) / total + half, rel=1e-13)


def test_jeffreys_bounds_are_beta_quantiles() -> None:
    from scipy import stats

    low, high = channel_intervals(ARTICLE, level=0.9, method="jeffreys").gamma
    posterior = stats.beta(114 + 0.5, 305 + 0.5)
    assert float(low) == pytest.approx(posterior.ppf(0.05), rel=1e-9)
    assert float(high) == pytest.approx(posterior.ppf(0.95), rel=1e-9)


@pytest.mark.parametrize("p0", [0.0, 0.3, 0.838, 1.0])
def test_the_orbit_equals_repeated_application(p0: float) -> None:
    channel = estimate_channel(ARTICLE)
    orbit = iterate_channel(p0, channel, 12).accuracy
    accuracy = torch.tensor(p0, dtype=torch.float64)
    for step in range(13):
        assert float(orbit[step]) == pytest.approx(float(accuracy), abs=1e-14)
        accuracy = predict_post_accuracy(accuracy, channel)


def test_an_orbit_that_never_moves_has_no_fixed_point() -> None:
    orbit = iterate_channel(0.4, estimate_channel([[5, 0], [0, 5]], smoothing=0), 3)
    assert orbit.accuracy.tolist() == [0.4] * 4
    assert orbit.fixed_point.isnan()


def test_defined_values_survive_empty_groups() -> None:
    all_right = estimate_channel([[0, 0], [1, 3]], smoothing=0)
    assert (float(all_right.p0), float(all_right.gamma), float(all_right.delta)) == (1.0, 0.25, -0.25)
    assert all_right.c.isnan()
    assert float(all_right.predicted_delta) == -0.25
    assert float(all_right.break_even_correction) == math.inf
    all_wrong = estimate_channel([[1, 3], [0, 0]], smoothing=0)
    assert (float(all_wrong.p0), float(all_wrong.c), float(all_wrong.predicted_delta)) == (0.0, 0.75, 0.75)
    assert float(all_wrong.break_even_correction) == 0.0
    nothing = estimate_channel(torch.zeros(2, 2, dtype=torch.int64))
    assert all(value.isnan() for value in (nothing.p0, nothing.p1, nothing.delta))
    assert float(nothing.c) == 0.5


def test_huge_counts_keep_their_precision() -> None:
    big = 10**15
    channel = estimate_channel([[big, big + 1], [2 * big, 2 * big]], smoothing=0)
    assert float(channel.c) == float(Fraction(big + 1, 2 * big + 1))
    assert float(channel.delta) == float(Fraction(big + 1 - 2 * big, 6 * big + 1))


def test_a_million_slices_in_one_call() -> None:
    counts = torch.randint(0, 50, (1_000_000, 2, 2), generator=torch.Generator().manual_seed(0))
    channel = estimate_channel(counts)
    row = 123_456
    (n00, n01), _ = counts[row].tolist()
    assert channel.c.shape == (1_000_000,)
    assert float(channel.c[row]) == pytest.approx((n01 + 0.5) / (n00 + n01 + 1))


def wrong_inputs() -> list[tuple[str, type[Exception], Any]]:
    t = torch.tensor
    return [
        ("shape", ValueError, lambda: estimate_channel([1, 2, 3, 4])),
        ("integers", TypeError, lambda: estimate_channel([[0.5, 1.0], [1.0, 1.0]])),
        ("negative", ValueError, lambda: estimate_channel([[1, -1], [1, 1]])),
        ("smoothing", ValueError, lambda: estimate_channel(ARTICLE, smoothing=-1)),
        ("one value a sample", ValueError, lambda: channel_counts([True], [True, False])),
        ("binary", ValueError, lambda: channel_counts(t([0, 2]), t([0, 1]))),
        ("binary", ValueError, lambda: channel_counts(t([0.0, math.nan]), t([0, 1]))),
        ("slice_index", ValueError, lambda: channel_counts([0, 1], [0, 1], slice_index=[0, 5], num_slices=5)),
        ("slice_index", ValueError, lambda: channel_counts([0, 1], [0, 1], slice_index=[0, -1], num_slices=5)),
        ("slice_index", TypeError, lambda: channel_counts([0, 1], [0, 1], slice_index=t([0.0, 1.0]))),
        ("mask", TypeError, lambda: channel_counts([0, 1], [0, 1], mask=t([1, 0]))),
        ("num_slices", ValueError, lambda: channel_counts([0, 1], [0, 1], num_slices=2)),
        ("level", ValueError, lambda: channel_intervals(ARTICLE, level=1.0)),
        ("method", ValueError, lambda: channel_intervals(ARTICLE, method="wald")),  # type: ignore[arg-type]
        ("p0", ValueError, lambda: predict_post_accuracy(1.2, estimate_channel(ARTICLE))),
        ("steps", ValueError, lambda: iterate_channel(0.5, estimate_channel(ARTICLE), -1)),
    ]


@pytest.mark.parametrize(("message", "kind", "call"), wrong_inputs())
def test_bad_input_is_named(message: str, kind: type[Exception], call: Any) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_results_stay_on_the_inputs_device() -> None:
    table: Tensor = torch.ones(2, 2, dtype=torch.int64)
    assert estimate_channel(table).c.device == table.device
    assert channel_intervals(table, method="jeffreys").c.low.device == table.device
