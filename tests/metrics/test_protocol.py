"""ProtocolChannels against a dict of counters."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch import ProtocolChannels
from polyweave_torch.functional import estimate_channel, phase_plane_diagnosis, quadrant_names, slice_gating_decisions
from tests.contract.entries import same
from tests.contract.ranks import RankPool, group, rank

events = st.lists(
    st.tuples(
        st.sampled_from(["ask", "verify", "ä"]),
        st.sampled_from(["easy", "hard", "a b", ""]),
        st.booleans(),
        st.booleans(),
    )
)


def test_the_documents_synopsis() -> None:
    metrics = ProtocolChannels()
    metrics.record(False, True, "qa-step", "easy")
    metrics.record(False, True, "qa-step", "easy")
    metrics.record(True, True, "qa-step", "easy")
    metrics.record(True, False, "qa-step", "hard")
    channel = metrics.estimate("qa-step", "easy")
    assert [round(float(v), 4) for v in (channel.c, channel.gamma, channel.delta)] == [0.8333, 0.25, 0.6667]
    assert quadrant_names(phase_plane_diagnosis(channel).quadrant) == "HELPFUL"
    decisions = slice_gating_decisions({"easy": channel, "hard": metrics.estimate("qa-step", "hard")})
    assert [f"{d.slice}: {d.activate}" for d in decisions] == ["easy: True", "hard: False"]


@settings(deadline=None)
@given(events)
def test_events_one_by_one_or_in_batches_equal_a_dict(history: list[tuple[str, str, bool, bool]]) -> None:
    expected: dict[tuple[str, str], list[list[int]]] = defaultdict(lambda: [[0, 0], [0, 0]])
    single, batched = ProtocolChannels(), ProtocolChannels()
    for step, name, before, after in history:
        expected[step, name][before][after] += 1
        estimate = single.record(before, after, step, name)
        assert estimate.counts.tolist() == expected[step, name]
    for step in ("ä", "verify", "ask"):
        rows = [event for event in history if event[0] == step]
        outcome = torch.tensor([event[2:] for event in rows], dtype=torch.bool).view(-1, 2)
        batched.update(outcome[:, 0], outcome[:, 1], step, [event[1] for event in rows])
    for metric in (single, batched):
        if history:
            assert metric.labels == sorted(expected)
            assert metric.compute().tolist() == [expected[label] for label in sorted(expected)]
            assert list(metric.estimates()) == sorted(expected)


@pytest.mark.parametrize("kind", [bool, int, np.bool_, np.int64, np.uint8, torch.tensor])
def test_an_outcome_may_be_a_scalar_of_python_numpy_or_torch(kind: Callable[[bool], Any]) -> None:
    assert ProtocolChannels().record(kind(False), kind(True)).counts.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize("outcome", ["True", 1.0, np.float64(1.0), None])
def test_other_outcomes_are_refused(outcome: Any) -> None:
    with pytest.raises(TypeError, match="an outcome must be True or False"):
        ProtocolChannels().record(outcome, True)


def test_the_channels_of_one_step_are_by_slice() -> None:
    metric = ProtocolChannels()
    for step, name, after in (("ask", "hard", True), ("verify", "easy", False), ("ask", "easy", True)):
        metric.record(False, after, step, name)
    asked = metric.estimates(protocol_id="ask")
    assert list(asked) == ["easy", "hard"]
    assert same(asked, {name: metric.estimate("ask", name) for name in ("easy", "hard")})
    assert [gate.slice for gate in slice_gating_decisions(asked)] == ["easy", "hard"]
    assert metric.estimates(protocol_id="tell") == {}
    assert list(metric.estimates()) == metric.labels


def test_defaults_and_unknown_buckets() -> None:
    metric = ProtocolChannels(default_slice="any", smoothing=0)
    metric.record(True, False)
    assert metric.labels == [("default", "any")]
    assert float(metric.estimate().gamma) == 1.0
    unknown = metric.estimate("other", "slice")
    assert same(unknown, estimate_channel(torch.zeros(2, 2, dtype=torch.int64), smoothing=0))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"slices": ["a"]}, ValueError, "one label a sample"),
        ({"slices": ["a", 3]}, TypeError, "slices must be text"),
        ({"protocol_id": 7}, TypeError, "protocol_id must be text"),
        ({"after": torch.tensor([1, 2])}, ValueError, "binary"),
        ({"after": torch.tensor([1])}, ValueError, "one value a sample"),
    ],
)
def test_bad_input_changes_nothing(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    metric = ProtocolChannels()
    metric.record(True, False)
    with pytest.raises(error, match=message):
        metric.update(**{"before": torch.tensor([0, 1]), "after": torch.tensor([1, 1]), **arguments})
    assert metric.labels == [("default", "all")]
    assert metric.compute().tolist() == [[[0, 0], [1, 0]]]
    assert metric.update_count == 1


def test_a_checkpoint_of_another_shape_is_refused() -> None:
    metric = ProtocolChannels()
    metric.record(True, True)
    with pytest.raises(ValueError, match="one table for each"):
        metric.set_extra_state({"_labels": [["a", "b"]], "_table": torch.zeros(2, 2, 2, dtype=torch.int64)})
    with pytest.raises(ValueError, match="labels and tables"):
        metric.merge_state({"counts": torch.zeros(1)})
    assert metric.labels == [("default", "all")]


SEEN = [
    [("ask", "b", 0, 1), ("ask", "a", 1, 0)],
    [("verify", "a", 1, 1), ("ask", "a", 0, 0), ("ask", "a", 0, 1)],
    [],
    [("ask", "ü", 1, 0)],
]


def other_labels() -> dict[str, Any]:
    """On a rank of the pool: its own events, then what all ranks read."""
    metric = ProtocolChannels(process_group=group())
    for step, name, before, after in SEEN[rank()]:
        metric.record(bool(before), bool(after), step, name)
    mine = [(step, name) for step, name, _, _ in SEEN[rank()]]
    read = {
        "labels": metric.labels,
        "tables": metric.estimates(),
        "of one step": metric.estimates(protocol_id="ask"),
        "counts": metric.counts("ask", "a"),
        "unknown": metric.counts("none", "none"),
    }
    assert sorted(metric._labels) == sorted(set(mine)), "reading keeps the labels of others"
    return read


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_join_by_label(pool: RankPool, world: int) -> None:
    alone = ProtocolChannels()
    for seen in SEEN[:world]:
        for step, name, before, after in seen:
            alone.record(bool(before), bool(after), step, name)
    for read in pool.run(world, other_labels):
        assert read["labels"] == alone.labels
        assert same(read["tables"], alone.estimates())
        assert same(read["of one step"], alone.estimates(protocol_id="ask"))
        assert same(read["counts"], alone.counts("ask", "a"))
        assert not read["unknown"].any()


@pytest.mark.parametrize("outcome", [torch.tensor(0.9), torch.tensor(float("nan")), torch.tensor(2), 2])
def test_an_outcome_that_is_neither_right_nor_wrong_is_refused(outcome: Any) -> None:
    metric = ProtocolChannels()
    with pytest.raises(ValueError, match="must be binary"):
        metric.record(outcome, True)
    assert metric.counts().sum() == 0
    metric.record(torch.tensor(1.0), np.bool_(False))
    assert metric.counts().tolist() == [[0, 0], [1, 0]]
