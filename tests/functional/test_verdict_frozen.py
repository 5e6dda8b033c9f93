"""Freezes the composite and the verdict of fixed inputs.

A failure here means that the formula changed: scores and verdicts of earlier runs no longer compare with new ones. That
is a breaking change. If it is meant, raise ``ESTIMATOR.version``, name it in CHANGELOG.md, and only then write the new
numbers here. (All other tests hold the code against something independent; this one holds it against itself.)
"""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from polyweave_torch.functional.composite import composite_score, layer_score
from polyweave_torch.functional.verdict import ESTIMATOR, verdict

LAYERS = ("fact", "behavior", "judge")


def control() -> Tensor:
    """24 samples: 4 and 3 checks, marks from 1 to 5; three layers are missing, and one judgement failed."""
    step = torch.arange(24)
    fact = layer_score((step * 7) % 5, torch.full((24,), 4))
    behavior = layer_score((step * 5) % 4, torch.full((24,), 3))
    judge = ((step * 3) % 5 + 1).double()
    scores = torch.stack([fact, behavior, judge], 1)
    scores[4, 0] = scores[9, 1] = scores[10, 1] = math.nan
    scores[15, 2] = 0.0
    return scores


def better() -> Tensor:
    """Half of the samples gain, in all layers."""
    gain = (torch.arange(24) % 4 // 2).unsqueeze(1) * torch.tensor([1.0, 0.5, 0.25])
    return (control() + gain).where(control() > 0.0, math.nan).clamp(max=5.0)


def worse() -> Tensor:
    """A third loses its facts, a fifth gains marks."""
    scores, step = control(), torch.arange(24)
    scores[step % 3 == 0, 0] = 1.0
    scores[step % 5 == 0, 2] = 5.0
    return scores


COMPOSITES = [
    1.0,
    3.11111111111,
    3.55555555556,
    4.0,
    2.0,
    1.44444444444,
    3.55555555556,
    4.0,
    2.66666666667,
    3.5,
    1.0,
    4.0,
]
VERDICTS: list[Any] = [
    [
        "PROGRESS",
        [0.203125, 0.104166666667, 0.313389756944],
        {
            "fact": [0.391304347826, 0.1375, 0.652173913043],
            "behavior": [0.113636363636, 0.0227272727273, 0.227272727273],
            "judge": [0.0869565217391, 0.0326086956522, 0.152173913043],
        },
        ["composite-up", "layer-up"],
    ],
    [
        "REGRESS",
        [0.0763888888889, -0.271006944444, 0.423611111111],
        {
            "fact": [-0.565217391304, -1.2972826087, -0.0869565217391],
            "behavior": [0.0, 0.0, 0.0],
            "judge": [0.695652173913, 0.0, 1.71086956522],
        },
        ["composite-unclear", "layer-down", "layer-fell-under-gate", "layer-under-gate", "layers-differ"],
    ],
]


def test_composites() -> None:
    assert composite_score(control()).score[:12].tolist() == pytest.approx(COMPOSITES, rel=1e-9)


def test_verdict() -> None:
    assert ESTIMATOR == ("mean composite, paired percentile bootstrap", 1)
    report = verdict(control(), {"better": better(), "worse": worse()}, layer_names=LAYERS, gate=2.5)
    frozen = [
        [
            str(pair.label),
            [float(pair.estimate), float(pair.low), float(pair.high)],
            {name: [float(layer.estimate), float(layer.low), float(layer.high)] for name, layer in pair.layers.items()},
            [str(reason) for reason in pair.reasons],
        ]
        for pair in report.pairs
    ]
    for found, wanted in zip(frozen, VERDICTS, strict=True):
        assert found[0] == wanted[0]
        assert found[1] == pytest.approx(wanted[1], rel=1e-9)
        assert found[2] == {name: pytest.approx(ends, rel=1e-9) for name, ends in wanted[2].items()}
        assert found[3] == wanted[3]
