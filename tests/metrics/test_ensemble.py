"""Ensemble metrics against a Counter a sample."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import MetricCollection

from polyweave_torch import (
    DisagreementMatrix,
    DisagreementRate,
    EnsembleAccuracy,
    EnsembleGain,
    MeanMemberAccuracy,
    PairedOutcomes,
    PairwiseDisagreement,
    SoftEnsembleAccuracy,
)
from polyweave_torch.functional import cochran_q, mcnemar
from polyweave_torch.functional.votes import majority_vote

M, C = 5, 4


def ballots(n: int = 200, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(C, (n,), generator=generator)
    slip = torch.randint(1, C, (n, M), generator=generator) * (torch.rand(n, M, generator=generator) < 0.4)
    return (target[:, None] + slip) % C, target


def by_counter(preds: Tensor, target: Tensor, ignore: int | None) -> dict[str, float]:
    vote_right, not_unanimous, pairs, kept = 0, 0, [], 0
    member: list[list[bool]] = [[] for _ in range(M)]
    for row, truth in zip(preds.tolist(), target.tolist(), strict=True):
        labels = [label for label in row if label != ignore]
        if truth == ignore or not labels:
            continue
        kept += 1
        tally = Counter(labels)
        vote_right += min(k for k, v in tally.items() if v == max(tally.values())) == truth
        not_unanimous += tally.most_common(1)[0][1] < M
        for m, label in enumerate(row):
            if label != ignore:
                member[m].append(label == truth)
        if len(labels) > 1:
            differing = [a != b for a, b in combinations(labels, 2)]
            pairs.append(sum(differing) / len(differing))
    accuracies = [sum(right) / len(right) for right in member]
    return {
        "EnsembleAccuracy": vote_right / kept,
        "MeanMemberAccuracy": sum(accuracies) / M,
        "EnsembleGain": vote_right / kept - sum(accuracies) / M,
        "DisagreementRate": not_unanimous / kept,
        "PairwiseDisagreement": sum(pairs) / len(pairs),
    }


@pytest.mark.parametrize("ignore", [None, 2])
def test_one_update_serves_five_scalars_which_equal_a_counter(ignore: int | None) -> None:
    preds, target = ballots()
    classes = (EnsembleAccuracy, MeanMemberAccuracy, EnsembleGain, DisagreementRate, PairwiseDisagreement)
    collection = MetricCollection([metric_class(M, C, ignore_index=ignore) for metric_class in classes])
    for part in (slice(0, 90), slice(90, 200)):
        collection.update(preds[part], target[part])
    assert len(collection.compute_groups) == 1
    values = {name: float(value) for name, value in collection.compute().items()}
    assert values == pytest.approx(by_counter(preds, target, ignore), rel=1e-12)


def test_the_matrix_equals_a_double_loop() -> None:
    preds, _ = ballots()
    metric = DisagreementMatrix(M)
    metric.update(preds[:50])
    metric.update(preds[50:])
    expected = [[float((preds[:, i] != preds[:, j]).double().mean()) for j in range(M)] for i in range(M)]
    assert metric.compute().tolist() == expected


def test_the_matrix_of_a_collection_leaves_out_what_the_others_do() -> None:
    preds, target = ballots()
    mask = torch.arange(200) % 7 > 0
    collection = MetricCollection(
        [PairwiseDisagreement(2, C, ignore_index=2), DisagreementMatrix(2, ignore_index=2), EnsembleAccuracy(2, C, 2)]
    )
    for part in (slice(0, 90), slice(90, 200)):
        collection.update(preds[part, :2], target[part], mask[part])  # by position, as all three take them
    values = collection.compute()
    seen = mask & (target != 2) & (preds[:, :2] != 2).all(1)
    differing = float((preds[seen, 0] != preds[seen, 1]).double().mean())
    assert values["DisagreementMatrix"].tolist() == [[0.0, differing], [differing, 0.0]]
    assert float(values["PairwiseDisagreement"]) == pytest.approx(differing)
    assert len(collection.compute_groups) == 2


def test_the_matrix_looks_at_targets_only_for_those_to_ignore() -> None:
    preds, target = ballots()
    with_target, without = DisagreementMatrix(M), DisagreementMatrix(M)
    with_target.update(preds, target)
    without.update(preds)
    assert torch.equal(with_target.compute(), without.compute())


@pytest.mark.parametrize("validate_args", [True, False])
def test_bools_are_the_labels_0_and_1(validate_args: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.rand(50, M, generator=generator) < 0.6, torch.rand(50, generator=generator) < 0.5
    options: dict[str, Any] = {"ignore_index": -100, "validate_args": validate_args}
    for build in (lambda: EnsembleAccuracy(M, 2, **options), lambda: DisagreementMatrix(M, **options)):
        bools, integers, bytes_ = build(), build(), build()
        bools.update(preds, target)
        integers.update(preds.long(), target.long())
        bytes_.update(preds.byte(), target.byte())
        assert torch.equal(bools.compute(), integers.compute())
        assert torch.equal(bytes_.compute(), integers.compute())


def test_ignored_targets_have_no_part_in_the_soft_vote() -> None:
    generator = torch.Generator().manual_seed(0)
    probs, target = torch.rand(60, M, C, generator=generator), torch.randint(C, (60,), generator=generator)
    target[::3], probs[::3] = -100, torch.nan
    metric = SoftEnsembleAccuracy(M, C, ignore_index=-100)
    metric.update(probs[:20], target[:20])
    metric.update(probs[20:], target[20:])
    expected = (probs.mean(1).argmax(1) == target)[target >= 0].double().mean()
    assert float(metric.compute()) == float(expected)
    with pytest.raises(ValueError, match="target must lie in"):
        SoftEnsembleAccuracy(M, C).update(probs.nan_to_num(), target)


@pytest.mark.parametrize("from_logits", [False, True])
def test_the_soft_vote_equals_a_mean(from_logits: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, target = torch.randn(150, M, C, generator=generator), torch.randint(C, (150,), generator=generator)
    probs = logits.softmax(-1)
    metric = SoftEnsembleAccuracy(M, C, from_logits=from_logits)
    metric.update(logits if from_logits else probs, target)
    expected = (probs.double().mean(1).argmax(1) == target).double().mean()
    assert float(metric.compute()) == pytest.approx(float(expected))


def test_two_ensembles_are_compared_by_their_votes() -> None:
    vanilla, target = ballots(seed=1)
    sigma_pi, _ = ballots(seed=1)
    sigma_pi = torch.where(
        torch.rand(200, M, generator=torch.Generator().manual_seed(9)) < 0.3, target[:, None], sigma_pi
    )
    votes = [majority_vote(preds, C, member_dim=1) for preds in (vanilla, sigma_pi)]
    metric = PairedOutcomes(num_conditions=2)
    metric.update(torch.stack([vote == target for vote in votes], 1))
    pair = metric.mcnemar()
    before, after = (vote == target for vote in votes)
    expected = mcnemar(int((before & ~after).sum()), int((~before & after).sum()))
    assert float(pair.result.p_value[0]) == float(expected.p_value)
    assert float(metric.cochran_q().p_value) == float(cochran_q(torch.stack([before, after], 1)).p_value)


def test_three_members_each_wrong_once() -> None:
    preds, target = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]), torch.ones(4, dtype=torch.int64)
    ensemble, mean = EnsembleAccuracy(3, 2), MeanMemberAccuracy(3, 2)
    ensemble.update(preds, target)
    mean.update(preds, target)
    assert (float(ensemble.compute()), float(mean.compute())) == (1.0, 0.75)


@pytest.mark.parametrize(
    ("build", "arguments", "error", "message"),
    [
        (
            EnsembleAccuracy,
            {"preds": torch.zeros(4, 3).long()},
            ValueError,
            "one column a member",
        ),
        (EnsembleAccuracy, {"preds": torch.zeros(4, M)}, TypeError, "argmax"),
        (EnsembleAccuracy, {"preds": torch.full((4, M), C)}, ValueError, r"preds must lie in \[0, 4\)"),
        (EnsembleAccuracy, {"target": torch.full((4,), -100)}, ValueError, r"target must lie in \[0, 4\)"),
        (EnsembleAccuracy, {"target": torch.zeros(3).long()}, ValueError, "one value a sample"),
        (EnsembleAccuracy, {"mask": torch.ones(4)}, TypeError, "mask must be bool"),
        (EnsembleAccuracy, {"mask": [True] * 4}, TypeError, "mask must be a tensor, but is a list"),
        (EnsembleAccuracy, {"target": [0] * 4}, TypeError, "target must be a tensor, but is a list"),
        (EnsembleAccuracy, {"target": torch.zeros(4)}, TypeError, "target must be integer class labels"),
        (EnsembleAccuracy, {"preds": [[0] * M] * 4}, TypeError, "preds must be a tensor, but is a list"),
    ],
)
def test_bad_input_is_named(build: Any, arguments: dict[str, Tensor], error: type[Exception], message: str) -> None:
    metric = build(M, C)
    valid = {"preds": torch.zeros(4, M).long(), "target": torch.zeros(4).long()}
    with pytest.raises(error, match=message):
        metric.update(**{**valid, **arguments})
    assert metric.update_count == 0


def test_masked_and_ignored_labels_may_be_out_of_range() -> None:
    metric = EnsembleAccuracy(2, C, ignore_index=-100)
    preds, target = torch.tensor([[1, -100], [9, 9], [2, 2]]), torch.tensor([1, 0, -100])
    metric.update(preds, target, mask=torch.tensor([True, False, True]))
    assert float(metric.compute()) == 1.0


def test_settings_are_checked() -> None:
    for build in (
        lambda: EnsembleAccuracy(0, 2),
        lambda: EnsembleAccuracy(2, 0),
        lambda: DisagreementMatrix(0),
        lambda: SoftEnsembleAccuracy(0, 2),
        lambda: SoftEnsembleAccuracy(2, 0),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            build()
    soft = SoftEnsembleAccuracy(M, C)
    with pytest.raises(TypeError, match="probs must be a tensor, but is a list"):
        soft.update([[[0.5] * C] * M], torch.zeros(1).long())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="target must be a tensor, but is a list"):
        soft.update(torch.rand(1, M, C), [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"shape \[N, 5, 4\]"):
        soft.update(torch.rand(3, M, C + 1), torch.zeros(3).long())
    with pytest.raises(ValueError, match="from_logits=True"):
        soft.update(-torch.rand(3, M, C), torch.zeros(3).long())


def test_a_member_that_diverged_has_no_soft_vote() -> None:
    soft = SoftEnsembleAccuracy(M, C)
    probs = torch.rand(3, M, C)
    probs[1, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="must not be NaN"):
        soft.update(probs, torch.zeros(3).long())
    soft.update(probs, torch.zeros(3).long(), mask=torch.tensor([True, False, True]))
    assert not soft.compute().isnan()
