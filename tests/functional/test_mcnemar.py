import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from polyweave_torch.functional.gram import gram_update, outcome_gram
from polyweave_torch.functional.mcnemar import Method, mcnemar, mcnemar_pairs
from polyweave_torch.functional.multiplicity import benjamini_hochberg, holm_bonferroni, shaffer
from tests.functional.reference import SIZES, close, printed, section

REQUESTS: list[Method] = ["exact", "midp", "asymptotic", "edwards"]
# Request, result's method, and the reference's columns of p, log p and statistic.
COLUMNS: list[tuple[Method, str, str, str, str | None]] = [
    ("exact", "exact-binomial", "exact_p", "log_exact_p", None),
    ("midp", "mid-p", "midp", "log_midp", None),
    ("asymptotic", "chi2", "chi2_p", "log_chi2_p", "chi2"),
    ("edwards", "chi2-edwards", "edwards_p", "log_edwards_p", "edwards"),
]
splits = st.integers(0, 70).flatmap(lambda n: st.integers(0, n).map(lambda b: (b, n - b)))


def exact_p(b: int, c: int, *, mid: bool = False) -> Fraction:
    if b == c:
        return Fraction(1)
    n, m = b + c, min(b, c)
    tail = 2 * sum(math.comb(n, k) for k in range(m + 1)) - (math.comb(n, m) if mid else 0)
    return min(Fraction(1), Fraction(tail, 2**n))


@pytest.mark.parametrize(("request_", "name", "p", "log_p", "statistic"), COLUMNS)
def test_every_row_of_the_reference(request_: Method, name: str, p: str, log_p: str, statistic: str | None) -> None:
    rows, run = section("mcnemar"), 0
    together = mcnemar([row["b"] for row in rows], [row["c"] for row in rows], method=request_)
    for i, row in enumerate(rows):
        assert together.method[i] == (name if row["n"] else "no-discordants")
        assert together.p_value[i].item() == close(row[p])
        assert together.log_p_value[i].item() == pytest.approx(row[log_p], rel=1e-9, abs=1e-13)
        assert together.statistic[i].item() == close(row[statistic] if statistic else 0.0)
        assert together.discordant[i].item() == row["n"]
        run += 1
    assert run == SIZES["mcnemar"]


def test_auto_is_exact_for_few_discordants_and_edwards_for_many() -> None:
    rows = section("mcnemar")
    auto = mcnemar([row["b"] for row in rows], [row["c"] for row in rows])
    for i, row in enumerate(rows):
        few = row["n"] < 25
        assert auto.p_value[i].item() == close(row["exact_p" if few else "edwards_p"])
        assert auto.underpowered[i].item() is few
        assert auto.method[i] == ("no-discordants" if row["n"] == 0 else "exact-binomial" if few else "chi2-edwards")


def test_every_textbook_row_to_its_printed_digits() -> None:
    run = 0
    for row in section("textbook.mcnemar"):
        for request_, _, p, _, statistic in COLUMNS:
            result = mcnemar(row["b"], row["c"], method=request_)
            assert result.p_value.item() == close(row[p])
            if p in row["published"]:
                assert result.p_value.item() == printed(row["published"][p])
            if statistic is not None:
                assert result.statistic.item() == close(row[statistic])
            if statistic in row["published"]:
                assert result.statistic.item() == printed(row["published"][statistic])
        run += 1
    assert run == SIZES["textbook.mcnemar"]


@pytest.mark.parametrize(
    ("b", "c", "statistic", "p"),
    [
        (1, 9, 0.0, 0.021484375),
        (5, 5, 0.0, 1.0),
        (24, 0, 0.0, 1.1920929e-7),
        (20, 5, 7.84, 0.00511026),
        (25, 0, 23.04, None),
        (30, 10, 9.025, 0.00266312),
        (13, 12, 0.0, 1.0),
        (114, 32, 44.9384, None),
    ],
)
def test_targets(b: int, c: int, statistic: float, p: float | None) -> None:
    result = mcnemar(b, c)
    assert result.statistic.item() == pytest.approx(statistic, rel=1e-5)
    assert p is None or result.p_value.item() == pytest.approx(p, rel=1e-6)


