"""The figure of an ablation's report: three arms on 120 cases in three strata. The faults are simulated, as it says.

Run: python docs/figures/ablation.py
"""

from pathlib import Path

import matplotlib.pyplot as plt

from polyweave_torch.ablation import Case, SimulatedEvaluator, analyze_outcomes, baseline_conditions, run_ablation
from polyweave_torch.plot import success_rates

ROOT = Path(__file__).parents[2]
STRATA = ("simple", "media", "compleja")


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw the figure into a folder."""
    cases = [Case(f"{stratum}-{number:02}", stratum) for stratum in STRATA for number in range(40)]
    outcomes = run_ablation(cases, baseline_conditions(), SimulatedEvaluator(), progress=False)
    figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
    success_rates(analyze_outcomes(outcomes), ax=ax)
    figure.savefig(folder / "ablation.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
