"""PiScaleMonitor inside real Trainers, on the public layers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from polyweave import ConvSigmaPi2d, PolyLinear, SigmaPiLinear
from torch import nn

from polyweave_torch.callbacks import PiScaleMonitor
from tests.callbacks.modules import CLASSES, PACKAGES, loaders, make_module, make_trainer


class Gates:
    """Keeps the gates of every step, to compare with."""

    def __init__(self, package: Any) -> None:
        class Recorder(package.Callback):  # type: ignore[misc]
            def __init__(self) -> None:
                self.means: list[float] = []

            def on_train_start(self, trainer: Any, pl_module: Any) -> None:
                self.read(pl_module)

            def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
                self.read(pl_module)

            def read(self, pl_module: Any) -> None:
                self.means.append(float(pl_module.net[0].pi_scale.detach().double().exp().mean()))

        self.callback = Recorder()


def sigma_pi_module(package: Any) -> Any:
    module = make_module(package)
    torch.manual_seed(0)
    module.net = nn.Sequential(SigmaPiLinear(4, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    return module


@pytest.mark.parametrize("package", PACKAGES)
def test_gates_and_growth_are_logged_at_their_steps(package: str, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pl = PACKAGES[package]
    monitor, truth = PiScaleMonitor(every_n_steps=3), Gates(pl)
    board = pl.loggers.TensorBoardLogger(tmp_path)
    trainer = make_trainer(pl, [monitor, truth.callback], logger=board, log_every_n_steps=1)
    trainer.fit(sigma_pi_module(pl), *loaders())
    means = truth.callback.means
    assert [entry["step"] for entry in monitor.history] == [2, 5, 8, 11]
    for entry in monitor.history:
        assert entry["net.0/mean"] == pytest.approx(means[int(entry["step"]) + 1], abs=1e-6)
        assert entry["net.0/growth"] == pytest.approx(means[int(entry["step"]) + 1] - means[0], abs=1e-6)
    assert monitor.growth == {"net.0": monitor.history[-1]["net.0/growth"]}
    events = EventAccumulator(board.log_dir)
    events.Reload()
    scalars = events.Scalars("pi_scale/net.0/growth")
    assert [event.step for event in scalars] == [2, 5, 8, 11]
    assert [e.value for e in scalars] == pytest.approx([e["net.0/growth"] for e in monitor.history], abs=1e-7)
    assert "pi_scale/net.0" in events.Tags()["histograms"]


def test_the_trainers_interval_is_the_default() -> None:
    pl = PACKAGES["lightning.pytorch"]
    monitor = PiScaleMonitor()
    make_trainer(pl, [monitor], log_every_n_steps=4).fit(sigma_pi_module(pl), *loaders())
    assert [entry["step"] for entry in monitor.history] == [3, 7, 11]


def test_growth_counts_from_the_very_first_step_after_a_resume(tmp_path: Path) -> None:
    pl = PACKAGES["lightning.pytorch"]
    first, second = PiScaleMonitor(every_n_steps=1), PiScaleMonitor(every_n_steps=1)
    train, validation = loaders()
    trainer = make_trainer(pl, [first], max_epochs=1)
    trainer.fit(sigma_pi_module(pl), train, validation)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    truth = Gates(pl)
    resumed = make_trainer(pl, [second, truth.callback], max_epochs=2)
    resumed.fit(sigma_pi_module(pl), train, validation, ckpt_path=tmp_path / "half.ckpt", weights_only=True)
    assert second.history[: len(first.history)] == first.history
    start = float(torch.tensor(-2.0, dtype=torch.float64).exp())
    assert second.history[-1]["net.0/growth"] == pytest.approx(truth.callback.means[-1] - start, abs=1e-6)


def test_a_model_without_gates_is_said_once_and_trains() -> None:
    pl = PACKAGES["lightning.pytorch"]
    monitor = PiScaleMonitor()
    with pytest.warns(UserWarning, match="no block with a gate"):
        make_trainer(pl, [monitor]).fit(make_module(pl), *loaders())
    assert monitor.history == []


def test_unknown_blocks_and_intervals_are_named() -> None:
    pl = PACKAGES["lightning.pytorch"]
    with pytest.raises(ValueError, match=r"modules \['head'\] have no gate; blocks with one are \['net.0'\]"):
        make_trainer(pl, [PiScaleMonitor(modules=["head"])]).fit(sigma_pi_module(pl), *loaders())
    with pytest.raises(ValueError, match="every_n_steps"):
        PiScaleMonitor(every_n_steps=0)


def test_fast_dev_run_writes_nothing() -> None:
    pl = PACKAGES["lightning.pytorch"]
    monitor = PiScaleMonitor(every_n_steps=1)
    make_trainer(pl, [monitor], fast_dev_run=True).fit(sigma_pi_module(pl), *loaders())
    assert len(monitor.history) == 1


class Blocks(nn.Module):
    """One of each public block, and dropout, whose draws training must not lose."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = ConvSigmaPi2d(1, 2, 3)
        self.poly = PolyLinear(8, 8)
        self.dense = SigmaPiLinear(8, 8)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = self.conv(x[:, None, None, :].expand(-1, -1, 4, -1))
        features = maps.mean(2).flatten(1)[:, :8]
        logits: torch.Tensor = self.out(self.drop(self.dense(self.poly(features))))
        return logits


def blocks_module() -> Any:
    module = make_module(PACKAGES["lightning.pytorch"])
    torch.manual_seed(0)
    module.net = Blocks()
    return module


def test_branch_energy_reads_the_blocks_and_changes_no_training() -> None:
    pl = PACKAGES["lightning.pytorch"]
    weights = []
    monitor = PiScaleMonitor(every_n_steps=2, branch_energy=True)
    for monitors in ([], [monitor]):
        torch.manual_seed(5)
        module = blocks_module()
        make_trainer(pl, monitors, max_epochs=2).fit(module, *loaders())
        weights.append([tensor.clone() for tensor in module.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
    read = [entry for entry in monitor.history if "net.dense/pi_share" in entry]
    assert len(read) == 2, "once an epoch"
    for entry in read:
        assert 0 < entry["net.dense/pi_share"] < 1
        assert entry["net.conv/pi_effect_postbn"] > 0
        assert "net.dense/exponent_abs_mean" in entry
        assert not any(key.startswith("net.poly/pi_share") for key in entry), "a PolyLinear has no such diagnostics"
    assert set(monitor.growth) == {"net.conv", "net.poly", "net.dense"}


def test_branch_energy_is_the_blocks_own_figure() -> None:
    pl = PACKAGES["lightning.pytorch"]
    seen: dict[str, float] = {}

    class Peek(pl.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 0:
                seen.update(pl_module.net[0].branch_energy(batch[0]))

    monitor = PiScaleMonitor(branch_energy=True)
    make_trainer(pl, [monitor, Peek()], max_epochs=1).fit(sigma_pi_module(pl), *loaders())
    entry = next(entry for entry in monitor.history if "net.0/pi_share" in entry)
    assert {key: entry[f"net.0/{key}"] for key in seen} == pytest.approx(seen, rel=1e-6)


def test_accumulated_batches_are_not_logged() -> None:
    pl = PACKAGES["lightning.pytorch"]
    monitor = PiScaleMonitor(every_n_steps=1)
    trainer = make_trainer(pl, [monitor], accumulate_grad_batches=2, max_epochs=1)
    trainer.fit(sigma_pi_module(pl), *loaders())
    assert [entry["step"] for entry in monitor.history] == [0, 1]
