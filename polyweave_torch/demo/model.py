"""The two arms, additive and Sigma-Pi, in one Lightning module."""

from typing import Literal

import torch
from lightning.pytorch import LightningModule
from polyweave import SigmaPiLinear
from torch import Tensor, nn

from polyweave_torch.callbacks import observe
from polyweave_torch.demo.data import CLASSES, PIXELS, VALIDATION

Arm = Literal["additive", "sigma_pi"]
ARMS: tuple[Arm, ...] = ("additive", "sigma_pi")
UNITS = 32


class DigitClassifier(LightningModule):
    """A network with one hidden layer of 32 units: a linear one, or the public package's Sigma-Pi layer.

    It keeps its own record of what the monitors log, so that their numbers can be checked: the predictions of every
    validation, and the gate after every training step.
    """

    def __init__(self, arm: Arm) -> None:
        super().__init__()
        self.hidden = SigmaPiLinear(PIXELS, UNITS) if arm == "sigma_pi" else nn.Linear(PIXELS, UNITS)
        self.out = nn.Linear(UNITS, CLASSES)
        self.validations: list[Tensor] = []
        self.gates: list[Tensor] = []
        self._classes: list[Tensor] = []
        self.double()

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``[N, 10]``."""
        logits: Tensor = self.out(torch.relu(self.hidden(images)))
        return logits

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Cross entropy of a batch."""
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """One line for the monitors."""
        images, labels = batch
        logits = self(images)
        observe(logits, labels)
        self._classes.append(logits.argmax(1))

    def on_validation_epoch_end(self) -> None:
        """Keep the predictions of this validation."""
        # Ranks hold every world-th image: [world, n] read down its columns is the order of the data set.
        classes = torch.as_tensor(self.all_gather(torch.cat(self._classes)))
        if not self.trainer.sanity_checking:
            self.validations.append(classes.view(self.trainer.world_size, -1).T.flatten()[:VALIDATION])
        self._classes.clear()

    def on_train_start(self) -> None:
        """Keep the gate before the first step."""
        self._keep_gate()

    def on_train_batch_end(self, *args: object) -> None:
        """Keep the gate after each step."""
        self._keep_gate()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=5e-3)

    def _keep_gate(self) -> None:
        if isinstance(self.hidden, SigmaPiLinear):
            self.gates.append(self.hidden.pi_scale.detach().clone())
