"""A run that is killed again and again ends as one that nobody disturbed."""

import json
import multiprocessing
import os
import random
import time
import warnings
from pathlib import Path

import pytest

from polyweave_torch.ablation import run_ablation
from tests.ablation.runs import ARMS, evaluate, make_cases, run_slowly

_KILLS = 20


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_run_killed_at_any_byte_ends_as_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    cases, out, calm = make_cases(15), tmp_path / "killed.jsonl", tmp_path / "calm.jsonl"
    expected = run_ablation(cases, ARMS, evaluate, batch_size=batch_size, out=calm)
    # A server that has imported torch forks children at once; else each would take seconds to start.
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.ablation.runs"])
    torn = 0
    for size in sorted(random.Random(batch_size).sample(range(1, calm.stat().st_size - 300), _KILLS)):
        child = context.Process(target=run_slowly, args=(out, batch_size))
        child.start()
        while child.is_alive() and (not out.exists() or out.stat().st_size < size):
            time.sleep(0.0005)
        assert child.is_alive(), "the child ended before it was killed"
        child.kill()
        child.join()
        # What a machine leaves that stops while it writes: the disk has the bytes up to here.
        os.truncate(out, size)
        torn += not out.read_bytes().endswith(b"\n")
    assert torn >= _KILLS - 4
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert run_ablation(cases, ARMS, evaluate, batch_size=batch_size, out=out) == expected
    assert [str(warning.message) for warning in said if "torn last line" in str(warning.message)]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(line["case_id"], line["condition"]) for line in lines}) == len(lines) == len(cases) * len(ARMS)
    assert out.read_bytes() == calm.read_bytes()
