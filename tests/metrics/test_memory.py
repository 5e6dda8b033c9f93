"""OutcomeMemory against a dict of outcomes."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polyweave_torch import OutcomeMemory
from polyweave_torch.metrics.memory import REFERENCES, Reference

N = 12
epochs = st.lists(
    st.lists(st.tuples(st.integers(0, N - 1), st.booleans()), max_size=25), min_size=1, max_size=5
)  # samples may be missing, repeated, and repeated with another outcome


def outcomes(epoch: list[tuple[int, bool]]) -> dict[int, bool]:
    seen: dict[int, bool] = {}
    for index, right in epoch:
        seen[index] = seen.get(index, False) or right
    return seen


def table(before: dict[int, bool], after: dict[int, bool], slices: int = 0) -> list[object]:
    counts = torch.zeros(max(slices, 1), 2, 2, dtype=torch.int64)
    for index in before.keys() & after.keys():
        counts[index % slices if slices else 0, int(before[index]), int(after[index])] += 1
    return counts.tolist() if slices else counts[0].tolist()


def feed(memory: OutcomeMemory, epoch: list[tuple[int, bool]], batch: int) -> None:
    for start in range(0, len(epoch), batch):
        part = epoch[start : start + batch]
        index = torch.tensor([i for i, _ in part])
        memory.update(index, torch.tensor([right for _, right in part]), index % 3)


def dense(seen: dict[int, bool]) -> list[int]:
    return [int(seen[i]) if i in seen else -1 for i in range(N)]


@settings(deadline=None)
@given(epochs, st.integers(1, 9), st.randoms(use_true_random=False), st.booleans())
def test_every_epoch_equals_a_dict(
    history: list[list[tuple[int, bool]]], batch: int, rng: random.Random, sliced: bool
) -> None:
    memory = OutcomeMemory(N, slices=3 if sliced else None, track_events=True)
    slices = 3 if sliced else 0
    kept: dict[Reference, dict[int, bool]] = {reference: {} for reference in REFERENCES}
    forgetting, learning = [0] * N, [0] * N
    for epoch in history:
        rng.shuffle(epoch)
        feed(memory, epoch, batch)
        seen = outcomes(epoch)
        live = {reference: memory.channel(reference).tolist() for reference in REFERENCES}
        if seen:
            assert live == {reference: table(before, seen, slices) for reference, before in kept.items()}
            assert memory.compute().tolist() == live["previous"]
        memory.advance()
        if not seen:
            continue
        assert {reference: memory.channel(reference).tolist() for reference in REFERENCES} == live
        for index in seen.keys() & kept["previous"].keys():
            forgetting[index] += kept["previous"][index] and not seen[index]
            learning[index] += seen[index] and not kept["previous"][index]
        kept["previous"] = seen
        kept["first"] = kept["first"] or seen
        best = kept["best"]
        if not best or sum(seen.values()) * len(best) > sum(best.values()) * len(seen):
            kept["best"] = seen
    for reference, before in kept.items():
        assert memory.outcomes(reference).tolist() == dense(before)
    assert memory.outcomes("current").tolist() == [-1] * N
    assert memory.forgetting_events().tolist() == forgetting
    assert memory.learning_events().tolist() == learning


def test_a_duplicate_with_two_outcomes_counts_as_right() -> None:
    for order in ([True, False], [False, True]):
        memory = OutcomeMemory(3)
        memory.update(torch.tensor([1, 1]), torch.tensor(order))
        assert memory.outcomes().tolist() == [-1, 1, -1]


def test_the_earliest_of_equals_stays_the_best() -> None:
    memory = OutcomeMemory(2)
    for epoch in ([1, 0], [0, 1]):
        memory.update(torch.tensor([0, 1]), torch.tensor(epoch))
        memory.advance()
    assert memory.outcomes("best").tolist() == [1, 0]


def test_an_empty_epoch_changes_nothing() -> None:
    memory = OutcomeMemory(2)
    memory.advance()
    memory.update(torch.tensor([0, 1]), torch.tensor([1, 0]))
    memory.advance()
    memory.advance()
    assert memory.outcomes("previous").tolist() == [1, 0]


def test_slices_wider_than_a_byte_are_kept() -> None:
    memory = OutcomeMemory(300, slices=300)
    index = torch.arange(300)
    for _ in range(2):
        memory.update(index, torch.ones(300, dtype=torch.bool), index)
        memory.advance()
    expected = torch.zeros(300, 2, 2, dtype=torch.int64)
    expected[:, 1, 1] = 1
    assert torch.equal(memory.channel("previous"), expected)


def test_states_written_in_inference_mode_can_be_written_afterwards() -> None:
    memory = OutcomeMemory(4)
    with torch.inference_mode():
        memory.reset()
        memory.update(torch.tensor([0]), torch.tensor([True]))
    memory.update(torch.tensor([1]), torch.tensor([False]))
    assert memory.outcomes().tolist() == [1, 0, -1, -1]


@pytest.mark.parametrize(
    ("index", "correct", "message"),
    [
        (torch.tensor([0, 4]), torch.tensor([True, True]), r"sample_index must lie in \[0, 4\)"),
        (torch.tensor([-1, 2]), torch.tensor([True, True]), "sample_index"),
        (torch.tensor([0, 1]), torch.tensor([1, 2]), "binary"),
        (torch.tensor([0, 1]), torch.tensor([True]), "one value a sample"),
        (torch.tensor([[0, 1]]), torch.tensor([[True, True]]), "shape"),
    ],
)
def test_bad_input_changes_nothing(index: Tensor, correct: Tensor, message: str) -> None:
    memory = OutcomeMemory(4)
    memory.update(torch.tensor([3]), torch.tensor([True]))
    with pytest.raises(ValueError, match=message):
        memory.update(index, correct)
    assert memory.outcomes().tolist() == [-1, -1, -1, 1]
    assert memory.update_count == 1


def test_unknown_names_and_untracked_events_are_named() -> None:
    memory = OutcomeMemory(4)
    with pytest.raises(ValueError, match="reference"):
        memory.channel("last")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="epoch"):
        memory.outcomes("last")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="track_events=True"):
        memory.forgetting_events()
    with pytest.raises(TypeError, match="sample_index must be integers"):
        memory.update(torch.tensor([0.5]), torch.tensor([True]))
    with pytest.raises(TypeError, match="slice_index must be a tensor, but is a list"):
        OutcomeMemory(4, slices=2).update(torch.tensor([0]), torch.tensor([True]), [1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_samples"):
        OutcomeMemory(0)
