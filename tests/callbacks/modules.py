"""Small Lightning set-ups for the tests, in either package."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from polyweave_torch.callbacks import observe

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pytorch_lightning warns on import for reasons of its own
    import pytorch_lightning

import lightning.pytorch

PACKAGES: dict[str, Any] = {"lightning.pytorch": lightning.pytorch, "pytorch_lightning": pytorch_lightning}
CLASSES = 3


def images(n: int = 60, seed: int = 0) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long())


class Keyed(Dataset[dict[str, Any]]):
    """Batches as mappings, with ids and slices."""

    def __init__(self, n: int = 30, *, text_ids: bool = False) -> None:
        self.data = images(n)
        self.text_ids = text_ids

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        x, y = self.data[index]
        key: Any = f"item-{index}" if self.text_ids else 1000 + index
        return {"x": x, "y": y, "id": key, "site": "ab"[index % 2]}


def make_module(package: Any, step: Any = None, *, dropout: float = 0.0) -> Any:
    """A classifier of ``package`` that keeps the truth: its outcomes by sample index, one dict a validation."""

    class Module(package.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, CLASSES))
            self.truth: list[list[bool]] = []
            self._seen: list[bool] = []

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.net(x)
            return logits

        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
            return nn.functional.cross_entropy(self(x), y)

        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
            x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
            logits = self(x)
            self._seen += (logits.argmax(1) == y).tolist()
            if step is not None:
                return step(self, batch, logits, y)
            observe(logits, y)
            return None

        def on_validation_epoch_end(self) -> None:
            if not self.trainer.sanity_checking:
                self.truth.append(self._seen)
            self._seen = []

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.5)

    return Module()


def make_trainer(package: Any, callbacks: list[Any], **options: Any) -> Any:
    defaults = {
        "max_epochs": 3,
        "accelerator": "cpu",
        "devices": 1,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return package.Trainer(callbacks=callbacks, **{**defaults, **options})


def loaders(n: int = 60, batch_size: int = 8) -> tuple[DataLoader[Any], DataLoader[Any]]:
    train = DataLoader(images(n), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(1))
    return train, DataLoader(images(n, seed=1), batch_size=batch_size)


def table(before: list[bool], after: list[bool]) -> list[list[int]]:
    counts = [[0, 0], [0, 0]]
    for b, a in zip(before, after, strict=True):
        counts[b][a] += 1
    return counts
