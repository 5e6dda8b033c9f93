"""Layer scores from 1 to 5, their composite, and how far several judges agree.

The composite is a signal to compare runs on the same samples by, not an absolute level: its weights are declared rather
than derived, shares of passed checks and judges' marks are not one scale, and composites of different layers are
different things, which is why every composite comes with the number of layers behind it.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from polyweave_torch.functional._checks import Numbers, Values, rate_dtype
from polyweave_torch.functional.correlation import pearson

Standardize = Literal["z", "rank"]

# What a sum of decimal fractions may be off a threshold that it should meet: 4.1 - 4.0 is below 0.1 by 4e-16.
ROUNDING = 1e-9


class CompositeResult(NamedTuple):
    """Composites, each of the shape ``[...]`` of the samples, on the input's device."""

    score: Tensor
    """Weighted mean of the present layers; NaN where none is."""
    layers_present: Tensor
    """int64, the layers behind each composite; composites of different layers don't compare."""


class RankedRun(NamedTuple):
    """One run in a ranking by composite."""

    name: str
    """As it was given."""
    composite: Tensor
    """Mean composite over the samples that have one."""
    layers: dict[str, Tensor]
    """Mean of each layer over the samples that have it; NaN where none does."""
    samples: int
    """Samples that have a composite."""
    gate_passed: bool
    """Whether the means of all layers that the run has reach the gate; not where it has none."""
    comparable: bool
    """Whether the run has the same layers as the first run that was given."""


def layer_score(passed_weight: Numbers, total_weight: Numbers) -> Tensor:
    r"""Score of a layer of checks, from 1 where none passed to 5 where all did.

    .. math:: 1 + 4 \cdot \frac{\text{passed weight}}{\text{total weight}}

    Args:
        passed_weight: sum of the weights of the checks that passed, any shape.
        total_weight: sum of the weights of all checks, broadcast against it.

    Returns:
        Scores in [1, 5] on the input's device, float64 (float32 on MPS); NaN, a missing layer, where the total is 0.

    Raises:
        ValueError: where a weight is negative, or more passed than there is.

    Source: the documentation of omk, page "composite", section 1.

    Example:
        >>> from polyweave_torch.functional import layer_score
        >>> layer_score([3.0, 0.0, 0.0], [4.0, 2.0, 0.0])
        tensor([4., 1., nan], dtype=torch.float64)
    """
    passed, total = _as_floats(passed_weight), _as_floats(total_weight)
    if isinstance(passed_weight, Tensor) != isinstance(total_weight, Tensor):
        device = passed.device if isinstance(passed_weight, Tensor) else total.device
        passed, total = passed.to(device), total.to(device)
    if bool((passed < 0.0).any()) or bool((passed > total * (1.0 + 1e-6)).any()):
        raise ValueError(
            "passed_weight must lie between 0 and total_weight; pass the summed weights of the checks that passed, "
            "and of all checks"
        )
    # Two sums of the same weights in other orders may differ in their last bits.
    return 1.0 + 4.0 * (passed / total).clamp(max=1.0)


def composite_score(
    layers: Values, *, weights: Values | None = None, standardize: Standardize | None = None
) -> CompositeResult:
    r"""Composite of each sample: the mean of the layers it has.

    .. math:: \frac{\sum_l w_l s_l}{\sum_l w_l} \quad \text{over the layers } l \text{ present in the sample}

    Args:
        layers: ``[..., L]`` scores, NaN where a layer is missing. Scores start at 1, so a mark of 0 or below is a
            judgement that failed, and missing too.
        weights: L weights, not negative; by default equal ones. They are renormalised over the present layers.
        standardize: bring layers of different spread on one scale first, over all samples given (so stack both arms):
            ``"z"`` subtracts a layer's mean and divides by its standard deviation (of the population), ``"rank"`` does
            that to average ranks. A layer without spread becomes 0.

    Returns:
        :class:`CompositeResult`: ``score`` float64 (float32 on MPS), ``layers_present`` counts layers of weight > 0.

    Raises:
        ValueError: where weights don't fit the layers, are negative, or sum to 0.

    Source: the documentation of omk, page "composite", sections 1 and 6.

    Example:
        >>> from polyweave_torch.functional import composite_score
        >>> nan = float("nan")
        >>> composite_score([[4.5, 4.0, 3.5], [nan, nan, 4.0], [5.0, nan, 0.0], [nan, nan, nan]])
        CompositeResult(score=tensor([4., 4., 5., nan], dtype=torch.float64), layers_present=tensor([3, 1, 1, 0]))
    """
    scores = usable_scores(layers)
    if scores.dim() == 0:
        raise ValueError("layers must have shape [..., L], but came as one number")
    weight = _checked_weights(weights, scores)
    if standardize is not None:
        scores = _standardized(scores, standardize)
    present = ~scores.isnan()
    mass = weight * present
    score = (mass * scores.nan_to_num(nan=0.0)).sum(-1) / mass.sum(-1)
    return CompositeResult(score, (mass > 0.0).sum(-1))


