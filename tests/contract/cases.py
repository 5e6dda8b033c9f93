"""The contract, case by case. Each takes an entry and raises AssertionError where the metric breaks it."""

import copy
import io
import pickle
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torchmetrics import Metric, MetricCollection
from torchmetrics.wrappers import BootStrapper, MetricTracker, MinMaxMetric, Running

from tests.contract.entries import Entry, N, Stream, length, part, same, value

SPLITS = ([N], [1, N - 1], [10, 0, 27], [5] * 7 + [2])


def fed(entry: Entry, stream: Stream, sizes: list[int] | None = None, metric: Metric | None = None) -> Metric:
    """A metric that was updated with a stream, in batches of the given sizes."""
    metric = entry.build() if metric is None else metric
    start = 0
    for size in sizes or [length(stream)]:
        metric.update(**part(stream, slice(start, start + size)))
        start += size
    return metric


def expect(condition: bool, what: str) -> None:
    """Raise what is broken."""
    if not condition:
        raise AssertionError(what)


def batches_and_order(entry: Entry) -> None:
    """Splits and order change no value."""
    stream = entry.stream(0)
    whole = value(entry, fed(entry, stream))
    for sizes in SPLITS:
        expect(same(value(entry, fed(entry, stream, sizes)), whole), f"the split {sizes} changes the value")
    shuffled = part(stream, torch.randperm(N, generator=torch.Generator().manual_seed(1)))
    expect(same(value(entry, fed(entry, shuffled, [20, 17])), whole), "the order of samples changes the value")


def forward_is_update_and_compute(entry: Entry) -> None:
    """``forward`` returns the value of the batch and accumulates like ``update``."""
    stream, metric = entry.stream(0), entry.build()
    for rows in (slice(0, 20), slice(20, N)):
        batch = part(stream, rows)
        alone = fed(entry, batch).compute()
        expect(same(metric(**batch), alone), "forward does not return the value of its batch")
    expect(
        same(value(entry, metric), value(entry, fed(entry, stream))), "forward accumulates another state than update"
    )
    expect(metric.update_count == 2, f"forward twice counts {metric.update_count} updates")


def failure_changes_nothing(entry: Entry) -> None:
    """An update or forward that raises leaves state, count and cache."""
    stream = entry.stream(0)
    bad = {**stream, **entry.wrong}
    for how in ("update", "forward"):
        metric = fed(entry, stream)
        before, count = value(entry, metric), metric.update_count
        try:
            getattr(metric, how)(**bad)
        except (ValueError, TypeError, RuntimeError, IndexError):
            pass
        else:
            raise AssertionError(f"{how} took bad input without an error")
        expect(metric.update_count == count, f"a failing {how} counts as an update")
        expect(same(value(entry, metric), before), f"a failing {how} changes the state")
        again = fed(entry, entry.stream(1), metric=metric)
        good = fed(entry, entry.stream(1), metric=fed(entry, stream))
        expect(same(value(entry, again), value(entry, good)), f"after a failing {how} the metric counts wrongly")


def precision_of_the_model_changes_no_count(entry: Entry) -> None:
    """Casting a module that owns the metric, or the metric itself, leaves its state."""
    stream = entry.stream(0)
    whole = value(entry, fed(entry, stream))

    def cast(metric: Metric, how: str) -> None:
        owner = nn.Module()
        owner.metric = metric
        {
            "to bfloat16": lambda: owner.to(torch.bfloat16),
            "half": lambda: owner.half(),
            "type": lambda: owner.type(torch.float16),
            "metric.half": lambda: metric.half(),
            "set_dtype": lambda: metric.set_dtype(torch.float16),
        }[how]()  # type: ignore[no-untyped-call]

    for how in ("to bfloat16", "half", "type", "metric.half", "set_dtype"):
        metric = entry.build()
        cast(metric, how)
        fed(entry, part(stream, slice(0, 30)), metric=metric)
        cast(metric, how)
        fed(entry, part(stream, slice(30, N)), metric=metric)
        expect(same(value(entry, metric), whole), f"{how} changes the value")
        dtypes = {str(state.dtype) for state in metric.metric_state.values() if isinstance(state, Tensor)}
        expect(not dtypes & {"torch.float16", "torch.bfloat16", "torch.float32"}, f"{how} leaves states of {dtypes}")


