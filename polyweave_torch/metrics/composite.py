"""Composite scores as a metric, and a store of layer scores by sample from which verdicts are drawn."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.functional._checks import check_at_least_one, check_index, check_mask, check_range, check_tensor
from polyweave_torch.functional.composite import (
    check_layer_names,
    check_layers,
    composite_means,
    composite_sums,
    passes_gate,
    usable_scores,
)
from polyweave_torch.metrics.base import TableMetric, collective

LAYERS = ("fact", "behavior", "judge")


class CompositeScore(TableMetric):
    """Mean score of each layer, mean composite, and whether every layer passes the gate.

    As input to ``update``:

    - ``scores``: ``[N, L]`` from 1 to 5, one column a layer; NaN, or 0 and below, where a layer is missing
    - ``mask``: ``[N]`` bool, False leaves a sample out

    As output of ``compute``: a dict of 0-d float64 tensors: each layer's mean by its name, ``composite`` (the mean of
    the samples' composites, each the mean of the layers it has), both NaN without data, and ``gate_passed``: 1 where
    the means of all present layers reach the gate, else 0; no layer, no pass.

    The sums are float64, which MPS does not have: there, keep the metric on the CPU. A composite compares runs on the
    same samples; it is no absolute level, and composites of different layers don't compare.

    Args:
        layers: names of the L layers.
        gate: what the mean of each present layer has to reach.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where scores don't have one column a layer.

    Example:
        >>> import torch
        >>> metric = CompositeScore(layers=("fact", "judge"))
        >>> metric.update(torch.tensor([[5.0, 4.0], [4.0, 0.0]]))
        >>> {name: float(value) for name, value in metric.compute().items()}
        {'fact': 4.5, 'judge': 4.0, 'composite': 4.25, 'gate_passed': 1.0}
    """

    higher_is_better = True

    def __init__(self, layers: Sequence[str] = LAYERS, gate: float = 3.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer_names = check_layer_names(layers)
        if taken := {"composite", "gate_passed"} & set(self.layer_names):
            raise ValueError(f"no layer can be named {sorted(taken)}, which compute returns beside the layers")
        self.gate = gate
        self._sums, self._counts = (_state(name, self.layer_names) for name in ("composite_sums", "composite_counts"))
        self.declare(self._sums, torch.zeros(2 * len(self.layer_names), dtype=torch.float64))
        self.declare(self._counts, torch.zeros(2 * len(self.layer_names), dtype=torch.int64))

    def update(self, scores: Tensor, mask: Tensor | None = None) -> None:
        """Add the scores of a batch."""
        check_tensor(scores, name="scores")
        check_layers(scores, self.layer_names, name="scores")
        if mask is not None:
            check_mask(mask, scores.shape[:1], like="scores")
        sums, counts = composite_sums(scores, mask)
        setattr(self, self._sums, getattr(self, self._sums) + sums)
        setattr(self, self._counts, getattr(self, self._counts) + counts)

    def compute(self) -> dict[str, Tensor]:
        """Means by layer, ``composite`` and ``gate_passed``."""
        means, composite = composite_means(getattr(self, self._sums), getattr(self, self._counts))
        passed = passes_gate(means, self.gate).to(means)
        return {**dict(zip(self.layer_names, means, strict=True)), "composite": composite, "gate_passed": passed}


class LayerScores(TableMetric):
    """The scores of every sample of a data set, addressed by sample index, so that two runs pair without error.

    Each sample has a row, whatever rank or batch brings it: shuffling, a sample that a padded ``DistributedSampler``
    repeats, and ranks with unequal numbers of batches can't misalign two runs. Of several scores for one cell the
    highest stays. Fill one store with the control's scores and one with the treatment's, then
    ``verdict(control.scores(), treatment.scores(), layer_names=control.layer_names)``.

    As input to ``update``:

    - ``sample_index``: ``[N]`` int in [0, num_samples)
    - ``scores``: ``[N, L]`` from 1 to 5, one column a layer; NaN, or 0 and below, where a layer is missing

    As output of ``compute``: float64 ``[L]``, the mean of each layer over the samples that have it.

    Scores are kept in float64 (as :func:`layer_score` gives them; float32 marks lose nothing), 8 bytes a sample and
    layer on the device, which can't be MPS. The state is in checkpoints by default, since it is a memory;
    ``persistent(False)`` leaves it out. ``reset()`` starts the next epoch.

    Args:
        num_samples: size of the data set.
        layers: names of the L layers.
        validate_args: check the indices in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where shapes don't fit or an index is out of range.

    Example:
        >>> import torch
        >>> store = LayerScores(num_samples=3, layers=("fact", "judge"))
        >>> store.update(torch.tensor([2, 0]), torch.tensor([[5.0, 4.0], [4.0, 0.0]]))
        >>> store.scores()
        tensor([[4., nan],
                [nan, nan],
                [5., 4.]], dtype=torch.float64)
    """

    higher_is_better = True

    def __init__(
        self, num_samples: int, layers: Sequence[str] = LAYERS, *, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_samples, name="num_samples")
        self.num_samples = num_samples
        self.layer_names = check_layer_names(layers)
        # 0 is no score, and the maximum over batches and ranks replaces it by one.
        unseen = torch.zeros(num_samples, len(self.layer_names), dtype=torch.float64)
        self._state = _state("layer_scores", self.layer_names)
        self.declare(self._state, unseen, reduce="max", persistent=True)

    def update(self, sample_index: Tensor, scores: Tensor) -> None:
        """Write the scores of a batch."""
        check_tensor(scores, name="scores")
        check_layers(scores, self.layer_names, name="scores")
        check_index(sample_index, len(scores), name="sample_index", like="scores")
        if self.validate_args:
            check_range(sample_index, self.num_samples, name="sample_index", what="the store's num_samples")
        # Written in place, since a copy of the store for every batch would cost more than the batch.
        write_scores(self._writable(self._state), sample_index, scores)

    def compute(self) -> Tensor:
        """Mean of each layer."""
        return self._scores().nanmean(0)

    @collective
    def scores(self) -> Tensor:
        """Scores of all samples: float64 ``[num_samples, L]``, NaN where missing. All ranks must call this."""
        return self._scores()

    def _scores(self) -> Tensor:
        return usable_scores(getattr(self, self._state))


def write_scores(cells: Tensor, sample_index: Tensor, scores: Tensor) -> Tensor:
    """Raise the rows ``[N, L]`` of the addressed samples to their scores, in place; what is missing changes nothing."""
    values = usable_scores(scores).nan_to_num(nan=0.0).to(cells)
    rows = sample_index.to(torch.int64).unsqueeze(1).expand_as(values)
    return cells.scatter_reduce_(0, rows, values, "amax")


def _state(name: str, layers: Sequence[str]) -> str:
    """The name of a state, which says whose scores it holds: states of other layers can't be merged or loaded."""
    return re.sub(r"\W", "_", "_".join((name, *layers))).lower()
