"""That the benchmark runner measures what it says; never how fast anything is."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import __main__ as command
from benchmarks.report import as_json, machine, summary, table
from benchmarks.runner import (
    DOMAINS,
    FLOOR,
    OURS,
    WORKLOADS,
    Judgement,
    Memory,
    Result,
    Timing,
    check,
    in_turns,
    medians,
    run,
)
from benchmarks.workload import Contestant, Goal, Workload

_MEASURED = "estimate-million-slices"
_ABSENT = Contestant[Any](lambda inputs: None, needs="a_package_that_is_not_there")


def _workload(peer: Callable[[Tensor], Any] = lambda inputs: inputs, **options: Any) -> Workload[Tensor]:
    return Workload(
        name="toy",
        about="a toy",
        samples=5,
        make=lambda device, samples: torch.arange(float(samples), device=device),
        ours=Contestant(lambda inputs: inputs),
        peers={"peer": Contestant(peer), "absent": _ABSENT},
        **options,
    )


@pytest.fixture(scope="module")
def measured() -> Result:
    workload = WORKLOADS[_MEASURED]
    peers = {**workload.peers, "absent": _ABSENT}
    return run(dataclasses.replace(workload, samples=100_000, peers=peers), rounds=1)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_peer_gives_our_numbers(name: str) -> None:
    check(WORKLOADS[name], "cpu", 100)


def test_other_numbers_are_refused() -> None:
    check(_workload(), "cpu", 5)
    with pytest.raises(AssertionError, match="toy: peer gives other numbers than ours"):
        check(_workload(lambda inputs: inputs + 0.5), "cpu", 5)
    check(_workload(lambda inputs: inputs + 0.5, tolerance=0.6), "cpu", 5)


def test_a_peer_that_does_a_share_is_compared_with_the_first_of_our_numbers() -> None:
    check(_workload(lambda inputs: inputs[:2]), "cpu", 5)
    with pytest.raises(AssertionError, match="other numbers"):
        check(_workload(lambda inputs: inputs[3:]), "cpu", 5)


def test_the_ratio_is_the_median_of_the_rounds_ratios() -> None:
    figures = medians({OURS: [1.0, 2.0, 4.0], "peer": [10.0, 2.0, 8.0]}, {OURS: 1.0, "peer": 1.0})
    assert figures["peer"] == Timing(milliseconds=8.0, ratio=2.0, share=1.0)
    assert figures[OURS] == Timing(milliseconds=2.0, ratio=1.0, share=1.0)


def test_the_time_of_a_share_is_scaled_to_the_whole() -> None:
    figures = medians({OURS: [1.0], "peer": [3.0]}, {OURS: 1.0, "peer": 0.25})
    assert figures["peer"] == Timing(milliseconds=12.0, ratio=12.0, share=0.25)


def test_contestants_take_turns() -> None:
    order: list[str] = []

    def timer(call: Callable[[], Any], repeats: int) -> float:
        call()
        return 1000.0

    times = in_turns({name: partial(order.append, name) for name in "ab"}, 3, timer)
    assert times == {"a": [1000.0] * 3, "b": [1000.0] * 3}
    assert order[-6:] == ["a", "b"] * 3


def test_short_calls_are_repeated() -> None:
    asked: list[int] = []

    def timer(call: Callable[[], Any], repeats: int) -> float:
        asked.append(repeats)
        return 2.0

    in_turns({"a": lambda: None}, 1, timer)
    assert asked == [1, 1, 10]


def test_a_short_call_is_made_once_untimed_in_each_round() -> None:
    made: list[str] = []

    def timer(call: Callable[[], Any], repeats: int) -> float:
        made.append("timed")
        return 200.0 if call is short else 400.0

    def short() -> None:
        made.append("short")

    def long() -> None:
        made.append("long")

    in_turns({"short": short, "long": long}, 2, timer)
    assert made[4:] == ["short", "timed", "timed"] * 2


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        (Goal("times", 2.0, "peer"), 2.5, True),
        (Goal("times", 3.0, "peer"), 2.5, False),
        (Goal("times", 3.0, "absent"), None, None),
        (Goal("floors", 4.0), 4.0, True),
        (Goal("floors", 3.9), 4.0, False),
        (Goal("peak", 3.0), 3.0, True),
        (Goal("temporaries", 1.9), 2.0, False),
        (Goal("kept", 1.0), 1.0, True),
    ],
)
def test_goals_are_judged(goal: Goal, value: float | None, met: bool | None) -> None:
    timing = {OURS: Timing(4.0, 1.0, 1.0), FLOOR: Timing(1.0, 0.25, 1.0), "peer": Timing(10.0, 2.5, 1.0)}
    memory = {OURS: Memory(peak=3 * 2**20, kept=2**20), "peer": None}
    workload = _workload(goals=(goal, Goal("times", 9.0, "peer", device="cuda")))
    result = Result(workload, "cpu", {1: timing}, memory, {"absent": "a_package"})
    assert result.judgements == [Judgement(goal, value)]
    assert result.judgements[0].met is met
    assert ("MISSED" in summary([result])) is (met is False)


def test_a_run_measures_one_and_two_threads(measured: Result) -> None:
    threads = [1, 2] if (os.cpu_count() or 1) > 1 else [1]
    assert list(measured.times) == threads
    for figures in measured.times.values():
        assert set(figures) == {OURS, FLOOR, "Python loop over a dict"}
        assert all(timing.milliseconds > 0 and timing.ratio > 0 for timing in figures.values())
        assert figures[OURS].ratio == 1.0


def test_memory_is_that_of_the_call(measured: Result) -> None:
    used = measured.memory[OURS]
    if sys.platform != "linux":
        assert used is None
        return
    assert used is not None
    # Ten fields of eight bytes a slice stay in the result.
    assert used.kept == pytest.approx(100_000 * 10 * 8, rel=0.2)
    assert used.peak >= used.kept


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with pytest.raises(KeyError, match="toy"):
        run(_workload())
    assert dict(os.environ) == before


def test_a_package_that_is_not_installed_is_named(measured: Result) -> None:
    assert measured.missing == {"absent": "a_package_that_is_not_there"}
    assert "absent: needs a_package_that_is_not_there, which is not installed" in table(measured)


def test_the_command_prints_the_table_and_writes_json(
    measured: Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str, int]] = []

    def run_measured(workload: Workload[Any], device: str, rounds: int) -> Result:
        asked.append((workload.name, device, rounds))
        return measured

    monkeypatch.setattr(command, "run", run_measured)
    file = tmp_path / "results" / "run.json"
    command.main(["--only", "estimate-*", "--rounds", "3", "--json", str(file)])
    assert asked == [(_MEASURED, "cpu", 3)]
    printed = capsys.readouterr().out
    assert table(measured) in printed
    assert f"torch {torch.__version__}" in printed
    assert "1 thread" in printed

    written = json.loads(file.read_text())
    assert written["machine"]["processor"]
    (workload,) = written["workloads"]
    ours = workload["contestants"][OURS]
    assert ours["threads"]["1"]["milliseconds"] == measured.times[1][OURS].milliseconds
    assert workload["contestants"]["absent"] == {"missing": "a_package_that_is_not_there"}


def test_json_holds_no_number_that_json_lacks(measured: Result) -> None:
    json.dumps(as_json(machine("cpu", 1), [measured]), allow_nan=False)


def test_an_unknown_name_is_answered_with_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["--only", "vote-of-nobody"])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "no workload on cpu is named 'vote-of-nobody'" in message
    assert all(name in message for name, workload in WORKLOADS.items() if "cpu" in workload.devices)


def test_names_are_unique() -> None:
    assert len(WORKLOADS) == sum(len(domain.WORKLOADS) for domain in DOMAINS)
