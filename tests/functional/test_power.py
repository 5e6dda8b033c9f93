import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from polyweave_torch.functional.mcnemar import Method, mcnemar
from polyweave_torch.functional.power import (
    PowerMethod,
    discordance_from_phi,
    mcnemar_power,
    mcnemar_sample_size,
    target_per_stratum,
)
from tests.functional.reference import SIZES, close, section

TESTS: tuple[Method, ...] = get_args(Method)
COLUMNS: dict[str, PowerMethod] = {
    "exact": "exact",
    "midp": "midp",
    "chi2": "asymptotic",
    "edwards": "edwards",
    "connor": "connor",
}


def enumerated_power(p10: float, p01: float, n: int, alpha: float, method: Method) -> float:
    """Every table of n pairs, its probability, and whether the library's own test rejects it."""
    tables = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    rejected = mcnemar([b for b, _ in tables], [c for _, c in tables], method=method).p_value < alpha
    same = 1.0 - p10 - p01
    return sum(
        math.comb(n, b) * math.comb(n - b, c) * p10**b * p01**c * same ** (n - b - c)
        for (b, c), reject in zip(tables, rejected.tolist(), strict=True)
        if reject
    )


def test_power_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("exact_power"):
        for column, method in COLUMNS.items():
            power = mcnemar_power(row["p10"], row["p01"], row["n"], alpha=row["alpha"], method=method)
            assert power.item() == close(row[column])
        run += 1
    assert run == SIZES["exact_power"]


def floor(discordance: float) -> int:
    """The first n that is expected to give 25 discordants, to a tenth of one."""
    return next(n for n in range(10**5) if round(n * discordance + 1e-9, 1) >= 25)


def test_power_at_connors_size_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("power"):
        shares, n = (row["p10"], row["p01"]), row["n_connor_ceil"]
        for column, method in COLUMNS.items():
            if f"power_at_ceil_{column}" in row:
                power = mcnemar_power(*shares, n, alpha=row["alpha"], method=method)
                assert power.item() == close(row[f"power_at_ceil_{column}"])
        assert target_per_stratum(*shares, alpha=row["alpha"], power=row["power"]) == max(n, floor(sum(shares)))
        below, reached = mcnemar_power(*shares, torch.tensor([n - 1, n]), method="connor").tolist()
        assert below < row["power"] <= reached
        run += 1
    assert run == SIZES["power"]


def test_sizes_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("exact_n"):
        shares, method = (row["p10"], row["p01"]), COLUMNS[row["method"]]
        assert mcnemar_sample_size(*shares, power=row["power"], method=method) == row["stable_n"]  # type: ignore[arg-type]
        assert target_per_stratum(*shares, power=row["power"]) == max(row["connor"], floor(sum(shares)))
        if row["method"] == "exact":
            # In these rows the default, exact only below 25 discordants, needs the same size.
            assert mcnemar_sample_size(*shares, power=row["power"]) == row["stable_n"]
        run += 1
    assert run == SIZES["exact_n"]


def test_claims_about_seventy_to_eighty_percent_of_every_row_of_the_reference() -> None:
    run = 0
    for row in section("seed_power_claim"):
        p10, p01 = discordance_from_phi(0.7, 0.8, row["phi"])
        assert p10.item() == pytest.approx(row["p10"], rel=1e-9)
        assert p01.item() == pytest.approx(row["p01"], rel=1e-9)
        assert (p10 + p01).item() == close(row["discordant"])
        power = mcnemar_power(p10, p01, torch.tensor([120, 40]), method="connor")
        assert power.tolist() == [close(row["power_n120"]), close(row["power_n40"])]
        expected = max(math.ceil(row["n_connor_80"]), floor(row["discordant"]))
        assert target_per_stratum(p10.item(), p01.item()) == expected
        run += 1
    assert run == SIZES["seed_power_claim"]


def test_target_takes_twenty_five_discordants_at_least() -> None:
    assert target_per_stratum(0.03, 0.13) == 156
    assert target_per_stratum(0.14, 0.24) == 296
    assert target_per_stratum(0.0, 0.5) == 50


