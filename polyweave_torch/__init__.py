"""Paired training diagnostics for PyTorch.

What did a change correct, what did it corrupt, where, is it more than chance, may it ship? Metrics stand here, pure
functions in :mod:`polyweave_torch.functional`, Lightning callbacks in ``polyweave_torch.callbacks`` (extra
``lightning``), figures in ``polyweave_torch.plot`` (extra ``plot``), the logs of finished evaluation runs in
``polyweave_torch.evallogs``, the harness that runs cases under several conditions in ``polyweave_torch.ablation``, and
files of claims in ``polyweave_torch.claims``.
"""

from polyweave_torch import functional
from polyweave_torch.metrics import (
    AccuracyDelta,
    ChannelCounts,
    ChannelSurplus,
    Churn,
    ClaimScore,
    CochranQPValue,
    CompositeScore,
    CorrectionRate,
    CorruptionRate,
    DisagreementMatrix,
    DisagreementRate,
    EnsembleAccuracy,
    EnsembleGain,
    LayerScores,
    McNemarPValue,
    MeanMemberAccuracy,
    NegativeFlipRate,
    OutcomeMemory,
    PairedOutcomes,
    PairwiseDisagreement,
    PositiveFlipRate,
    ProtocolChannels,
    SoftEnsembleAccuracy,
    padding_mask,
)

__all__ = [
    "AccuracyDelta",
    "ChannelCounts",
    "ChannelSurplus",
    "Churn",
    "ClaimScore",
    "CochranQPValue",
    "CompositeScore",
    "CorrectionRate",
    "CorruptionRate",
    "DisagreementMatrix",
    "DisagreementRate",
    "EnsembleAccuracy",
    "EnsembleGain",
    "LayerScores",
    "McNemarPValue",
    "MeanMemberAccuracy",
    "NegativeFlipRate",
    "OutcomeMemory",
    "PairedOutcomes",
    "PairwiseDisagreement",
    "PositiveFlipRate",
    "ProtocolChannels",
    "SoftEnsembleAccuracy",
    "functional",
    "padding_mask",
]
