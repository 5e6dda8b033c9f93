"""Metrics owned by a LightningModule: precisions, validate() then fit(), and a killed process that resumes."""

import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from tests.contract.cases import fed
from tests.contract.entries import ENTRIES, Entry, N, Stream, part, same, value
from tests.contract.resumed import STEPS, total_stream


class Rows(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> int:
        return index


class Owner(L.LightningModule):
    """Feeds the rows of a batch, which are indices into a stream, to its metric."""

    def __init__(self, entry: Entry, stream: Stream) -> None:
        super().__init__()
        self.training_metric, self.validation_metric = entry.build(), entry.build()
        self.stream = stream
        self.entry = entry
        self.read: list[dict[str, Any]] = []
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def training_step(self, rows: Tensor, batch_idx: int) -> Tensor:
        self.training_metric.update(**part(self.stream, rows))
        return self.weight * 1.0

    def on_train_epoch_end(self) -> None:
        self.read.append(value(self.entry, self.training_metric))
        self.training_metric.reset()

    def validation_step(self, rows: Tensor, batch_idx: int) -> None:
        self.validation_metric.update(**part(self.stream, rows))

    def on_validation_epoch_end(self) -> None:
        self.read.append(value(self.entry, self.validation_metric))
        self.validation_metric.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(**options: Any) -> L.Trainer:
    with warnings.catch_warnings():
        # A CPU has no 16-mixed; Lightning takes bf16-mixed and says so.
        warnings.filterwarnings("ignore", message=".*not supported on CPU", category=UserWarning)
        return L.Trainer(
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            **options,
        )


ONE_EACH = [entry for entry in ENTRIES if "[" not in entry.name]


@pytest.mark.parametrize("precision", ["bf16-true", "16-mixed"])
@pytest.mark.parametrize("entry", ONE_EACH, ids=lambda entry: entry.name)
def test_precision_changes_no_value(entry: Entry, precision: Any) -> None:
    stream = entry.stream(0)
    owner = Owner(entry, stream)
    loader = DataLoader(Rows(), batch_size=5)
    trainer(max_epochs=2, precision=precision).fit(owner, loader, loader)
    alone = value(entry, fed(entry, stream))
    assert len(owner.read) == 4
    assert all(same(read, alone) for read in owner.read)


@pytest.mark.parametrize("entry", ONE_EACH, ids=lambda entry: entry.name)
def test_validating_before_fitting(entry: Entry) -> None:
    stream = entry.stream(0)
    owner = Owner(entry, stream)
    loader = DataLoader(Rows(), batch_size=5)
    trainer().validate(owner, loader, verbose=False)
    trainer(max_epochs=1).fit(owner, loader, loader)
    alone = value(entry, fed(entry, stream))
    assert len(owner.read) == 3
    assert all(same(read, alone) for read in owner.read)


def test_a_killed_fit_resumes_with_the_same_numbers(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.contract.resumed", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])

    killed = run("--kill-after", str(STEPS // 2 + 1))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = run("--resume")
    assert resumed.returncode == 0, resumed.stderr
    found = json.loads((tmp_path / "result.json").read_text())
    for name, (entry, stream) in total_stream().items():
        assert found[name] == {key: read.tolist() for key, read in value(entry, fed(entry, stream)).items()}, name
