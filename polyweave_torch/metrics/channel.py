"""The channel table as a metric, and the scalars that are read off it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.functional._checks import check_binary, check_range
from polyweave_torch.functional.channel import (
    ChannelEstimate,
    add_transitions,
    check_smoothing,
    check_transitions,
    estimate_channel,
)
from polyweave_torch.functional.flips import flip_rates
from polyweave_torch.functional.gating import phase_plane_diagnosis
from polyweave_torch.metrics.base import TableMetric, slice_names, wanted_slices


class ChannelCounts(TableMetric):
    r"""Transitions of correctness, ``[before, after]``, overall or by slice.

    As input to ``update``:

    - ``before``: ``[N]`` whether each sample was right before (bool, or 0 and 1)
    - ``after``: ``[N]`` whether it was right after
    - ``slice_index``: ``[N]`` int in [0, S); needed with ``slices``, not looked at without
    - ``mask``: ``[N]`` bool, False leaves a sample out, for instance a padding duplicate; neither its outcomes nor its
      slice are looked at

    As output of ``compute``: int64 ``[2, 2]``, or ``[S, 2, 2]`` with ``slices``. Everything that
    :mod:`polyweave_torch.functional` says of channels is a function of it.

    The state is 4·S integers whatever the number of samples. All scalars of one table
    (:class:`CorrectionRate` ... :class:`Churn`) share it, so a ``MetricCollection`` updates once.

    Args:
        slices: None, a number of slices or their names (kept as ``slice_names``).
        validate_args: check values in ``update``, which waits for the device.
        kwargs: see :class:`torchmetrics.Metric`.

    Raises:
        ValueError: in ``update``, where lengths differ, an outcome is not binary or a slice index is out of range.

    Example:
        >>> import torch
        >>> metric = ChannelCounts()
        >>> metric.update(torch.tensor([True, True, False]), torch.tensor([True, False, True]))
        >>> metric.compute()
        tensor([[0, 1],
                [1, 1]])
    """

    def __init__(self, slices: int | Sequence[str] | None = None, *, validate_args: bool = True, **kwargs: Any) -> None:
        super().__init__(validate_args=validate_args, **kwargs)
        self.slice_names = slice_names(slices)
        rows = 1 if self.slice_names is None else len(self.slice_names)
        self._state = "channel_counts" if self.slice_names is None else f"channel_counts_{rows}"
        self.declare(self._state, torch.zeros(rows * 4, dtype=torch.int64))

    def update(
        self, before: Tensor, after: Tensor, slice_index: Tensor | None = None, mask: Tensor | None = None
    ) -> None:
        """Count the transitions of a batch."""
        slice_index = wanted_slices(slice_index, self.slice_names)
        check_transitions(before, after, slice_index, mask)
        counts: Tensor = getattr(self, self._state)
        if self.validate_args:
            check_binary(before, name="before", mask=mask)
            check_binary(after, name="after", mask=mask)
            if slice_index is not None:
                check_range(slice_index, len(counts) // 4, name="slice_index", what="the metric's slices", mask=mask)
        setattr(self, self._state, add_transitions(counts, before, after, slice_index, mask))

    def compute(self) -> Tensor:
        """The table."""
        return self._counts()

    def plot(self, val: Tensor | None = None, ax: Any = None) -> Any:
        """Draw the phase plane: one point a slice, see :func:`polyweave_torch.plot.phase_plane` (extra ``plot``).

        Args:
            val: what ``compute`` returned; by default ``compute()`` is called.
            ax: matplotlib axes to draw on.

        Returns:
            Figure and axes.
        """
        from polyweave_torch.plot import phase_plane  # the metrics work without matplotlib

        counts = self.compute() if val is None else val
        tables = counts.reshape(-1, 2, 2)
        names = self.slice_names or ("all",)
        return phase_plane({name: estimate_channel(table) for name, table in zip(names, tables, strict=True)}, ax=ax)

    def _counts(self) -> Tensor:
        counts: Tensor = getattr(self, self._state)
        return counts.view(2, 2) if self.slice_names is None else counts.view(-1, 2, 2)


class _ChannelScalar(ChannelCounts):
    """Shared by the scalars: the state of :class:`ChannelCounts`, read as one rate."""

    def __init__(
        self,
        slices: int | Sequence[str] | None = None,
        smoothing: float = 0.5,
        *,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(slices, validate_args=validate_args, **kwargs)
        check_smoothing(smoothing)
        self.smoothing = smoothing

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw one value or a sequence of values, as torchmetrics does for scalars."""
        return TableMetric.plot(self, val, ax)

    def _estimate(self) -> ChannelEstimate:
        return estimate_channel(self._counts(), smoothing=self.smoothing)


