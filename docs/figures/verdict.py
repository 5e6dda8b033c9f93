"""The figure of a release verdict: Qwen2.5-3B-Instruct in 4 bits against 16 bits, on three benchmarks as layers.

From tests/data/quantization_flips.csv; a right answer scores 5, a wrong one 1.

Run: python docs/figures/verdict.py
"""

import csv
from math import nan
from pathlib import Path

import matplotlib.pyplot as plt

from polyweave_torch.functional import verdict
from polyweave_torch.plot import verdict_plot

ROOT = Path(__file__).parents[2]
MODEL, LAYERS = "Qwen2.5-3B-Instruct", ("arc", "csqa", "mmlu")


def scores(precision: str) -> list[list[float]]:
    """A row an item, a column a benchmark; an item is missing in the benchmarks that it is not of."""
    with (ROOT / "tests/data/quantization_flips.csv").open(encoding="utf-8") as file:
        items = list(csv.DictReader(file))
    return [
        [
            1.0 + 4.0 * (item[f"{MODEL}/{precision}"] == item["answer"]) if item["benchmark"] == layer else nan
            for layer in LAYERS
        ]
        for item in items
    ]


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    verdict_plot(verdict(scores("fp16"), scores("int4"), layer_names=LAYERS), ax=ax)
    figure.savefig(folder / "verdict.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
