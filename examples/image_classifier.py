"""What did each epoch of an image classifier correct and corrupt, on which digits, and was it more than chance?

An ordinary module with a torchmetrics Accuracy, and three callbacks beside it. The last epoch is better than the one
before it by more than chance, and yet training stops there: it only won back part of what the epoch before had lost.
"""

import logging
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

from polyweave_torch.callbacks import ChannelMonitor, PairedEarlyStopping, SignificanceMonitor

CLASSES, TRAIN = 10, 597
SHOWN = """TensorBoard (tensorboard --logdir runs/image_classifier):
  Scalars  channel/all/c, channel/all/gamma, significance/all/p_value, paired_early_stopping/wait
  Images   channel/phase_plane, significance/matrix
  Text     channel/table"""


class Digits(L.LightningModule):
    """A small convolutional network. Nothing in it knows of the monitors: they read its metric."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()]
        self.net = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(64, CLASSES))
        self.accuracy = MulticlassAccuracy(CLASSES, average="micro")

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """Cross entropy."""
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """Accuracy, as ever."""
        self.accuracy(self.net(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.005)


def main(folder: str | Path = "runs/image_classifier", epochs: int = 30) -> L.Trainer:
    """Train until the paired test stops it; print the last epoch's table, and where TensorBoard has the rest."""
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images[:, None] / 16), torch.tensor(digits.target)
    train, validation = (TensorDataset(images[part], labels[part]) for part in (slice(TRAIN), slice(TRAIN, None)))
    channels, tests = ChannelMonitor(slices="target"), SignificanceMonitor(slices="target")
    stopping = PairedEarlyStopping(patience=2)
    logger = TensorBoardLogger(folder, name="", default_hp_metric=False)
    quiet: dict[str, Any] = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    # In float64, whose rounding is too small to change a prediction from one CPU to the next.
    where: dict[str, Any] = {"accelerator": "cpu", "precision": "64-true", "logger": logger, "log_every_n_steps": 10}
    trainer = L.Trainer(max_epochs=epochs, callbacks=[channels, tests, stopping], **where, **quiet)
    trainer.fit(Digits(), DataLoader(train, batch_size=32, shuffle=True), DataLoader(validation, batch_size=300))
    print(f"epoch {trainer.current_epoch}: accuracy {trainer.callback_metrics['accuracy']:.3f}")
    print("digit     n  corrected  corrupted  p (Holm)   against the epoch before")
    for name in ("all", *map(str, range(CLASSES))):
        table, p_value = channels.counts(slice=name), tests.history[-1][f"{name}/p_adjusted"]
        print(f"{name:5}{int(table.sum()):6}{int(table[0, 1]):11}{int(table[1, 0]):11}{p_value:10.2g}")
    print(f"against the reference of PairedEarlyStopping:\n  {stopping.tested}\n{SHOWN}")
    return trainer


if __name__ == "__main__":
    logging.disable(logging.INFO)  # Lightning's greetings
    warnings.filterwarnings("ignore", ".*(does not have many workers|LeafSpec)")
    main()
