"""The exact error rate of each form of McNemar's test at alpha = 0.05, by the number of pairs.

Run: python docs/figures/trust_errors.py
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from polyweave_torch.functional.mcnemar import Method
from polyweave_torch.plot.style import CAUTION, FONT, HARM, HELP, NEUTRAL

sys.path.insert(0, str(Path(__file__).parents[1] / "simulations"))

from paired_tests import ALPHA, mcnemar_rejection

ROOT = Path(__file__).parents[2]
STYLES: dict[Method, tuple[str, Any, str]] = {
    "asymptotic": (HARM, "-", "asymptotic: chi-square"),
    "midp": (HELP, "-", "midp"),
    "exact": ("black", "-", "exact"),
    "edwards": (CAUTION, "-", "edwards: chi-square, corrected"),
    # Exact below 25 discordant pairs and Edwards from there on: dashes on top of those two.
    "auto": ("#56B4E9", (0, (4, 4)), "auto: the default"),
}
PAIRS = range(10, 1001)


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharey=True)
    for ax, discordance in zip(axes, (0.1, 0.4), strict=True):
        ax.axhline(100 * ALPHA, color=NEUTRAL, linewidth=1, linestyle=":")
        for method, (colour, dashes, label) in STYLES.items():
            errors = [100 * mcnemar_rejection(method, discordance, n) for n in PAIRS]
            ax.plot(PAIRS, errors, color=colour, linestyle=dashes, linewidth=1.8, label=label)
        ax.set_xscale("log")
        ax.set_xticks([10, 20, 50, 100, 200, 500, 1000], ["10", "20", "50", "100", "200", "500", "1000"])
        ax.minorticks_off()
        ax.set_ylim(0.0, 6.0)
        ax.set_xlabel(f"pairs, of which {100 * discordance:.0f} % are discordant", fontsize=FONT)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("p < 0.05 without a difference, %", fontsize=FONT)
    axes[1].legend(loc="lower right", fontsize=FONT - 3, frameon=False)
    figure.savefig(folder / "trust_errors.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
