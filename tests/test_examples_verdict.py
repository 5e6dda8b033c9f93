"""examples/release_verdict.py runs, and what it logs is the verdict of the two models' scores."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.utils.data import DataLoader

from polyweave_torch.functional.verdict import verdict

EXAMPLE = Path(__file__).parents[1] / "examples" / "release_verdict.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_verdict", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_logged_verdict_is_that_of_the_two_models(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    candidate = example.main(epochs=2)
    loader = candidate.trainer.val_dataloaders
    assert isinstance(loader, DataLoader)
    _, x, target = loader.dataset[:]
    with torch.no_grad():
        scores = [example.layer_scores(net(x), target) for net in (candidate.reference, candidate.net)]
    wanted = verdict(*scores, layer_names=example.LAYERS)
    (pair,) = wanted.pairs
    logged = candidate.trainer.callback_metrics
    assert logged["verdict/code"].item() == wanted.label.code
    for name in ("estimate", "low", "high"):
        assert logged[f"verdict/{name}"].item() == pytest.approx(getattr(pair, name).item(), rel=1e-6)
    assert candidate.report.to_dict() == wanted.to_dict()
    assert f"{wanted.label}: {wanted.action}" in capsys.readouterr().out
    # The reference is the untrained start, and two epochs on three blobs are a gain.
    assert pair.low > 0.0


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 80
