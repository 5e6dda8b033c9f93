"""May the current model ship? Every validation is judged against a reference checkpoint, sample by sample.

Logged: verdict/code (0 PROGRESS, 1 NOISE, 2 UNDERPOWERED, 3 CAUTIOUS, 4 REGRESS) and verdict/{estimate,low,high}.
"""

import copy
import tempfile

import lightning.pytorch as L
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from polyweave_torch.functional.composite import layer_score
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.metrics.composite import LayerScores

SAMPLES, CLASSES, LAYERS = 240, 3, ("fact", "judge")


def layer_scores(logits: Tensor, target: Tensor) -> Tensor:
    """A model's scores from 1 to 5: is the answer right, and what does a "judge" make of its confidence in it?"""
    fact = layer_score((logits.argmax(1) == target).double(), 1.0)
    judge = 1 + (4 * logits.softmax(1).gather(1, target[:, None]).squeeze(1)).round()
    return torch.stack([fact, judge.double()], 1)


class Candidate(L.LightningModule):
    """Trains ``net`` and compares its validation scores with those of a checkpoint of it."""

    def __init__(self, net: nn.Module, checkpoint: str) -> None:
        """Load the reference, and make a store of scores for each of the two."""
        super().__init__()
        self.net, self.reference = net, copy.deepcopy(net).requires_grad_(False)
        self.reference.load_state_dict(torch.load(checkpoint, weights_only=True))
        self.scores, self.reference_scores = LayerScores(SAMPLES, LAYERS), LayerScores(SAMPLES, LAYERS)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """Ordinary classification."""
        return nn.functional.cross_entropy(self.net(batch[1]), batch[2])

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """Write both models' scores under the samples' indices, so that ranks and padding can't misalign them."""
        index, x, target = batch
        self.scores.update(index, layer_scores(self.net(x), target))
        self.reference_scores.update(index, layer_scores(self.reference(x), target))

    def on_validation_epoch_end(self) -> None:
        """Judge on every rank, since reading the stores is collective."""
        self.report = verdict(self.reference_scores.scores(), self.scores.scores(), layer_names=LAYERS)
        (pair,) = self.report.pairs
        self.log("verdict/code", float(pair.label.code))
        self.log_dict({"verdict/estimate": pair.estimate, "verdict/low": pair.low, "verdict/high": pair.high})
        self.scores.reset()
        self.reference_scores.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.net.parameters(), lr=0.03)


def main(epochs: int = 4) -> Candidate:
    """Train on three noisy blobs and print the last report; the reference is the untrained start."""
    L.seed_everything(0, verbose=False)
    target = torch.arange(2 * SAMPLES) % CLASSES
    x = nn.functional.one_hot(target, CLASSES) * 2.0 + torch.randn(2 * SAMPLES, CLASSES)
    train, test = (TensorDataset(torch.arange(SAMPLES), x[part::2], target[part::2]) for part in (0, 1))
    net = nn.Sequential(nn.Linear(CLASSES, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), f"{folder}/reference.pt")
        candidate = Candidate(net, f"{folder}/reference.pt")
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    trainer.fit(candidate, DataLoader(train, batch_size=32, shuffle=True), DataLoader(test, batch_size=32))
    print(candidate.report)
    return candidate


if __name__ == "__main__":
    main()
