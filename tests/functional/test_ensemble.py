"""Accuracies and disagreements of an ensemble against plain Python and the document's own double loop."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from polyweave_torch.functional.ensemble import (
    disagreement_matrix,
    disagreement_matrix_from_counts,
    disagreement_rate,
    disagreement_rate_from_counts,
    ensemble_accuracy,
    ensemble_accuracy_from_counts,
    ensemble_gain,
    mean_accuracy,
    mean_accuracy_from_counts,
    member_accuracies,
    oracle_disagreement,
    pairwise_disagreement,
    pairwise_disagreement_from_counts,
)
from polyweave_torch.functional.ensemble_counts import agreement_counts, ensemble_counts, unpack_counts
from tests.functional.ensembles import DTYPES, columns, count, differing_pairs, layouts, random_labels

WITHOUT_TARGET: tuple[Callable[..., Tensor], ...] = (disagreement_rate, pairwise_disagreement, disagreement_matrix)
WITH_TARGET: tuple[Callable[..., Tensor], ...] = (
    ensemble_accuracy,
    mean_accuracy,
    member_accuracies,
    ensemble_gain,
    oracle_disagreement,
)


def mean(values: Iterable[Fraction | int | bool]) -> float:
    numbers = [Fraction(value) for value in values]
    return float(sum(numbers, Fraction(0)) / len(numbers)) if numbers else math.nan


@settings(max_examples=200, deadline=None)
@given(
    members=st.integers(1, 20),
    classes=st.sampled_from([1, 3, 10, 200, 40_000]),
    samples=st.sampled_from([0, 1, 9]),
    ignore_index=st.none() | st.sampled_from([-100, -1, 0]),
    masked=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_everything_is_what_counting_by_hand_gives(
    members: int, classes: int, samples: int, ignore_index: int | None, masked: bool, seed: int
) -> None:
    abstain = 0 if ignore_index is None else (0.3, 0.9)[seed % 2]
    low = max(classes - 3, 0)
    labels = random_labels(
        members + 1, samples, low, classes - 1, seed=seed, abstain=abstain, ignore_index=ignore_index or 0
    )
    preds, target = labels[:-1], labels[-1]
    mask = torch.tensor([(seed >> n) % 3 > 0 for n in range(samples)], dtype=torch.bool) if masked else None
    options: dict[str, Any] = {"ignore_index": ignore_index, "mask": mask}

    rows = list(zip(columns(preds), target.tolist(), strict=True)) if samples else []
    rows = rows if mask is None else [row for row, kept in zip(rows, mask.tolist(), strict=True) if kept]
    said = [(labels, count(labels, ignore_index), truth) for labels, truth in rows]
    said = [row for row in said if row[1].vote is not None]
    judged = [row for row in said if ignore_index is None or row[2] != ignore_index]

    assert disagreement_rate(preds, **options).item() == pytest.approx(
        mean(vote.winner_votes < members for _, vote, _ in said), nan_ok=True
    )
    pairs = [
        0 if members == 1 else 1 - Fraction(2 * vote.agreeing_pairs, vote.voters * (vote.voters - 1))
        for _, vote, _ in said
        if vote.voters > 1 or members == 1
    ]
    assert pairwise_disagreement(preds, **options).item() == pytest.approx(mean(pairs), nan_ok=True)
    accuracy = mean(vote.vote == truth for _, vote, truth in judged)
    assert ensemble_accuracy(preds, target, classes, **options).item() == pytest.approx(accuracy, nan_ok=True)
    by_member = [
        mean(labels[member] == truth for labels, _, truth in judged if labels[member] != ignore_index)
        for member in range(members)
    ]
    assert member_accuracies(preds, target, **options).tolist() == pytest.approx(by_member, nan_ok=True)
    voting = [member for member in by_member if not math.isnan(member)]
    mean_member = sum(voting) / len(voting) if voting else math.nan
    assert mean_accuracy(preds, target, **options).item() == pytest.approx(mean_member, nan_ok=True)
    assert ensemble_gain(preds, target, **options).item() == pytest.approx(accuracy - mean_member, nan_ok=True)
    split = []
    for labels_of_one, vote, truth in judged:
        right = [label == truth for label in labels_of_one if label != ignore_index]
        if vote.voters > 1:
            split.append(Fraction(sum(a != b for a, b in combinations(right, 2)), math.comb(vote.voters, 2)))
        elif members == 1:
            split.append(Fraction(0))
    assert oracle_disagreement(preds, target, **options).item() == pytest.approx(mean(split), nan_ok=True)
    matrix = disagreement_matrix(preds, **options).tolist()
    for one in range(members):
        for other in range(members):
            both = [
                labels for labels, _ in rows if ignore_index is None or ignore_index not in (labels[one], labels[other])
            ]
            assert matrix[one][other] == pytest.approx(
                mean(labels[one] != labels[other] for labels in both), nan_ok=True
            )


@pytest.mark.parametrize("members", [2, 3, 7, 12, 40])
def test_closed_form_has_the_double_loops_numerator(members: int) -> None:
    preds = random_labels(members, 301, 0, 4, seed=members)
    numerator = sum(differing_pairs(labels) for labels in columns(preds))
    parts = unpack_counts(ensemble_counts(preds, None, 5))
    pairs = math.comb(members, 2)
    assert int((pairs * parts.samples - parts.agreeing).sum()) == numerator
    # One division of the two integers, so the same float to the last bit.
    assert pairwise_disagreement(preds).item() == numerator / (pairs * 301)


def test_the_documents_examples() -> None:
    assert disagreement_rate([torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 2, 9])]).item() == 0.25
    target = torch.tensor([0, 1, 2, 3])
    wrong_once = [torch.tensor([9, 1, 2, 3]), torch.tensor([0, 9, 2, 3]), torch.tensor([0, 1, 9, 3])]
    assert ensemble_accuracy(wrong_once, target, 10).item() == 1.0
    assert mean_accuracy(wrong_once, target).item() == 0.75
    assert ensemble_gain(wrong_once, target).item() == 0.25
    assert member_accuracies(wrong_once, target).tolist() == [0.75, 0.75, 0.75]
    assert pairwise_disagreement(wrong_once).item() == pytest.approx(0.5)
    assert oracle_disagreement(wrong_once, target).item() == pytest.approx(0.5)


def test_the_three_disagreements_differ() -> None:
    # Three wrong answers, all different: two of three pairs never agree, but all are equally wrong.
    preds, target = torch.tensor([[1], [2], [2]]), torch.tensor([0])
    assert disagreement_rate(preds).item() == 1.0
    assert pairwise_disagreement(preds).item() == pytest.approx(2 / 3)
    assert oracle_disagreement(preds, target).item() == 0.0


def test_one_member_never_disagrees() -> None:
    one = torch.tensor([[3, 1, 4]])
    for function in WITHOUT_TARGET:
        assert function(one).max().item() == 0.0
    assert oracle_disagreement(one, torch.tensor([3, 1, 0])).item() == 0.0


@pytest.mark.parametrize("members", [1, 2, 12])
def test_no_sample_is_nan(members: int) -> None:
    preds, target = torch.empty((members, 0), dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    full, all_target = torch.ones((members, 3), dtype=torch.int64), torch.ones(3, dtype=torch.int64)
    nothing = torch.zeros(3, dtype=torch.bool)
    for function in WITHOUT_TARGET:
        assert function(preds).isnan().all()
        assert function(full, mask=nothing).isnan().all()
        assert function(full, ignore_index=1).isnan().all()
    for function in WITH_TARGET:
        assert function(preds, target).isnan().all()
        assert function(full, all_target, mask=nothing).isnan().all()
        assert function(full, all_target, ignore_index=1).isnan().all()


def test_an_ignored_target_drops_its_sample() -> None:
    preds, target = torch.tensor([[0, 1, 1], [0, 1, 0]]), torch.tensor([0, 1, -100])
    for function in WITH_TARGET:
        assert torch.equal(function(preds, target, ignore_index=-100), function(preds[:, :2], target[:2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_integer_type_and_layout_gives_the_same_numbers(dtype: torch.dtype) -> None:
    labels = random_labels(6, 150, 0, 9)
    preds, target = labels[:-1], labels[-1]
    for function in WITHOUT_TARGET:
        wanted = function(preds)
        for layout in layouts(preds.to(dtype)).values():
            assert torch.equal(function(layout), wanted)
            assert torch.equal(function(layout.t(), member_dim=1), wanted)
            assert torch.equal(function(list(layout)), wanted)
    for function in WITH_TARGET:
        wanted = function(preds, target)
        for layout in layouts(preds.to(dtype)).values():
            assert torch.equal(function(layout, target.to(dtype)), wanted)
            assert torch.equal(function(layout.t(), target, member_dim=1), wanted)


@pytest.mark.parametrize("function", [mean_accuracy, member_accuracies, oracle_disagreement])
def test_a_target_no_member_can_name_is_wrong_not_narrowed(function: Callable[..., Tensor]) -> None:
    preds = torch.tensor([[1, 2], [1, 3]])
    assert torch.equal(function(preds, torch.tensor([257, 2**32 + 2])), function(preds, torch.tensor([9, 9])))
    assert torch.equal(function(preds, torch.tensor([-255, -1])), function(preds, torch.tensor([9, 9])))


def test_labels_that_are_no_classes_can_be_compared() -> None:
    hashes = torch.tensor([[2**63 - 1, -(2**63), 5], [2**63 - 1, 2**62, 5]])
    assert disagreement_rate(hashes).item() == pytest.approx(1 / 3)
    assert pairwise_disagreement(hashes).item() == pytest.approx(1 / 3)
    assert disagreement_matrix(hashes)[0, 1].item() == pytest.approx(1 / 3)
    assert mean_accuracy(hashes, hashes[0]).item() == pytest.approx(5 / 6)


def test_targets_out_of_range_and_of_another_length_are_errors() -> None:
    preds = torch.tensor([[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=r"target must lie in \[0, 2\).*holds 7"):
        ensemble_accuracy(preds, torch.tensor([0, 7]), 2)
    with pytest.raises(ValueError, match=r"target must have one value a sample, shape \[2\] like each member"):
        mean_accuracy(preds, torch.tensor([0, 1, 1]))
    with pytest.raises(TypeError, match="target must be integer class labels"):
        mean_accuracy(preds, torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize("members", [3, 12])
@pytest.mark.parametrize("samples", [100, 16 * 2040 + 3, 64 * 2040 + 1])
def test_sums_of_whole_words_and_of_rests_are_right(members: int, samples: int) -> None:
    labels = random_labels(members + 1, samples, 0, 2, seed=samples)
    preds, target = labels[:-1], labels[-1]
    right = (preds == target).sum(1)
    assert torch.equal(unpack_counts(ensemble_counts(preds, target, 3)).member_right, right)
    for dtype in (torch.uint8, torch.int16, torch.int64):
        agreeing = agreement_counts(preds.to(dtype))[0]
        assert int(agreeing[0, -1]) == int((preds[0] == preds[-1]).sum())
        assert int(agreeing[0, 1]) == int((preds[0] == preds[1]).sum())


@pytest.mark.parametrize("ignore_index", [None, -1])
def test_counts_add_over_batches(ignore_index: int | None) -> None:
    labels = random_labels(8, 90, 0, 4, abstain=0 if ignore_index is None else 0.3, ignore_index=-1)
    preds, target = labels[:-1], labels[-1]
    whole = ensemble_counts(preds, target, 5, ignore_index=ignore_index)
    batches = [
        ensemble_counts(preds[:, part].t(), target[part], 5, member_dim=1, ignore_index=ignore_index)
        for part in (slice(0, 1), slice(1, 40), slice(40, 40), slice(40, 90))
    ]
    assert torch.equal(sum(batches[1:], batches[0]), whole)
    assert whole.dtype == torch.int64
    with_target: list[tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = [
        (ensemble_accuracy, ensemble_accuracy_from_counts),
        (mean_accuracy, mean_accuracy_from_counts),
    ]
    without_target: list[tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = [
        (disagreement_rate, disagreement_rate_from_counts),
        (pairwise_disagreement, pairwise_disagreement_from_counts),
    ]
    for function, formula in with_target:
        assert torch.equal(function(preds, target, ignore_index=ignore_index), formula(whole))
    for function, formula in without_target:
        assert torch.equal(function(preds, ignore_index=ignore_index, mask=target >= 0), formula(whole))


@pytest.mark.parametrize(("dtype", "members"), [(torch.int64, 5), (torch.int8, 140), (torch.uint8, 3)])
def test_agreements_of_abstaining_members_are_those_of_the_matrix(dtype: torch.dtype, members: int) -> None:
    # Labels as small as members' numbers, and 3 as the abstention; as a target 3 drops the sample.
    labels = random_labels(members + 1, 60, 0, 4).to(dtype)
    preds, target = labels[:-1], labels[-1]
    found = disagreement_matrix_from_counts(agreement_counts(preds, target, ignore_index=3))
    wanted = disagreement_matrix(preds, ignore_index=3, mask=(target != 3).tolist())
    assert torch.equal(found.nan_to_num(nan=-1.0), wanted.nan_to_num(nan=-1.0))
    assert torch.equal(agreement_counts(preds, target), agreement_counts(preds))


@pytest.mark.parametrize("members", [2, 3, 5, 7, 10])
def test_the_vote_of_members_all_alike_gains_exactly_nothing(members: int) -> None:
    for samples in range(1, 40):
        labels = random_labels(2, samples, 0, 2, seed=samples, abstain=0.3, ignore_index=-1)
        preds, target = labels[:1].expand(members, -1), labels[1]
        for ignore_index in (None, -1):
            options: dict[str, Any] = {"ignore_index": ignore_index, "mask": (labels >= 0).all(0).tolist()}
            gain = ensemble_gain(preds, target, **options).item()
            assert gain == 0.0 or math.isnan(gain)


@pytest.mark.parametrize("members", [5, 12])
@pytest.mark.parametrize("ignore_index", [None, -1])
def test_counting_is_one_graph_that_reads_no_value(members: int, ignore_index: int | None) -> None:
    def counts(preds: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        options: dict[str, Any] = {"member_dim": 1, "mask": mask}
        return (
            ensemble_counts(preds, target, 10, ignore_index=ignore_index, **options),
            agreement_counts(preds, **options),
        )

    preds = random_labels(members, 64, 0, 9, abstain=0.2, ignore_index=-1 if ignore_index else 0).t().contiguous()
    target, mask = preds[:, 0].clone(), preds[:, 1] > 2
    compiled: Callable[..., tuple[Tensor, Tensor]] = torch.compile(counts, fullgraph=True, backend="aot_eager")
    for traced, eager in zip(compiled(preds, target, mask), counts(preds, target, mask), strict=True):
        assert torch.equal(traced, eager)
    with FakeTensorMode() as mode:
        # A fake tensor has no values: whoever reads one fails.
        fake = [mode.from_tensor(tensor) for tensor in (preds, target, mask)]
        assert counts(*fake)[0].shape == (5 * members + 5,)


def test_labels_out_of_range_count_wrongly_but_fault_nowhere() -> None:
    preds = torch.tensor([[2**40, -7, 300], [-(2**63), 2**63 - 1, 5], [1, 1, 1]])
    for classes in (2, 200, 1000, 2**20):
        assert ensemble_counts(preds, torch.tensor([-100, 2**50, 1]), classes).shape == (20,)