def test_the_method_decides_for_the_pooled_int8_models() -> None:
    found = [mcnemar(312, 264, method=method).p_value.item() for method in ("exact", "edwards", "midp")]
    assert found == pytest.approx([0.0501, 0.0502, 0.0456], abs=5e-5)


@given(splits)
@settings(deadline=None, max_examples=150)
def test_binomial_p_values_are_the_exact_fractions(pair: tuple[int, int]) -> None:
    b, c = pair
    assert mcnemar(b, c, method="exact").p_value.item() == pytest.approx(float(exact_p(b, c)), rel=1e-12)
    assert mcnemar(b, c, method="midp").p_value.item() == pytest.approx(float(exact_p(b, c, mid=True)), rel=1e-12)


def test_p_values_of_few_discordants_are_exact_to_the_last_bit() -> None:
    for n in range(54):
        b = torch.arange(n + 1)
        for method in REQUESTS[:2]:
            wanted = [float(exact_p(k, n - k, mid=method == "midp")) for k in range(n + 1)]
            assert mcnemar(b, n - b, method=method).p_value.tolist() == wanted
    assert repr(mcnemar(10, 5).p_value.item()) == "0.3017578125"


@pytest.mark.parametrize("method", ["auto", *REQUESTS])
def test_discordants_that_all_lean_one_way_reach_the_smallest_p(method: Method) -> None:
    lost_all = mcnemar(torch.arange(1200), 0, method=method)
    assert torch.equal(lost_all.p_value, lost_all.smallest_p)
    one_more = mcnemar(torch.arange(1200), 1, method=method)
    assert (one_more.p_value >= one_more.smallest_p).all()
    if method in ("exact", "midp"):
        halvings = range(1, 1200) if method == "midp" else range(1199)
        assert lost_all.p_value[1:].tolist() == [2.0**-k for k in halvings]


