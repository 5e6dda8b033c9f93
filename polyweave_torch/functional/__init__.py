"""Pure functions of tensors and plain values: channels, paired statistics, ensembles, gates, composites, the release
verdict, and claims."""

from polyweave_torch.functional.bootstrap import BootstrapInterval, exact_binary_bootstrap, paired_bootstrap
from polyweave_torch.functional.channel import (
    ChannelEstimate,
    ChannelIntervals,
    ChannelOrbit,
    channel_counts,
    channel_intervals,
    estimate_channel,
    iterate_channel,
    predict_post_accuracy,
)
from polyweave_torch.functional.claims import (
    Claim,
    ClaimCounts,
    ClaimScores,
    KnowledgeBase,
    align_claims,
    canonical_claim,
    claims_line,
    claims_table,
    format_claim,
    parse_claims,
    rename_claim,
    score_claims,
)
from polyweave_torch.functional.cochran import CochranQResult, cochran_q
from polyweave_torch.functional.composite import (
    CompositeResult,
    RankedRun,
    composite_score,
    inter_judge_pearson,
    layer_score,
    rank_runs,
)
from polyweave_torch.functional.composition import (
    CompositionGap,
    CompositionTest,
    channel_matrix,
    composition_gap,
    composition_test,
)
from polyweave_torch.functional.correlation import PearsonResult, pearson
from polyweave_torch.functional.difference import PairedDifference, paired_difference_interval
from polyweave_torch.functional.diversity import Diversity, diversity
from polyweave_torch.functional.ensemble import (
    disagreement_matrix,
    disagreement_rate,
    ensemble_accuracy,
    ensemble_gain,
    mean_accuracy,
    member_accuracies,
    oracle_disagreement,
    pairwise_disagreement,
)
from polyweave_torch.functional.equivalence import EquivalenceResult, equivalence_test, non_inferiority_test
from polyweave_torch.functional.flips import AnswerChurn, FlipRates, answer_churn, flip_rates
from polyweave_torch.functional.gating import (
    GatingDecision,
    PhasePlaneDiagnosis,
    Quadrant,
    StepDecision,
    estimate_slice_channels,
    phase_plane_diagnosis,
    quadrant_names,
    should_activate_step,
    slice_gating_decisions,
)
from polyweave_torch.functional.gram import OutcomeGram, outcome_gram, paired_tables
from polyweave_torch.functional.intervals import ConfidenceInterval, WilsonInterval, jeffreys_interval, wilson_interval
from polyweave_torch.functional.mcnemar import McNemarResult, PairwiseMcNemar, mcnemar, mcnemar_pairs
from polyweave_torch.functional.mixture import MixtureShiftBias, mixture_shift_bias
from polyweave_torch.functional.multiplicity import benjamini_hochberg, holm_bonferroni
from polyweave_torch.functional.pi_scale import pi_scale_mean, pi_scales
from polyweave_torch.functional.power import (
    discordance_from_phi,
    mcnemar_power,
    mcnemar_sample_size,
    target_per_stratum,
)
from polyweave_torch.functional.soft_votes import soft_ensemble_accuracy, soft_vote
from polyweave_torch.functional.strata import ChiSquareResult, clustered_mcnemar, stratum_heterogeneity
from polyweave_torch.functional.totals import Bounds, ChannelBounds, bounds_from_totals, check_accounting
from polyweave_torch.functional.transfer import TransferResidual, predict_transfer, transfer_residual
from polyweave_torch.functional.verdict import verdict
from polyweave_torch.functional.verdict_report import VerdictReport
from polyweave_torch.functional.verdict_results import (
    AuditMarks,
    Estimator,
    LayerDifference,
    PairVerdict,
    VerdictSettings,
)
from polyweave_torch.functional.verdict_words import Reason, Verdict
from polyweave_torch.functional.votes import VoteSummary, majority_vote, vote_summary

__all__ = [
    "AnswerChurn",
    "AuditMarks",
    "BootstrapInterval",
    "Bounds",
    "ChannelBounds",
    "ChannelEstimate",
    "ChannelIntervals",
    "ChannelOrbit",
    "ChiSquareResult",
    "Claim",
    "ClaimCounts",
    "ClaimScores",
    "CochranQResult",
    "CompositeResult",
    "CompositionGap",
    "CompositionTest",
    "ConfidenceInterval",
    "Diversity",
    "EquivalenceResult",
    "Estimator",
    "FlipRates",
    "GatingDecision",
    "KnowledgeBase",
    "LayerDifference",
    "McNemarResult",
    "MixtureShiftBias",
    "OutcomeGram",
    "PairVerdict",
    "PairedDifference",
    "PairwiseMcNemar",
    "PearsonResult",
    "PhasePlaneDiagnosis",
    "Quadrant",
    "RankedRun",
    "Reason",
    "StepDecision",
    "TransferResidual",
    "Verdict",
    "VerdictReport",
    "VerdictSettings",
    "VoteSummary",
    "WilsonInterval",
    "align_claims",
    "answer_churn",
    "benjamini_hochberg",
    "bounds_from_totals",
    "canonical_claim",
    "channel_counts",
    "channel_intervals",
    "channel_matrix",
    "check_accounting",
    "claims_line",
    "claims_table",
    "clustered_mcnemar",
    "cochran_q",
    "composite_score",
    "composition_gap",
    "composition_test",
    "disagreement_matrix",
    "disagreement_rate",
    "discordance_from_phi",
    "diversity",
    "ensemble_accuracy",
    "ensemble_gain",
    "equivalence_test",
    "estimate_channel",
    "estimate_slice_channels",
    "exact_binary_bootstrap",
    "flip_rates",
    "format_claim",
    "holm_bonferroni",
    "inter_judge_pearson",
    "iterate_channel",
    "jeffreys_interval",
    "layer_score",
    "majority_vote",
    "mcnemar",
    "mcnemar_pairs",
    "mcnemar_power",
    "mcnemar_sample_size",
    "mean_accuracy",
    "member_accuracies",
    "mixture_shift_bias",
    "non_inferiority_test",
    "oracle_disagreement",
    "outcome_gram",
    "paired_bootstrap",
    "paired_difference_interval",
    "paired_tables",
    "pairwise_disagreement",
    "parse_claims",
    "pearson",
    "phase_plane_diagnosis",
    "pi_scale_mean",
    "pi_scales",
    "predict_post_accuracy",
    "predict_transfer",
    "quadrant_names",
    "rank_runs",
    "rename_claim",
    "score_claims",
    "should_activate_step",
    "slice_gating_decisions",
    "soft_ensemble_accuracy",
    "soft_vote",
    "stratum_heterogeneity",
    "target_per_stratum",
    "transfer_residual",
    "verdict",
    "vote_summary",
    "wilson_interval",
]
