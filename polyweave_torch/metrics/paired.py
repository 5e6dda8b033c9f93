"""Outcomes of several conditions on the same samples: every paired test from one table of integers."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.functional._checks import (
    check_at_least_one,
    check_binary,
    check_mask,
    check_range,
    check_tensor,
    rate_dtype,
)
from polyweave_torch.functional.cochran import CochranQResult, cochran_q
from polyweave_torch.functional.gram import OutcomeGram, check_outcomes, gram_update, paired_tables
from polyweave_torch.functional.intervals import WilsonInterval, wilson_interval
from polyweave_torch.functional.mcnemar import Adjust, Method, PairwiseMcNemar, mcnemar, mcnemar_pairs
from polyweave_torch.metrics.base import TableMetric, collective, slice_names, wanted_slices
from polyweave_torch.metrics.channel import ChannelCounts


class PairedOutcomes(TableMetric):
    r"""Which conditions are right on which samples, for all pairs of K conditions at once.

    The state is the Gram matrix :math:`G = X^T X` of correctness, what belongs to it where outcomes are missing, and
    the histogram of row totals: 4K² + K + 2 integers for each slice, whatever the number of samples. McNemar's test of
    every pair, Cochran's Q and all accuracies follow from it, exactly, over batches and ranks.

    As input to ``update``:

    - ``correct``: ``[N, K]`` whether each condition is right on each sample (bool, or 0 and 1)
    - ``slice_index``: ``[N]`` int in [0, S); needed with ``slices``, not looked at without
    - ``mask``: ``[N, K]`` bool, False where an outcome is missing; or ``[N]``, False leaves a sample out

    As output of ``compute``: int64 ``[K, K, 2, 2]``, or ``[S, K, K, 2, 2]`` with ``slices``: entry [i, j] is the table
    ``[before, after]`` of a change from condition i to condition j, over the samples on which both were observed.

    Args:
        num_conditions: K.
        slices: None, a number of slices (strata) or their names (kept as ``slice_names``).
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where shapes differ, an outcome is not binary or a slice index is out of range.

    Example:
        >>> import torch
        >>> metric = PairedOutcomes(num_conditions=3)
        >>> metric.update(torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0]]))
        >>> metric.compute()[0, 1]
        tensor([[1, 0],
                [2, 1]])
        >>> metric.accuracies()
        tensor([0.7500, 0.2500, 0.2500], dtype=torch.float64)
    """

    def __init__(
        self,
        num_conditions: int,
        slices: int | Sequence[str] | None = None,
        *,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        check_at_least_one(num_conditions, name="num_conditions")
        self.num_conditions = num_conditions
        self.slice_names = slice_names(slices)
        self._strata = 1 if self.slice_names is None else len(self.slice_names)
        self._state = f"paired_outcomes_{num_conditions}" + ("" if slices is None else f"_{self._strata}")
        cells = 4 * num_conditions**2 + num_conditions + 2
        self.declare(self._state, torch.zeros(self._strata, cells, dtype=torch.int64))

    def update(self, correct: Tensor, slice_index: Tensor | None = None, mask: Tensor | None = None) -> None:
        """Count the outcomes of a batch."""
        check_tensor(correct, name="correct")
        if correct.dim() != 2 or correct.shape[1] != self.num_conditions:
            raise ValueError(
                f"correct must have shape [N, {self.num_conditions}], one column a condition of the metric, "
                f"but came with shape {list(correct.shape)}"
            )
        slice_index = wanted_slices(slice_index, self.slice_names)
        if mask is not None:
            check_tensor(mask, name="mask")
            if mask.dim() == 1:
                check_mask(mask, correct.shape[:1], like="correct")
                mask = mask.unsqueeze(1).expand_as(correct)
        check_outcomes(correct, mask, slice_index)
        if mask is not None and slice_index is not None:
            # A sample without an outcome counts nowhere, whatever its slice.
            slice_index = torch.where(mask.any(1), slice_index.to(torch.int64), 0)
        if self.validate_args:
            check_binary(correct if mask is None else correct.masked_fill(~mask, 0), name="correct")
            if slice_index is not None:
                check_range(slice_index, self._strata, name="slice_index", what="the metric's slices")
        counts: Tensor = getattr(self, self._state)
        setattr(self, self._state, counts + pack_outcomes(correct, slice_index, mask, self._strata))

    def compute(self) -> Tensor:
        """Tables of all ordered pairs."""
        return paired_tables(self._outcome_gram(pooled=False))

    @property
    @collective
    def gram(self) -> Tensor:
        """XᵀX, int64 ``[K, K]`` or ``[S, K, K]``: samples on which both are right. All ranks must read this."""
        return self._outcome_gram(pooled=False).gram

    @property
    @collective
    def n(self) -> Tensor:
        """int64, 0-d or ``[S]``: samples with at least one outcome. All ranks must read this."""
        counts: Tensor = getattr(self, self._state)
        samples = counts[:, -1]
        return samples[0] if self.slice_names is None else samples

    @collective
    def outcome_gram(self, *, pooled: bool = False) -> OutcomeGram:
        """All counts, also those that missing outcomes need. All ranks must call this.

        Args:
            pooled: over all slices together.
        """
        return self._outcome_gram(pooled=pooled)

    @collective
    def mcnemar(
        self,
        method: Method = "auto",
        *,
        adjust: Adjust | None = "holm",
        pooled: bool = False,
        names: Sequence[str] | None = None,
    ) -> PairwiseMcNemar:
        """McNemar's test of every pair. Each slice's pairs are a family of their own. All ranks must call this.

        Args:
            method: as in :func:`~polyweave_torch.functional.mcnemar`.
            adjust: as in :func:`~polyweave_torch.functional.mcnemar_pairs`.
            pooled: over all slices together, as one family.
            names: of the K conditions, to name the pairs by.

        Returns:
            :class:`~polyweave_torch.functional.PairwiseMcNemar`. The last dimension is the pairs, also where there is
            one: ``PairedOutcomes(2).mcnemar().result.p_value`` has shape ``[1]``.
        """
        return mcnemar_pairs(self._outcome_gram(pooled=pooled), method=method, adjust=adjust, names=names)

    @collective
    def cochran_q(self, *, permutation: bool = False, pooled: bool = False) -> CochranQResult:
        """Cochran's Q over the samples on which all conditions were observed. All ranks must call this.

        Args:
            permutation: the exact p-value, from the histogram of row totals.
            pooled: over all slices together.
        """
        return cochran_q(gram=self._outcome_gram(pooled=pooled), permutation=permutation)

    @collective
    def accuracies(self, *, pooled: bool = False) -> Tensor:
        """Accuracy of each condition over its observed samples, ``[K]`` or ``[S, K]``. All ranks must call this.

        Args:
            pooled: over all slices together.
        """
        right, observed = self._right_and_observed(pooled)
        return right.to(rate_dtype(right.device)) / observed

    @collective
    def intervals(self, level: float = 0.95, *, pooled: bool = False) -> WilsonInterval:
        """Accuracy of each condition with Wilson's interval, ``[K]`` or ``[S, K]``. All ranks must call this.

        Args:
            level: coverage of each interval.
            pooled: over all slices together.
        """
        return wilson_interval(*self._right_and_observed(pooled), level=level)

    def _right_and_observed(self, pooled: bool) -> tuple[Tensor, Tensor]:
        gram = self._outcome_gram(pooled=pooled)
        return gram.gram.diagonal(dim1=-2, dim2=-1), gram.n.diagonal(dim1=-2, dim2=-1)

    def _outcome_gram(self, *, pooled: bool) -> OutcomeGram:
        counts: Tensor = getattr(self, self._state)
        if pooled or self.slice_names is None:
            counts = counts.sum(0)
        return unpack_outcomes(counts, self.num_conditions)


def pack_outcomes(correct: Tensor, slice_index: Tensor | None, mask: Tensor | None, strata: int) -> Tensor:
    """The counts of a batch as int64 ``[S, 4K² + K + 2]``, without waiting for the device."""
    batch = gram_update(correct, mask=mask, slice_index=slice_index, num_slices=strata)
    present = torch.ones_like(correct[:, 0], dtype=torch.int64) if mask is None else mask.any(1).to(torch.int64)
    stratum = torch.zeros_like(present) if slice_index is None else slice_index.to(torch.int64)
    samples = torch.zeros(strata, dtype=torch.int64, device=correct.device).scatter_add(0, stratum, present)
    squares = (batch.gram, batch.observed, batch.n, batch.complete)
    return torch.cat([*(part.flatten(1) for part in squares), batch.row_totals, samples.unsqueeze(1)], 1)


def unpack_outcomes(counts: Tensor, conditions: int) -> OutcomeGram:
    """The parts of :func:`pack_outcomes`."""
    square = conditions**2
    parts = torch.split(counts, [square] * 4 + [conditions + 1, 1], dim=-1)
    gram, observed, n, complete = (part.reshape(*part.shape[:-1], conditions, conditions) for part in parts[:4])
    return OutcomeGram(
        gram=gram, observed=observed, n=n, complete=complete, complete_n=parts[4].sum(-1), row_totals=parts[4]
    )


class CochranQPValue(PairedOutcomes):
    """p-value of Cochran's Q: are K conditions equally accurate on the same samples?

    Input as in :class:`PairedOutcomes`, whose state it shares in a ``MetricCollection``; ``compute`` returns a 0-d
    tensor on the CPU, NaN without samples or with one condition.

    Args:
        num_conditions: K.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        TypeError: where ``slices`` came.

    Example:
        >>> import torch
        >>> metric = CochranQPValue(num_conditions=3)
        >>> metric.update(torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]]))
        >>> round(float(metric.compute()), 6)
        0.716531
    """

    higher_is_better = None
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(self, num_conditions: int, *, validate_args: bool = True, **kwargs: Any) -> None:
        _check_no_slices(kwargs, "PairedOutcomes(num_conditions, slices=...), whose cochran_q() tests each slice")
        super().__init__(num_conditions, validate_args=validate_args, **kwargs)

    def compute(self) -> Tensor:
        """The p-value."""
        return cochran_q(gram=self._outcome_gram(pooled=False)).p_value


class McNemarPValue(ChannelCounts):
    """p-value of McNemar's test: is a change of correctness on the same samples more than chance?

    As input to ``update``: ``before`` and ``after`` as in :class:`ChannelCounts`, whose state it shares in a
    ``MetricCollection``; or ``correct`` ``[N, 2]`` alone with both as columns, as in :class:`PairedOutcomes`. As output
    of ``compute``: a 0-d tensor on the CPU, 1 where no sample changed, NaN without samples.

    Args:
        method: as in :func:`~polyweave_torch.functional.mcnemar`.
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        TypeError: where ``slices`` came.
        ValueError: where ``method`` is unknown; in ``update``, where neither form came whole, shapes differ or an
            outcome is not binary.

    Example:
        >>> import torch
        >>> metric = McNemarPValue()
        >>> metric.update(torch.tensor([0] * 9 + [1]), torch.tensor([1] * 9 + [0]))
        >>> metric.compute()
        tensor(0.0215, dtype=torch.float64)
    """

    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(self, method: Method = "auto", *, validate_args: bool = True, **kwargs: Any) -> None:
        _check_no_slices(kwargs, "ChannelCounts(slices=...), and mcnemar(counts=...) of what it computes")
        super().__init__(validate_args=validate_args, **kwargs)
        mcnemar(0, 0, method=method)  # an unknown method is an error now, not at the first compute
        self.method: Method = method

    def update(
        self,
        before: Tensor | None = None,
        after: Tensor | None = None,
        slice_index: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        correct: Tensor | None = None,
    ) -> None:
        """Count the transitions of a batch. As in all metrics without slices, ``slice_index`` is not looked at."""
        if before is not None and after is None and correct is None:
            correct, before = before, None
        if before is None and after is None and correct is not None:
            check_tensor(correct, name="correct")
            if correct.dim() != 2 or correct.shape[1] != 2:
                raise ValueError(
                    "McNemarPValue takes before and after, each [N], or correct [N, 2] alone, "
                    f"but correct came with shape {list(correct.shape)}"
                )
            before, after = correct.unbind(1)
        if before is None or after is None:
            given = {"before": before, "after": after, "correct": correct}
            came = ", ".join(name for name, value in given.items() if value is not None) or "none"
            raise ValueError(f"McNemarPValue takes before and after, each [N], or correct [N, 2] alone; {came} came")
        super().update(before, after, None, mask)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw one value or a sequence of values, as torchmetrics does for scalars."""
        return TableMetric.plot(self, val, ax)

    def compute(self) -> Tensor:
        """The p-value."""
        counts = self._counts().cpu()
        return mcnemar(counts=counts, method=self.method).p_value.where(counts.sum() > 0, torch.nan)


def _check_no_slices(options: dict[str, Any], instead: str) -> None:
    if "slices" in options:
        raise TypeError(f"this metric is one p-value and has no slices; use {instead}")