@pytest.mark.parametrize("n", [83, 500, 1301])
def test_binomial_p_values_are_the_exact_fractions_over_a_whole_range(n: int) -> None:
    b = torch.arange(n + 1)
    tail = 0
    for m, p in enumerate(mcnemar(b, n - b, method="exact").log_p_value[: (n + 1) // 2].tolist()):
        tail += math.comb(n, m)
        assert p == pytest.approx(math.log(2 * tail) - n * math.log(2), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("n", [10**10, 10**12, 4 * 10**15])
def test_huge_counts_meet_the_normal_limit(n: int) -> None:
    # A symmetric binomial has no skewness: the continuity-corrected normal tail is off by a few parts in n.
    b = n // 2 + torch.tensor([0, 1, 2, 3]) * math.isqrt(n)
    exact = mcnemar(b, n - b, method="exact")
    z = (2.0 * (b - n // 2).double() - 1.0).clamp(min=0) / math.sqrt(n)
    assert exact.p_value.tolist() == pytest.approx((2 * stats.norm.sf(z.numpy())).tolist(), rel=2e-8)
    assert mcnemar(b, n - b).statistic.tolist() == pytest.approx((z * z).tolist(), rel=1e-12)
    midp = mcnemar(b, n - b, method="midp").p_value
    middle = 2.0 * (b - n // 2).double() / math.sqrt(n)
    assert midp.tolist() == pytest.approx((2 * stats.norm.sf(middle.numpy())).tolist(), rel=2e-8)


def test_logs_stay_right_where_p_underflows() -> None:
    result = mcnemar([1100, 2_000_000_000_000], [0, 1_000_000_000_000], method="exact")
    assert result.p_value.tolist() == [0.0, 0.0]
    assert result.log_p_value[0].item() == pytest.approx(-1099 * math.log(2), rel=1e-14)
    # Leading term of the large deviation: n times the relative entropy of (1/3, 2/3) and (1/2, 1/2).
    entropy = math.log(2) + math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3
    assert result.log_p_value[1].item() == pytest.approx(-3e12 * entropy, rel=1e-9)


@given(splits)
@settings(deadline=None, max_examples=60)
def test_the_smallest_p_is_the_smallest_over_all_splits(pair: tuple[int, int]) -> None:
    n = sum(pair)
    methods: list[Method] = ["auto", *REQUESTS]
    for method in methods:
        lowest = mcnemar(torch.arange(n + 1), n - torch.arange(n + 1), method=method).p_value.min().item()
        assert mcnemar(*pair, method=method).smallest_p.item() == pytest.approx(lowest, rel=1e-12)


def test_fewer_than_six_discordants_never_reach_five_percent() -> None:
    assert (mcnemar(torch.arange(8), 0).smallest_p <= 0.05).tolist() == [False] * 6 + [True] * 2
    assert mcnemar([5, 5], [0, 0], method="midp").smallest_p.tolist() == pytest.approx([2**-5] * 2)


@given(splits)
@settings(deadline=None, max_examples=60)
def test_the_two_sides_are_alike_and_mid_p_is_below_exact(pair: tuple[int, int]) -> None:
    b, c = pair
    for method in REQUESTS:
        assert mcnemar(b, c, method=method).p_value == mcnemar(c, b, method=method).p_value
    assert mcnemar(b, c, method="midp").p_value <= mcnemar(b, c, method="exact").p_value


@pytest.mark.parametrize(("b", "c"), [(1, 7), (6, 16), (25, 15), (150, 86), (0, 3)])
def test_agrees_with_statsmodels(b: int, c: int) -> None:
    table = [[10, b], [c, 10]]
    for method, exact, correction in (("exact", True, False), ("asymptotic", False, False), ("edwards", False, True)):
        peer = statsmodels_mcnemar(table, exact=exact, correction=correction)
        result = mcnemar(b, c, method=method)  # type: ignore[arg-type]
        assert result.p_value.item() == pytest.approx(peer.pvalue, rel=1e-9)
        assert exact or result.statistic.item() == pytest.approx(peer.statistic)


@pytest.mark.parametrize("method", ["auto", *REQUESTS])
def test_no_discordant_pair_is_no_evidence_under_any_method(method: Method) -> None:
    result = mcnemar(0, 0, method=method)
    assert result.method == "no-discordants"
    assert (result.p_value.item(), result.log_p_value.item(), result.smallest_p.item()) == (1.0, 0.0, 1.0)
    assert (result.statistic.item(), result.underpowered.item()) == (0.0, True)
    assert repr(result.log_p_value.item()) == "0.0"  # not -0.0


@pytest.mark.parametrize("method", REQUESTS)
def test_equal_counts_give_one(method: Method) -> None:
    # Edwards' numerator is never below 0: other libraries report (0 - 1)^2 / n here.
    result = mcnemar([1, 5, 12, 500, 10**12], [1, 5, 12, 500, 10**12], method=method)
    assert result.p_value.tolist() == [1.0] * 5
    assert repr(result.log_p_value.tolist()) == "[0.0, 0.0, 0.0, 0.0, 0.0]"
    assert result.statistic.tolist() == [0.0] * 5


def test_counts_are_before_by_after() -> None:
    result = mcnemar(counts=[[49, 32], [114, 305]])
    assert (result.b.item(), result.c.item()) == (114, 32)
    assert mcnemar(counts=[[49, 32], [114, 305]], method="exact").p_value.item() == pytest.approx(5.42e-12, rel=1e-3)
    assert mcnemar(counts=[[49, 32], [114, 305]], method="midp").p_value.item() == pytest.approx(3.46e-12, rel=1e-3)


def test_shapes_broadcast_and_the_methods_follow() -> None:
    result = mcnemar(torch.tensor([[0], [30]], dtype=torch.int32), [0, 3, 40])
    assert result.method == [
        ["no-discordants", "exact-binomial", "chi2-edwards"],
        ["chi2-edwards", "chi2-edwards", "chi2-edwards"],
    ]
    for field in (result.b, result.c, result.discordant, result.statistic, result.p_value, result.smallest_p):
        assert field.shape == (2, 3)
    single = mcnemar(30, 40)
    assert isinstance(single.method, str)
    assert single.p_value.shape == ()
    assert single.p_value.item() == result.p_value[1, 2].item()
    assert mcnemar(counts=torch.zeros(0, 2, 2, dtype=torch.int64)).method == []
    assert mcnemar([], []).p_value.shape == (0,)


@pytest.mark.parametrize("conditions", [2, 5, 30])
def test_pairs_from_the_gram_matrix_agree_with_statsmodels_on_the_rows(conditions: int) -> None:
    correct = torch.rand(120, conditions, generator=torch.Generator().manual_seed(conditions)) < 0.7
    pairs = mcnemar_pairs(outcome_gram(correct), method="exact", adjust=None)
    assert len(pairs.first) == math.comb(conditions, 2)
    for i, j, p in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.result.p_value.tolist(), strict=True):
        x, y = correct[:, i], correct[:, j]
        table = [[int((x & y).sum()), int((x & ~y).sum())], [int((~x & y).sum()), int((~x & ~y).sum())]]
        assert p == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue, rel=1e-9)


def test_each_adjustment_is_that_of_the_raw_values() -> None:
    gram = outcome_gram(torch.rand(60, 4, generator=torch.Generator().manual_seed(1)) < torch.linspace(0.3, 0.9, 4))
    raw = mcnemar_pairs(gram, adjust=None).adjusted_p
    assert torch.equal(raw, mcnemar_pairs(gram).result.p_value)
    assert torch.equal(mcnemar_pairs(gram).adjusted_p, holm_bonferroni(raw))
    assert torch.equal(mcnemar_pairs(gram, adjust="shaffer").adjusted_p, shaffer(raw))
    assert torch.equal(mcnemar_pairs(gram, adjust="bh").adjusted_p, benjamini_hochberg(raw))
    assert torch.equal(mcnemar_pairs(gram.gram, n=60).adjusted_p, holm_bonferroni(raw))


def brute_force_discrete_holm(pairs: list[tuple[int, int]], method: Method) -> list[float]:
    def p_of(b: int, c: int) -> float:
        return float(mcnemar(b, c, method=method).p_value)

    attained = [sorted({p_of(k, b + c - k) for k in range(b + c + 1)}) for b, c in pairs]
    observed = [p_of(b, c) for b, c in pairs]
    order = sorted(range(len(pairs)), key=observed.__getitem__)
    adjusted, highest = [0.0] * len(pairs), 0.0
    for place, i in enumerate(order):
        bound = observed[i] * (1 + 1e-12)
        total = sum(max((p for p in attained[h] if p <= bound), default=0.0) for h in order[place:])
        highest = max(highest, min(1.0, total))
        adjusted[i] = highest
    return adjusted


@pytest.mark.parametrize("method", ["auto", *REQUESTS])
def test_discrete_holm_charges_only_what_a_pair_can_reach(method: Method) -> None:
    gram = outcome_gram(
        torch.rand(40, 5, generator=torch.Generator().manual_seed(3)) < torch.tensor([1.0, 0.98, 0.9, 0.6, 0.5])
    )
    pairs = mcnemar_pairs(gram, method=method, adjust="discrete-holm")
    discordants = list(zip(pairs.result.b.tolist(), pairs.result.c.tolist(), strict=True))
    assert pairs.adjusted_p.tolist() == pytest.approx(brute_force_discrete_holm(discordants, method), rel=1e-9)
    holm = holm_bonferroni(pairs.result.p_value)
    assert (pairs.adjusted_p <= holm * (1 + 1e-12)).all()
    assert (pairs.adjusted_p < 0.99 * holm).any()


@pytest.mark.parametrize("adjust", ["holm", "shaffer", "discrete-holm", "bh", None])
def test_every_stratum_is_its_own_family(adjust: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    correct, stratum = torch.rand(90, 4, generator=generator) < 0.6, torch.arange(90) % 3
    together = mcnemar_pairs(gram_update(correct, slice_index=stratum, num_slices=3), adjust=adjust)
    assert together.adjusted_p.shape == (3, 6)
    for s in range(3):
        alone = mcnemar_pairs(outcome_gram(correct[stratum == s]), adjust=adjust)
        assert together.adjusted_p[s].tolist() == pytest.approx(alone.adjusted_p.tolist(), rel=1e-12)


def test_names_name_the_pairs() -> None:
    pairs = mcnemar_pairs(outcome_gram(torch.ones(4, 3)), names=("a", "b", "c"))
    assert list(zip(pairs.first, pairs.second, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs.adjusted_p.tolist() == [1.0, 1.0, 1.0]


def test_missing_outcomes_leave_only_the_pairs_that_need_them() -> None:
    correct = torch.tensor([[1, 0, 0]]).repeat(10, 1)
    mask = torch.tensor([[True, True, True]] * 4 + [[True, True, False]] * 6)
    assert mcnemar_pairs(outcome_gram(correct, mask=mask)).result.b.tolist() == [10, 4, 0]


@pytest.mark.parametrize("adjust", ["holm", "shaffer", "discrete-holm", "bh", None])
def test_one_condition_has_no_pairs(adjust: Any) -> None:
    pairs = mcnemar_pairs(outcome_gram(torch.ones(5, 1)), adjust=adjust)
    assert pairs.adjusted_p.shape == pairs.first.shape == (0,)


def test_bad_arguments_are_refused() -> None:
    incomplete: list[dict[str, Any]] = [{}, {"b": 3}, {"c": 3}, {"b": 1, "c": 2, "counts": [[1, 2], [3, 4]]}]
    for arguments in incomplete:
        with pytest.raises(TypeError, match="both b and c, or counts"):
            mcnemar(**arguments)
    with pytest.raises(TypeError, match="b and c must be integers"):
        mcnemar(1.5, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="b and c must not be negative"):
        mcnemar(-1, 2)
    with pytest.raises(ValueError, match="method must be one of auto, exact, midp, asymptotic, edwards"):
        mcnemar(1, 2, method="chi2")  # type: ignore[arg-type]
    gram = outcome_gram(torch.ones(4, 3))
    with pytest.raises(ValueError, match="adjust must be one of holm"):
        mcnemar_pairs(gram, adjust="bonferroni")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 conditions of the Gram matrix, but 2 came"):
        mcnemar_pairs(gram, names=["a", "b"])


def test_outcomes_in_place_of_counts_are_told_where_to_go() -> None:
    with pytest.raises(TypeError, match=r"of outcomes use mcnemar\(counts=channel_counts"):
        mcnemar(torch.tensor([True]), torch.tensor([False]))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_counts_are_integers_too(dtype: torch.dtype) -> None:
    expected = mcnemar(3, [9, 40])
    result = mcnemar(torch.tensor(3, dtype=dtype), torch.tensor([9, 40], dtype=dtype))
    assert torch.equal(result.p_value, expected.p_value)
    assert torch.equal(mcnemar(torch.tensor(3, dtype=dtype), [9, 40]).p_value, expected.p_value)
    with pytest.raises(ValueError, match=r"b and c must be below 2\^63"):
        mcnemar(3, torch.tensor(2**63, dtype=torch.uint64))


@pytest.mark.parametrize("method", ["auto", "exact", "midp", "asymptotic", "edwards"])
def test_the_sum_of_the_counts_is_below_two_to_the_63(method: Method) -> None:
    with pytest.raises(ValueError, match=r"b \+ c must be below 2\^63"):
        mcnemar(2**62, [1, 2**62], method=method)
    with pytest.raises(ValueError, match=r"counts must sum to less than 2\^63"):
        mcnemar(counts=[[0, 2**62], [2**62, 0]], method=method)
    assert mcnemar(2**62, 2**62 - 1, method=method).p_value.item() == pytest.approx(1.0)
