"""What the contract needs to know of each public metric class."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

import polyweave_torch as pt
from polyweave_torch.functional.channel import add_transitions
from polyweave_torch.functional.claims import KnowledgeBase
from polyweave_torch.functional.composite import composite_sums
from polyweave_torch.functional.ensemble_counts import agreement_counts, ensemble_counts
from polyweave_torch.functional.soft_votes import soft_ensemble_counts
from polyweave_torch.metrics import composite, memory
from polyweave_torch.metrics.paired import pack_outcomes

N = 37
Stream = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One class in one configuration."""

    name: str
    build: Callable[..., Metric]
    """Makes a fresh metric; takes torchmetrics' own keyword arguments."""
    stream: Callable[[int], Stream]
    """N samples by argument name, sample dimension first, from a seed."""
    other: Callable[..., Metric] | None = None
    """The class in a configuration with another update rule."""
    together: Callable[[int], Stream] | None = None
    """A stream that both configurations take, where it is not ``stream``."""
    wrong: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that replace a valid batch's and make it fail."""
    readouts: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """What can be read beside ``compute``; each is collective."""
    empty: Any = "nan"
    """What ``compute`` gives without data: "nan" (all NaN) or "zero" (counts)."""
    core: Callable[..., Any] | None = None
    """The pure function behind ``update``, compiled to one graph."""
    core_arguments: Callable[[Stream], Sequence[Any]] = lambda stream: tuple(stream.values())
    mask: bool = False
    """Whether ``update`` takes a mask."""
    zero: tuple[str, ...] = ()
    """Entries of a dict from ``compute`` that are 0 without data, where the others are undefined."""
    real_sums: tuple[str, ...] = ()
    """States that sum real numbers, in float64; all others count."""


def value(entry: Entry, metric: Metric) -> dict[str, Any]:
    """Everything that can be read off a metric."""
    return {"compute": metric.compute(), **{name: read(metric) for name, read in entry.readouts.items()}}


def outcomes(seed: int, n: int = N) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    draw = [torch.randint(2, (n,), generator=generator).bool() for _ in range(2)]
    return {"before": draw[0], "after": draw[1]}


def sliced(seed: int) -> Stream:
    index = torch.randint(3, (N,), generator=torch.Generator().manual_seed(seed + 1))
    return {**outcomes(seed), "slice_index": index}


