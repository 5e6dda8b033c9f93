"""Growth of the gate beside accuracy: four ways to train a Sigma-Pi block on scikit-learn's digits.

The gate's learning rate is 0, that of the other parameters, or ten times that; or the block stands behind a ReLU.
Means of three seeds; accuracy on the 785 digits held out.

Run: python docs/figures/gates.py
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
from polyweave import SigmaPiLinear
from torch import nn

from polyweave_torch.demo.data import BATCH, Digits, load
from polyweave_torch.functional import pi_scales
from polyweave_torch.plot import gate_growth
from polyweave_torch.plot.style import FONT

ROOT = Path(__file__).parents[2]
SEEDS, EPOCHS, RATE = 3, 12, 5e-3


class Setting(NamedTuple):
    """One way to build and train the network."""

    build: Callable[[], nn.Sequential]
    gate_rate: float


def first_block() -> nn.Sequential:
    """A Sigma-Pi block that reads the pixels."""
    return nn.Sequential(SigmaPiLinear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def last_block() -> nn.Sequential:
    """A Sigma-Pi block that reads what a ReLU leaves, zeros among it."""
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), SigmaPiLinear(32, 10))


SETTINGS = {
    "gate held": Setting(first_block, 0.0),
    "gate trained": Setting(first_block, RATE),
    "gate at 10x the rate": Setting(first_block, 10 * RATE),
    "block behind a ReLU": Setting(last_block, RATE),
}


def train(setting: Setting, digits: Digits, seed: int) -> tuple[list[float], list[float]]:
    """Growth of the gate and held-out accuracy, after each epoch."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = setting.build().double()
    gates = [value for name, value in network.named_parameters() if name.endswith("pi_scale")]
    others = [value for name, value in network.named_parameters() if not name.endswith("pi_scale")]
    optimizer = torch.optim.Adam([{"params": others}, {"params": gates, "lr": setting.gate_rate}], lr=RATE)
    (start,) = pi_scales(network).values()
    order = torch.Generator().manual_seed(seed)
    growth, accuracy = [], []
    for _ in range(EPOCHS):
        images, labels = digits.train.tensors
        for batch in torch.randperm(len(labels), generator=order).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()
        (mean,) = pi_scales(network).values()
        growth.append(float(mean - start))
        images, labels = digits.test.tensors
        with torch.no_grad():
            accuracy.append(float((network(images).argmax(1) == labels).double().mean()))
    return growth, accuracy


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    digits = load()
    steps = [(epoch + 1) * (len(digits.train) // BATCH) for epoch in range(EPOCHS)]
    history: list[dict[str, float]] = [{"step": float(step)} for step in steps]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    means = {}
    for name, setting in SETTINGS.items():
        runs = torch.tensor([train(setting, digits, seed) for seed in range(SEEDS)])
        growth, means[name] = runs.mean(0)
        for entry, value in zip(history, growth.tolist(), strict=True):
            entry[f"{name}/growth"] = value
        print(f"{name}: growth {growth[-1]:+.3f}, accuracy {100 * means[name][-1]:.1f} %")
    gate_growth(history, ax=left)
    for line, accuracy in zip(left.get_lines()[1:], means.values(), strict=True):
        right.plot(steps, accuracy.tolist(), color=line.get_color())
    right.set(ylim=(0.0, 1.0))
    right.set_xlabel("training step", fontsize=FONT)
    right.set_ylabel("accuracy, 785 digits held out", fontsize=FONT)
    right.tick_params(labelsize=FONT - 2)
    figure.savefig(folder / "gates.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
