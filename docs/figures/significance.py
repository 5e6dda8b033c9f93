"""All pairs of nine runs on the same 2,961 items: who is ahead, and where that is more than chance after Holm.

Run: python docs/figures/significance.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from polyweave_torch.functional import mcnemar_pairs, outcome_gram
from polyweave_torch.plot import significance_matrix

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "data" / "quantization_flips.csv"
MODELS = {"Q1.5": "Qwen2.5-1.5B-Instruct", "Q3": "Qwen2.5-3B-Instruct", "gemma": "gemma-2-2b-it"}


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    header, *rows = np.loadtxt(ANSWERS, dtype=str, delimiter=",")
    column = dict(zip(header, np.array(rows).T, strict=True))
    runs = {f"{short} {kind}": f"{name}/{kind}" for short, name in MODELS.items() for kind in ("fp16", "int8", "int4")}
    right = torch.from_numpy(np.stack([column[run] == column["answer"] for run in runs.values()], axis=1))
    figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    significance_matrix(mcnemar_pairs(outcome_gram(right), names=list(runs)), n=len(right), ax=ax)
    figure.savefig(folder / "significance.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
