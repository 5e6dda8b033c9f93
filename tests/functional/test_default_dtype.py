"""torch's default dtype, which a script may set to bfloat16, changes no result."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import polyweave_torch.functional as F
from tests.contract.entries import same

TABLE = [[175532, 36784574], [40, 71099542]]
CHANNEL = F.estimate_channel([[49, 32], [1114, 305]])
RIGHT = torch.rand(2000, 4, generator=torch.Generator().manual_seed(0)) < 0.7
LABELS = torch.randint(5, (4, 2000), generator=torch.Generator().manual_seed(1))
SCORES = [[1.0 + 4.0 * ((7 * row + 3 * column) % 11) / 11 for column in range(3)] for row in range(600)]

CALLS: dict[str, Callable[[], Any]] = {
    "estimate_channel": lambda: F.estimate_channel([[49, 32], [1114, 305]], smoothing=0.1),
    "channel_intervals": lambda: F.channel_intervals(TABLE),
    "jeffreys": lambda: F.channel_intervals(TABLE, method="jeffreys"),
    "flip_rates": lambda: F.flip_rates(TABLE),
    "answer_churn": lambda: F.answer_churn([2, 1, 0] * 300, [1, 1, 0] * 300, [2, 0, 0] * 300),
    "phase_plane_diagnosis": lambda: F.phase_plane_diagnosis(CHANNEL, p0=0.7, by="interval"),
    "should_activate_step": lambda: F.should_activate_step(0.7, CHANNEL, cost_threshold=0.01),
    "iterate_channel": lambda: F.iterate_channel(0.7, CHANNEL, 3),
    "composition_gap": lambda: F.composition_gap([[0.3, 0.7], [0.1, 0.9]], *[F.channel_matrix(CHANNEL)] * 2),
    "composition_test": lambda: F.composition_test([[[719, 79], [32, 19]], [[14, 22], [185, 1891]]]),
    "transfer_residual": lambda: F.transfer_residual(CHANNEL, [[300, 210], [54, 451]]),
    "mixture_shift_bias": lambda: F.mixture_shift_bias({"a": CHANNEL, "b": F.estimate_channel(TABLE)}),
    "check_accounting": lambda: F.check_accounting(0.838, 0.674, 0.064, 0.228),
    "bounds_from_totals": lambda: F.bounds_from_totals(975, 0.57, 0.571, decimals=3),
    "wilson_interval": lambda: F.wilson_interval([300, 7], [1001, 10]),
    "mcnemar": lambda: F.mcnemar([312, 7, 40], [264, 2, 17], method="exact"),
    "mcnemar_pairs": lambda: F.mcnemar_pairs(F.outcome_gram(RIGHT), adjust="discrete-holm"),
    "cochran_q": lambda: F.cochran_q(RIGHT),
    "shaffer": lambda: F.mcnemar_pairs(F.outcome_gram(RIGHT), adjust="shaffer"),
    "benjamini_hochberg": lambda: F.benjamini_hochberg([0.01, 0.041, 0.03]),
    "paired_difference_interval": lambda: F.paired_difference_interval(TABLE, method="newcombe"),
    "equivalence_test": lambda: F.equivalence_test([[239, 8], [18, 721]], 0.02),
    "mcnemar_power": lambda: F.mcnemar_power(0.03, 0.13, 120),
    "stratum_heterogeneity": lambda: F.stratum_heterogeneity([2, 10, 1501], [8, 10, 1005]),
    "clustered_mcnemar": lambda: F.clustered_mcnemar([3, 2, 0, 1], [0, 0, 1, 0], [4, 4, 4, 4], method="durkalski"),
    "pearson": lambda: F.pearson([row[0] for row in SCORES], [row[1] for row in SCORES]),
    "diversity": lambda: F.diversity(F.outcome_gram(RIGHT)),
    "composite_score": lambda: F.composite_score(SCORES, weights=[0.1, 0.2, 0.3]),
    "ranks": lambda: F.composite_score(SCORES, standardize="rank"),
    "inter_judge_pearson": lambda: F.inter_judge_pearson(SCORES),
    "rank_runs": lambda: F.rank_runs({"a": SCORES}, layer_names=("x", "y", "z")),
    "ensemble_gain": lambda: F.ensemble_gain(LABELS, LABELS[0]),
    "pairwise_disagreement": lambda: F.pairwise_disagreement(LABELS, ignore_index=0),
    "oracle_disagreement": lambda: F.oracle_disagreement(LABELS, LABELS[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_default_dtype_changes_no_result(name: str) -> None:
    wanted = CALLS[name]()
    torch.set_default_dtype(torch.bfloat16)
    try:
        found = CALLS[name]()
    finally:
        torch.set_default_dtype(torch.float32)
    assert same(found, wanted)
