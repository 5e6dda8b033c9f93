import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DistributedSampler
from torchmetrics import MetricCollection

from polyweave_torch.functional.composite import composite_score
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.metrics.composite import CompositeScore, LayerScores
from polyweave_torch.metrics.padding import padding_mask

nan = math.nan
LAYERS = ("fact", "behavior", "judge")


def scores_of(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = 1.0 + 4.0 * torch.rand(n, 3, generator=generator, dtype=torch.float64)
    return scores.masked_fill(torch.rand(n, 3, generator=generator) < 0.2, nan)


# CompositeScore.


def test_means_are_those_of_all_samples_whatever_the_batches() -> None:
    scores = scores_of(101)
    metric = CompositeScore(gate=2.9)
    for batch in torch.split(scores, 13):
        metric.update(batch)
    found = metric.compute()
    assert list(found) == [*LAYERS, "composite", "gate_passed"]
    assert all(value.dim() == 0 and value.dtype == torch.float64 for value in found.values())
    means = np.nanmean(scores.numpy(), axis=0)
    assert [found[layer].item() for layer in LAYERS] == pytest.approx(means.tolist())
    # The mean of the samples' composites, which is not the mean of the layers' means.
    rows = [[score for score in row if not math.isnan(score)] for row in scores.tolist()]
    composites = [sum(row) / len(row) for row in rows if row]
    assert found["composite"].item() == pytest.approx(sum(composites) / len(composites))
    assert found["gate_passed"].item() == float((means >= 2.9).all())


@pytest.mark.parametrize(
    ("scores", "passed"),
    [
        ([[3.5, 4.0, 5.0]], 1.0),
        ([[3.5, 4.0, 3.4]], 0.0),
        ([[3.5, nan, 0.0]], 1.0),
        ([[nan, nan, 0.0]], 0.0),
        ([[nan, nan, nan]], 0.0),
        ([[3.4, 4.0, 4.0], [3.6, 4.0, 4.0]], 1.0),
    ],
)
def test_the_gate_is_every_present_layers_and_fails_without_one(scores: list[list[float]], passed: float) -> None:
    metric = CompositeScore()
    metric.update(torch.tensor(scores, dtype=torch.float64))
    assert metric.compute()["gate_passed"].item() == passed


def test_no_data_is_undefined_and_passes_no_gate() -> None:
    metric = CompositeScore()
    metric.update(torch.zeros(0, 3))
    found = metric.compute()
    assert found.pop("gate_passed").item() == 0.0
    assert all(value.isnan() for value in found.values())


def test_short_fractions_add_up_exactly_in_any_order() -> None:
    # Thirds are no short fractions: composites are kept as sums by the number of layers.
    scores = scores_of(200).mul(2.0).round().div(2.0)
    first, second = CompositeScore(), CompositeScore()
    first.update(scores)
    for row in torch.split(scores.flip(0), 1):
        second.update(row)
    assert {name: float(value) for name, value in first.compute().items()} == pytest.approx(
        {name: float(value) for name, value in second.compute().items()}, rel=0, abs=0
    )


def test_marks_of_any_number_type_are_scores() -> None:
    for dtype in (torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32):
        metric = CompositeScore(("judge",))
        metric.update(torch.tensor([[4], [0], [3]], dtype=dtype))
        assert metric.compute()["composite"].item() == 3.5


def test_the_padding_of_a_sampler_is_masked() -> None:
    scores = scores_of(7)
    indices: Any = range(7)
    metric = CompositeScore()
    for rank in range(3):
        sampler: DistributedSampler[Any] = DistributedSampler(indices, num_replicas=3, rank=rank, shuffle=True)
        metric.update(scores[list(sampler)], padding_mask(sampler))
    whole = CompositeScore()
    whole.update(scores)
    assert metric.compute()["composite"].item() == pytest.approx(whole.compute()["composite"].item(), rel=1e-14)


def test_collections_prefix_what_has_one_name() -> None:
    collection = MetricCollection({"strict": CompositeScore(gate=4.5), "mild": CompositeScore(gate=2.0)})
    collection.update(torch.full((4, 3), 4.0))
    collection.update(torch.full((4, 3), 4.0))
    assert len(collection.compute_groups) == 1
    found = collection.compute()
    assert (found["strict_gate_passed"].item(), found["mild_gate_passed"].item()) == (0.0, 1.0)


@pytest.mark.parametrize("layers", [("judge", "fact"), ("fact", "style"), ("fact",)])
def test_scores_of_other_layers_do_not_add_up(layers: tuple[str, ...]) -> None:
    for make in (CompositeScore, lambda names: LayerScores(3, names)):
        metric, other = make(("fact", "judge")), make(layers)
        with pytest.raises(ValueError, match=r"Expected the state .*; was it configured alike\?"):
            metric.merge_state(other)
        other.persistent(True)
        metric.persistent(True)
        with pytest.raises(RuntimeError):
            metric.load_state_dict(other.state_dict())


def test_any_text_names_a_layer() -> None:
    names = ("1. Höflich?", "tone/style", "forward")
    metric = CompositeScore(names)
    metric.update(torch.tensor([[3.0, 4.0, 5.0]]))
    assert [metric.compute()[name].item() for name in names] == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("layers", [(), ("fact", "fact"), "fact", ("fact", "composite"), ("gate_passed",)])
def test_layer_names_that_cannot_be_are_refused(layers: Any) -> None:
    with pytest.raises(ValueError, match=r"layers? (must be one or more different names|can be named)"):
        CompositeScore(layers)


def test_other_columns_than_layers_are_refused() -> None:
    for metric in (CompositeScore(), LayerScores(4)):
        arguments = (torch.ones(4, 2),) if isinstance(metric, CompositeScore) else (torch.arange(4), torch.ones(4, 2))
        with pytest.raises(ValueError, match=r"scores must have shape \[N, 3\].*fact.*behavior.*judge"):
            metric.update(*arguments)
    with pytest.raises(ValueError, match="mask must have one value a sample"):
        CompositeScore().update(torch.ones(4, 3), torch.ones(3, dtype=torch.bool))
    with pytest.raises(TypeError, match="mask must be bool"):
        CompositeScore().update(torch.ones(4, 3), torch.ones(4, dtype=torch.int64))
    with pytest.raises(TypeError, match="mask must be a tensor, but is a list"):
        CompositeScore().update(torch.ones(4, 3), [True] * 4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scores must be a tensor, but is a list"):
        CompositeScore().update([[1.0, 2.0, 3.0]])  # type: ignore[arg-type]


# LayerScores.


def test_scores_are_addressed_by_sample_whatever_brings_them() -> None:
    scores = scores_of(50)
    store = LayerScores(50)
    for batch in torch.split(torch.randperm(50, generator=torch.Generator().manual_seed(0)), 7):
        store.update(batch, scores[batch])
        store.update(batch[:2], scores[batch[:2]])  # a repeated sample changes nothing
    assert torch.equal(store.scores().nan_to_num(), scores.nan_to_num())
    assert store.compute().tolist() == pytest.approx(scores.nanmean(0).tolist())


def test_what_is_missing_takes_nothing_away_and_the_highest_score_stays() -> None:
    store = LayerScores(3, ("fact", "judge"))
    store.update(torch.tensor([1, 1, 1, 2]), torch.tensor([[2.0, nan], [nan, 3.0], [1.5, -1.0], [nan, 0.0]]))
    assert store.scores().nan_to_num(nan=-9.0).tolist() == [[-9.0, -9.0], [2.0, 3.0], [-9.0, -9.0]]


def test_scores_keep_their_last_bit() -> None:
    third = torch.tensor([[13 / 3, 0.1 + 4.2, 1.0]], dtype=torch.float64)
    store = LayerScores(1)
    store.bfloat16()
    store.update(torch.tensor([0]), third)
    assert store.scores().dtype == torch.float64
    assert torch.equal(store.scores(), third)


def test_a_read_out_is_no_part_of_the_store() -> None:
    store = LayerScores(2, ("judge",))
    store.update(torch.tensor([0]), torch.tensor([[3.0]]))
    store.scores().fill_(5.0)
    assert store.scores()[0].item() == 3.0


def test_reset_starts_the_next_epoch_and_checkpoints_keep_the_store() -> None:
    store = LayerScores(2, ("judge",))
    store.update(torch.tensor([0]), torch.tensor([[3.0]]))
    loaded = LayerScores(2, ("judge",))
    loaded.load_state_dict(store.state_dict())
    assert torch.equal(loaded.scores().nan_to_num(), store.scores().nan_to_num())
    store.reset()
    assert store.scores().isnan().all()
    assert loaded.scores()[0].item() == 3.0


def test_a_verdict_reads_two_stores() -> None:
    control, treatment = scores_of(40), scores_of(40, seed=1) + 0.5
    stores = []
    for seed, scores in enumerate((control, treatment)):
        store = LayerScores(40)
        # Each arm comes in an order of its own, and some samples only in one of them.
        order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))[: 40 - 3 * seed]
        for batch in torch.split(order, 6):
            store.update(batch, scores[batch])
        scores[[i for i in range(40) if i not in order.tolist()]] = nan
        stores.append(store)
    found = verdict(stores[0].scores(), stores[1].scores(), layer_names=stores[0].layer_names)
    wanted = verdict(control, treatment, layer_names=LAYERS)
    assert found.to_dict() == wanted.to_dict()
    both = ~(composite_score(control).score.isnan() | composite_score(treatment).score.isnan())
    assert found.pairs[0].pairs.item() == int(both.sum())
    assert found.pairs[0].incomplete.item() >= 3


def test_wrong_indices_are_refused() -> None:
    store = LayerScores(4, ("judge",))
    with pytest.raises(ValueError, match=r"sample_index must lie in \[0, 4\) \(the store's num_samples\), but holds 4"):
        store.update(torch.tensor([4]), torch.ones(1, 1))
    with pytest.raises(ValueError, match="sample_index must have one value a sample"):
        store.update(torch.tensor([1, 2]), torch.ones(1, 1))
    with pytest.raises(TypeError, match="sample_index must be integers"):
        store.update(torch.tensor([1.0]), torch.ones(1, 1))
    with pytest.raises(TypeError, match="sample_index must be a tensor, but is a list"):
        store.update([1], torch.ones(1, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scores must be a tensor, but is a list"):
        store.update(torch.tensor([1]), [[1.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_samples must be at least 1"):
        LayerScores(0)
    assert store.scores().isnan().all()
