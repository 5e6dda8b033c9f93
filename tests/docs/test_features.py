"""docs/features.md names every public name, option and key, and only tests and names that exist."""

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

from polyweave_torch import callbacks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")

# The public contract: names that stay. More names are free.
NAMES = {
    "polyweave_torch.functional": """
        channel_counts estimate_channel channel_intervals flip_rates predict_post_accuracy should_activate_step
        phase_plane_diagnosis quadrant_names estimate_slice_channels slice_gating_decisions channel_matrix
        composition_gap composition_test predict_transfer transfer_residual mixture_shift_bias iterate_channel
        bounds_from_totals check_accounting answer_churn
        majority_vote vote_summary disagreement_rate pairwise_disagreement oracle_disagreement disagreement_matrix
        ensemble_accuracy mean_accuracy ensemble_gain member_accuracies soft_vote soft_ensemble_accuracy diversity
        pi_scale_mean pi_scales
        wilson_interval jeffreys_interval outcome_gram paired_tables mcnemar mcnemar_pairs cochran_q holm_bonferroni
        benjamini_hochberg paired_difference_interval equivalence_test non_inferiority_test mcnemar_power
        mcnemar_sample_size target_per_stratum discordance_from_phi stratum_heterogeneity clustered_mcnemar
        paired_bootstrap pearson
        layer_score composite_score inter_judge_pearson verdict
        parse_claims format_claim canonical_claim KnowledgeBase Verdict Quadrant align_claims rename_claim score_claims
        claims_line claims_table
    """,
    "polyweave_torch": """
        ChannelCounts CorrectionRate CorruptionRate AccuracyDelta ChannelSurplus NegativeFlipRate PositiveFlipRate Churn
        ProtocolChannels OutcomeMemory EnsembleAccuracy MeanMemberAccuracy EnsembleGain DisagreementRate
        PairwiseDisagreement DisagreementMatrix SoftEnsembleAccuracy PairedOutcomes McNemarPValue CochranQPValue
        CompositeScore ClaimScore padding_mask
    """,
    "polyweave_torch.callbacks": """
        ChannelMonitor SignificanceMonitor EnsembleMonitor PiScaleMonitor PairedEarlyStopping observe
    """,
    "polyweave_torch.ablation": """
        Case Condition Outcome load_cases sample_stratified corpus_counts baseline_conditions run_ablation
        SimulatedEvaluator analyze_outcomes format_analysis Analysis
    """,
    "polyweave_torch.evallogs": "read_run compare_runs compare_outcomes to_events",
    "polyweave_torch.plot": "phase_plane forest significance_matrix gate_growth",
}
# What `polyweave-torch compare --json` prints, and the ends of the monitors' keys.
KEYS = """
    schema runs alignment counts c gamma delta quadrant intervals mcnemar equivalence verdict slices cochran_q pairs
    warnings surplus n p_value p_adjusted discordant accuracy mean_member gain disagreement pairwise mean growth
"""
MONITORS = [name for name in NAMES["polyweave_torch.callbacks"].split() if name != "observe"]


def rows() -> list[list[str]]:
    """The cells of every table row."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return [row for row in cells if row[0] not in ("What", "---")]


def named_tests() -> list[str]:
    """What stands in the last column, each once."""
    return sorted({test for row in rows() for test in re.findall(r"`(tests/[^`]+)`", row[-1])})


def references() -> set[tuple[str, str]]:
    """What is shown and where it leads, of every link to an object."""
    return set(re.findall(r"\[`([^`]+)`\]\[([\w.]+)\]", PAGE))


@functools.cache
def functions_of(path: str) -> set[str]:
    """The test functions of a file, as pytest collects them from a module."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_has_three_cells_and_a_test_or_says_that_it_has_none() -> None:
    assert len(rows()) > 200
    for row in rows():
        assert len(row) == 3, row
        assert re.fullmatch(r"no test|`tests/[\w/]+\.py::\w+`(, `tests/[\w/]+\.py::\w+`)*", row[2]), row


@pytest.mark.parametrize("test", named_tests())
def test_every_named_test_exists(test: str) -> None:
    path, name = test.split("::")
    assert name in functions_of(path)


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_stands_on_the_page(module: str) -> None:
    wanted = {(name, f"{module}.{name}") for name in NAMES[module].split()}
    assert wanted <= references(), wanted - references()


def test_every_name_on_the_page_can_be_imported() -> None:
    for shown, target in references():
        module, name = target.rsplit(".", 1)
        assert shown == name
        assert hasattr(importlib.import_module(module), name), target


@pytest.mark.parametrize("monitor", MONITORS)
def test_every_option_of_a_monitor_stands_on_the_page(monitor: str) -> None:
    options = inspect.signature(getattr(callbacks, monitor)).parameters
    missing = [option for option in options if f"`{option}`" not in PAGE]
    assert not missing


@pytest.mark.parametrize("key", KEYS.split())
def test_every_key_stands_on_the_page(key: str) -> None:
    assert re.search(rf"`([^`]*/)?{key}`", PAGE)
