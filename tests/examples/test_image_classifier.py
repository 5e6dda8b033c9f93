"""examples/image_classifier.py: its table from the two nets' own predictions, its tests by scipy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chi2
from statsmodels.stats.multitest import multipletests
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.examples.running import Ran, load, normal, run, shown

Rights = np.ndarray[Any, np.dtype[np.bool_]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("image_classifier")


@pytest.fixture(scope="module")
def ran(folder: Path) -> Ran:
    return run(load("image_classifier").main, folder=folder)


def predict(trainer: Any) -> tuple[Rights, Any]:
    """Whether each validation image is right, and its digit."""
    images, labels = trainer.val_dataloaders.dataset.tensors
    with torch.inference_mode():
        return (trainer.lightning_module.double().eval().net(images).argmax(1) == labels).numpy(), labels.numpy()


def p_value(corrected: int, corrupted: int) -> float:
    discordant = corrected + corrupted
    if discordant < 25:
        return float(binomtest(corrected, discordant).pvalue) if discordant else 1.0
    return float(chi2.sf((abs(corrected - corrupted) - 1) ** 2 / discordant, 1))


def test_the_table_counts_what_the_last_epoch_changed(ran: Ran, tmp_path: Path) -> None:
    # One epoch less from the same seed is the epoch before.
    stopped_at = ran.result.current_epoch
    before, _ = predict(run(load("image_classifier").main, folder=tmp_path, epochs=stopped_at - 1).result)
    after, digit = predict(ran.result)
    rows = [line.split() for line in ran.printed.splitlines() if re.match(r"(all|\d) ", line)]
    assert [row[0] for row in rows] == ["all", *map(str, range(10))]
    changes = []
    for name, n, corrected, corrupted, _ in rows:
        of_slice = np.full(len(digit), True) if name == "all" else digit == int(name)
        changes.append((int((~before & after & of_slice).sum()), int((before & ~after & of_slice).sum())))
        assert (int(n), int(corrected), int(corrupted)) == (of_slice.sum(), *changes[-1])
    p_values = [p_value(*change) for change in changes]
    adjusted = [p_values[0], *multipletests(p_values[1:], method="holm")[1]]
    assert [float(row[4]) for row in rows] == [float(f"{p:.2g}") for p in adjusted]
    assert f"accuracy {after.mean():.3f}" in ran.printed


def test_tensorboard_has_what_the_output_names(ran: Ran, folder: Path) -> None:
    log = EventAccumulator(str(folder / "version_0")).Reload()
    tags = log.Tags()
    there = {"Scalars": tags["scalars"], "Images": tags["images"]}
    there["Text"] = [tag.removesuffix("/text_summary") for tag in tags["tensors"]]
    for kind, found in there.items():
        (line,) = (line for line in ran.printed.splitlines() if line.strip().startswith(kind))
        assert set(line.split(maxsplit=1)[1].split(", ")) <= set(found)


def test_the_page_quotes_the_output(ran: Ran) -> None:
    assert normal(ran.printed) == shown("image_classifier")
