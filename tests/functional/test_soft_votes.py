"""Soft votes against plain Python."""

import math

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from polyweave_torch.functional.soft_votes import soft_ensemble_accuracy, soft_ensemble_counts, soft_vote


def random_logits(samples: int, members: int, classes: int) -> Tensor:
    return torch.randn(samples, members, classes, generator=torch.Generator().manual_seed(samples + members))


def test_the_vote_is_the_mean_of_probabilities() -> None:
    probs = random_logits(7, 3, 4).softmax(-1)
    for sample, vote in zip(probs.tolist(), soft_vote(probs).tolist(), strict=True):
        assert vote == pytest.approx([sum(member[c] for member in sample) / 3 for c in range(4)], abs=1e-6)


def test_logits_are_not_averaged_but_their_probabilities() -> None:
    # One member is sure of class 0 beyond measure; the mean of logits would follow it alone.
    logits = torch.tensor([[[100.0, 0.0], [0.0, 2.0], [0.0, 2.0]]])
    for_class_1 = 2 * math.exp(2) / (1 + math.exp(2)) / 3
    assert soft_vote(logits, from_logits=True).tolist()[0] == pytest.approx([1 - for_class_1, for_class_1])
    assert soft_ensemble_accuracy(logits, torch.tensor([1]), from_logits=True).item() == 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_halves_are_averaged_in_float32(dtype: torch.dtype) -> None:
    probs = torch.full((2, 300, 2), 0.1, dtype=dtype)
    vote = soft_vote(probs)
    assert vote.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert vote.flatten().tolist() == pytest.approx([float(probs[0, 0, 0])] * 4, rel=1e-6)


def test_accuracy_is_counted_by_hand_and_ties_go_to_the_lowest_class() -> None:
    logits, target = random_logits(50, 3, 5), torch.arange(50) % 5
    predictions = [max(range(5), key=lambda c: vote[c]) for vote in soft_vote(logits, from_logits=True).tolist()]
    right = sum(prediction == truth for prediction, truth in zip(predictions, target.tolist(), strict=True))
    assert soft_ensemble_accuracy(logits, target, from_logits=True).item() == right / 50
    assert soft_ensemble_accuracy(torch.full((1, 2, 4), 0.25), torch.tensor([0])).item() == 1.0


def test_masked_samples_and_ignored_targets_are_left_out() -> None:
    probs, target = random_logits(4, 2, 3).softmax(-1), torch.tensor([0, 1, 2, -100])
    mask = torch.tensor([True, True, False, True])
    probs[2] = -5.0
    wanted = soft_ensemble_accuracy(probs[:2], target[:2])
    assert torch.equal(soft_ensemble_accuracy(probs, target, ignore_index=-100, mask=mask), wanted)
    assert torch.equal(soft_ensemble_accuracy(probs, target, ignore_index=-100, mask=mask.tolist()), wanted)
    vote = soft_vote(probs, mask=mask)
    assert vote.isnan().all(-1).tolist() == [False, False, True, False]
    assert torch.equal(vote[:2], soft_vote(probs[:2]))


def test_no_sample_is_nan() -> None:
    assert soft_ensemble_accuracy(torch.empty(0, 2, 3), torch.empty(0, dtype=torch.int64)).isnan()
    assert soft_vote(torch.empty(0, 2, 3)).shape == (0, 3)


def test_counting_reads_no_value() -> None:
    with FakeTensorMode():
        counts = soft_ensemble_counts(torch.rand(8, 2, 3), torch.zeros(8, dtype=torch.int64), ignore_index=-1)
    assert counts.shape == (2,)


def test_errors_say_what_came() -> None:
    probs, target = torch.full((2, 3, 4), 0.25), torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"must not be negative.*from_logits=True"):
        soft_vote(probs - 1)
    with pytest.raises(ValueError, match=r"shape \[N, M, C\].*came with shape \[2, 4\]"):
        soft_vote(probs[:, 0])
    with pytest.raises(ValueError, match=r"came with shape \[2, 0, 4\]"):
        soft_vote(probs[:, :0])
    with pytest.raises(TypeError, match="majority_vote takes class labels"):
        soft_vote(probs.to(torch.int64))
    with pytest.raises(ValueError, match=r"target must lie in \[0, 4\) \(classes of probs\), but holds 4"):
        soft_ensemble_accuracy(probs, target + 3)
    with pytest.raises(ValueError, match="target must have one value a sample"):
        soft_ensemble_accuracy(probs, target[:1])
    with pytest.raises(TypeError, match="target must be integer"):
        soft_ensemble_accuracy(probs, target.double())
    with pytest.raises(TypeError, match="mask must be bool"):
        soft_vote(probs, mask=target)
    with pytest.raises(TypeError, match="probs must be a tensor, but is a list"):
        soft_vote([[[0.5, 0.5]]])  # type: ignore[arg-type]


@pytest.mark.parametrize("logits", [[0.0, math.inf], [-math.inf, -math.inf]])
def test_a_member_that_overflowed_has_no_vote(logits: list[float]) -> None:
    probs, target = torch.tensor([[logits, [0.0, 1.0]]]), torch.tensor([0])
    for call in (soft_vote, lambda probs, **options: soft_ensemble_accuracy(probs, target, **options)):
        with pytest.raises(ValueError, match="must be finite: a member that overflowed has no vote"):
            call(probs, from_logits=True)
    with pytest.raises(ValueError, match="must be finite"):
        soft_vote(torch.tensor([[[0.0, math.inf]]]))


def test_a_logit_of_minus_infinity_rules_a_class_out() -> None:
    assert soft_vote(torch.tensor([[[-math.inf, 0.0, 0.0]]]), from_logits=True).tolist() == [[0.0, 0.5, 0.5]]
