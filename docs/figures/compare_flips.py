"""Two precisions of one model with the same accuracy: what became of each of 975 answers.

gemma-2-2b-it on MMLU at 16 and at 4 bits (tests/data/quantization_flips.csv), one square an item, by subject.

Run: python docs/figures/compare_flips.py
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from polyweave_torch.plot.style import HARM, HELP

ROOT = Path(__file__).parents[2]
MODEL = "gemma-2-2b-it"
# In this order within a subject: colour and name of (right before, right after).
KINDS = {
    (True, True): ("#c8d6d1", "right in both"),
    (True, False): (HARM, "corrupted: right, then wrong"),
    (False, True): (HELP, "corrected: wrong, then right"),
    (False, False): ("#e9e5e1", "wrong in both"),
}
COLUMNS, BLOCKS = 20, 4
"""Squares in a row of a block, blocks in a row of the picture."""


def outcomes() -> dict[str, list[tuple[bool, bool]]]:
    """Right at 16 and at 4 bits, by subject, in the order of the file."""
    subjects: dict[str, list[tuple[bool, bool]]] = {}
    with (ROOT / "tests/data/quantization_flips.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["benchmark"] == "mmlu":
                right = tuple(row[f"{MODEL}/{bits}"] == row["answer"] for bits in ("fp16", "int4"))
                subjects.setdefault(row["subject"], []).append((right[0], right[1]))
    return subjects


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Write ``compare_flips.png``."""
    subjects = outcomes()
    items = [item for group in subjects.values() for item in group]
    figure, (bars, squares) = plt.subplots(1, 2, figsize=(11, 3.3), dpi=100, layout="constrained", width_ratios=[1, 5])
    for place, name in enumerate(("16 bits", "4 bits")):
        share = sum(item[place] for item in items) / len(items)
        bars.bar(name, 100 * share, color="#8fa9a0", width=0.6)
        bars.text(place, 100 * share + 1.5, f"{100 * share:.1f} %", ha="center", fontsize=12)
    bars.set_ylim(0, 100)
    bars.set_title("What accuracy shows", fontsize=13)
    bars.set_ylabel("accuracy, %")
    bars.spines[["top", "right"]].set_visible(False)
    _squares(squares, subjects)
    number = {kind: items.count(kind) for kind in KINDS}
    flipped = number[True, False] + number[False, True]
    squares.set_title(f"What happened: {flipped} of {len(items)} items changed sides", fontsize=13)
    handles = [Patch(color=colour, label=f"{name} ({number[kind]})") for kind, (colour, name) in KINDS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    figure.savefig(folder / "compare_flips.png")
    plt.close(figure)


def _squares(ax: Axes, subjects: dict[str, list[tuple[bool, bool]]]) -> None:
    for block, (subject, group) in enumerate(subjects.items()):
        down, across = divmod(block, BLOCKS)
        left, top = across * (COLUMNS + 2), -down * 9.5
        for place, kind in enumerate(sorted(group, key=list(KINDS).index)):
            row, column = divmod(place, COLUMNS)
            ax.add_patch(Rectangle((left + column, top - row), 0.88, -0.88, color=KINDS[kind][0], linewidth=0))
        ax.text(left, top + 0.4, subject.replace("_", " "), ha="left", va="bottom", fontsize=10)
    ax.set_xlim(-0.5, BLOCKS * (COLUMNS + 2) - 1)
    ax.set_ylim(-17, 2)
    ax.axis("off")


if __name__ == "__main__":
    main()
