"""Time and memory of a workload, each measured in fresh processes.

Time: one thread and the CPU time of the process (two threads: wall time), ours, the peers and the floor in turns within
one process, short calls after an untimed one, and the ratio as the median of the rounds' ratios. Memory: the highest
resident set of a process that does nothing else. On CUDA: events, and the allocator's own maximum.
"""

import ctypes
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import torch

from benchmarks import ablation, channel, claims, compare, memory, monitors, paired, votes
from benchmarks.workload import Contestant, Goal, Workload

P = ParamSpec("P")
R = TypeVar("R")

OURS, FLOOR = "ours", "floor"
DOMAINS = (channel, memory, paired, votes, monitors, claims, ablation, compare)
WORKLOADS: dict[str, Workload[Any]] = {workload.name: workload for domain in DOMAINS for workload in domain.WORKLOADS}

# A measurement lasts about this long at least, by repeating the call.
_MEASUREMENT_MS = 20.0
# Calls beyond this aren't made once more than needed.
_SLOW_MS = 1000.0
# Calls up to this are made once untimed before they are timed. Memory that the contestant before gave back to the
# system, and caches that it filled, are not theirs to pay for: a copy of 8 MiB into fresh memory takes three times as
# long.
_SHORT_MS = 300.0
# Inputs of this size warm up what the first call of a process loads.
_WARM_UP_SAMPLES = 64
# Numbers are compared before times are taken, on inputs of this size at most.
_CHECKED_SAMPLES = 10_000
_LIBRARY_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Timer = Callable[[Callable[[], Any], int], float]
"""Milliseconds a call, from a call and how often to repeat it."""


class Memory(NamedTuple):
    """Bytes beyond the inputs."""

    peak: int
    """At the worst moment of the call."""
    kept: int
    """After it, in its result or in state."""


class Timing(NamedTuple):
    """Time of one contestant for the whole work."""

    milliseconds: float
    """Median over rounds."""
    ratio: float
    """Median over rounds of its time over ours."""
    share: float
    """Part of the work that was done for this."""


