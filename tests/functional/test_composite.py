import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from polyweave_torch.functional.composite import (
    RankedRun,
    composite_means,
    composite_score,
    composite_sums,
    inter_judge_pearson,
    layer_score,
    passes_gate,
    rank_runs,
)

nan = math.nan
SCORES = st.one_of(st.floats(1.0, 5.0), st.sampled_from([nan, 0.0, -1.0]))


def scores_of(n: int, seed: int, layers: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = 1.0 + 4.0 * torch.rand(n, layers, generator=generator, dtype=torch.float64)
    return scores.masked_fill(torch.rand(n, layers, generator=generator) < 0.25, nan)


# Layer scores.


@pytest.mark.parametrize(
    ("passed", "total", "score"), [(0, 3, 1.0), (3, 3, 5.0), (2, 4, 3.0), (2.5, 10, 2.0), (0, 0, nan), (0.0, 0.0, nan)]
)
def test_layer_score_stretches_the_share_of_passed_weight(passed: float, total: float, score: float) -> None:
    found = layer_score(passed, total)
    assert found.dtype == torch.float64
    assert found.dim() == 0
    assert found.item() == pytest.approx(score, nan_ok=True)


def test_layer_score_broadcasts_and_takes_sums_in_any_order() -> None:
    assert layer_score(torch.tensor([[1.0], [2.0]]), torch.tensor([2.0, 4.0])).tolist() == [[3.0, 2.0], [5.0, 3.0]]
    # .1 + .2 + .3 is above .3 + .2 + .1 by one bit.
    assert layer_score(0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1).item() == 5.0


@pytest.mark.parametrize(("passed", "total"), [(-1.0, 2.0), (3.0, 2.0), (1.0, 0.0)])
def test_layer_score_refuses_weights_that_cannot_be(passed: float, total: float) -> None:
    with pytest.raises(ValueError, match="passed_weight must lie between 0 and total_weight"):
        layer_score(passed, total)


# Composites.


@given(st.lists(st.tuples(SCORES, SCORES, SCORES), max_size=8), st.tuples(*[st.floats(0.0, 5.0)] * 3))
@settings(max_examples=60, deadline=None)
def test_composite_is_the_weighted_mean_of_what_is_there(
    rows: list[tuple[float, ...]], weights: tuple[float, ...]
) -> None:
    for given_weights in (None, weights if sum(weights) > 0.0 else None):
        layers = torch.tensor(rows, dtype=torch.float64).reshape(len(rows), 3)
        result = composite_score(layers, weights=given_weights)
        for row, score, present in zip(rows, result.score.tolist(), result.layers_present.tolist(), strict=True):
            parts = [(w, s) for w, s in zip(given_weights or (1.0,) * 3, row, strict=True) if s > 0.0 and w > 0.0]
            mass = math.fsum(w for w, _ in parts)
            wanted = math.fsum(w * s for w, s in parts) / mass if parts else nan
            assert score == pytest.approx(wanted, rel=1e-12, nan_ok=True)
            assert present == len(parts)


def test_composites_of_one_sample_and_of_stacks() -> None:
    assert composite_score([4.5, 4.0, 3.5]).score.item() == 4.0
    scores = scores_of(5, 0)
    stacked = composite_score(torch.stack([scores, scores + 0.1]))
    assert stacked.score.shape == stacked.layers_present.shape == (2, 5)
    assert torch.equal(stacked.score[0].nan_to_num(), composite_score(scores).score.nan_to_num())


def test_equal_composites_of_different_layers_say_so() -> None:
    # The document's own example: 4.5, 4.0 and 4.5 against one mark of 4.33.
    result = composite_score([[4.5, 4.0, 4.5], [nan, nan, 13 / 3]])
    assert result.score.tolist() == pytest.approx([13 / 3, 13 / 3])
    assert result.layers_present.tolist() == [3, 1]


def test_infinite_marks_are_no_marks() -> None:
    assert composite_score([math.inf, 3.0]).score.item() == 3.0


def zscores(columns: Any) -> Any:
    return stats.zscore(columns, axis=0, nan_policy="omit")


@pytest.mark.parametrize("how", ["z", "rank"])
def test_standardized_composites_against_scipy(how: Any) -> None:
    both = torch.stack([scores_of(9, 1), scores_of(9, 2).mul(2.0).round().div(2.0)])
    columns = both.reshape(-1, 3).numpy()
    if how == "rank":
        columns = stats.rankdata(columns, axis=0, nan_policy="omit")
    wanted = np.array([np.mean(row[~np.isnan(row)]) if not np.isnan(row).all() else nan for row in zscores(columns)])
    found = composite_score(both, standardize=how).score
    assert found.shape == (2, 9)
    assert found.flatten().tolist() == pytest.approx(wanted.tolist(), rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("how", ["z", "rank"])
def test_a_layer_without_spread_becomes_zero(how: Any) -> None:
    # 1.1 three times has a mean of 1.1 + 2e-16.
    found = composite_score([[1.1, 2.0], [1.1, 4.0], [1.1, nan]], standardize=how)
    assert found.score.tolist() == [-0.5, 0.5, 0.0]


def test_weights_of_standardized_layers() -> None:
    found = composite_score([[1.0, 2.0], [3.0, 2.5], [5.0, 4.0]], weights=[3.0, 1.0], standardize="z").score
    columns = zscores(np.array([[1.0, 2.0], [3.0, 2.5], [5.0, 4.0]]))
    assert found.tolist() == pytest.approx(((3.0 * columns[:, 0] + columns[:, 1]) / 4.0).tolist())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], "one number for each of the 3 layers"),
        ([1.0, -1.0, 1.0], "must not be negative"),
        ([0.0, 0.0, 0.0], "must not sum to 0"),
        ([1.0, nan, 1.0], "must not be negative"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        composite_score([[3.0, 4.0, 5.0]], weights=weights)


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[..., L\]"):
        composite_score(torch.tensor(3.0))
    with pytest.raises(ValueError, match="standardize must be None or one of"):
        composite_score([[3.0]], standardize="max")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"real numbers, but came as torch\.bool"):
        composite_score(torch.tensor([True]))


