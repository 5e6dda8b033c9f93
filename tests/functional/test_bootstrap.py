import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polyweave_torch.functional import _poisson_draws, _resampling
from polyweave_torch.functional._poisson_draws import poisson_totals
from polyweave_torch.functional.bootstrap import BootstrapInterval, exact_binary_bootstrap, paired_bootstrap
from tests.functional.reference import SIZES, close, scipy_paired_bootstrap, section


def real_arms(n: int, columns: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    control = torch.randn(n, columns, generator=generator, dtype=torch.float64)
    return control, control + 0.3 * torch.randn(n, columns, generator=generator, dtype=torch.float64) + 0.02


def binary_arms(n00: int, n01: int, n10: int, n11: int) -> tuple[Tensor, Tensor]:
    pairs = [(0.0, 0.0)] * n00 + [(0.0, 1.0)] * n01 + [(1.0, 0.0)] * n10 + [(1.0, 1.0)] * n11
    control, treatment = torch.tensor(pairs).T
    return control, treatment


def same(first: BootstrapInterval, second: BootstrapInterval) -> bool:
    return all(
        torch.equal(a.nan_to_num(nan=99.0), b.nan_to_num(nan=99.0)) for a, b in zip(first[:5], second[:5], strict=True)
    )


def column(interval: BootstrapInterval, index: int) -> BootstrapInterval:
    return interval._replace(**{field: getattr(interval, field)[index] for field in (*interval._fields[:5], "pairs")})


# The exact bootstrap.


def test_exact_bootstrap_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("bootstrap_exact"):
        interval = exact_binary_bootstrap([[row["n"] - row["b"] - row["c"], row["b"]], [row["c"], 0]])
        assert interval.estimate.item() == close(row["diff"])
        assert interval.standard_error.item() == close(row["boot_se"])
        assert interval.low.item() == close(row["pct95_lo"])
        assert interval.high.item() == close(row["pct95_hi"])
        assert bool(interval.significant) == (not row["pct95_lo"] <= 0.0 <= row["pct95_hi"])
        run += 1
    assert run == SIZES["bootstrap_exact"]


@given(st.tuples(*[st.integers(0, 3)] * 3).filter(lambda cell: sum(cell) > 1), st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=40, deadline=None)
def test_exact_bootstrap_is_the_law_over_all_resamples(cell: tuple[int, int, int], level: float) -> None:
    same_, gained, lost = cell
    n = sum(cell)
    values = [0] * same_ + [1] * gained + [-1] * lost
    law: dict[int, Fraction] = {}
    for counts in itertools.product(range(n + 1), repeat=2):
        if sum(counts) <= n:
            ways = math.comb(n, counts[0]) * math.comb(n - counts[0], counts[1])
            weight = Fraction(ways * gained ** counts[0] * lost ** counts[1] * same_ ** (n - sum(counts)), n**n)
            law[counts[0] - counts[1]] = law.get(counts[0] - counts[1], Fraction(0)) + weight
    ordered = sorted(law)
    cumulative = list(itertools.accumulate(law[value] for value in ordered))
    tail = (1 - Fraction(str(level))) / 2
    low, high = (next(v for v, p in zip(ordered, cumulative, strict=True) if p >= reach) for reach in (tail, 1 - tail))
    interval = exact_binary_bootstrap([[same_, gained], [lost, 0]], level=level)
    if min(abs(p - reach) for p in cumulative for reach in (tail, 1 - tail)) > 1e-12:
        assert [interval.low.item() * n, interval.high.item() * n] == pytest.approx([low, high])
    assert interval.standard_error.item() == pytest.approx(np.std(values) / math.sqrt(n))


@given(st.tuples(*[st.integers(0, 40)] * 4).filter(lambda cell: sum(cell) > 1))
@settings(max_examples=40, deadline=None)
def test_exact_bootstrap_mirrors_when_the_arms_swap(cell: tuple[int, int, int, int]) -> None:
    table = torch.tensor(cell).view(2, 2)
    # A level at which no cumulative probability lies on an end.
    forward, backward = exact_binary_bootstrap(table, level=0.9431), exact_binary_bootstrap(table.T, level=0.9431)
    assert (forward.low.item(), forward.high.item()) == (-backward.high.item(), -backward.low.item())


def test_exact_bootstrap_of_many_tables_and_of_many_pairs() -> None:
    counts = torch.randint(0, 30, (3, 5, 2, 2), generator=torch.Generator().manual_seed(0))
    together, alone = exact_binary_bootstrap(counts), exact_binary_bootstrap(counts[2, 3])
    assert together.low.shape == together.pairs.shape == (3, 5)
    assert together.low[2, 3] == alone.low
    assert together.high[2, 3] == alone.high
    large = exact_binary_bootstrap([[10**8, 10**6], [10**6 - 3000, 10**8]])
    z = 1.959963984540054
    reach = (large.high - large.estimate) / large.standard_error, (large.estimate - large.low) / large.standard_error
    assert [side.item() for side in reach] == pytest.approx([z, z], abs=2e-3)


@pytest.mark.parametrize("counts", [[[0, 0], [0, 0]], [[0, 1], [0, 0]]])
def test_exact_bootstrap_needs_two_pairs(counts: list[list[int]]) -> None:
    interval = exact_binary_bootstrap(counts)
    assert interval.low.isnan()
    assert interval.high.isnan()
    assert interval.standard_error.isnan()
    assert not interval.significant


# The resampled one.


def test_published_target() -> None:
    interval = paired_bootstrap([1, 2, 3, 4], [2, 4, 4, 5])
    assert interval.estimate.item() == 1.25
    assert (interval.low.item(), interval.high.item()) == (1.0, 1.75)
    assert interval.significant


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_ends_are_linear_quantiles_of_means_over_drawn_pairs(level: float) -> None:
    control, treatment = real_arms(7, 1)
    interval = paired_bootstrap(control[:, 0], treatment[:, 0], resamples=60, level=level, seed=3)
    difference = (treatment - control)[:, 0].numpy()
    drawn = poisson_totals(np.eye(7), 60, 3).T
    means = [sum(count * d for count, d in zip(row, difference, strict=True)) / 7 for row in drawn]
    tails = [(1 - level) / 2, (1 + level) / 2]
    assert [interval.low.item(), interval.high.item()] == pytest.approx(np.quantile(means, tails), rel=1e-9, abs=1e-12)
    assert interval.standard_error.item() == pytest.approx(np.std(means, ddof=1), rel=1e-9)
    assert interval.estimate.item() == pytest.approx(difference.mean(), rel=1e-12)


@pytest.mark.parametrize("n", [12, 150, 2000])
def test_agrees_with_scipy_within_monte_carlo_error(n: int) -> None:
    control, treatment = (arm[:, 0] for arm in real_arms(n, 1))
    ours = paired_bootstrap(control, treatment, resamples=8000)
    peer = scipy_paired_bootstrap(control, treatment)
    error = peer.standard_error
    assert ours.standard_error.item() == pytest.approx(error, rel=0.04)
    assert ours.low.item() == pytest.approx(peer.confidence_interval.low, abs=0.15 * error)
    assert ours.high.item() == pytest.approx(peer.confidence_interval.high, abs=0.15 * error)


@pytest.mark.parametrize("cell", [(5, 6, 2, 8), (150, 30, 20, 200)])
def test_agrees_with_the_exact_law_of_binary_pairs(cell: tuple[int, int, int, int]) -> None:
    exact = exact_binary_bootstrap(torch.tensor(cell).view(2, 2))
    sampled = paired_bootstrap(*binary_arms(*cell), resamples=20_000)
    step = 1.0 / sum(cell) + 1e-12
    assert sampled.estimate.item() == pytest.approx(exact.estimate.item())
    assert sampled.standard_error.item() == pytest.approx(exact.standard_error.item(), rel=0.03)
    assert abs(sampled.low - exact.low) <= step
    assert abs(sampled.high - exact.high) <= step


def test_few_values_and_many_values_have_one_distribution() -> None:
    control, treatment = binary_arms(500, 100, 60, 900)
    apart = treatment + torch.linspace(0.0, 1e-7, len(treatment))
    few = paired_bootstrap(control, treatment, resamples=10_000)
    many = paired_bootstrap(control.double(), apart.double(), resamples=10_000)
    error = few.standard_error.item()
    assert many.standard_error.item() == pytest.approx(error, rel=0.04)
    assert many.low.item() == pytest.approx(few.low.item(), abs=0.15 * error)
    assert many.high.item() == pytest.approx(few.high.item(), abs=0.15 * error)


@pytest.mark.parametrize("marks", [3, 12])
def test_the_order_of_few_values_does_not_matter(marks: int) -> None:
    # Sorted, the rare values stand last, where a look at the first pairs cannot find them.
    differences = torch.cat((torch.zeros(2000), torch.arange(marks).repeat_interleave(5)))
    shuffled = differences[torch.randperm(len(differences), generator=torch.Generator().manual_seed(0))]
    in_order = paired_bootstrap(torch.zeros_like(differences), differences)
    assert same(in_order, paired_bootstrap(torch.zeros_like(shuffled), shuffled))
    # Drawing pairs instead of values would depend on their order.
    assert in_order.low < in_order.estimate < in_order.high


def mixed_arms(n: int) -> tuple[Tensor, Tensor]:
    """Columns of many values, of three, of one, with gaps and without, and one without any pair."""
    control, treatment = real_arms(n, 6)
    control[:, 1], treatment[:, 1] = (control[:, 1] > 0).double(), (treatment[:, 1] > 0).double()
    treatment[:, 2] = control[:, 2] + 0.1
    control[::3, 3] = math.nan
    treatment[::3, 4] = math.nan
    control[:, 5] = math.nan
    return control, treatment


@pytest.mark.parametrize("n", [5, 40, 600])
@pytest.mark.parametrize("clustered", [False, True])
def test_a_column_has_the_interval_it_has_alone(n: int, clustered: bool) -> None:
    control, treatment = mixed_arms(n)
    labels = torch.arange(n) // 3 if clustered else None
    together = paired_bootstrap(control, treatment, resamples=200, clusters=labels)
    for index in range(control.shape[1]):
        alone = paired_bootstrap(control[:, index], treatment[:, index], resamples=200, clusters=labels)
        assert same(column(together, index), alone)
        assert together.pairs[index] == alone.pairs


@pytest.mark.parametrize("cells", [1, 50, 700])
def test_blocks_do_not_change_an_interval(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    control, treatment = mixed_arms(130)
    whole = paired_bootstrap(control, treatment, resamples=90)
    for module in (_poisson_draws, _resampling):
        monkeypatch.setattr(module, "_CELLS_AT_ONCE", cells)
    assert same(whole, paired_bootstrap(control, treatment, resamples=90))


def test_a_missing_outcome_in_either_arm_leaves_its_pair_out() -> None:
    control, treatment = (arm[:, 0] for arm in real_arms(30, 1))
    keep = torch.ones(30, dtype=torch.bool)
    keep[[3, 17, 29]] = False
    with_gaps = control.clone()
    with_gaps[[3, 17]] = math.nan
    missing = treatment.clone()
    missing[29] = math.nan
    interval = paired_bootstrap(with_gaps, missing)
    assert same(interval, paired_bootstrap(control[keep], treatment[keep]))
    assert interval.pairs.item() == 27


def test_same_seed_same_interval_and_no_touch_of_the_global_generators() -> None:
    control, treatment = mixed_arms(100)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"]
    first, second = (paired_bootstrap(control, treatment, seed=5) for _ in range(2))
    other = paired_bootstrap(control, treatment, seed=6)
    assert same(first, second)
    assert first.low[0] != other.low[0]
    assert torch.equal(torch_state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state(legacy=False)["state"]["key"])


def test_swapping_the_arms_mirrors_the_interval_to_the_last_bit() -> None:
    control, treatment = real_arms(60, 2)
    forward, backward = paired_bootstrap(control, treatment), paired_bootstrap(treatment, control)
    assert torch.equal(forward.low, -backward.high)
    assert torch.equal(forward.high, -backward.low)
    assert torch.equal(forward.significant, backward.significant)


def test_order_of_samples_does_not_matter_where_values_are_few() -> None:
    control, treatment = binary_arms(50, 20, 10, 80)
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    assert same(paired_bootstrap(control, treatment), paired_bootstrap(control[order], treatment[order]))


@pytest.mark.parametrize("n", [2, 5, 200])
@pytest.mark.parametrize("gain", [0.1, -3.0])
def test_a_constant_difference_has_an_interval_of_width_zero(n: int, gain: float) -> None:
    interval = paired_bootstrap([0.0] * n, [gain] * n)
    assert interval.estimate.item() == interval.low.item() == interval.high.item() == gain
    assert interval.standard_error.item() == 0.0
    assert interval.significant


def test_equal_arms_are_not_significant() -> None:
    interval = paired_bootstrap([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (interval.low.item(), interval.high.item()) == (0.0, 0.0)
    assert not interval.significant


def test_an_end_at_zero_is_zero_and_not_significant() -> None:
    # The means are whole thirds of n; .1 + .2 - .3 and its like would leave 5e-17 in place of 0.
    control = [0.3, 0.1, 1 / 3, 0.7]
    treatment = [0.1 + 0.2, 0.1, 1 / 3 + 2 / 3, 0.7]
    interval = paired_bootstrap(control, treatment)
    assert interval.low.item() == 0.0
    assert not interval.significant


def test_one_outlier_does_not_make_an_interval_around_0() -> None:
    difference = np.random.default_rng(1).normal(1.0, 0.1, 100_000)
    difference[0] = 1e10
    interval = paired_bootstrap(torch.zeros(100_000), torch.from_numpy(difference), resamples=200)
    # One resample in e draws the outlier not at all: those have means near 1.
    assert interval.low.item() == pytest.approx(1.0, abs=0.01)
    assert interval.significant
    assert interval.estimate.item() == pytest.approx(difference.mean(), rel=1e-12)


def test_clusters_of_very_different_sizes_keep_their_precision() -> None:
    pairs, large = 200_000, 50_000
    difference = np.random.default_rng(0).normal(3e-4, 1e-3, pairs)
    difference[:2] = -1.0, 1.0
    labels = np.append(np.zeros(large, int), np.arange(1, pairs - large + 1))
    clusters = torch.from_numpy(labels)
    interval = paired_bootstrap(torch.zeros(pairs), torch.from_numpy(difference), clusters=clusters, resamples=100)
    assert 0.0 < interval.low < interval.estimate < interval.high
    assert interval.estimate.item() == pytest.approx(difference.mean(), rel=1e-12)
    sums, sizes = np.bincount(labels, difference), np.bincount(labels)
    generator = np.random.default_rng(5)
    drawn = [generator.integers(0, len(sizes), len(sizes)) for _ in range(100)]
    error = np.std([sums[index].sum() / sizes[index].sum() for index in drawn], ddof=1)
    assert interval.standard_error.item() == pytest.approx(error, rel=0.35)


def test_clusters_whose_differences_cancel_are_not_significant() -> None:
    # .1 + .2 - .3 leaves 5e-17 in every cluster.
    difference = torch.tensor([0.1, 0.2, -0.3, 0.3, -0.3] * 10, dtype=torch.float64)
    labels = torch.arange(10).repeat_interleave(5)
    interval = paired_bootstrap(torch.zeros(50, dtype=torch.float64), difference, clusters=labels)
    assert interval.low == interval.high == 0.0
    assert not interval.significant


@pytest.mark.parametrize("gain", [1e-18, 0.1, -3.0])
def test_a_constant_difference_in_clusters_has_an_interval_of_width_zero(gain: float) -> None:
    labels = torch.arange(12) // 5
    interval = paired_bootstrap([0.0] * 12, [gain] * 12, clusters=labels)
    assert interval.estimate.item() == interval.low.item() == interval.high.item() == gain
    assert interval.significant


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300, 0.9e308, np.finfo(np.float64).max])
def test_scores_at_either_end_of_float64(scale: float) -> None:
    control, treatment = torch.zeros(4, dtype=torch.float64), torch.tensor([1.0, 0.0, 0.5, -0.25]).double() * scale
    interval = paired_bootstrap(control, treatment)
    assert interval.estimate.item() == pytest.approx(0.3125 * scale, rel=1e-3)
    if scale < 1e308:
        assert interval.low < interval.estimate < interval.high


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    control, treatment = (arm[:, 0] for arm in real_arms(30, 1))
    expected = paired_bootstrap(control, treatment, resamples=100, seed=7)
    assert same(expected, paired_bootstrap(control, treatment, resamples=np.int64(100), seed=np.int32(7)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("control", "treatment"), [([], []), ([1.0], [2.0]), ([1.0, math.nan], [2.0, 3.0])])
def test_fewer_than_two_pairs_are_undefined(control: list[float], treatment: list[float]) -> None:
    interval = paired_bootstrap(control, treatment)
    assert same(interval, paired_bootstrap(control, treatment, clusters=list(range(len(control)))))
    assert all(field.isnan() for field in (interval.low, interval.high, interval.standard_error))
    assert not interval.significant
    assert interval.pairs.item() == min(len(control), 1)
    assert interval.estimate.isnan() if not control else interval.estimate.item() == 1.0


def test_infinite_scores_are_undefined_and_not_significant() -> None:
    interval = paired_bootstrap([0.0, 1.0, 2.0], [1.0, math.inf, 3.0])
    assert interval.low.isnan()
    assert not interval.significant


# Clusters.


def test_whole_clusters_are_drawn_and_their_pairs_averaged() -> None:
    control, treatment = (arm[:, 0] for arm in real_arms(9, 1))
    labels = torch.tensor([7, 7, 7, -2, -2, 4, 4, 4, 4])
    interval = paired_bootstrap(control, treatment, resamples=40, clusters=labels, seed=1)
    difference = (treatment - control).tolist()
    members = [
        [d for d, label in zip(difference, labels.tolist(), strict=True) if label == which] for which in (-2, 4, 7)
    ]
    drawn = poisson_totals(np.eye(3), 40, 1).T.astype(int).tolist()
    means = [
        np.mean([d for count, cluster in zip(row, members, strict=True) for d in count * cluster]) for row in drawn
    ]
    assert [interval.low.item(), interval.high.item()] == pytest.approx(np.quantile(means, [0.025, 0.975]), rel=1e-9)
    assert interval.standard_error.item() == pytest.approx(np.std(means, ddof=1), rel=1e-9)
    assert interval.estimate.item() == pytest.approx(np.mean(difference))


def test_clusters_of_one_pair_are_no_clusters() -> None:
    control, treatment = mixed_arms(60)
    assert same(paired_bootstrap(control, treatment), paired_bootstrap(control, treatment, clusters=torch.arange(60)))


def test_copies_of_pairs_add_no_precision_when_they_are_clusters() -> None:
    control, treatment = (arm[:, 0] for arm in real_arms(25, 1))
    once = paired_bootstrap(control, treatment)
    copied = paired_bootstrap(control.repeat(8), treatment.repeat(8), clusters=torch.arange(25).repeat(8))
    assert copied.low.item() == pytest.approx(once.low.item(), rel=1e-9)
    assert copied.high.item() == pytest.approx(once.high.item(), rel=1e-9)
    assert copied.pairs.item() == 200


def test_one_cluster_is_undefined() -> None:
    interval = paired_bootstrap([1.0, 2.0, 3.0], [2.0, 2.0, 5.0], clusters=[4, 4, 4])
    assert interval.estimate.item() == 1.0
    assert interval.low.isnan()
    assert not interval.significant


# What it promises.


@pytest.mark.parametrize(("n", "error"), [(5, 0.16), (10, 0.11), (20, 0.07), (50, 0.055)])
def test_interval_is_too_narrow_for_few_pairs_by_as_much_as_documented(n: int, error: float) -> None:
    control = torch.zeros(n, 3000)
    treatment = torch.randn(n, 3000, generator=torch.Generator().manual_seed(n))
    share = paired_bootstrap(control, treatment, resamples=400).significant.double().mean().item()
    assert share == pytest.approx(error, abs=0.025)


def test_shapes_and_dtypes_follow_the_columns() -> None:
    control, treatment = real_arms(10, 3)
    treatment.requires_grad_()
    interval = paired_bootstrap(control.float(), treatment.float(), level=0.9)
    for field in interval[:4]:
        assert isinstance(field, Tensor)
        assert (field.shape, field.dtype) == ((3,), torch.float64)
    assert (interval.significant.dtype, interval.pairs.tolist(), interval.level) == (torch.bool, [10, 10, 10], 0.9)
    assert paired_bootstrap([True, False, True], [False, True, True]).low.shape == ()


def test_bad_arguments_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="control and treatment must have one shape"):
        paired_bootstrap([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="align the two arms"):
        paired_bootstrap(torch.zeros(2, 2, 2), torch.zeros(2, 2, 2))
    with pytest.raises(ValueError, match="clusters must have one value a sample"):
        paired_bootstrap([1.0, 2.0], [1.0, 2.0], clusters=[1])
    with pytest.raises(TypeError, match="clusters must be integer labels"):
        paired_bootstrap([1.0, 2.0], [1.0, 2.0], clusters=[0.5, 1.0])
    with pytest.raises(ValueError, match="resamples must be at least 2"):
        paired_bootstrap([1.0, 2.0], [1.0, 2.0], resamples=1)
    with pytest.raises(ValueError, match="seed at least 0"):
        paired_bootstrap([1.0, 2.0], [1.0, 2.0], seed=-1)
    for function in (exact_binary_bootstrap, lambda counts, level: paired_bootstrap(*counts, level=level)):
        with pytest.raises(ValueError, match="level must lie"):
            function([[1, 2], [3, 4]], level=95)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e300])
def test_a_constant_difference_of_any_size_is_significant(size: float) -> None:
    control = torch.zeros(1000, dtype=torch.float64)
    interval = paired_bootstrap(control, control + size, resamples=50)
    assert (interval.low.item(), interval.high.item()) == (size, size)
    assert interval.standard_error.item() == 0.0
    assert interval.significant


@pytest.mark.parametrize("power", [-1040, -1000, -150, 150, 1000])
def test_the_interval_scales_with_the_scores(power: int) -> None:
    control, treatment = real_arms(40, 1)
    scale = 2.0**power
    one = paired_bootstrap(control[:, 0], treatment[:, 0], resamples=200)
    scaled = paired_bootstrap(control[:, 0] * scale, treatment[:, 0] * scale, resamples=200)
    # Below 2^-1022 a number has fewer digits.
    tolerance = 1e-12 if power > -1022 else 1e-6
    for found, wanted in zip(scaled[:4], one[:4], strict=True):
        assert float(found) / scale == pytest.approx(float(wanted), rel=tolerance)
    assert scaled.significant == one.significant


def test_arguments_of_another_kind_are_named() -> None:
    with pytest.raises(TypeError, match="real numbers"):
        paired_bootstrap(torch.zeros(3, dtype=torch.complex64), torch.zeros(3, dtype=torch.complex64))
    with pytest.raises(TypeError, match="whole numbers"):
        paired_bootstrap([1.0, 2.0], [1.0, 3.0], resamples=100.0)  # type: ignore[arg-type]
