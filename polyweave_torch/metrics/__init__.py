"""Torchmetrics classes. They hold counts and contain no formula of their own."""

from polyweave_torch.metrics.channel import (
    AccuracyDelta,
    ChannelCounts,
    ChannelSurplus,
    Churn,
    CorrectionRate,
    CorruptionRate,
    NegativeFlipRate,
    PositiveFlipRate,
)
from polyweave_torch.metrics.claims import ClaimScore
from polyweave_torch.metrics.composite import CompositeScore, LayerScores
from polyweave_torch.metrics.ensemble import (
    DisagreementMatrix,
    DisagreementRate,
    EnsembleAccuracy,
    EnsembleGain,
    MeanMemberAccuracy,
    PairwiseDisagreement,
    SoftEnsembleAccuracy,
)
from polyweave_torch.metrics.memory import OutcomeMemory
from polyweave_torch.metrics.padding import padding_mask
from polyweave_torch.metrics.paired import CochranQPValue, McNemarPValue, PairedOutcomes
from polyweave_torch.metrics.protocol import ProtocolChannels

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
    "padding_mask",
]