class CorrectionRate(_ChannelScalar):
    """Of the samples that were wrong before, the share that is right after: (n01 + s) / (n0 + 2s).

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: the pseudo-count s; 0 gives the raw rate n01 / n0.

    Example:
        >>> import torch
        >>> metric = CorrectionRate(smoothing=0)
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 1, 0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        channel = self._estimate()
        return channel.c.where(channel.total > 0, torch.nan)


class CorruptionRate(_ChannelScalar):
    """Of the samples that were right before, the share that is wrong after: (n10 + s) / (n1 + 2s).

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: the pseudo-count s; 0 gives the raw rate n10 / n1.

    Example:
        >>> import torch
        >>> metric = CorruptionRate(smoothing=0)
        >>> metric.update(torch.tensor([0, 1, 1, 1, 1]), torch.tensor([1, 0, 1, 1, 1]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        channel = self._estimate()
        return channel.gamma.where(channel.total > 0, torch.nan)


class AccuracyDelta(_ChannelScalar):
    """Accuracy after minus accuracy before: (n01 - n10) / N, never smoothed.

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: not used; accepted so that the scalars of one table are built alike.

    Example:
        >>> import torch
        >>> metric = AccuracyDelta()
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 1, 0]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = -1.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        return self._estimate().delta


class ChannelSurplus(_ChannelScalar):
    """Correction rate above break-even: c - p0 / (1 - p0)·gamma. Positive means that the change pays.

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``; -inf where every
    sample was right before, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: the pseudo-count of both rates.

    Example:
        >>> import torch
        >>> metric = ChannelSurplus()
        >>> metric.update(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 1]))
        >>> metric.compute()
        tensor(0.7083, dtype=torch.float64)
    """

    higher_is_better = True

    def compute(self) -> Tensor:  # noqa: D102
        return phase_plane_diagnosis(self._estimate()).surplus


class NegativeFlipRate(_ChannelScalar):
    """Share of all samples that were right before and are wrong after: n10 / N.

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: not used; accepted so that the scalars of one table are built alike.

    Example:
        >>> import torch
        >>> metric = NegativeFlipRate()
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 1, 0]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        return flip_rates(self._counts()).negative_flip_rate


class PositiveFlipRate(_ChannelScalar):
    """Share of all samples that were wrong before and are right after: n01 / N.

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: not used; accepted so that the scalars of one table are built alike.

    Example:
        >>> import torch
        >>> metric = PositiveFlipRate()
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 1, 0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        return flip_rates(self._counts()).positive_flip_rate


class Churn(_ChannelScalar):
    """Share of all samples whose correctness changed: (n01 + n10) / N.

    Input and arguments as in :class:`ChannelCounts`; ``compute`` returns a 0-d tensor or ``[S]``, NaN without samples.

    Args:
        slices: None, a number of slices or their names.
        smoothing: not used; accepted so that the scalars of one table are built alike.

    Example:
        >>> import torch
        >>> metric = Churn()
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 1, 0]))
        >>> metric.compute()
        tensor(0.7500, dtype=torch.float64)
    """

    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def compute(self) -> Tensor:  # noqa: D102
        return flip_rates(self._counts()).churn
