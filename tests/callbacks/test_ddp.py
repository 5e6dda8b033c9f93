"""The monitors on 2 and 3 ranks give what one process gives, to the last bit."""

import json
import math
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = ("padded", "one sample", "drop_last", "shuffled", "everywhere", "resumed", "keyed", "stopped")


def run(world: int, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.callbacks.ddp_cases"]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(world), str(port), str(folder)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for rank in range(world)
    ]
    for rank, process in enumerate(ranks):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, f"rank {rank} of {world}: {errors[-3000:]}"


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, list[Any]]]:
    found: dict[int, dict[str, list[Any]]] = {}
    common = tmp_path_factory.mktemp("worlds")
    for world in (1, 2, 3):
        folder = common / str(world)
        folder.mkdir()
        run(world, folder)
        found[world] = {
            name: [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(world)]
            for name in (*SCENARIOS, "refused")
        }
    return found


def same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return first == second or (math.isnan(first) and math.isnan(second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first if key != "step")
    if isinstance(first, list):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_ranks_change_no_number(histories: dict[int, dict[str, list[Any]]], world: int, scenario: str) -> None:
    alone = histories[1][scenario][0]
    channel, _, ensemble, stopping, gates, *outcomes = alone
    assert len(channel) == {"resumed": 6, "stopped": 3}.get(scenario, 4)
    assert [entry["wait"] for entry in stopping][: len(channel) - 1][-1] == {"resumed": 3, "stopped": 1}.get(
        scenario, 2
    )
    assert gates[-1]["model/growth"] > 0
    samples = {"one sample": 1, "drop_last": 36, "keyed": 31}.get(scenario, 37)
    assert channel[-1]["all/n"] == samples
    assert samples == 1 or any(entry["all/delta"] != 0 for entry in channel), "the script must change outcomes"
    assert [len(kept["ids"]) for kept in outcomes] == [samples] * 3
    assert scenario != "keyed" or set(outcomes[0]["ids"]) == {f"item-{index}" for index in range(31)}
    assert sum(outcomes[2]["correct"]) / samples == ensemble[-1]["accuracy"]
    for rank in range(world):
        assert same(histories[world][scenario][rank], alone), f"rank {rank}"


@pytest.mark.parametrize("world", [1, 2, 3])
def test_an_id_of_two_samples_is_refused_by_every_rank(histories: dict[int, dict[str, list[Any]]], world: int) -> None:
    ranks = histories[world]["refused"]
    assert ranks == [ranks[0]] * world
    refused = ranks[0]
    assert refused["padding"] == refused["every rank sees all"] == refused["a near tie"] == ""
    rows = math.ceil(31 / world)
    assert refused["in one rank"].startswith(f"ids name 2 samples in {rows} rows, for instance 'q7' ")
    assert re.match(r"ids name 15 samples in 30 rows, for instance 'q\d+' 2 times; an id", refused["over two ranks"])
    found = (
        "ids name 29 samples in 30 rows, for instance 'item-0' 2 times;"
        if world == 1
        else "ids name two samples 'item-0', one of target 1 and one of target 0;"
    )
    assert refused["another target"].startswith(found)
