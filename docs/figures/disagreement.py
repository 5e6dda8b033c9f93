"""How often nine runs choose different letters on the same 2,961 items.

Run: python docs/figures/disagreement.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from polyweave_torch.functional import disagreement_matrix
from polyweave_torch.plot.style import FONT

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "data" / "quantization_flips.csv"
MODELS = {"Q1.5": "Qwen2.5-1.5B-Instruct", "Q3": "Qwen2.5-3B-Instruct", "gemma": "gemma-2-2b-it"}


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    header, *rows = np.loadtxt(ANSWERS, dtype=str, delimiter=",")
    column = dict(zip(header, np.array(rows).T, strict=True))
    runs = {f"{short} {kind}": f"{name}/{kind}" for short, name in MODELS.items() for kind in ("fp16", "int8", "int4")}
    letters = np.stack([column[run] for run in runs.values()])
    classes = np.unique(letters, return_inverse=True)[1].reshape(letters.shape)
    matrix = 100 * disagreement_matrix(torch.from_numpy(classes)).numpy()
    figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    ax.imshow(matrix, cmap="Purples", vmin=0.0, vmax=matrix.max())
    for row, column_index in np.ndindex(matrix.shape):
        share = matrix[row, column_index]
        dark = share > 0.6 * matrix.max()
        ax.text(column_index, row, f"{share:.0f}", ha="center", va="center", color="white" if dark else "black")
    ax.set_xticks(range(len(runs)), list(runs), rotation=45, ha="right")
    ax.set_yticks(range(len(runs)), list(runs))
    ax.set_title("items answered differently, %", fontsize=FONT - 1)
    figure.savefig(folder / "disagreement.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
