"""Do constrained decoders help? Three arms on 120 cases in three strata, without a model: the faults are simulated.

The report is the one that a real run would give, but for the word SIMULATED. To measure, replace ``SimulatedEvaluator``
by a function that asks your model: ``FunctionEvaluator(lambda case, condition: ask(case, condition.options))``.
"""

import tempfile
from pathlib import Path

from polyweave_torch.ablation import (
    Analysis,
    Case,
    SimulatedEvaluator,
    analyze_outcomes,
    baseline_conditions,
    format_analysis,
    read_outcomes,
    run_ablation,
)

STRATA = ("simple", "media", "compleja")


def main(per_stratum: int = 40) -> Analysis:
    """Run into a file, which a second start would go on from, and print the report of what it holds."""
    cases = [Case(f"{stratum}-{number:02}", stratum) for stratum in STRATA for number in range(per_stratum)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.jsonl"
        run_ablation(cases, baseline_conditions(), SimulatedEvaluator(), model="none", batch_size=8, out=out)
        analysis = analyze_outcomes(read_outcomes(out), model="none", note="three decoders, invented faults")
    print(format_analysis(analysis), end="")
    return analysis


if __name__ == "__main__":
    main()
