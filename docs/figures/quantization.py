"""Corrected and corrupted shares of 18 quantised runs beside the change of accuracy that they leave.

Run: python docs/figures/quantization.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from polyweave_torch.functional import channel_counts, estimate_channel, flip_rates
from polyweave_torch.plot.style import FONT, HARM, HELP

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "data" / "quantization_flips.csv"
MODELS = {"Qwen 1.5B": "Qwen2.5-1.5B-Instruct", "Qwen 3B": "Qwen2.5-3B-Instruct", "gemma": "gemma-2-2b-it"}


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    header, *rows = np.loadtxt(ANSWERS, dtype=str, delimiter=",")
    column = dict(zip(header, np.array(rows).T, strict=True))
    bars = []
    for precision in ("int8", "int4"):
        for model, name in MODELS.items():
            for benchmark in ("arc", "mmlu", "csqa"):
                asked = column["benchmark"] == benchmark
                before, after = (column[f"{name}/{kind}"] == column["answer"] for kind in ("fp16", precision))
                counts = channel_counts(before[asked], after[asked])
                rates = flip_rates(counts)
                shares = (rates.positive_flip_rate, rates.negative_flip_rate, estimate_channel(counts).delta)
                bars.append((f"{model} {benchmark} {precision}", *(100 * float(share) for share in shares)))
    names, corrected, corrupted, delta = zip(*bars, strict=True)
    figure, ax = plt.subplots(figsize=(8, 6.5), layout="constrained")
    ax.barh(names, corrected, color=HELP, label="corrected, of all items")
    ax.barh(names, [-share for share in corrupted], color=HARM, label="corrupted, of all items")
    ax.plot(delta, names, "D", color="black", markersize=6, label="change of accuracy")
    ax.axvline(0.0, color="black", linewidth=1)
    ax.invert_yaxis()
    ax.set_xlabel("percentage points", fontsize=FONT)
    ax.legend(loc="upper left", fontsize=FONT - 3)
    figure.savefig(folder / "quantization.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
