"""A fit that kills its own process in the middle of an epoch, and one that resumes from its checkpoint."""

import argparse
import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from tests.contract.entries import BY_NAME, Entry, N, Stream, part, value

BATCH = 4
STEPS = -(-N // BATCH)
SAVE_EVERY = 2
NAMES = ("ChannelCounts[slices]", "CorrectionRate", "OutcomeMemory")


def total_stream() -> dict[str, tuple[Entry, Stream]]:
    """What an undisturbed epoch feeds to each metric."""
    return {name: (BY_NAME[name], BY_NAME[name].stream(0)) for name in NAMES}


class Position(Sampler[list[int]]):
    """Batches in order, from where a checkpoint left off."""

    def __init__(self) -> None:
        self.done = 0

    def __len__(self) -> int:
        return STEPS

    def __iter__(self) -> Any:
        for step in range(self.done, STEPS):
            yield list(range(step * BATCH, min((step + 1) * BATCH, N)))


class ResumableLoader(DataLoader[int]):
    """A loader whose position Lightning saves, so that a resumed epoch goes on in its middle."""

    def __init__(self) -> None:
        self.position = Position()
        super().__init__(range(N), batch_sampler=self.position)  # type: ignore[arg-type]

    def state_dict(self) -> dict[str, int]:
        return {"done": self.position.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position.done = state["done"]


class Owner(L.LightningModule):
    def __init__(self, loader: ResumableLoader, kill_after: int | None) -> None:
        super().__init__()
        self.metrics = torch.nn.ModuleDict({name.replace("[", "_"): BY_NAME[name].build() for name in NAMES})
        for metric in self.metrics.values():
            metric.persistent(True)  # type: ignore[operator]
        self.streams = {name: stream for name, (_, stream) in total_stream().items()}
        self.loader = loader
        self.kill_after = kill_after
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.result: dict[str, Any] = {}

    def training_step(self, rows: Tensor, batch_idx: int) -> Tensor:
        for name in NAMES:
            self.metrics[name.replace("[", "_")].update(**part(self.streams[name], rows))  # type: ignore[operator]
        # Counted here, since the loader itself reads ahead.
        self.loader.position.done = batch_idx + 1
        return self.weight * 1.0

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        if batch_idx == self.kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_train_epoch_end(self) -> None:
        for name in NAMES:
            read = value(BY_NAME[name], self.metrics[name.replace("[", "_")])  # type: ignore[arg-type]
            self.result[name] = {key: tensor.tolist() for key, tensor in read.items()}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kill-after", type=int)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    loader = ResumableLoader()
    owner = Owner(loader, arguments.kill_after)
    checkpoint = ModelCheckpoint(arguments.folder, every_n_train_steps=SAVE_EVERY, save_top_k=-1, filename="{step}")
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        logger=False,
        callbacks=[checkpoint],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    saved = sorted(arguments.folder.glob("*.ckpt"), key=lambda path: int(path.stem.split("=")[1]))
    trainer.fit(owner, loader, ckpt_path=saved[-1] if arguments.resume else None, weights_only=True)
    (arguments.folder / "result.json").write_text(json.dumps(owner.result))


if __name__ == "__main__":
    main()
