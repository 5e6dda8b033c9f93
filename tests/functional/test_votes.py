"""Majority votes and their summary."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polyweave_torch.functional.votes import majority_vote, vote_summary
from tests.functional.ensembles import DTYPES, columns, count, layouts, random_labels


@settings(max_examples=150, deadline=None)
@given(
    members=st.integers(1, 40),
    classes=st.sampled_from([1, 2, 3, 10, 128, 200, 300, 40_000, 10**9]),
    samples=st.sampled_from([0, 1, 6]),
    ignore_index=st.none() | st.sampled_from([-100, -1, 0, 2, 10**10]),
    known=st.booleans(),
    masked=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_summary_is_what_counting_by_hand_gives(
    members: int, classes: int, samples: int, ignore_index: int | None, known: bool, masked: bool, seed: int
) -> None:
    abstain = 0 if ignore_index is None else (0.3, 0.95)[seed % 2]
    low = max(classes - 3, 0) if seed % 3 else 0
    preds = random_labels(
        members, samples, low, classes - 1, seed=seed, abstain=abstain, ignore_index=ignore_index or 0
    )
    counted = [count(labels, ignore_index) for labels in columns(preds)] if samples else []
    mask = torch.tensor([(seed >> n) % 3 > 0 for n in range(samples)], dtype=torch.bool) if masked else None
    if mask is not None:
        counted = [sample if kept else count([]) for sample, kept in zip(counted, mask.tolist(), strict=True)]
        preds = preds.masked_fill(~mask, -7)  # what a mask leaves out isn't looked at
    nobody = -1 if ignore_index is None else ignore_index
    summary = vote_summary(preds, classes if known else None, ignore_index=ignore_index, mask=mask)
    assert summary.vote.tolist() == [nobody if sample.vote is None else sample.vote for sample in counted]
    assert summary.winner_votes.tolist() == [sample.winner_votes for sample in counted]
    assert summary.unanimous.tolist() == [sample.winner_votes == members for sample in counted]
    assert summary.agreeing_pairs.tolist() == [sample.agreeing_pairs for sample in counted]
    vote = majority_vote(preds, classes if known else None, ignore_index=ignore_index, mask=mask)
    assert vote.dtype == torch.int64
    assert torch.equal(vote, summary.vote)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("members", [1, 4, 11, 70])
def test_every_integer_type_and_layout_gives_the_same_vote(dtype: torch.dtype, members: int) -> None:
    top = min(torch.iinfo(dtype).max, 2**62)
    preds = random_labels(members, 200, top - 5, top - 1, seed=members)
    wanted = [count(labels).vote for labels in columns(preds)]
    for layout, labels in layouts(preds.to(dtype)).items():
        assert majority_vote(labels).tolist() == wanted, layout
        assert majority_vote(labels, num_classes=top).tolist() == wanted, layout
        assert majority_vote(labels.t(), member_dim=1).tolist() == wanted, layout
        assert majority_vote(list(labels)).tolist() == wanted, layout


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_an_ignored_label_that_the_type_cannot_hold_is_nobodys(dtype: torch.dtype) -> None:
    wrapped = -100 - 2**40  # -100 modulo the type's size
    preds = torch.tensor([[1, 2], [1, 3]], dtype=dtype)
    assert majority_vote(preds, ignore_index=wrapped).tolist() == [1, 2]
    byte = torch.tensor([[156], [156], [0]], dtype=torch.uint8)
    assert majority_vote(byte, 200, ignore_index=-100).tolist() == [156]


def test_members_of_different_types_vote_together() -> None:
    members = [torch.tensor([1, 300]), torch.tensor([1, 4], dtype=torch.uint8), torch.tensor([0, 4], dtype=torch.int16)]
    assert majority_vote(members, 301).tolist() == [1, 4]


def test_a_binary_classifiers_bools_are_classes_0_and_1() -> None:
    preds = torch.tensor([[True, False], [True, False], [False, False]])
    assert majority_vote(preds).tolist() == [1, 0]


def test_predictions_are_flattened() -> None:
    members = [torch.tensor([[0, 1], [2, 3]]), torch.tensor([[0, 1], [3, 2]])]
    assert majority_vote(members).tolist() == [0, 1, 2, 2]
    assert majority_vote(torch.stack(members)).tolist() == [0, 1, 2, 2]
    assert majority_vote(torch.stack(members, dim=1), member_dim=1).tolist() == [0, 1, 2, 2]


def test_ties_go_to_the_lowest_class_whoever_named_it_first() -> None:
    assert majority_vote(torch.tensor([[7], [2], [7], [2], [9]]), 10).tolist() == [2]
    assert majority_vote(torch.tensor([[3], [1], [2]]), 10).tolist() == [1]


def test_who_abstains_has_no_part_in_a_tie() -> None:
    preds = torch.tensor([[0, 0], [0, 0], [5, 0], [3, 0]])
    summary = vote_summary(preds, 6, ignore_index=0)
    assert summary.vote.tolist() == [3, 0]
    assert summary.winner_votes.tolist() == [1, 0]
    assert summary.unanimous.tolist() == [False, False]
    assert summary.agreeing_pairs.tolist() == [0, 0]


def test_no_samples() -> None:
    assert majority_vote(torch.empty((3, 0), dtype=torch.int64), 5).tolist() == []
    assert vote_summary([torch.empty(0, dtype=torch.int8)]).unanimous.tolist() == []


@pytest.mark.parametrize("bad", [-1, 5, 2**31, 2**32, 2**32 + 1, -(2**32), 2**40 + 256, -(2**63)])
@pytest.mark.parametrize("members", [3, 20])
def test_a_label_out_of_range_is_an_error_also_where_it_narrows_to_a_good_one(bad: int, members: int) -> None:
    preds = random_labels(members, 50, 0, 4)
    preds[members - 1, 31] = bad
    for labels in layouts(preds).values():
        with pytest.raises(ValueError, match=rf"preds must lie in \[0, 5\).*holds {bad};"):
            majority_vote(labels, 5)


def test_a_negative_label_without_classes_is_an_error_that_names_ignore_index() -> None:
    with pytest.raises(ValueError, match="pass ignore_index=-1"):
        majority_vote(torch.tensor([[0, -1], [1, 1]]))
    assert majority_vote(torch.tensor([[0, -1], [1, 1]]), ignore_index=-1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("preds", "error", "message"),
    [
        (torch.tensor([[0.0, 1.0]]), TypeError, "integer class labels.*float32.*argmax"),
        ([torch.tensor([0.5])], TypeError, r"preds\[0\] must be integer"),
        ([torch.tensor([0, 1]), torch.tensor([0])], ValueError, r"preds\[0\] has 2 and preds\[1\] has 1"),
        ([], ValueError, "no members"),
        (torch.empty((0, 4), dtype=torch.int64), ValueError, "no members"),
        (torch.tensor([0, 1]), ValueError, r"\[M, N\].*shape \[2\]"),
        ([[0, 1], [0, 1]], TypeError, r"preds\[0\] must be a tensor.*list"),
    ],
)
def test_errors_say_what_came(preds: Tensor | list[Tensor], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        majority_vote(preds)


def test_a_mask_must_be_bool_and_one_a_sample() -> None:
    preds = torch.tensor([[0, 1], [0, 1]])
    with pytest.raises(TypeError, match="mask must be bool"):
        majority_vote(preds, mask=torch.tensor([1, 0]))
    with pytest.raises(ValueError, match=r"mask must have one value a sample, shape \[2\] like each member"):
        majority_vote(preds, mask=torch.tensor([True]))
    with pytest.raises(ValueError, match="num_classes must be at least 1"):
        majority_vote(preds, 0)


def test_the_plain_form_is_chosen_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "triton", None)
    assert majority_vote(torch.tensor([[0, 1], [0, 1]])).tolist() == [0, 1]