@dataclass(frozen=True)
class Judgement:
    """A goal and what came of it."""

    goal: Goal
    value: float | None
    """None: not measured here."""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where nothing was measured."""
        if self.value is None:
            return None
        return (
            self.value >= self.goal.limit
            if self.goal.figure in ("times", "beyond_floor")
            else self.value <= self.goal.limit
        )


@dataclass(frozen=True)
class Result:
    """All figures of one workload. Contestants are named ``ours``, ``floor``, and as the peers are."""

    workload: Workload[Any]
    device: str
    times: dict[int, dict[str, Timing]]
    """By number of threads."""
    memory: dict[str, Memory | None]
    """None: not measured."""
    missing: dict[str, str]
    """Peers whose package is not installed, by peer."""

    @property
    def judgements(self) -> list[Judgement]:
        """The goals for this device."""
        return [Judgement(goal, self._figure(goal)) for goal in self.workload.goals if goal.device == self.device]

    def _figure(self, goal: Goal) -> float | None:
        if goal.figure in ("times", "floors"):
            timing = self.times[1].get(goal.peer if goal.figure == "times" else FLOOR)
            return None if timing is None else timing.ratio if goal.figure == "times" else 1.0 / timing.ratio
        if goal.figure == "beyond_floor":
            peer, floor = self.times[1].get(goal.peer), self.times[1].get(FLOOR)
            return None if peer is None or floor is None else (peer.ratio - floor.ratio) / (1.0 - floor.ratio)
        used = self.memory[OURS]
        if used is None:
            return None
        size = {"peak": used.peak, "temporaries": used.peak - used.kept, "kept": used.kept}[goal.figure]
        return size / 2**20


def run(workload: Workload[Any], device: str = "cpu", rounds: int = 7) -> Result:
    """Measure one of :data:`WORKLOADS`, or a copy of it with another number of samples."""
    threads = [1] if device == "cuda" or (os.cpu_count() or 1) < 2 else [1, 2]
    measured = {n: _with_threads(n, _measure, workload.name, workload.samples, device, rounds, n) for n in threads}
    return Result(
        workload=workload,
        device=device,
        times={n: times for n, (times, _) in measured.items()},
        memory=measured[1][1],
        missing={name: peer.needs for name, peer in workload.peers.items() if peer.needs and not _installed(peer)},
    )


def check(workload: Workload[Any], device: str, samples: int) -> None:
    """Refuse peers whose numbers are not ours."""
    expected = _value(workload, workload.ours, device, samples)
    for name, peer in workload.peers.items():
        if not _installed(peer):
            continue
        found = _value(workload, peer, device, samples)
        torch.testing.assert_close(
            found.cpu(),
            expected.cpu()[: len(found)] if found.dim() else expected.cpu(),
            rtol=0.0,
            atol=workload.tolerance,
            equal_nan=True,
            check_dtype=False,
            msg=f"{workload.name}: {name} gives other numbers than ours. {{}}".format,
        )


def medians(times: Mapping[str, list[float]], shares: Mapping[str, float]) -> dict[str, Timing]:
    """Figures from the times of every contestant in every round."""
    whole = {name: [one / shares[name] for one in rounds] for name, rounds in times.items()}
    return {
        name: Timing(
            milliseconds=median(rounds),
            ratio=median(one / ours for one, ours in zip(rounds, whole[OURS], strict=True)),
            share=shares[name],
        )
        for name, rounds in whole.items()
    }


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int, timer: Timer) -> dict[str, list[float]]:
    """Milliseconds of every call in every round."""
    took = {}
    for name, call in calls.items():
        took[name] = timer(call, 1)
        if took[name] < _SLOW_MS:  # what the first call loads or compiles doesn't count
            took[name] = timer(call, 1)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if took[name] <= _SHORT_MS:
                call()
            times[name].append(timer(call, max(1, round(_MEASUREMENT_MS / max(took[name], 1e-3)))))
    return times


def _measure(
    name: str, samples: int, device: str, rounds: int, threads: int
) -> tuple[dict[str, Timing], dict[str, Memory | None]]:
    """Times, and with one thread memory, of a workload; the work of a process of its own."""
    workload = WORKLOADS[name]
    torch.set_num_threads(threads)
    contestants = _contestants(workload)
    memory: dict[str, Memory | None] = {}
    if threads == 1:
        memory = {who: _memory(workload, who, samples, device) for who in contestants if who != FLOOR}
    check(workload, device, min(samples, _CHECKED_SAMPLES))
    inputs = workload.make(torch.device(device), samples)
    times = in_turns(
        {who: partial(one.call, inputs) for who, one in contestants.items()}, rounds, _timer(device, threads)
    )
    return medians(times, {who: one.share(inputs) for who, one in contestants.items()}), memory


def _contestants(workload: Workload[Any]) -> dict[str, Contestant[Any]]:
    floor = {} if workload.floor is None else {FLOOR: workload.floor}
    peers = {name: peer for name, peer in workload.peers.items() if _installed(peer)}
    return {OURS: workload.ours, **floor, **peers}


def _installed(contestant: Contestant[Any]) -> bool:
    return contestant.needs is None or find_spec(contestant.needs) is not None


def _value(workload: Workload[Any], contestant: Contestant[Any], device: str, samples: int) -> torch.Tensor:
    inputs = workload.make(torch.device(device), samples)
    return contestant.value(inputs, contestant.call(inputs))


def _timer(device: str, threads: int) -> Timer:
    if device == "cuda":
        return _cuda_milliseconds
    return partial(_cpu_milliseconds, time.process_time if threads == 1 else time.perf_counter)


def _cpu_milliseconds(clock: Callable[[], float], call: Callable[[], Any], repeats: int) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats * 1e3


def _cuda_milliseconds(call: Callable[[], Any], repeats: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / repeats


def _memory(workload: Workload[Any], who: str, samples: int, device: str) -> Memory | None:
    """Memory of one contestant; None where it can't be measured, or where it does a share of the work only."""
    if device == "cuda":
        return _cuda_memory(workload, who, samples)
    if sys.platform != "linux":
        return None
    # Forked before anything was computed here, so its heap is empty.
    return _in_process("fork", _linux_memory, workload.name, who, samples)


def _linux_memory(name: str, who: str, samples: int) -> Memory | None:
    workload, device = WORKLOADS[name], torch.device("cpu")
    contestant = _contestants(workload)[who]
    contestant.call(workload.make(device, min(samples, _WARM_UP_SAMPLES)))
    inputs = workload.make(device, samples)
    if contestant.share(inputs) < 1.0:
        return None
    _free_heap()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    output = contestant.call(inputs)
    peak = _status("VmHWM")
    _free_heap()
    kept = _status("VmRSS") - before
    del output
    return Memory(peak=peak - before, kept=max(0, kept))


def _free_heap() -> None:
    """Give freed memory back to the system, so that using it again shows."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _status(field: Literal["VmRSS", "VmHWM"]) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def _cuda_memory(workload: Workload[Any], who: str, samples: int) -> Memory | None:
    contestant, device = _contestants(workload)[who], torch.device("cuda")
    contestant.call(workload.make(device, min(samples, _WARM_UP_SAMPLES)))
    inputs = workload.make(device, samples)
    if contestant.share(inputs) < 1.0:
        return None
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    output = contestant.call(inputs)
    torch.cuda.synchronize()
    memory = Memory(torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before)
    del output
    return memory


def _with_threads(threads: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The function in a process whose libraries start with so many threads: BLAS reads that when it is loaded."""
    before = {name: os.environ.get(name) for name in _LIBRARY_THREADS}
    os.environ.update(dict.fromkeys(_LIBRARY_THREADS, str(threads)))
    try:
        return _in_process("spawn", function, *args, **kwargs)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _in_process(method: Literal["fork", "spawn"], function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        return pool.submit(function, *args, **kwargs).result()
