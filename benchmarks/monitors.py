"""What a monitor costs a batch of a real validation, beside one logged torchmetrics metric."""

import logging
import warnings
from typing import Any, NamedTuple

import lightning.pytorch as L
import torch
from polyweave import SigmaPiLinear
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch.callbacks import ChannelMonitor, observe
from polyweave_torch.functional.pi_scale import gate_values, pi_scales

_BATCH, _BATCHES, _CLASSES = 32, 400, 10
_LOGGED = "logged Accuracy"
_EVERY = 50
_TRAINED = f"{_EVERY} training steps"


class _Module(L.LightningModule):
    """Whose step does nothing but what is measured."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.accuracy = MulticlassAccuracy(_CLASSES, average="micro", validate_args=False) if what == _LOGGED else None

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        scores, target = batch
        if self.accuracy is not None:
            self.accuracy(scores, target)
            self.log("accuracy", self.accuracy)
        elif self.what == "observe":
            observe(scores, target)


class Validation(NamedTuple):
    """A loader of scores, and what runs over it."""

    loader: DataLoader[Any]
    trainers: dict[str, tuple[L.Trainer, _Module]]
    monitor: ChannelMonitor


def _make(device: torch.device, samples: int) -> Validation:
    generator = seeded(device)
    scores = torch.rand(samples, _CLASSES, generator=generator)
    target = torch.randint(_CLASSES, (samples,), generator=generator)
    monitor = ChannelMonitor(figure=False, table=False)
    watching: dict[str, list[L.Callback]] = {"nothing": [], _LOGGED: [], "observe": [monitor]}
    trainers = {what: (_trainer(callbacks), _Module(what)) for what, callbacks in watching.items()}
    return Validation(DataLoader(TensorDataset(scores, target), batch_size=_BATCH), trainers, monitor)


def _trainer(callbacks: list[L.Callback]) -> L.Trainer:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return L.Trainer(
        accelerator="cpu",
        logger=False,
        callbacks=callbacks,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )


def _run(what: str) -> Any:
    def validate(validation: Validation) -> float:
        trainer, module = validation.trainers[what]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's advice on workers, at every call
            trainer.validate(module, validation.loader, verbose=False)
        return float(trainer.callback_metrics.get("accuracy", torch.nan))

    return validate


def _accuracy(validation: Validation, _: Any) -> Tensor:
    counts = validation.monitor.counts()
    return counts[:, 1].sum() / counts.sum()


class Training(NamedTuple):
    """A small Sigma-Pi network in training."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    images: Tensor
    target: Tensor


def _training(device: torch.device, samples: int) -> Training:
    torch.manual_seed(0)
    model = torch.nn.Sequential(SigmaPiLinear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, _CLASSES))
    generator = seeded(device)
    images = torch.rand(_BATCH, 64, generator=generator)
    target = torch.randint(_CLASSES, (_BATCH,), generator=generator)
    # A step of size 0: the work of training, and the gates stay comparable.
    return Training(model, torch.optim.Adam(model.parameters(), lr=0.0), images, target)


def _steps(training: Training) -> None:
    for _ in range(_EVERY):
        training.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(training.model(training.images), training.target)
        loss.backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()


def _reading(training: Training) -> list[float]:
    return [float(gate.mean()) for gate in gate_values(training.model).values()]


def _gates_now(training: Training, _: Any) -> Tensor:
    return torch.stack(list(pi_scales(training.model).values()))


WORKLOADS: list[Workload[Any]] = [
    Workload(
        name="gate-reading",
        about=f"what PiScaleMonitor reads every {_EVERY} steps (Lightning's default), beside these steps",
        samples=_BATCH,
        make=_training,
        ours=Contestant(_reading, _gates_now),
        peers={_TRAINED: Contestant(_steps, _gates_now)},
        goals=(Goal("times", 100.0, _TRAINED),),
        devices=("cpu",),
    ),
    Workload(
        name="monitor-batch",
        about=f"a validation of {_BATCHES} batches of {_BATCH}, watched by ChannelMonitor through observe",
        samples=_BATCH * _BATCHES,
        make=_make,
        ours=Contestant(_run("observe"), _accuracy),
        peers={_LOGGED: Contestant(_run(_LOGGED))},
        floor=Contestant(_run("nothing")),
        floor_name="the same validation, unwatched",
        goals=(Goal("beyond_floor", 2.0, _LOGGED),),
        tolerance=1e-6,
        devices=("cpu",),
    ),
]
