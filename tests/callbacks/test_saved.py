"""What a monitor keeps of the samples, and saves for a comparison."""

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from polyweave_torch.callbacks import ChannelMonitor, EnsembleMonitor, observe
from polyweave_torch.evallogs import compare_runs, read_run
from tests.callbacks.modules import Keyed, images, loaders, make_module, make_trainer

VOTES = [
    [0, 0, 2],  # the vote is right
    [0, 1, 2],  # a tie, which the lowest class wins: wrong
    [9, 9, 1],  # two abstain, the third decides: right
    [9, 9, 9],  # nobody votes
    [2, 2, 0],  # no target
]
TARGETS = [0, 1, 1, 0, 9]


def evaluate(monitors: list[Any], step: Any, loader: Any) -> None:
    make_trainer(L, monitors).validate(make_module(L, step), loader, verbose=False)


def test_an_ensemble_saves_the_outcomes_of_its_vote(tmp_path: Path) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        observe(votes=torch.tensor(VOTES), target=torch.tensor(TARGETS))

    monitor = EnsembleMonitor(3, 3, ignore_index=9)
    evaluate([monitor], step, DataLoader(images(5), batch_size=5))
    outcomes = monitor.outcomes()
    assert outcomes.ids == [0, 1, 2, 3]
    assert outcomes.correct.tolist() == [True, False, True, False]
    assert outcomes.prediction == [0, 0, 1, None]
    assert monitor.history[-1]["accuracy"] == pytest.approx(2 / 3), "of the samples with a vote"
    monitor.save_outcomes(tmp_path / "votes.csv")
    with (tmp_path / "votes.csv").open(newline="") as file:
        assert [tuple(row.values()) for row in csv.DictReader(file)] == [
            ("0", "1", "0", ""),
            ("1", "0", "0", ""),
            ("2", "1", "1", ""),
            ("3", "0", "", ""),
        ]


def test_an_ensemble_of_one_member_compares_as_equal_to_that_member(tmp_path: Path) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        observe(logits, y, votes=logits.argmax(1)[:, None])

    channel, ensemble = ChannelMonitor(), EnsembleMonitor(1, 3)
    evaluate([channel, ensemble], step, loaders()[1])
    channel.save_outcomes(tmp_path / "before.csv")
    ensemble.save_outcomes(tmp_path / "after.csv")
    counts = compare_runs([read_run(tmp_path / name) for name in ("before.csv", "after.csv")]).to_dict()["counts"]
    right = int(channel.outcomes().correct.sum())
    assert 0 < right < 60
    assert counts == {"n00": 60 - right, "n01": 0, "n10": 0, "n11": right}


def test_a_target_is_found_by_its_key_in_the_outputs_or_the_batch() -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> Any:
        return {"votes": logits.argmax(1)[:, None], "target": y, "shifted": (y + 1) % 3}

    usual, by_outputs, by_batch = (EnsembleMonitor(1, 3, target=key, name=f"{key}") for key in (None, "shifted", "y"))
    loader = DataLoader(Keyed(), batch_size=7)
    module = make_module(L, step)
    make_trainer(L, [usual, by_outputs, by_batch]).validate(module, loader, verbose=False)
    x, y = Keyed().data.tensors
    predicted = module(x).argmax(1)
    expected = [float((predicted == target).double().mean()) for target in (y, (y + 1) % 3, y)]
    found = [monitor.history[-1]["accuracy"] for monitor in (usual, by_outputs, by_batch)]
    assert found == pytest.approx(expected)
    assert expected[0] != expected[1]


def test_ids_that_are_text_stay_text(tmp_path: Path) -> None:
    monitor = ChannelMonitor(ids="id", slices="site")
    data = Keyed(text_ids=True)
    shuffled = DataLoader(data, batch_size=7, shuffle=True, generator=torch.Generator().manual_seed(5))
    module = make_module(L)
    make_trainer(L, [monitor]).validate(module, shuffled, verbose=False)
    outcomes = monitor.outcomes()
    predicted = module(data.data.tensors[0]).argmax(1).tolist()
    target = data.data.tensors[1].tolist()
    rows = zip(outcomes.ids, outcomes.correct.tolist(), outcomes.prediction, outcomes.slice, strict=True)
    assert sorted(rows) == sorted(
        (f"item-{i}", predicted[i] == target[i], predicted[i], "ab"[i % 2]) for i in range(30)
    )
    monitor.save_outcomes(tmp_path / "run.csv")
    assert read_run(tmp_path / "run.csv").ids == outcomes.ids


def test_numbers_of_any_library_are_ids() -> None:
    by_array = ChannelMonitor(ids=lambda batch: batch[1].numpy())
    data = TensorDataset(images(4).tensors[0], torch.tensor([40, 30, 20, 10]))
    evaluate([by_array], lambda *_: observe(correct=torch.tensor([1, 0, 0, 1])), DataLoader(data, batch_size=4))
    assert by_array.outcomes().ids == [10, 20, 30, 40]
    assert by_array.outcomes().correct.tolist() == [True, False, False, True]
    assert by_array.outcomes().prediction == [None] * 4


def test_no_outcomes_are_said_to_be_none() -> None:
    with pytest.raises(ValueError, match="no validation has run yet"):
        ChannelMonitor().outcomes()
