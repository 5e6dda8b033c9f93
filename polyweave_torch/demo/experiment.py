"""Train both ensembles with the monitors watching, save their predictions, and report."""

import json
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tqdm.auto import tqdm

from polyweave_torch.callbacks import ChannelMonitor, PiScaleMonitor, SignificanceMonitor
from polyweave_torch.demo.data import BATCH, DigitData, Digits, load
from polyweave_torch.demo.model import ARMS, Arm, DigitClassifier
from polyweave_torch.demo.report import build_report, to_markdown, to_text
from polyweave_torch.layout import print_report

LOG_EVERY = 4


class Member(NamedTuple):
    """One trained network."""

    test: np.ndarray[Any, np.dtype[np.int64]]
    """``[N]`` predicted classes of the test images."""
    validations: np.ndarray[Any, np.dtype[np.int64]]
    """``[epochs, n]`` predicted classes of every validation."""
    gates: np.ndarray[Any, np.dtype[np.float64]] | None
    """``[steps + 1, units]`` the Sigma-Pi gate, from before the first step on."""
    growth: dict[str, float]
    """What PiScaleMonitor saw each gate grow by."""


def run_demo(out: Path, *, seed: int = 0, epochs: int = 15, members: int = 5, processes: int = 1) -> dict[str, Any]:
    """Run the experiment into a folder and print its report.

    Args:
        out: folder for ``report.md``, ``report.json``, ``predictions.npz``, the logs and their tables (``csv``); an
            earlier run's are replaced.
        seed: the same seed gives the same report.
        epochs: passes over the training images.
        members: networks in each ensemble.
        processes: how many share each training and validation step (``strategy="ddp"``); the report is the same.

    Returns:
        The report, as in ``report.json``.
    """
    for name, value in (("epochs", epochs), ("members", members)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, but is {value}")
    if processes < 1 or BATCH % processes:
        raise ValueError(f"processes must divide the batch of {BATCH}, but is {processes}")
    # Lightning starts the other processes by running this command again; the first one alone writes.
    first = int(os.environ.get("LOCAL_RANK", 0)) == 0
    if first:
        out.mkdir(parents=True, exist_ok=True)
        for logs in (out / "logs", out / "csv"):
            shutil.rmtree(logs, ignore_errors=True)
    digits = load()
    trained: dict[Arm, list[Member]] = {}
    # disable=None: a bar on a terminal, none in a pipe.
    steps = len(ARMS) * members * epochs
    with _quiet_lightning(), tqdm(total=steps, unit="epoch", disable=None if first else True) as bar:
        for arm in ARMS:
            trained[arm] = []
            for index in range(members):
                bar.set_description(f"{arm} member {index + 1} of {members}")
                own_seed = 1000 * seed + index
                gates = [PiScaleMonitor(LOG_EVERY)] if arm == "sigma_pi" else []
                trainer = _trainer(out, arm, index, [*gates, _Progress(bar)], epochs=epochs, processes=processes)
                model = _train(trainer, arm, own_seed, digits)
                trained[arm].append(_member(model, digits, gates[0].growth if gates else {}))
    predictions = _predictions(trained, digits)
    growth = [member.growth for member in trained["sigma_pi"]]
    report = build_report(predictions, growth, seed=seed, epochs=epochs, members=members)
    if not first:
        return report
    np.savez_compressed(out / "predictions.npz", **predictions)
    (out / "report.json").write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    (out / "report.md").write_text(to_markdown(report))
    print_report(f"""{to_text(report)}
Report: {out / "report.md"}, {out / "report.json"}. Predictions: {out / "predictions.npz"}.
The same as tables, for a spreadsheet: {out / "csv"}.
Logs: {out / "logs"}. Look at them with: tensorboard --logdir {out / "logs"} (or: make board)""")
    return report


def _trainer(out: Path, arm: Arm, index: int, more: list[Callback], *, epochs: int, processes: int) -> Trainer:
    version = f"member_{index}"
    return Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
        use_distributed_sampler=False,
        logger=[
            TensorBoardLogger(out / "logs", name=arm, version=version, default_hp_metric=False),
            CSVLogger(out / "csv", name=arm, version=version),
        ],
        callbacks=[ChannelMonitor(slices="target"), SignificanceMonitor(slices="target"), *more],
        log_every_n_steps=LOG_EVERY,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )


def _train(trainer: Trainer, arm: Arm, seed: int, digits: Digits) -> DigitClassifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DigitClassifier(arm)
    trainer.fit(model, datamodule=DigitData(digits, seed))
    return model


def _member(model: DigitClassifier, digits: Digits, growth: dict[str, float]) -> Member:
    model.eval()
    with torch.inference_mode():
        test = model(digits.test.tensors[0]).argmax(1)
    return Member(
        test=test.numpy(),
        validations=torch.stack(model.validations).numpy(),
        gates=torch.stack(model.gates).numpy() if model.gates else None,
        growth=growth,
    )


def _predictions(trained: dict[Arm, list[Member]], digits: Digits) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "test_target": digits.test.tensors[1].numpy(),
        "validation_target": digits.validation.tensors[1].numpy(),
    }
    for arm, members in trained.items():
        arrays[f"{arm}_test"] = np.stack([member.test for member in members])
        arrays[f"{arm}_validation"] = np.stack([member.validations for member in members])
    arrays["sigma_pi_gates"] = np.stack([member.gates for member in trained["sigma_pi"] if member.gates is not None])
    return arrays


class _Progress(Callback):
    """Moves one bar over all members."""

    def __init__(self, bar: "tqdm[Any]") -> None:
        self.bar = bar

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.bar.update()


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Leave out what Lightning says at the start of each of ten fits."""
    # Where both packages are installed, the one imported last speaks for both.
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "pytorch_lightning")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # A batch of 8x8 images is cheaper to index than to send between processes.
            warnings.filterwarnings("ignore", message=".*does not have many workers")
            # Lightning 2.6 on torch 2.13.
            warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
