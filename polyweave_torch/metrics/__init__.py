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
from polyweave_torch.metrics.memory import OutcomeMemory
from polyweave_torch.metrics.padding import padding_mask
from polyweave_torch.metrics.protocol import ProtocolChannels

__all__ = [
    "AccuracyDelta",
    "ChannelCounts",
    "ChannelSurplus",
    "Churn",
    "CorrectionRate",
    "CorruptionRate",
    "NegativeFlipRate",
    "OutcomeMemory",
    "PositiveFlipRate",
    "ProtocolChannels",
    "padding_mask",
]
