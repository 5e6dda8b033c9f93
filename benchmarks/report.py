"""The table and the JSON of benchmark results."""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.runner import FLOOR, OURS, Judgement, Memory, Result, Timing
from benchmarks.workload import Goal

_PACKAGES = ("torch", "torchmetrics", "numpy", "scipy", "statsmodels", "mlxtend", "torch-uncertainty", "triton")
_NAMES = 34


def machine(device: str, rounds: int) -> dict[str, Any]:
    """Where and how the figures were measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "processor": processor(),
        "cpus": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "system": platform.platform(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "rounds": rounds,
    }


def processor() -> str:
    """The processor's name as the system gives it, on Linux with family and model, since names are often short."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in info.read_text().splitlines())
    fields: dict[str, str] = {}
    for key, _, value in pairs:
        fields.setdefault(key.strip(), value.strip())
    if "model name" not in fields:
        return platform.machine()
    return f"{fields['model name']} (family {fields.get('cpu family', '?')} model {fields.get('model', '?')})"


def header(about: dict[str, Any]) -> str:
    """The lines above the tables."""
    how = (
        "device time by CUDA events"
        if about["device"] == "cuda"
        else "1 thread: CPU time of the process; 2 threads: wall time"
    )
    packages = ", ".join(f"{name} {found or 'not installed'}" for name, found in about["packages"].items())
    lines = [
        f"{about['processor']}, {about['cpus']} CPUs, {about['cpu_capability']}"
        + (f"; {about['gpu']}" if about["gpu"] else ""),
        f"{about['system']}, load average {about['load_average']}, {about['date']}",
        f"Python {about['python']}, {packages}",
        f"{how}. Median of {about['rounds']} rounds in turns; ratio: time over ours, median of the rounds' ratios.",
        "Memory beyond the inputs, in a fresh process: at the peak, and kept in result or state.",
    ]
    return "\n".join(lines)


def table(result: Result) -> str:
    """The figures and goals of one workload."""
    workload, threads = result.workload, list(result.times)
    titles = "".join(f"{f'{n} thread' + ('s' if n > 1 else '') + ', ms':>16}{'ratio':>9}" for n in threads)
    lines = [f"{workload.name}: {workload.about}", f"{'':{_NAMES}}{titles}{'peak':>12}{'kept':>12}"]
    for who in result.times[1]:
        times = "".join(_cells(result.times[n][who], own=who == OURS) for n in threads)
        memory = "" if who == FLOOR else _memory_cells(result.memory[who])
        note = _note(result, who)
        lines.append(f"  {workload.floor_name if who == FLOOR else who:{_NAMES - 2}}{times}{memory}{note}".rstrip())
    lines += [f"  {peer}: needs {package}, which is not installed" for peer, package in result.missing.items()]
    lines += [f"  goal: {_goal(one)}" for one in result.judgements]
    return "\n".join(lines)


def summary(results: Iterable[Result]) -> str:
    """How many goals are met, and which are not."""
    judged = [(result.workload.name, one) for result in results for one in result.judgements]
    missed = [f"{name}: {_goal(one)}" for name, one in judged if one.met is False]
    met = sum(one.met is True for _, one in judged)
    return "\n".join([f"{met} of {len(judged)} goals met.", *(f"  {line}" for line in missed)])


def as_json(about: dict[str, Any], results: Iterable[Result]) -> dict[str, Any]:
    """What ``--json`` writes."""
    return {"schema": 1, "machine": about, "workloads": [_workload_json(result) for result in results]}


def _workload_json(result: Result) -> dict[str, Any]:
    workload = result.workload
    contestants: dict[str, Any] = {
        who: {
            "threads": {str(n): result.times[n][who]._asdict() for n in result.times},
            "memory": memory._asdict() if (memory := result.memory.get(who)) else None,
        }
        for who in result.times[1]
    }
    contestants |= {peer: {"missing": package} for peer, package in result.missing.items()}
    return {
        "name": workload.name,
        "about": workload.about,
        "samples": workload.samples,
        "floor": workload.floor_name if workload.floor else None,
        "contestants": contestants,
        "goals": [
            {"goal": goal_text(one.goal), "limit": one.goal.limit, "value": one.value, "met": one.met}
            for one in result.judgements
        ],
    }


def goal_text(goal: Goal) -> str:
    """A goal in words."""
    return {
        "times": f"at least {goal.limit:,.4g} times as fast as {goal.peer}",
        "beyond_floor": f"at least {goal.limit:,.4g} times as fast as {goal.peer}, beyond the floor",
        "floors": f"at most {goal.limit:,.4g} times the floor",
        "peak": f"at most {goal.limit:,.4g} MiB at the peak",
        "temporaries": f"at most {goal.limit:,.4g} MiB of temporaries",
        "kept": f"at most {goal.limit:,.4g} MiB kept",
    }[goal.figure]


def _goal(judgement: Judgement) -> str:
    if judgement.value is None:
        return f"{goal_text(judgement.goal)}: not measured"
    return f"{goal_text(judgement.goal)}: {judgement.value:.3g}, {'met' if judgement.met else 'MISSED'}"


def _cells(timing: Timing, *, own: bool) -> str:
    return f"{_short(timing.milliseconds):>16}{'' if own else _short(timing.ratio):>9}"


def _memory_cells(memory: Memory | None) -> str:
    if memory is None:
        return f"{'not measured':>24}"
    return "".join(f"{f'{size / 2**20:,.1f} MiB':>12}" for size in memory)


def _note(result: Result, who: str) -> str:
    share = result.times[1][who].share
    if share < 1.0:
        return f"  (from {share:.2%} of the work)"
    memory = result.memory.get(who)
    if who != OURS or memory is None or memory.peak < 2**20:
        return ""
    return "  ({:.2f}, {:.2f} B/sample)".format(*(size / result.workload.samples for size in memory))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
