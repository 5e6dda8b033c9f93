"""The phase plane of two real changes: five examples in the prompt, and weights in four bits.

Run: python docs/figures/phase_plane.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.functional import ChannelEstimate, channel_counts, estimate_channel
from polyweave_torch.plot import phase_plane

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "data" / "evallogs" / "lm_eval" / "mmlu_0shot_vs_5shot"
ANSWERS = ROOT / "tests" / "data" / "quantization_flips.csv"
MODELS = {"Qwen 1.5B": "Qwen2.5-1.5B-Instruct", "Qwen 3B": "Qwen2.5-3B-Instruct", "gemma": "gemma-2-2b-it"}


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    phase_plane(by_subject(), ax=left)
    left.set_title("MMLU asked with five examples instead of none")
    phase_plane(quantised(), ax=right)
    right.set_title("Weights in 4 bits instead of fp16")
    figure.savefig(folder / "phase_plane.png", dpi=100)
    plt.close(figure)


def by_subject() -> dict[str, ChannelEstimate]:
    """The channel of each subject of Qwen2.5-1.5B-Instruct's two runs."""
    slices = compare_runs([read_run(RUNS / side) for side in ("before", "after")]).to_dict()["slices"]
    return {
        name.removeprefix("mmlu_").replace("_", " "): estimate_channel(
            torch.tensor([entry["counts"][cell] for cell in ("n00", "n01", "n10", "n11")]).view(2, 2)
        )
        for name, entry in slices.items()
    }


def quantised() -> dict[str, ChannelEstimate]:
    """The channel of each model and benchmark from fp16 to four bits."""
    header, *rows = np.loadtxt(ANSWERS, dtype=str, delimiter=",")
    column = dict(zip(header, np.array(rows).T, strict=True))

    def right(model: str, precision: str) -> NDArray[np.bool_]:
        return column[f"{MODELS[model]}/{precision}"] == column["answer"]

    channels = {}
    for model in MODELS:
        for benchmark in ("mmlu", "csqa"):
            asked = column["benchmark"] == benchmark
            counts = channel_counts(right(model, "fp16")[asked], right(model, "int4")[asked])
            channels[f"{model} {benchmark}"] = estimate_channel(counts)
    return channels


if __name__ == "__main__":
    main()