def addressed(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randperm(100, generator=generator)[:N]
    return {"sample_index": index, "correct": torch.randint(2, (N,), generator=generator).bool()}


def _channel(name: str, metric_class: Any, empty: str = "nan") -> list[Entry]:
    def plain(**options: Any) -> Metric:
        metric: Metric = metric_class(**options)
        return metric

    def with_slices(**options: Any) -> Metric:
        metric: Metric = metric_class(slices=3, **options)
        return metric

    def one_slice(**options: Any) -> Metric:
        metric: Metric = metric_class(slices=1, **options)
        return metric

    none = torch.zeros(12, dtype=torch.int64)
    core: Any = lambda before, after: add_transitions(none, before, after, None, None)  # noqa: E731
    core_sliced: Any = lambda before, after, index: add_transitions(none, before, after, index, None)  # noqa: E731
    wrong = {"after": torch.full((N,), 2)}
    shared: dict[str, Any] = {"wrong": wrong, "empty": empty, "mask": True}
    return [
        Entry(name, plain, outcomes, other=with_slices, together=sliced, core=core, **shared),
        Entry(f"{name}[slices]", with_slices, sliced, other=one_slice, core=core_sliced, **shared),
    ]


def labelled(seed: int) -> Stream:
    index = torch.randint(3, (N,), generator=torch.Generator().manual_seed(seed + 1)).tolist()
    return {**outcomes(seed), "slices": [("c", "a", "b")[i] for i in index]}


def _protocol() -> Entry:
    return Entry(
        "ProtocolChannels",
        pt.ProtocolChannels,
        labelled,
        wrong={"after": torch.full((N,), 2)},
        readouts={
            "labels": lambda metric: metric.labels,
            "counts": lambda metric: metric.counts("default", "b"),
            "unknown": lambda metric: metric.counts("default", "unknown"),
            "estimates": lambda metric: metric.estimates(),
        },
        empty="zero",
    )


CONDITIONS, MEMBERS, CLASSES = 3, 4, 5


def conditions(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    return {"correct": torch.randint(2, (N, CONDITIONS), generator=generator).bool()}


def stratified(seed: int) -> Stream:
    index = torch.randint(3, (N,), generator=torch.Generator().manual_seed(seed + 1))
    return {**conditions(seed), "slice_index": index}


def votes(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(CLASSES, (N,), generator=generator)
    # Members that are mostly right, so that they also agree.
    slip = torch.rand(N, MEMBERS, generator=generator) < 0.2
    return {"preds": (target[:, None] + slip) % CLASSES, "target": target}


def probabilities(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(N, MEMBERS, CLASSES, generator=generator).softmax(-1)
    return {"probs": probs, "target": torch.randint(CLASSES, (N,), generator=generator)}


def _paired() -> list[Entry]:
    readouts: dict[str, Any] = {
        "gram": lambda metric: metric.gram,
        "n": lambda metric: metric.n,
        "mcnemar": lambda metric: metric.mcnemar(),
        "pooled": lambda metric: metric.mcnemar("midp", pooled=True),
        "cochran_q": lambda metric: metric.cochran_q(permutation=True),
        "accuracies": lambda metric: metric.accuracies(),
        "intervals": lambda metric: metric.intervals(0.9),
    }
    wrong = {"correct": torch.full((N, CONDITIONS), 2)}
    plain: Any = lambda **options: pt.PairedOutcomes(CONDITIONS, **options)  # noqa: E731
    strata: Any = lambda **options: pt.PairedOutcomes(CONDITIONS, slices=3, **options)  # noqa: E731
    core: Any = lambda correct: pack_outcomes(correct, None, None, 1)  # noqa: E731
    core_strata: Any = lambda correct, index: pack_outcomes(correct, index, None, 3)  # noqa: E731
    shared: dict[str, Any] = {"wrong": wrong, "mask": True}
    return [
        Entry(
            "PairedOutcomes",
            plain,
            conditions,
            other=strata,
            together=stratified,
            readouts=readouts,
            empty="zero",
            core=core,
            **shared,
        ),
        Entry(
            "PairedOutcomes[slices]", strata, stratified, readouts=readouts, empty="zero", core=core_strata, **shared
        ),
        Entry("CochranQPValue", lambda **options: pt.CochranQPValue(CONDITIONS, **options), conditions, **shared),
        Entry(
            "McNemarPValue",
            pt.McNemarPValue,
            outcomes,
            wrong={"after": torch.full((N,), 2)},
            mask=True,
        ),
    ]


def _ensemble(name: str, metric_class: Any) -> Entry:
    return Entry(
        name,
        lambda **options: metric_class(MEMBERS, CLASSES, **options),
        votes,
        other=lambda **options: metric_class(MEMBERS, CLASSES, ignore_index=0, **options),
        wrong={"preds": torch.full((N, MEMBERS), CLASSES)},
        core=lambda preds, target: ensemble_counts(preds, target, CLASSES, member_dim=1),
        mask=True,
    )


def _disagreement() -> list[Entry]:
    return [
        Entry(
            "DisagreementMatrix",
            lambda **options: pt.DisagreementMatrix(MEMBERS, **options),
            votes,
            other=lambda **options: pt.DisagreementMatrix(MEMBERS, ignore_index=0, **options),
            wrong={"preds": torch.zeros(N, MEMBERS + 1, dtype=torch.int64)},
            core=lambda preds, target: agreement_counts(preds, target, member_dim=1, ignore_index=0),
            mask=True,
        ),
        Entry(
            "SoftEnsembleAccuracy",
            lambda **options: pt.SoftEnsembleAccuracy(MEMBERS, CLASSES, **options),
            probabilities,
            other=lambda **options: pt.SoftEnsembleAccuracy(MEMBERS, CLASSES, from_logits=True, **options),
            wrong={"target": torch.full((N,), CLASSES)},
            core=soft_ensemble_counts,
            mask=True,
        ),
    ]


def scored(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    # Halves, whose sums are exact in any order; 0 is a judgement that failed, NaN a layer that is missing.
    scores = torch.randint(0, 11, (N, 3), generator=generator) / 2.0
    return {"scores": scores.masked_fill(torch.rand(N, 3, generator=generator) < 0.2, math.nan)}


def addressed_scores(seed: int) -> Stream:
    index = torch.randperm(100, generator=torch.Generator().manual_seed(seed))[:N]
    return {"sample_index": index, **scored(seed)}


def _composite() -> list[Entry]:
    return [
        Entry(
            "CompositeScore",
            pt.CompositeScore,
            scored,
            other=lambda **options: pt.CompositeScore(("fact", "style", "judge"), **options),
            wrong={"scores": torch.ones(N, 2)},
            core=composite_sums,
            mask=True,
            real_sums=("composite_sums_fact_behavior_judge",),
            zero=("gate_passed",),
        ),
        Entry(
            "LayerScores",
            lambda **options: pt.LayerScores(100, **options),
            addressed_scores,
            other=lambda **options: pt.LayerScores(101, **options),
            wrong={"sample_index": torch.full((N,), 100)},
            readouts={"scores": lambda metric: metric.scores()},
            core=composite.write_scores,
            core_arguments=lambda stream: (
                torch.zeros(100, 3, dtype=torch.float64),
                stream["sample_index"],
                stream["scores"],
            ),
        ),
    ]


def _memory() -> Entry:
    return Entry(
        "OutcomeMemory",
        lambda **options: pt.OutcomeMemory(100, **options),
        addressed,
        other=lambda **options: pt.OutcomeMemory(101, **options),
        wrong={"sample_index": torch.full((N,), 100)},
        readouts={
            "channel": lambda metric: metric.channel("best"),
            "current": lambda metric: metric.outcomes("current"),
            "previous": lambda metric: metric.outcomes("previous"),
        },
        empty="zero",
        core=memory.write_outcomes,
        core_arguments=lambda stream: (
            torch.full((100,), -1, dtype=torch.int8),
            stream["sample_index"],
            stream["correct"],
        ),
    )


def _fables() -> KnowledgeBase:
    """One fable a sample, each with a rule of the world and characters of its own."""
    kb = KnowledgeBase(symmetric={"friends"})
    kb.assert_claim(("implies", (("spared", "?a", "?b"), ("freed", "?b", "?a")), ("friends", "?a", "?b")), "world")
    for index in range(N):
        fable = f"fable {index}"
        kb.inherits(fable, "world")
        for claim in (
            ("lion", "LionA"),
            ("mouse", "MouseA"),
            ("spared", "LionA", "MouseA"),
            ("freed", "MouseA", "LionA"),
        ):
            kb.assert_claim(claim, fable)
    return kb


FABLES = _fables()


def fables(seed: int) -> Stream:
    generator = torch.Generator().manual_seed(seed)
    read = [("lion", "Leo"), ("mouse", "Mo"), ("spared", "Leo", "Mo"), ("friends", "Mo", "Leo"), ("lion", "LionA"), "?"]
    kept = torch.randint(2, (N, len(read)), generator=generator).tolist()
    return {
        "kb": FABLES,
        "context": [f"fable {index}" for index in range(N)],
        "sentences": [[claim for claim, keep in zip(read, row, strict=True) if keep] for row in kept],
    }


def _claims() -> Entry:
    return Entry(
        "ClaimScore",
        pt.ClaimScore,
        fables,
        other=lambda **options: pt.ClaimScore(method="optimal", **options),
        wrong={"context": ["fable 0"] * (N - 1) + ["no such fable"]},
    )


ENTRIES: list[Entry] = [
    *_channel("ChannelCounts", pt.ChannelCounts, empty="zero"),
    *_channel("CorrectionRate", pt.CorrectionRate),
    *_channel("CorruptionRate", pt.CorruptionRate),
    *_channel("AccuracyDelta", pt.AccuracyDelta),
    *_channel("ChannelSurplus", pt.ChannelSurplus),
    *_channel("NegativeFlipRate", pt.NegativeFlipRate),
    *_channel("PositiveFlipRate", pt.PositiveFlipRate),
    *_channel("Churn", pt.Churn),
    _memory(),
    _protocol(),
    *_paired(),
    _ensemble("EnsembleAccuracy", pt.EnsembleAccuracy),
    _ensemble("MeanMemberAccuracy", pt.MeanMemberAccuracy),
    _ensemble("EnsembleGain", pt.EnsembleGain),
    _ensemble("DisagreementRate", pt.DisagreementRate),
    _ensemble("PairwiseDisagreement", pt.PairwiseDisagreement),
    *_disagreement(),
    _claims(),
    *_composite(),
]
BY_NAME = {entry.name: entry for entry in ENTRIES}


def part(stream: Stream, rows: Tensor | slice) -> Stream:
    """Some rows of every argument that has rows: a tensor or a list."""
    indices = rows.tolist() if isinstance(rows, Tensor) else range(*rows.indices(length(stream)))
    return {
        name: values[torch.as_tensor(list(indices), dtype=torch.int64)]
        if isinstance(values, Tensor)
        else [values[index] for index in indices]
        if isinstance(values, list)
        else values
        for name, values in stream.items()
    }


def length(stream: Stream) -> int:
    """Samples of a stream."""
    return max(len(values) for values in stream.values() if isinstance(values, (Tensor, list)))


def same(first: Any, second: Any) -> bool:
    """Exactly equal, in value, shape and dtype; NaN equals NaN."""
    if isinstance(first, Tensor):
        if not isinstance(second, Tensor) or first.shape != second.shape or first.dtype != second.dtype:
            return False
        return bool(torch.equal(first.nan_to_num(nan=7e77), second.nan_to_num(nan=7e77)))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)
