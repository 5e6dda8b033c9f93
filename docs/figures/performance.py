"""How many times as fast as its peers each workload of the benchmarks is, from the kept results.

Run: python docs/figures/performance.py [--write], which with --write also renews the table of docs/performance.md.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from polyweave_torch.plot.style import FONT, HARM, HELP

ROOT = Path(__file__).parents[2]
# The run of everything, and a later one of some rows on an idle machine, which replace theirs.
RESULTS = [ROOT / "benchmarks" / "results" / f"cpu-epyc-family25-model17{of}.json" for of in ("", "-again")]
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- table: benchmarks -->", "<!-- end -->"


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    goals = [(work, goal) for work in workloads() for goal in work["goals"] if "times as fast" in goal["goal"]]
    names = [f"{work['name']}, beside {goal['goal'].rpartition(' as fast as ')[2]}" for work, goal in goals]
    values, limits = ([goal[key] for _, goal in goals] for key in ("value", "limit"))
    figure, ax = plt.subplots(figsize=(10, 0.27 * len(goals) + 1.2), layout="constrained")
    colours = [HELP if goal["met"] else HARM for _, goal in goals]
    ax.barh(names, values, color=colours)
    ax.plot(limits, names, "|", color="black", markersize=12, markeredgewidth=2, label="the goal")
    ax.axvline(1.0, color="black", linewidth=1)
    ax.set_xscale("log")
    ax.set_ylim(len(goals) - 0.4, -0.6)
    ax.tick_params(labelsize=FONT - 5)
    ax.set_xlabel("times as fast, one thread", fontsize=FONT - 3)
    ax.legend(loc="lower right", fontsize=FONT - 4)
    figure.savefig(folder / "performance.png", dpi=90)
    plt.close(figure)


def workloads() -> list[dict[str, Any]]:
    """The results, a workload each."""
    runs = [json.loads(results.read_text(encoding="utf-8"))["workloads"] for results in RESULTS]
    return list({work["name"]: work for run in runs for work in run}.values())


def table() -> str:
    """Every workload with its time, its peers and its goals, in Markdown."""
    lines = ["| work | ours, ms | times as fast as | at the peak, MiB | goals |", "| --- | ---: | --- | ---: | --- |"]
    for work in workloads():
        everybody = work["contestants"]
        ours = everybody["ours"]
        peers = [
            f"{name} {figure(contestant['threads']['1']['ratio'])}"
            for name, contestant in everybody.items()
            if name not in ("ours", "floor") and "threads" in contestant  # else its package was not installed
        ]
        peak = "" if ours["memory"] is None else figure(ours["memory"]["peak"] / 2**20)
        goals = [("met" if goal["met"] else f"**missed: {goal['goal']}**") for goal in work["goals"]]
        cells = (work["about"], figure(ours["threads"]["1"]["milliseconds"]), "; ".join(peers), peak)
        lines.append(f"| {' | '.join(cells)} | {', '.join(dict.fromkeys(goals))} |")
    return "\n".join(lines)


def figure(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def write() -> None:
    """Put the table between its markers in the page."""
    before, _, after = PAGE.read_text(encoding="utf-8").partition(START)
    after = after[after.index(END) :]
    PAGE.write_text(f"{before}{START}\n\n{table()}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
    if "--write" in sys.argv[1:]:
        write()
