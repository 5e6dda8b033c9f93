"""The ablation harness: cases in strata, several conditions, every case under every condition, and an honest report."""

from polyweave_torch.ablation.analysis import (
    TARGET_PER_STRATUM,
    Analysis,
    CondStats,
    PairTest,
    analyze_outcomes,
    verdict_words,
)
from polyweave_torch.ablation.cases import Case, corpus_counts, load_cases, sample_stratified
from polyweave_torch.ablation.evaluators import (
    FunctionEvaluator,
    ModuleEvaluator,
    SimulatedEvaluator,
    baseline_conditions,
)
from polyweave_torch.ablation.outcomes import Condition, Outcome, SimulatedOutcome
from polyweave_torch.ablation.record import read_outcomes
from polyweave_torch.ablation.report import format_analysis
from polyweave_torch.ablation.running import run_ablation

__all__ = [
    "TARGET_PER_STRATUM",
    "Analysis",
    "Case",
    "CondStats",
    "Condition",
    "FunctionEvaluator",
    "ModuleEvaluator",
    "Outcome",
    "PairTest",
    "SimulatedEvaluator",
    "SimulatedOutcome",
    "analyze_outcomes",
    "baseline_conditions",
    "corpus_counts",
    "format_analysis",
    "load_cases",
    "read_outcomes",
    "run_ablation",
    "sample_stratified",
    "verdict_words",
]
