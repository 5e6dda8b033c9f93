"""PiScaleMonitor inside real Trainers, on the public layers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from polyweave import SigmaPiLinear
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