def inter_judge_pearson(marks: Values) -> Tensor:
    """How far judges agree: the mean of the Pearson correlations of all pairs of them.

    Args:
        marks: ``[N, J]``, one column a judge; NaN, or a mark of 0 or below, where a judgement failed. Only samples that
            every judge marked count.

    Returns:
        0-d float64 on the CPU, the mean of the defined correlations. NaN where none is defined: one judge, fewer than
        2 samples, or constant marks.

    Raises:
        ValueError: where the marks aren't ``[N, J]``.

    Example:
        >>> from polyweave_torch.functional import inter_judge_pearson
        >>> round(float(inter_judge_pearson([[1, 2, 4], [3, 3, 3], [5, 4, 4], [0, 1, 1]])), 4)
        0.3333
    """
    scores = usable_scores(marks).cpu()
    if scores.dim() != 2:
        raise ValueError(f"marks must have shape [N, J], one column a judge, but came with shape {list(scores.shape)}")
    scores = scores[~scores.isnan().any(1)]
    pairs = [pearson(first, second).r for first, second in itertools.combinations(scores.T, 2)]
    return torch.stack(pairs).nanmean() if pairs else torch.tensor(torch.nan, dtype=torch.float64)


def rank_runs(
    runs: Mapping[str, Values],
    *,
    layer_names: Sequence[str],
    weights: Mapping[str, float] | Values | None = None,
    gate: float = 3.5,
) -> tuple[RankedRun, ...]:
    """Order runs by their mean composite, the highest first, and flag those whose layers differ.

    Args:
        runs: ``[N, L]`` scores by name, as in :func:`composite_score`; runs without a composite come last.
        layer_names: L names.
        weights: of the layers, by name or in their order, as in :func:`composite_score`.
        gate: what the mean of each present layer has to reach.

    Returns:
        One :class:`RankedRun` a run; equals stay in the order given.

    Raises:
        ValueError: where scores don't have one column a layer, or weights don't fit the layers.

    Example:
        >>> from polyweave_torch.functional import rank_runs
        >>> runs = {"a": [[4.0, 3.0], [5.0, 4.0]], "b": [[4.5, float("nan")]]}
        >>> [(run.name, float(run.composite), run.comparable) for run in rank_runs(runs, layer_names=("fact", "judge"))]
        [('b', 4.5, False), ('a', 4.0, True)]
    """
    names = check_layer_names(layer_names)
    in_order = weights_in_order(weights, names)
    ranked: list[RankedRun] = []
    for name, values in runs.items():
        scores = usable_scores(values)
        check_layers(scores, names, name=name)
        composites = composite_score(scores, weights=in_order).score
        means = scores.nanmean(0).cpu()
        comparable = not ranked or bool((means.isnan() == torch.stack([*ranked[0].layers.values()]).isnan()).all())
        ranked.append(
            RankedRun(
                name=name,
                composite=composites.nanmean().cpu(),
                layers=dict(zip(names, means, strict=True)),
                samples=int((~composites.isnan()).sum()),
                gate_passed=bool(passes_gate(means, gate)),
                comparable=comparable,
            )
        )
    return tuple(sorted(ranked, key=lambda run: -float(run.composite.nan_to_num(nan=-torch.inf))))


def usable_scores(values: Values) -> Tensor:
    """Values as floats of the device's widest kind, NaN where there is none: no number, or not above 0."""
    scores = _as_floats(values)
    return torch.where((scores > 0.0) & scores.isfinite(), scores, torch.nan)


def check_layers(scores: Tensor, layer_names: Sequence[str], *, name: str) -> None:
    """Refuse scores that don't have one row a sample and one column a layer."""
    if scores.dim() != 2 or scores.shape[1] != len(layer_names):
        raise ValueError(
            f"{name} must have shape [N, {len(layer_names)}], one column for each of the layers {list(layer_names)}, "
            f"but came with shape {list(scores.shape)}"
        )


