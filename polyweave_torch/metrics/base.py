"""What every metric of this library owes its users, in one class."""

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import torch
from torch import Tensor, nn
from torchmetrics import Metric

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="TableMetric")

_BOOKKEEPING = (
    "_computed",
    "_update_count",
    "_to_sync",
    "_should_unsync",
    "_enable_grad",
    "_is_synced",
    "_cache",
    "_forward_cache",
    "compute_on_cpu",
)


class TableMetric(Metric):
    """A metric whose state is a few tensors of fixed shape that add up (or take the maximum) over batches and ranks.

    Beyond :class:`torchmetrics.Metric`:

    - a failing ``update`` or ``forward`` leaves state, update count and cached result as they were (but where
      ``validate_args=False`` lets an index out of range reach a state that is scattered into in place);
    - states keep their dtype under ``.to(dtype)``, ``.half()`` and ``set_dtype``, so that counts stay exact under
      ``precision="bf16-true"``;
    - ``compute`` and every other read-out restores the local state even if it raises, and keeps one-element shapes;
    - ``merge_state`` refuses states of another configuration, drops the cached result and adds the update counts;
    - ``load_state_dict`` refuses other shapes before anything changes, and copies what it loads.

    A subclass declares states with :meth:`declare` under names that carry the configuration its update rule depends on
    (so that a ``MetricCollection`` groups exactly the metrics that agree), and replaces them in ``update`` rather than
    writing into them.

    Args:
        validate_args: check the values of what ``update`` gets, which waits for the device. Shapes and dtypes are
            checked always.
        kwargs: see :class:`torchmetrics.Metric`.
    """

    full_state_update = False
    is_differentiable = False

    def __init__(self, *, validate_args: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validate_args = validate_args

    def declare(
        self, name: str, default: Tensor, *, reduce: Literal["sum", "max"] = "sum", persistent: bool = False
    ) -> None:
        """Add a state that is summed, or whose maximum is taken, over batches and ranks."""
        # A copy: torchmetrics makes the very tensor the state, and two states must not share one.
        self.add_state(name, default.clone(), dist_reduce_fx=reduce, persistent=persistent)
        # Not torchmetrics' own copy: a large constant default may be one expanded element.
        self._defaults[name] = default

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update with a batch and return the value of that batch alone; a failure changes nothing."""
        kept = {**self._copy_state_dict(), **{name: getattr(self, name) for name in _BOOKKEEPING}}
        try:
            return super().forward(*args, **kwargs)
        except BaseException:
            for name, value in kept.items():
                setattr(self, name, value)
            raise

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the state of another metric of the same configuration, or a dict of such states.

        Args:
            incoming_state: a metric of this class, or its states by name (which counts as one update).

        Raises:
            ValueError: where the other has another class, other states or other shapes; nothing is changed.
        """
        states: dict[str, Any] = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        if isinstance(incoming_state, Metric) and type(incoming_state) is not type(self):
            raise ValueError(
                f"Expected another {type(self).__name__} to merge, but got {type(incoming_state).__name__}"
            )
        self._check_states(states)
        super().merge_state({name: states[name].to(self.device) for name in self._defaults})
        self._computed = None
        self._update_count += incoming_state._update_count if isinstance(incoming_state, Metric) else 1

    def set_dtype(self, dst_type: str | torch.dtype) -> "TableMetric":
        """Return the metric unchanged: counts stay integers and sums stay float64 whatever the model's precision."""
        return self

    @contextmanager
    def sync_context(
        self,
        dist_sync_fn: Callable[..., Any] | None = None,
        process_group: Any | None = None,
        should_sync: bool = True,
        should_unsync: bool = True,
        distributed_available: Callable[..., Any] | None = None,
    ) -> Iterator[None]:
        """Hold the states of all ranks together inside the context; the local ones come back even on an exception."""
        self.sync(dist_sync_fn, process_group, should_sync, distributed_available)
        try:
            yield
        finally:
            self.unsync(should_unsync=self._is_synced and should_unsync)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw one value or a sequence of values of the metric.

        Args:
            val: what ``compute`` or ``forward`` returned, or a list of that; by default ``compute()`` is called.
            ax: matplotlib axes to draw on.

        Returns:
            Figure and axes.
        """
        return self._plot(val, ax)

    def _writable(self, name: str) -> Tensor:
        """A state to write into: a copy where it comes from inference mode, outside which it can't be written to."""
        state: Tensor = getattr(self, name)
        if state.is_inference() and not torch.is_inference_mode_enabled():
            state = state.clone()
            setattr(self, name, state)
        return state

    def _check_states(self, states: dict[str, Any]) -> None:
        for name, default in self._tensor_defaults().items():
            if name not in states:
                raise ValueError(
                    f"Expected the state {name!r}, but got only {sorted(states)}; was it configured alike?"
                )
            if states[name].shape != default.shape:
                raise ValueError(
                    f"Expected the state {name!r} to have shape {list(default.shape)}, "
                    f"but got {list(states[name].shape)}; was it configured alike?"
                )

    def _tensor_defaults(self) -> dict[str, Tensor]:
        return cast(dict[str, Tensor], self._defaults)

    def _wrap_update(self, update: Callable[..., None]) -> Callable[..., None]:
        wrapped = super()._wrap_update(update)

        @functools.wraps(update)
        def restoring(*args: Any, **kwargs: Any) -> None:
            computed, update_count = self._computed, self._update_count
            try:
                wrapped(*args, **kwargs)
            except BaseException:
                self._computed, self._update_count = computed, update_count
                raise

        return restoring

    def _wrap_compute(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        fresh: list[Any] = []

        @functools.wraps(compute)
        def keeping(*args: Any, **kwargs: Any) -> Any:
            fresh[:] = [compute(*args, **kwargs)]
            return fresh[0]

        wrapped = super()._wrap_compute(keeping)

        @functools.wraps(compute)
        def unsqueezed(*args: Any, **kwargs: Any) -> Any:
            value = wrapped(*args, **kwargs)
            if fresh:  # computed now, not read from the cache: the base class has squeezed one-element tensors
                value = fresh.pop()
                if self._computed is not None:
                    self._computed = value
            return value

        return unsqueezed

    def _copy_state_dict(self) -> dict[str, Tensor | list[Any]]:
        # No state is written to while it is kept here: forward and sync put other tensors in its place.
        return {name: getattr(self, name) for name in self._defaults}

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> nn.Module:
        states = {name: getattr(self, name) for name in self._defaults}
        defaults = dict(self._tensor_defaults())
        super()._apply(fn, exclude_state)
        for name, state in states.items():
            if getattr(self, name).dtype != state.dtype:
                setattr(self, name, state.to(getattr(self, name).device))
            self._defaults[name] = _moved(defaults[name], getattr(self, name).device)
        self._computed = None
        return self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        loaded = {name: state_dict.pop(prefix + name) for name in self._defaults if prefix + name in state_dict}
        missing_keys += [prefix + name for name, kept in self._persistent.items() if kept and name not in loaded]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if not loaded:
            return
        try:
            self._check_states(loaded)
        except ValueError as error:
            error_msgs.append(f"While loading {type(self).__name__}: {error}")
            return
        for name, state in loaded.items():
            dtype = self._tensor_defaults()[name].dtype
            setattr(self, name, state.detach().to(self.device, dtype, copy=True))
        self._computed = None
        self._update_count = max(self._update_count, 1)


def _moved(default: Tensor, device: torch.device) -> Tensor:
    """A default on another device; an expanded element stays one."""
    if default.dim() and default.stride() == (0,) * default.dim():
        return default[(0,) * default.dim()].to(device).expand(default.shape)
    return default.to(device)


def collective(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Let a read-out see the states of all ranks, as ``compute`` does; all ranks must call it."""

    @functools.wraps(method)
    def read(metric: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if metric._is_synced:
            return method(metric, *args, **kwargs)
        with metric.sync_context(metric.dist_sync_fn, should_sync=metric._to_sync, should_unsync=metric._should_unsync):
            return method(metric, *args, **kwargs)

    return read


def slice_names(slices: int | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of the slices that a constructor was given: ``None``, a number S (named "0" to "S-1") or names."""
    if slices is None:
        return None
    if isinstance(slices, (str, bool)):
        raise TypeError(f"slices must be a number of slices or a sequence of names, but is {slices!r}")
    names = tuple(slices) if isinstance(slices, Sequence) else tuple(map(str, range(operator.index(slices))))
    if not names:
        raise ValueError("slices must be at least 1 slice, but is empty; pass None for a metric without slices")
    if len(set(names)) != len(names):
        raise ValueError(f"slices must have different names, but are {list(names)}")
    return names


def wanted_slices(slice_index: Tensor | None, names: tuple[str, ...] | None) -> Tensor | None:
    """The slice of each sample: needed by a metric with slices, not looked at by one without."""
    if names is None:
        return None
    if slice_index is None:
        raise ValueError(f"slice_index is missing: the metric was built for {len(names)} slices")
    return slice_index
