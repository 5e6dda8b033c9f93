"""The README's code runs as written."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_lightning_example_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    # The example leaves devices and loggers at their defaults; its loaders are the reader's own.
    setup, after_fit, *_ = blocks()
    exec(
        setup.replace("max_epochs=3", "max_epochs=3, accelerator='cpu', logger=False, enable_checkpointing=False"),
        names,
    )
    data = TensorDataset(torch.randn(64, 4), torch.randint(3, (64,)))
    names["trainer"].fit(names["Classifier"](), DataLoader(data, batch_size=16), DataLoader(data, batch_size=16))
    exec(after_fit, names)
    assert int(names["monitor"].counts().sum()) == 64
    assert len(names["monitor"].history) == 3
    assert len([line for line in setup.split("\n") if line.strip()]) <= 17


def test_the_plain_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = blocks()[2]
    exec(code, {})
    printed = capsys.readouterr().out.split("\n")
    said = [line.split("#")[1].split(":")[0].strip() for line in code.split("\n") if line.startswith("print")]
    for shown, comment in zip(printed, said, strict=False):
        assert [round(float(v), 4) if v[0].isdigit() else v for v in shown.split()] == [
            float(v) if v[0].isdigit() else v for v in comment.split()
        ]