def check_layer_names(layer_names: Sequence[str]) -> tuple[str, ...]:
    """Layer names, which must be there and differ."""
    names = tuple(layer_names)
    if isinstance(layer_names, str) or not names or len(set(names)) != len(names):
        raise ValueError(f"layers must be one or more different names, but are {layer_names!r}")
    return names


def weights_in_order(
    weights: Mapping[str, float] | Values | None, layer_names: Sequence[str]
) -> tuple[float, ...] | None:
    """Weights in the order of the layers, where they may have come by name."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        if set(weights) != set(layer_names):
            raise ValueError(f"weights must name each of the layers {list(layer_names)}, but name {list(weights)}")
        weights = [weights[name] for name in layer_names]
    return tuple(float(weight) for weight in weights)


def passes_gate(means: Tensor, gate: float) -> Tensor:
    """Whether all present layers of ``[..., L]`` means reach the gate; not where none is present."""
    present = ~means.isnan()
    return present.any(-1) & (~present | (means >= gate - ROUNDING)).all(-1)


def composite_sums(scores: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """What adds up to the means of layers and composite, without waiting for the device.

    Args:
        scores: ``[N, L]``.
        mask: ``[N]`` bool, False leaves a sample out.

    Returns:
        Sums and int64 counts, ``[2L]`` each: L layers, then the totals of the samples that have 1 to L layers. Apart
        until :func:`composite_means` divides them, they lose nothing to rounding where the scores are short fractions.
    """
    scores = usable_scores(scores)
    if mask is not None:
        scores = torch.where(mask.unsqueeze(1), scores, torch.nan)
    present = ~scores.isnan()
    scores = scores.nan_to_num(nan=0.0)
    layers_present = present.sum(1)
    totals = scores.new_zeros(scores.shape[1] + 1).index_add(0, layers_present, scores.sum(1))
    samples = torch.zeros_like(totals, dtype=torch.int64).index_add(0, layers_present, torch.ones_like(layers_present))
    return torch.cat([scores.sum(0), totals[1:]]), torch.cat([present.sum(0), samples[1:]])


def composite_means(sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of each layer ``[L]`` and of the composites, 0-d, from :func:`composite_sums`; NaN without data."""
    layers = len(sums) // 2
    means = sums / counts
    shares = torch.arange(1, layers + 1, device=sums.device)
    return means[:layers], (sums[layers:] / shares).sum() / counts[layers:].sum()


def _as_floats(values: Numbers) -> Tensor:
    tensor = values if isinstance(values, Tensor) else torch.as_tensor(values, dtype=torch.float64)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise TypeError(f"scores and weights must be real numbers, but came as {tensor.dtype}")
    return tensor.detach().to(rate_dtype(tensor.device))


def _checked_weights(weights: Values | None, scores: Tensor) -> Tensor:
    if weights is None:
        return scores.new_ones(scores.shape[-1])
    weight = _as_floats(weights).to(scores)
    if weight.shape != scores.shape[-1:]:
        raise ValueError(
            f"weights must have one number for each of the {scores.shape[-1]} layers, "
            f"but came with shape {list(weight.shape)}"
        )
    if not bool((weight >= 0.0).all() & weight.isfinite().all() & (weight.sum() > 0.0)):
        raise ValueError(f"weights must not be negative and must not sum to 0, but are {weight.tolist()}")
    return weight


def _standardized(scores: Tensor, how: Standardize) -> Tensor:
    if how not in get_args(Standardize):
        raise ValueError(f"standardize must be None or one of {list(get_args(Standardize))}, but is {how!r}")
    columns = scores.reshape(-1, scores.shape[-1])
    missing = columns.isnan()
    if how == "rank":
        # Missing scores stand behind all others and get no rank.
        filled = columns.T.masked_fill(missing.T, torch.inf).contiguous()
        ordered = filled.sort(1).values
        below, upto = (torch.searchsorted(ordered, filled, side=side) for side in ("left", "right"))
        columns = ((below + upto + 1).T.to(columns) / 2.0).masked_fill(missing, torch.nan)
    centred = columns - columns.nanmean(0)
    spread = centred.square().nanmean(0).sqrt()
    # A rounded mean may leave a constant layer with a spread of 1e-16.
    return torch.where(spread > ROUNDING, centred / spread, centred * 0.0).reshape(scores.shape)
