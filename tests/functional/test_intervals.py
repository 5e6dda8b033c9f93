import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from polyweave_torch.functional.intervals import jeffreys_interval, normal_quantile, wilson_interval
from tests.functional.reference import SIZES, close, printed, section

levels = st.floats(0.01, 0.999999)


def trials(largest: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(1, largest).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_every_wilson_row_of_the_reference_by_z_and_by_level() -> None:
    run = 0
    for row in section("wilson"):
        interval = wilson_interval(row["s"], row["n"], z=row["z"])
        assert (interval.low.item(), interval.high.item()) == (close(row["lo"]), close(row["hi"]))
        if row["conf"] is not None:
            interval = wilson_interval(row["s"], row["n"], level=row["conf"])
            assert (interval.low.item(), interval.high.item()) == (close(row["lo"]), close(row["hi"]))
        run += 1
    assert run == SIZES["wilson"]


def test_every_textbook_wilson_row_to_its_printed_digits() -> None:
    run = 0
    for row in section("textbook.wilson"):
        interval = wilson_interval(row["s"], row["n"])
        assert (interval.low.item(), interval.high.item()) == (close(row["lo_full"]), close(row["hi_full"]))
        # One source prints .7226 for .72247, inside its own test's tolerance.
        misprint = row["lo"] == 0.7226
        assert interval.low.item() == (pytest.approx(row["lo"], abs=1e-3) if misprint else printed(row["lo"]))
        assert interval.high.item() == printed(row["hi"])
        run += 1
    assert run == SIZES["textbook.wilson"]


def test_every_jeffreys_row_of_the_reference() -> None:
    run = 0
    for row in section("jeffreys"):
        interval = jeffreys_interval(row["s"], row["n"], level=row["conf"])
        assert (interval.low.item(), interval.high.item()) == (close(row["lo"]), close(row["hi"]))
        # The variant of Brown, Cai and DasGupta moves an end to 0 or 1 where nothing or everything succeeded; no other.
        assert row["lo_brown_cai_dasgupta"] == (0.0 if row["s"] == 0 else close(interval.low.item()))
        assert row["hi_brown_cai_dasgupta"] == (1.0 if row["s"] == row["n"] else close(interval.high.item()))
        run += 1
    assert run == SIZES["jeffreys"]


def test_wilson_targets_in_one_vectorised_call() -> None:
    interval = wilson_interval([0, 10, 7, 27], [10, 10, 10, 30])
    assert interval.low.tolist() == pytest.approx([0.0, 0.7224672, 0.396778, 0.743789], abs=5e-7)
    assert interval.high.tolist() == pytest.approx([0.2775328, 1.0, 0.892209, 0.965400], abs=5e-7)
    assert interval.p.tolist() == [0.0, 1.0, 0.7, 0.9]
    assert interval.level == 0.95


def test_the_95_percent_quantile_has_the_documents_digits() -> None:
    assert normal_quantile(0.95) == 1.959963984540054
    assert wilson_interval(7, 10)[:3] == wilson_interval(7, 10, z=1.959963984540054)[:3]


def test_z_overrides_the_level_and_reports_its_own() -> None:
    interval = wilson_interval(7, 10, level=0.5, z=1.0)
    assert interval.level == pytest.approx(2 * stats.norm.cdf(1.0) - 1)
    assert interval.high.item() == pytest.approx(wilson_interval(7, 10, level=interval.level).high.item())


def test_no_trials_leave_the_point_undefined_and_the_interval_whole() -> None:
    interval = wilson_interval([0, 3], [0, 4])
    assert math.isnan(interval.p[0].item())
    assert (interval.low[0].item(), interval.high[0].item()) == (0.0, 1.0)
    assert interval.p[1].item() == 0.75


def test_jeffreys_without_trials_is_the_priors_own_interval() -> None:
    low, high = jeffreys_interval(0, 0, level=0.9)
    # Beta(1/2, 1/2) is the arcsine distribution.
    assert low.item() == pytest.approx(math.sin(math.pi / 2 * 0.05) ** 2)
    assert high.item() == pytest.approx(math.sin(math.pi / 2 * 0.95) ** 2)


@given(trials(10**9), levels)
@settings(deadline=None, max_examples=60)
def test_wilson_ends_are_the_rates_that_the_score_test_just_rejects(pair: tuple[int, int], level: float) -> None:
    s, n = pair
    z, interval = normal_quantile(level), wilson_interval(s, n, level=level)
    for end in (interval.low.item(), interval.high.item()):
        assert (s / n - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, rel=1e-6, abs=1e-15)
    assert 0.0 <= interval.low.item() <= s / n <= interval.high.item() <= 1.0


@given(st.integers(1, 10**9), levels)
@settings(deadline=None, max_examples=60)
def test_wilson_is_exact_at_nothing_and_everything(n: int, level: float) -> None:
    interval = wilson_interval([0, n], n, level=level)
    assert interval.low[0].item() == 0.0 < interval.high[0].item()
    assert interval.high[1].item() == 1.0 > interval.low[1].item()


@given(trials(10**9), levels)
@settings(deadline=None, max_examples=60)
def test_failures_mirror_successes(pair: tuple[int, int], level: float) -> None:
    s, n = pair
    for interval in (wilson_interval, jeffreys_interval):
        ends, mirrored = interval(s, n, level=level), interval(n - s, n, level=level)
        assert ends.low.item() == pytest.approx(1.0 - mirrored.high.item(), abs=1e-12)
        assert ends.high.item() == pytest.approx(1.0 - mirrored.low.item(), abs=1e-12)


# Beside 1 a float64 has too few steps for the tail of more trials.
@given(trials(10**5), st.floats(0.01, 0.99))
@settings(deadline=None, max_examples=60)
def test_jeffreys_leaves_equal_tails_of_the_posterior(pair: tuple[int, int], level: float) -> None:
    s, n = pair
    low, high = jeffreys_interval(s, n, level=level)
    posterior = stats.beta(s + 0.5, n - s + 0.5)
    assert posterior.cdf(low.item()) == pytest.approx((1 - level) / 2, rel=1e-5)
    assert posterior.sf(high.item()) == pytest.approx((1 - level) / 2, rel=1e-5)


@pytest.mark.parametrize("method", ["wilson", "jeffreys"])
def test_agrees_with_statsmodels(method: str) -> None:
    for s, n, level in [(3, 17, 0.9), (250, 1000, 0.99), (1, 29, 0.95)]:
        low, high = proportion_confint(s, n, alpha=1 - level, method=method)
        wilson, jeffreys = wilson_interval(s, n, level=level), jeffreys_interval(s, n, level=level)
        ends = wilson if method == "wilson" else jeffreys
        assert [ends.low.item(), ends.high.item()] == pytest.approx([low, high])


def test_any_shape_and_type_of_input_broadcasts() -> None:
    s = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
    for interval in (wilson_interval, jeffreys_interval):
        ends = interval(s, torch.tensor([10, 20, 30]))
        assert ends.low.shape == ends.high.shape == (2, 3)
        assert ends.low.dtype == torch.float64
        single = interval(5.0, 20)
        assert single.low.shape == ()
        assert single.low.item() == ends.low[1, 1].item()
        assert interval(torch.tensor(5), torch.tensor([[20.0]])).low.shape == (1, 1)
        assert interval(torch.zeros(0), 3).low.shape == (0,)


@pytest.mark.parametrize("s", [-1, 11])
def test_impossible_successes_are_refused(s: int) -> None:
    for interval in (wilson_interval, jeffreys_interval):
        with pytest.raises(ValueError, match=f"between 0 and n, but came as {s} of 10"):
            interval([3, s], 10)


def test_levels_outside_the_unit_interval_and_useless_z_are_refused() -> None:
    for interval in (wilson_interval, jeffreys_interval):
        with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
            interval(3, 10, level=95.0)
    for z in (0.0, -1.96, math.inf, math.nan):
        with pytest.raises(ValueError, match="z must be a positive number"):
            wilson_interval(3, 10, z=z)