# Judges.


def test_judges_agree_by_the_mean_of_their_pairs() -> None:
    marks = torch.randint(1, 6, (30, 4), generator=torch.Generator().manual_seed(0))
    marks[3, 1], marks[7, 0] = 0, -1
    both = marks[(marks > 0).all(1)].numpy()
    pairs = [stats.pearsonr(both[:, i], both[:, j]).statistic for i in range(4) for j in range(i)]
    assert inter_judge_pearson(marks).item() == pytest.approx(np.mean(pairs), rel=1e-12)


def test_a_constant_judge_leaves_the_defined_pairs() -> None:
    marks = torch.tensor([[1.0, 3.0, 2.0], [2.0, 3.0, 1.0], [4.0, 3.0, 5.0]])
    wanted = stats.pearsonr([1, 2, 4], [2, 1, 5]).statistic
    assert inter_judge_pearson(marks).item() == pytest.approx(wanted)


@pytest.mark.parametrize(
    "marks",
    [[[3.0, 1.0], [3.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0]], [[1.0, nan], [nan, 2.0]]],
)
def test_agreement_is_undefined_without_a_warning(marks: list[list[float]]) -> None:
    assert inter_judge_pearson(marks).isnan()
    assert inter_judge_pearson(torch.zeros(0, 2)).isnan()


def test_marks_of_one_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[N, J\]"):
        inter_judge_pearson([1.0, 2.0])


# Gates, sums, ranking.


@pytest.mark.parametrize(
    ("means", "passed"),
    [([3.5, nan], True), ([3.5, 3.4999], False), ([nan, nan], False), ([5.0, 5.0], True), ([3.5 - 1e-14, 4.0], True)],
)
def test_the_gate_is_every_present_layers(means: list[float], passed: bool) -> None:
    assert bool(passes_gate(torch.tensor(means, dtype=torch.float64), 3.5)) is passed


def test_sums_give_the_means_and_add_up() -> None:
    first, second = scores_of(20, 3), scores_of(11, 4)
    parts = [composite_sums(scores) for scores in (first, second)]
    sums, counts = (sum(part[index] for part in parts) for index in (0, 1))
    assert isinstance(sums, Tensor)
    assert isinstance(counts, Tensor)
    means, composite = composite_means(sums, counts)
    both = torch.cat([first, second])
    assert means.tolist() == pytest.approx(np.nanmean(both.numpy(), axis=0).tolist())
    assert composite.item() == pytest.approx(float(composite_score(both).score.nanmean()))


def test_runs_are_ranked_and_flagged() -> None:
    runs = {
        "empty": [[nan, nan]],
        "old": [[4.0, 3.0], [4.0, nan]],  # composites 3.5 and 4
        "new": [[5.0, 4.0], [4.0, 3.0]],  # 4.5 and 3.5
        "only judge": [[nan, 4.0], [nan, nan]],
        "tied": [[4.0, 4.0]],
    }
    names = ("f", "j")
    ranked = rank_runs({name: runs[name] for name in ("old", "empty", "new", "only judge", "tied")}, layer_names=names)
    assert [(run.name, run.comparable, run.samples) for run in ranked] == [
        ("new", True, 2),
        ("only judge", False, 1),
        ("tied", True, 1),
        ("old", True, 2),
        ("empty", False, 0),
    ]
    old = next(run for run in ranked if run.name == "old")
    assert isinstance(old, RankedRun)
    assert (old.composite.item(), old.layers["f"].item(), old.layers["j"].item()) == (3.75, 4.0, 3.0)
    assert [run.gate_passed for run in ranked] == [True, True, True, False, False]
    with pytest.raises(ValueError, match="one or more different names"):
        rank_runs(runs, layer_names="fj")


def test_runs_are_ranked_by_weights_by_name_or_in_order() -> None:
    runs = {"a": [[5.0, 2.0]], "b": [[3.0, 3.0]]}
    by_name, in_order = (
        rank_runs(runs, layer_names=("f", "j"), weights=weights) for weights in ({"j": 3.0, "f": 1.0}, [1.0, 3.0])
    )
    assert [(run.name, run.composite.item()) for run in by_name] == [("b", 3.0), ("a", 2.75)]
    assert [(run.name, run.composite.item()) for run in in_order] == [("b", 3.0), ("a", 2.75)]
    with pytest.raises(ValueError, match=r"weights must name each of the layers \['f', 'j'\], but name \['f'\]"):
        rank_runs(runs, layer_names=("f", "j"), weights={"f": 1.0})
