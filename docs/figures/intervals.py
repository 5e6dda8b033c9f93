"""What a margin of two points says of nine runs in eight bits: equal, different, or neither shown.

Run: python docs/figures/intervals.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from polyweave_torch.functional import channel_counts, paired_difference_interval
from polyweave_torch.plot import forest

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "data" / "quantization_flips.csv"
MODELS = {"Qwen 1.5B": "Qwen2.5-1.5B-Instruct", "Qwen 3B": "Qwen2.5-3B-Instruct", "gemma": "gemma-2-2b-it"}
MARGIN = 0.02


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    header, *rows = np.loadtxt(ANSWERS, dtype=str, delimiter=",")
    column = dict(zip(header, np.array(rows).T, strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharex=True, sharey=True)
    for ax, precision in zip(axes, ("int8", "int4"), strict=True):
        differences = {}
        for model, name in MODELS.items():
            for benchmark in ("arc", "mmlu", "csqa"):
                asked = column["benchmark"] == benchmark
                before, after = (column[f"{name}/{kind}"] == column["answer"] for kind in ("fp16", precision))
                # An interval of 1 - 2·alpha inside the margin is the equivalence test at alpha = 0.05.
                counts = channel_counts(before[asked], after[asked])
                differences[f"{model} {benchmark}"] = paired_difference_interval(counts, level=0.90)
        forest(differences, margin=MARGIN, ax=ax)
        ax.set_title(f"fp16 to {precision}, margin of {MARGIN:g} shaded")
    # The axes are shared, and each of the two forests turned them.
    axes[0].set_ylim(len(MODELS) * 3 - 0.5, -0.5)
    figure.savefig(folder / "intervals.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
