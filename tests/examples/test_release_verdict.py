"""examples/release_verdict.py logs the verdict of the two models' scores."""

import pytest
import torch
from torch.utils.data import DataLoader

from polyweave_torch.functional.verdict import verdict
from tests.examples.running import load, run


def test_the_logged_verdict_is_that_of_the_two_models() -> None:
    example = load("release_verdict")
    candidate, printed = run(example.main, epochs=2)
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
    assert f"{wanted.label}: {wanted.action}" in printed
    # The reference is the untrained start, and two epochs on three blobs are a gain.
    assert pair.low > 0.0