@pytest.mark.parametrize("method", TESTS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_power_is_the_probability_of_the_tables_that_the_test_rejects(method: Method, alpha: float) -> None:
    for p10, p01, n in ((0.1, 0.35, 12), (0.5, 0.5, 9), (0.0, 0.4, 20), (0.3, 0.3, 34)):
        expected = enumerated_power(p10, p01, n, alpha, method)
        assert mcnemar_power(p10, p01, n, alpha=alpha, method=method).item() == pytest.approx(expected, rel=1e-9)


def test_rejection_needs_a_p_value_below_alpha_not_at_it() -> None:
    # Five discordants on one side have an exact p of 1/16.
    assert mcnemar_power(0.0, 1.0, 5, alpha=1 / 16, method="exact").item() == 0.0
    assert mcnemar_power(0.0, 1.0, 5, alpha=1 / 16 + 1e-9, method="exact").item() == 1.0


shares = st.floats(0.0, 0.5)


@given(shares, shares, st.integers(0, 200), st.sampled_from([*TESTS, "connor"]))
@settings(max_examples=80, deadline=None)
def test_power_does_not_depend_on_the_direction(p10: float, p01: float, n: int, method: PowerMethod) -> None:
    forward, backward = mcnemar_power(p10, p01, n, method=method), mcnemar_power(p01, p10, n, method=method)
    assert forward.item() == pytest.approx(backward.item(), rel=1e-9, abs=1e-15)
    assert 0.0 <= forward <= 1.0 + 1e-12


@pytest.mark.parametrize("method", [*TESTS, "connor"])
def test_certain_outcomes_have_certain_power(method: PowerMethod) -> None:
    power = mcnemar_power([0.0, 0.0, 1.0, 5e-324], [0.0, 1.0, 0.0, 1e-308], [50, 50, 0, 50], method=method)
    assert power.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_power_of_almost_one_has_a_size() -> None:
    assert mcnemar_sample_size(0.1, 0.4, power=1.0 - 1e-16) >= mcnemar_sample_size(0.1, 0.4, power=1.0 - 1e-10) > 100


@pytest.mark.parametrize("method", ["exact", "edwards"])
@pytest.mark.parametrize("n", [10, 60, 400])
def test_true_error_rate_of_the_conservative_tests_stays_below_alpha(n: int, method: Method) -> None:
    share = torch.linspace(0.0, 0.5, 26)
    assert (mcnemar_power(share, share, n, method=method) <= 0.05).all()


def test_power_broadcasts_its_arguments() -> None:
    n = torch.tensor([0, 10, 100, 3000])
    together = mcnemar_power([[0.1], [0.02]], [[0.2], [0.05]], n)
    assert together.shape == (2, 4)
    assert together[:, 0].tolist() == [0.0, 0.0]
    for i, (p10, p01) in enumerate(((0.1, 0.2), (0.02, 0.05))):
        for j, size in enumerate(n.tolist()):
            assert together[i, j].item() == pytest.approx(mcnemar_power(p10, p01, size).item(), rel=1e-12)


def test_exact_power_meets_connors_formula_for_very_many_pairs() -> None:
    # 50,000 discordants: the discreteness is gone, and the normal law holds to about 1/sqrt(n).
    exact = mcnemar_power(0.02, 0.0212, 10**6 + 213_456, method="asymptotic").item()
    assert exact == pytest.approx(mcnemar_power(0.02, 0.0212, 1_213_456, method="connor").item(), abs=1e-3)


def smallest_stable_size(p10: float, p01: float, alpha: float, power: float, method: Method, most: int) -> int:
    reached = (mcnemar_power(p10, p01, torch.arange(most), alpha=alpha, method=method) >= power).tolist()
    assert reached[-1]
    return max(n for n in range(most) if not reached[n]) + 1


@pytest.mark.parametrize("method", TESTS)
@pytest.mark.parametrize(
    ("p10", "p01", "alpha", "power"),
    [
        (0.03, 0.13, 0.05, 0.8),
        (0.0, 0.3, 0.05, 0.9),
        (0.3, 0.7, 0.05, 0.8),  # every pair discordant: the power is all saw teeth
        (0.25, 0.75, 0.2, 0.5),
        (0.4, 0.1, 1e-4, 0.8),
        (0.45, 0.2, 0.3, 0.1),  # a power below alpha
        (0.0, 1.0, 0.05, 0.8),
    ],
)
def test_size_is_the_one_after_the_last_that_fails(
    p10: float, p01: float, alpha: float, power: float, method: Method
) -> None:
    expected = smallest_stable_size(p10, p01, alpha, power, method, 320)
    assert mcnemar_sample_size(p10, p01, alpha=alpha, power=power, method=method) == expected


def test_saw_teeth_make_the_stable_size_larger_than_the_first() -> None:
    reached = mcnemar_power(0.3, 0.7, torch.arange(60)) >= 0.8
    first = reached.nonzero()[0].item()
    assert first < mcnemar_sample_size(0.3, 0.7)


@pytest.mark.parametrize(("p10", "p01"), [(0.2, 0.21), (0.002, 0.003)])
def test_large_sizes_are_close_to_connors(p10: float, p01: float) -> None:
    size = mcnemar_sample_size(p10, p01, method="asymptotic")
    before, at = mcnemar_power(p10, p01, torch.tensor([size - 1, size]), method="asymptotic").tolist()
    assert before < 0.8 <= at
    assert size == pytest.approx(target_per_stratum(p10, p01), rel=0.08)


def test_size_beyond_the_enumeration_reaches_its_power() -> None:
    size = mcnemar_sample_size(0.2, 0.202)
    assert mcnemar_power(0.2, 0.202, torch.tensor([size - 1, size])).ge(0.8).tolist() == [False, True]
    # The continuity correction of the test costs about 2/d pairs.
    assert size - 2 / 0.002 == pytest.approx(target_per_stratum(0.2, 0.202), rel=1e-4)


@pytest.mark.parametrize(("method", "least"), [("exact", 6), ("midp", 5)])
@pytest.mark.parametrize("share", [1e-5, 1e-7, 1e-14])
def test_rare_discordance_has_the_size_of_its_poisson_law(share: float, method: Method, least: int) -> None:
    # All discordant pairs lean one way, so the test rejects from a number of them on.
    size = mcnemar_sample_size(share, 0.0, method=method)
    assert stats.poisson.sf(least - 1, size * share) == pytest.approx(0.8, abs=1e-5)
    assert target_per_stratum(share, 0.0) > size


@pytest.mark.parametrize("method", TESTS)
def test_sizes_that_are_looked_at_in_strides_are_those_of_every_size(method: Method) -> None:
    p10, p01 = 0.0004, 0.0036
    size = mcnemar_sample_size(p10, p01, method=method)
    power = mcnemar_power(p10, p01, torch.arange(size - 800, size + 800), method=method)
    assert (power >= 0.8).tolist() == [n >= 0 for n in range(-800, 800)]


@pytest.mark.parametrize("method", TESTS)
@pytest.mark.parametrize(("p10", "p01", "power"), [(0.2, 0.201, 0.8), (0.2, 0.2001, 0.06), (0.01, 0.01005, 0.8)])
def test_sizes_by_the_normal_law_have_their_power(p10: float, p01: float, power: float, method: Method) -> None:
    size = mcnemar_sample_size(p10, p01, method=method, power=power)
    assert mcnemar_power(p10, p01, size, method=method).item() == pytest.approx(power, abs=1e-4)


@pytest.mark.parametrize("method", ["exact", "midp"])
def test_the_normal_law_is_close_to_bisection_where_it_takes_over(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    bisected = mcnemar_sample_size(0.2, 0.202, method=method)
    monkeypatch.setattr("polyweave_torch.functional.power._MOST_BISECTED", 0)
    assert mcnemar_sample_size(0.2, 0.202, method=method) == pytest.approx(bisected, rel=5e-6)


@pytest.mark.parametrize(("p10", "p01"), [(0.1 + 0.2, 0.3), (1e-300, 0.0), (2e-16, 1e-16)])
def test_a_size_beyond_all_counting_is_refused(p10: float, p01: float) -> None:
    with pytest.raises(ValueError, match=r"need .* pairs; sizes above 1e15 are not computed"):
        mcnemar_sample_size(p10, p01)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_discordance_gives_back_the_accuracies_and_their_correlation(p0: float, p1: float, part: float) -> None:
    spread = math.sqrt(p0 * (1 - p0) * p1 * (1 - p1))
    phi = part * (min(p0, p1) - p0 * p1) / spread
    p10, p01 = (share.item() for share in discordance_from_phi(p0, p1, phi))
    assert p01 - p10 == pytest.approx(p1 - p0, abs=1e-12)
    assert (p0 - p10 - p0 * p1) / spread == pytest.approx(phi, abs=1e-9)
    assert min(p10, p01) >= 0.0


def test_discordance_broadcasts_and_refuses_an_impossible_phi() -> None:
    p10, p01 = discordance_from_phi(0.7, [0.8, 0.9], [[0.0], [0.2]])
    assert p10.shape == p01.shape == (2, 2)
    assert p10[0].tolist() == pytest.approx([0.14, 0.07])
    with pytest.raises(ValueError, match=r"phi = 0\.9 is impossible for accuracies 0\.7 and 0\.8"):
        discordance_from_phi(0.7, 0.8, 0.9)
    with pytest.raises(ValueError, match=r"p1 must hold accuracies in \[0, 1\]"):
        discordance_from_phi(0.7, 80.0, 0.0)


def test_bad_arguments_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="together at most 1"):
        mcnemar_power(0.6, 0.5, 10)
    with pytest.raises(ValueError, match="together at most 1"):
        mcnemar_sample_size(-0.1, 0.5)
    with pytest.raises(ValueError, match="n must hold whole numbers"):
        mcnemar_power(0.1, 0.2, 10.5)
    with pytest.raises(ValueError, match="n must hold whole numbers"):
        mcnemar_power(0.1, 0.2, -1)
    with pytest.raises(ValueError, match="alpha must lie"):
        mcnemar_power(0.1, 0.2, 10, alpha=5)
    with pytest.raises(ValueError, match="power must lie"):
        mcnemar_sample_size(0.1, 0.2, power=80)
    with pytest.raises(ValueError, match="method must be one of auto, exact, midp, asymptotic, edwards"):
        mcnemar_power(0.1, 0.2, 10, method="chi")  # type: ignore[arg-type]
    for size in (mcnemar_sample_size, target_per_stratum):
        with pytest.raises(ValueError, match="no number of pairs detects a difference of 0"):
            size(0.1, 0.1)