def reset_is_a_fresh_start(entry: Entry) -> None:
    """After ``reset`` a metric is as new, and stays so for further resets."""
    stream, other = entry.stream(0), entry.stream(1)
    metric = fed(entry, stream)
    for _ in range(2):
        metric.reset()
        fed(entry, other, metric=metric)
        expect(same(value(entry, metric), value(entry, fed(entry, other))), "something survives a reset")


def copies_are_independent(entry: Entry) -> None:
    """clone, deepcopy and pickle give equal metrics that don't share state."""
    metric = fed(entry, entry.stream(0))
    before = value(entry, metric)
    for how, make in (
        ("clone", lambda: metric.clone()),
        ("deepcopy", lambda: copy.deepcopy(metric)),
        ("pickle", lambda: pickle.loads(pickle.dumps(metric))),
    ):
        twin = make()
        expect(same(value(entry, twin), before), f"{how} changes the value")
        fed(entry, entry.stream(1), metric=twin)
        expect(same(value(entry, metric), before), f"updating a {how} changes the original")
        whole = fed(entry, entry.stream(1), metric=fed(entry, entry.stream(0)))
        expect(same(value(entry, twin), value(entry, whole)), f"a {how} counts wrongly")


def checkpoints_round_trip(entry: Entry) -> None:
    """A saved state loads into a fresh metric, is not written to afterwards, and fits no other configuration."""
    stream, more = entry.stream(0), entry.stream(1)
    metric = fed(entry, stream)
    metric.persistent(True)
    saved = metric.state_dict()
    kept = copy.deepcopy(saved)
    fresh = entry.build()
    fresh.persistent(True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh.load_state_dict(saved)
        expect(same(value(entry, fresh), value(entry, metric)), "a loaded state gives another value")
    fed(entry, more, metric=fresh)
    fed(entry, more, metric=metric)
    expect(same(dict(saved), dict(kept)), "updating writes into the checkpoint")
    expect(same(value(entry, fresh), value(entry, metric)), "a loaded metric goes on counting wrongly")
    if entry.other is not None:
        other = entry.other()
        other.persistent(True)
        before = other.metric_state
        try:
            other.load_state_dict(saved)
        except RuntimeError:
            pass
        else:
            raise AssertionError("the state of one configuration loads into another")
        expect(same(other.metric_state, before), "a refused load changes the state")
        # The same names with other shapes must be refused too.
        cut = {name: state[:0] if isinstance(state, Tensor) else state for name, state in saved.items()}
        strict = entry.build()
        strict.persistent(True)
        try:
            strict.load_state_dict(cut)
        except RuntimeError:
            pass
        else:
            raise AssertionError("a state of another shape is loaded")
    absent = fed(entry, stream)
    absent.persistent(False)
    expect(
        not any(isinstance(entry_, Tensor) for entry_ in absent.state_dict().values()), "persistent(False) saves states"
    )


def files_round_trip(entry: Entry) -> None:
    """torch.save and a load that unpickles tensors only."""
    metric = fed(entry, entry.stream(0))
    metric.persistent(True)
    file = io.BytesIO()
    torch.save(metric.state_dict(), file)
    file.seek(0)
    fresh = entry.build()
    fresh.persistent(True)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    expect(same(value(entry, fresh), value(entry, metric)), "a state loaded from a file gives another value")


def inference_mode_and_after(entry: Entry) -> None:
    """Updating inside inference mode, then outside, as trainer.validate() then fit() do."""
    stream, metric = entry.stream(0), entry.build()
    with torch.inference_mode():
        metric.reset()
        fed(entry, part(stream, slice(0, 20)), metric=metric)
        metric.compute()
    fed(entry, part(stream, slice(20, N)), metric=metric)
    expect(same(value(entry, metric), value(entry, fed(entry, stream))), "inference mode changes the value")
    with torch.inference_mode():
        inside = value(entry, metric)
    expect(same(inside, value(entry, metric)), "computing in inference mode changes the value")


def no_data_is_undefined(entry: Entry) -> None:
    """Without data: NaN (or a table of zeros), no exception, one warning at most."""
    metric = entry.build()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = metric.compute()
    expect(len(caught) <= 1, f"{len(caught)} warnings without data")
    # A gate that nothing has passed is 0, beside undefined numbers.
    undefined = {name: v for name, v in result.items() if name not in entry.zero} if entry.zero else result
    expect(all(not bool(result[name]) for name in entry.zero), f"without data compute gives {result}")
    leaves = list(_tensors(undefined))
    expect(bool(leaves), "compute gives no tensor")
    for leaf in leaves:
        if entry.empty == "nan":
            expect(bool(leaf.isnan().all()), f"without data compute gives {leaf}, not NaN")
        else:
            expect(not bool(leaf.any()), f"without data compute gives {leaf}, not zeros")
    empty = entry.build()
    empty.update(**part(entry.stream(0), slice(0, 0)))
    expect(same(empty.compute(), result), "an empty batch is more than no batch")


def merging_adds(entry: Entry) -> None:
    """merge_state before, after, or with one side updated; the cached result is dropped."""
    stream = entry.stream(0)
    first, second = part(stream, slice(0, 20)), part(stream, slice(20, N))
    whole = value(entry, fed(entry, stream))
    metric, other = fed(entry, first), fed(entry, second)
    metric.compute()
    metric.merge_state(other)
    expect(same(value(entry, metric), whole), "merging two updated metrics gives another value than one")
    expect(metric.update_count == 2, f"merging counts {metric.update_count} updates, not 2")
    only_other = entry.build()
    only_other.merge_state(fed(entry, stream))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expect(same(value(entry, only_other), whole), "merging into a fresh metric loses the value")
    only_self = fed(entry, stream)
    only_self.merge_state(entry.build())
    expect(same(value(entry, only_self), whole), "merging a fresh metric changes the value")
    by_dict = fed(entry, first)
    by_dict.merge_state(fed(entry, second).metric_state)
    expect(same(value(entry, by_dict), whole), "merging a dict of states gives another value")
    if entry.other is not None:
        target = fed(entry, first)
        before = value(entry, target)
        try:
            target.merge_state(entry.other())
        except ValueError:
            pass
        else:
            raise AssertionError("another configuration can be merged")
        expect(same(value(entry, target), before), "a refused merge changes the state")


def collections_group_what_agrees(entry: Entry) -> None:
    """Equal configurations share one update, others never do, whatever their first batch."""
    stream = entry.stream(0)
    collection = MetricCollection({"a": entry.build(), "b": entry.build()})
    for rows in (slice(0, 20), slice(20, N)):
        collection.update(**part(stream, rows))
    alone = fed(entry, stream).compute()
    result = collection.compute()
    for key in ("a", "b"):
        prefix = f"{key}_"
        own = {name.removeprefix(prefix): v for name, v in result.items() if name.startswith(prefix)}
        found = result.get(key, own)
        expect(same(found, alone), "a collection computes another value")
    if entry.other is None:
        return
    mixed = MetricCollection({"a": entry.build(), "b": entry.other()})
    # Nothing in the first batch tells the two apart.
    mixed.update(**part((entry.together or entry.stream)(0), slice(0, 0)))
    expect(len(mixed.compute_groups) == 2, f"different configurations are grouped: {mixed.compute_groups}")


def counts_beyond_float_precision(entry: Entry) -> None:
    """Counts of 2^31 and 2^53 are kept to the last unit."""
    stream, metric = entry.stream(0), fed(entry, entry.stream(0))
    summed = [name for name, reduce in metric._reductions.items() if getattr(reduce, "__name__", "") == "dim_zero_sum"]
    for huge in (2**31, 2**53):
        big = fed(entry, stream)
        wanted = {}
        for name in set(summed) - set(entry.real_sums):
            state = getattr(big, name)
            wanted[name] = 2 * state.to(torch.int64) + huge
            setattr(big, name, (state.to(torch.int64) + huge).to(state.dtype))
        fed(entry, stream, metric=big)
        for name, count in wanted.items():
            expect(bool((getattr(big, name).to(torch.int64) == count).all()), f"{name} loses counts beyond {huge}")


def the_core_compiles_to_one_graph(entry: Entry) -> None:
    """The pure function behind ``update`` has no graph break, so no value is read on the way."""
    if entry.core is None:
        return
    arguments = list(entry.core_arguments(entry.stream(0)))
    torch._dynamo.reset()
    compiled = torch.compile(entry.core, fullgraph=True, backend="aot_eager")
    try:
        found = compiled(*copy.deepcopy(arguments))
    except Exception as error:  # dynamo has many names for a graph break
        raise AssertionError(f"the core does not compile to one graph: {type(error).__name__}: {error}") from error
    expect(same(found, entry.core(*copy.deepcopy(arguments))), "the compiled core gives another value")


def updates_read_no_value(entry: Entry) -> None:
    """With ``validate_args=False`` an update runs on tensors that have no values at all."""
    metric, stream = entry.build(validate_args=False), entry.stream(0)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = {name: mode.from_tensor(v) if isinstance(v, Tensor) else v for name, v in stream.items()}
        try:
            metric.update(**fake)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise AssertionError(f"update reads values: {error}") from error


def wrappers_of_torchmetrics_work(entry: Entry) -> None:
    """BootStrapper, MetricTracker, MinMaxMetric and Running, for metrics of one scalar."""
    stream = entry.stream(0)
    result = fed(entry, stream).compute()
    if not (isinstance(result, Tensor) and result.dim() == 0 and result.is_floating_point()):
        return
    torch.manual_seed(0)
    bootstrap = BootStrapper(
        entry.build(), num_bootstraps=3, mean=False, std=False, raw=True, sampling_strategy="multinomial"
    )
    bootstrap.update(**stream)
    raw = bootstrap.compute()["raw"]
    expect(raw.shape == (3,), f"BootStrapper gives {tuple(raw.shape)} values of 3")
    expect(len(set(raw.tolist())) > 1, "BootStrapper resamples nothing: samples are not in dimension 0")
    tracker = MetricTracker(entry.build(), maximize=True)
    for seed in (0, 1):
        tracker.increment()
        tracker.update(**entry.stream(seed))
    values = [float(fed(entry, entry.stream(seed)).compute()) for seed in (0, 1)]
    expect(tracker.compute_all().tolist() == values, "MetricTracker gives other values")
    extremes = MinMaxMetric(entry.build())
    extremes.update(**stream)
    expect(float(extremes.compute()["max"]) == float(result), "MinMaxMetric gives another value")
    running = Running(entry.build(), window=1)
    for seed in (1, 0):
        running.update(**entry.stream(seed))
    expect(float(running.compute()) == float(result), "Running gives another value")


def masked_samples_do_not_count(entry: Entry) -> None:
    """``mask`` leaves samples out as if they had never come."""
    if not entry.mask:
        return
    stream = entry.stream(0)
    keep = torch.arange(N) % 3 != 0
    masked = entry.build()
    masked.update(**stream, mask=keep)
    left = fed(entry, part(stream, keep.nonzero().squeeze(1)))
    expect(same(masked.compute(), left.compute()), "masked samples count")


CASES = [
    batches_and_order,
    forward_is_update_and_compute,
    failure_changes_nothing,
    precision_of_the_model_changes_no_count,
    reset_is_a_fresh_start,
    copies_are_independent,
    checkpoints_round_trip,
    files_round_trip,
    inference_mode_and_after,
    no_data_is_undefined,
    merging_adds,
    collections_group_what_agrees,
    counts_beyond_float_precision,
    the_core_compiles_to_one_graph,
    updates_read_no_value,
    wrappers_of_torchmetrics_work,
    masked_samples_do_not_count,
]


def _tensors(result: Any) -> Any:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, dict):
        for entry in result.values():
            yield from _tensors(entry)
    elif isinstance(result, (tuple, list)):
        for entry in result:
            yield from _tensors(entry)
