"""The eager vote against votes counted in plain Python."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.kernels.flags import LANE_SAMPLES
from polyweave_torch.kernels.vote import (
    choose_encoding,
    chunks,
    count_votes,
    decode,
    empty_tally,
    encode,
    load,
    network,
    slice_members,
)
from tests.functional.ensembles import columns, count, random_labels


def vote_by_chunks(
    preds: torch.Tensor, low: int, high: int, ignore_index: int | None
) -> tuple[list[int], list[int], list[int]]:
    encoding = choose_encoding(low, high, len(preds), abstentions=ignore_index is not None)
    votes, winner_votes, pairs = [], [], []
    for start, stop in chunks(preds, encoding.dtype):
        codes, _ = load(slice_members(preds, start, stop), encoding, ignore_index)
        tally, vote = empty_tally(codes), torch.empty(stop - start, dtype=torch.int64)
        decode(count_votes(codes, encoding, tally), encoding, ignore_index, vote)
        votes += vote.tolist()
        winner_votes += tally.winner_votes.tolist()
        pairs += tally.agreeing_pairs.tolist()
    return votes, winner_votes, pairs


def check(preds: torch.Tensor, low: int, high: int, ignore_index: int | None = None) -> None:
    votes, winner_votes, pairs = vote_by_chunks(preds, low, high, ignore_index)
    counted = [count(labels, ignore_index) for labels in columns(preds)]
    assert votes == [ignore_index if sample.vote is None else sample.vote for sample in counted]
    # A sample without a vote has no winner whose votes to count.
    assert [n for n, sample in zip(winner_votes, counted, strict=True) if sample.voters] == [
        sample.winner_votes for sample in counted if sample.voters
    ]
    assert pairs == [sample.agreeing_pairs for sample in counted]


@pytest.mark.parametrize("members", range(1, 15))
def test_network_sorts_everything(members: int) -> None:
    # A network that sorts all zeros and ones sorts all numbers (Knuth's zero-one principle).
    rows = list(torch.tensor(list(product((0, 1), repeat=members))).unbind(1))
    for low, high in network(members):
        rows[low], rows[high] = torch.minimum(rows[low], rows[high]), torch.maximum(rows[low], rows[high])
    assert all(bool((a <= b).all()) for a, b in pairwise(rows))


@pytest.mark.parametrize(("members", "size"), [(5, 9), (8, 19), (16, 63), (32, 191), (64, 543), (128, 1471)])
def test_network_is_batchers(members: int, size: int) -> None:
    assert len(network(members)) == size


@settings(max_examples=300, deadline=None)
@given(
    members=st.integers(1, 130) | st.integers(1, 9),
    classes=st.integers(1, 60_000) | st.sampled_from([1, 2, 16, 127, 128, 129, 255, 256, 257, 32767, 32768, 32769]),
    alike=st.booleans(),
    at_the_top=st.booleans(),
    ignore_index=st.none() | st.integers(-101, 3),
    seed=st.integers(0, 10**6),
)
def test_votes_are_those_counted_by_hand(
    members: int, classes: int, alike: bool, at_the_top: bool, ignore_index: int | None, seed: int
) -> None:
    few = min(classes, 3) if alike else classes
    low = classes - few if at_the_top else 0
    abstain = 0 if ignore_index is None else (0.2, 0.9, 1.0)[seed % 3]
    preds = random_labels(members, 7, low, low + few - 1, seed=seed, abstain=abstain, ignore_index=ignore_index or 0)
    check(preds, 0, classes - 1, ignore_index)


@pytest.mark.parametrize("members", [2, 8, 9, 31, 40])
@pytest.mark.parametrize("classes", [16, 129, 300, 40_000, 2**31, 2**40])
def test_many_samples_take_the_network_and_few_the_sort(members: int, classes: int) -> None:
    for samples in (3, 900):
        check(random_labels(members, samples, classes - 3, classes - 1, seed=members), 0, classes - 1)
        check(
            random_labels(members, samples, 0, 2, seed=members, abstain=0.4, ignore_index=-1),
            0,
            classes - 1,
            ignore_index=-1,
        )


@pytest.mark.parametrize(("members", "most"), [(255, 255), (256, 256), (300, 300)])
def test_as_many_votes_as_members_fit(members: int, most: int) -> None:
    _, winner_votes, pairs = vote_by_chunks(torch.zeros(members, 2, dtype=torch.int64), 0, 1, None)
    assert winner_votes == [most] * 2
    assert pairs == [members * (members - 1) // 2] * 2


@pytest.mark.parametrize("members", [1, 3, 12, 33, 130])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_chunk_borders(members: int, over: int) -> None:
    border = chunks(torch.empty(members, 10**6), choose_encoding(0, 4, members).dtype)[0][1]
    assert border % LANE_SAMPLES == 0
    # Near the border only: elsewhere the labels agree, which needs no counting.
    preds = torch.full((members, border + over), 2)
    preds[:, border - 4 :] = random_labels(members, 4 + over, 0, 4, seed=members)
    votes, winner_votes, _ = vote_by_chunks(preds, 0, 4, None)
    counted = [count(labels) for labels in columns(preds[:, border - 4 :])]
    assert votes == [2] * (border - 4) + [sample.vote for sample in counted]
    assert winner_votes[border - 4 :] == [sample.winner_votes for sample in counted]


@pytest.mark.parametrize("low", [-(2**62), -5, 0, 10**12])
@pytest.mark.parametrize("span", [4, 200, 40_000, 2**20, 2**40])
def test_labels_of_any_range_keep_their_order(low: int, span: int) -> None:
    for members in (4, 12):
        check(random_labels(members, 50, low, low + span - 1, seed=members), low, low + span - 1)
        check(random_labels(members, 50, low + span - 3, low + span - 1, seed=members), low, low + span - 1)


def test_no_room_for_abstentions_is_an_error() -> None:
    with pytest.raises(ValueError, match="leave room for 3 abstentions"):
        choose_encoding(0, 2**63 - 2, 3, abstentions=True)
    assert choose_encoding(-(2**63), 2**63 - 1, 3).dtype == torch.int64


@pytest.mark.parametrize(
    ("high", "members", "dtype"),
    [
        (9, 5, torch.int8),
        (126, 2, torch.int8),  # keys reach -128
        (127, 2, torch.int8),
        (128, 2, torch.uint8),
        (255, 100, torch.uint8),
        (256, 100, torch.int16),
        (50_256, 5, torch.int16),
        (65_535, 9, torch.int16),
        (65_536, 9, torch.int32),
        (2**32, 9, torch.int64),
    ],
)
def test_the_type_is_the_narrowest(high: int, members: int, dtype: torch.dtype) -> None:
    assert choose_encoding(0, high, members).dtype == dtype
    check(random_labels(members, 40, max(high - 2, 0), high), 0, high)


def test_a_label_that_narrows_to_another_is_not_it() -> None:
    # -100 is 156 modulo 256.
    preds = torch.tensor([[156], [156], [3]], dtype=torch.uint8)
    check(preds, 0, 255, ignore_index=-100)
    assert encode(torch.tensor([3, 255]), choose_encoding(0, 255, 12)).tolist() == [3, 255]


def test_labels_are_left_as_they_were() -> None:
    for preds in (random_labels(4, 30, 0, 3).to(torch.int8), random_labels(12, 30, 0, 200).to(torch.uint8)):
        before = preds.clone()
        for layout in (preds, preds.t().contiguous().t()):
            vote_by_chunks(layout, 0, int(before.max()), None)
            assert torch.equal(layout, before)
