"""Reading outcomes off the update of a module's own torchmetrics metric."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torchmetrics import Metric

from polyweave_torch.callbacks._outcomes import BatchOutcomes, compare
from polyweave_torch.metrics.base import TableMetric


class Call(NamedTuple):
    """One update of a metric."""

    metric: Metric
    preds: Tensor
    target: Tensor


class MetricTap:
    """What one capture hears of the updates of a module's metrics, while it listens."""

    def __init__(self, pl_module: nn.Module) -> None:
        self._calls: dict[str, list[Call]] = {}
        self._wires = _wires.setdefault(pl_module, _Wires(pl_module))
        self._wires.join(self)

    def hear(self, name: str, call: Call) -> None:
        """Note an update."""
        earlier = self._calls.setdefault(name, [])
        # forward() of some metrics updates twice with one batch, globally and for the batch's own value.
        if not (earlier and earlier[-1].preds is call.preds):
            earlier.append(call)

    def take(self) -> dict[str, list[Call]]:
        """Calls since the last time, by the metric's name in the module."""
        calls, self._calls = self._calls, {}
        return calls

    def close(self) -> None:
        """Stop listening; the last to stop gives every metric its own update back."""
        self._wires.leave(self)


class _Wires:
    """The wrapped updates of one module's metrics. Captures share them: wrappers of wrappers could not be undone."""

    def __init__(self, pl_module: nn.Module) -> None:
        # Ours hold votes or outcomes, which are no predictions to compare with a target.
        self._metrics = [
            (name, metric)
            for name, metric in pl_module.named_modules()
            if isinstance(metric, Metric) and not isinstance(metric, TableMetric)
        ]
        self._taps: list[MetricTap] = []
        self._restore: list[Callable[[], None]] = []

    def join(self, tap: MetricTap) -> None:
        if not self._taps:
            for name, metric in self._metrics:
                self._wrap(name, metric)
        self._taps.append(tap)

    def leave(self, tap: MetricTap) -> None:
        if tap in self._taps:
            self._taps.remove(tap)
        while self._restore and not self._taps:
            self._restore.pop()()

    def _wrap(self, name: str, metric: Metric) -> None:
        original = metric.update

        @functools.wraps(original)
        def update(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            call = _read(metric, args, kwargs)
            if call is not None:
                for tap in self._taps:
                    tap.hear(name, call)

        def restore() -> None:
            metric.update = original  # type: ignore[method-assign]

        metric.update = update  # type: ignore[method-assign]
        self._restore.append(restore)


_wires: WeakKeyDictionary[nn.Module, _Wires] = WeakKeyDictionary()


def choose_metric(calls: dict[str, list[Call]]) -> str:
    """The metric to read in every batch: the first, if all that were updated saw the same data.

    Raises:
        ValueError: where no metric was updated with predictions and targets, or several saw different data.
    """
    seen = {name: made for name, made in calls.items() if made}
    if not seen:
        raise ValueError(
            "none of the module's metrics was updated with predictions and targets in this batch; add "
            "observe(preds, target) to the step (from polyweave_torch.callbacks import observe)"
        )
    names = list(seen)
    for other in names[1:]:
        if not _same_data(seen[names[0]], seen[other]):
            raise ValueError(
                f"the metrics {names[0]!r} and {other!r} saw different data, so which to follow is not clear; add "
                "observe(preds, target) to the step for the one that counts"
            )
    return names[0]


def read_metric(
    name: str, calls: dict[str, list[Call]], *, threshold: float | None, ignore_index: int | None
) -> BatchOutcomes:
    """Outcomes of the one update of the chosen metric in this batch."""
    made = calls.get(name, [])
    if len(made) != 1:
        raise ValueError(
            f"the metric {name!r} was updated {len(made)} times in this batch, not once; add observe(preds, target) to "
            "the step, which must give one row for every sample"
        )
    metric, preds, target = made[0]
    if (getattr(metric, "top_k", None) or 1) > 1:
        raise ValueError(
            f"the metric {name!r} counts the top {metric.top_k} classes as right; say which samples are right by "
            "observe(correct=...)"
        )
    own = getattr(metric, "ignore_index", None)
    ignore = own if ignore_index is None and isinstance(own, int) else ignore_index
    cut = getattr(metric, "threshold", None)
    if threshold is None and isinstance(cut, float) and preds.is_floating_point():
        # As torchmetrics does: scores outside [0, 1] are logits.
        preds = torch.where(((preds < 0) | (preds > 1)).any(), preds.sigmoid(), preds)
        threshold = cut
    return compare(preds, target, threshold=threshold, ignore_index=ignore)


def _read(metric: Metric, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    names = [name for name in inspect.signature(type(metric).update).parameters if name != "self"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    preds, target = given.get("preds"), given.get("target")
    if isinstance(preds, Tensor) and isinstance(target, Tensor):
        return Call(metric, preds, target)
    return None


def _same_data(first: list[Call], second: list[Call]) -> bool:
    if len(first) != len(second):
        return False
    pairs = [
        (getattr(a, part), getattr(b, part)) for a, b in zip(first, second, strict=True) for part in Call._fields[1:]
    ]
    return all(a.shape == b.shape and bool(torch.equal(a, b)) for a, b in pairs)
