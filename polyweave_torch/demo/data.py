"""scikit-learn's handwritten digits: 1,797 real images of 8 x 8 pixels, in a fixed split."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from lightning.pytorch import LightningDataModule
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset

CLASSES = 10
PIXELS = 64
BATCH = 32
TRAIN, VALIDATION = 512, 500
_SPLIT_SEED = 1797


class Digits(NamedTuple):
    """The three parts; the same for every seed, member and arm."""

    train: TensorDataset
    validation: TensorDataset
    test: TensorDataset


def load() -> Digits:
    """Split the digits into 512 to train on, 500 to watch and 785 to judge by.

    Few training images on purpose: the arms make errors that can be compared. Pixels lie in [0.1, 1.1], since a product
    of pixels wants them away from 0. In float64, so that summing a batch in one process or in two gives the same
    predictions.
    """
    source = load_digits()
    images = torch.as_tensor(source.data, dtype=torch.float64) / 16 + 0.1
    labels = torch.as_tensor(source.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SPLIT_SEED))
    parts = torch.split(order, [TRAIN, VALIDATION, len(order) - TRAIN - VALIDATION])
    return Digits(*(TensorDataset(images[part], labels[part]) for part in parts))


class DigitData(LightningDataModule):
    """The loaders of one member. Processes share each batch of 32, so their number changes no training step."""

    def __init__(self, digits: Digits, seed: int) -> None:
        super().__init__()
        self.digits = digits
        self.seed = seed

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        """Batches of 32 over all processes, in an order of the member's own."""
        rank, world = self._place()
        return DataLoader(self.digits.train, batch_sampler=_SharedBatches(TRAIN, self.seed, rank, world))

    def val_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        """The validation images in order; each process has every world-th."""
        rank, world = self._place()
        validation = self.digits.validation
        sampler: Sampler[int] | None = None
        if world > 1:
            sampler = DistributedSampler(validation, world, rank, shuffle=False)
        return DataLoader(validation, batch_size=250, sampler=sampler)

    def _place(self) -> tuple[int, int]:
        return (0, 1) if self.trainer is None else (self.trainer.global_rank, self.trainer.world_size)


class _SharedBatches(Sampler[list[int]]):
    """This process's share of each shuffled batch."""

    def __init__(self, samples: int, seed: int, rank: int, world: int) -> None:
        self.samples = samples
        self.share = slice(rank, None, world)
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return self.samples // BATCH

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.samples, generator=self.generator).tolist()
        for start in range(0, len(self) * BATCH, BATCH):
            yield order[start : start + BATCH][self.share]
