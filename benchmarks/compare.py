"""``polyweave-torch compare``: two finished runs read from files, aligned by item and compared."""

import atexit
import functools
import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.workload import Contestant, Goal, Workload
from polyweave_torch.evallogs import Comparison, compare_runs, read_run

_MERGE = "json, pandas.merge"


class Logs(NamedTuple):
    """Two JSONL files over the same items, the second in another order."""

    before: Path
    after: Path


@functools.cache
def _folder() -> Path:
    """One folder a process, gone at its end."""
    path = Path(tempfile.mkdtemp(prefix="compare-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _logs(device: torch.device, items: int) -> Logs:
    chance = random.Random(0)
    paths = [_folder() / f"{arm}-{items}.jsonl" for arm in ("before", "after")]
    for path, accuracy in zip(paths, (0.80, 0.82), strict=True):
        order = list(range(items))
        chance.shuffle(order)
        with path.open("w") as file:
            file.writelines(_line(item, chance.random() < accuracy, chance.choice("ABCD")) for item in order)
    return Logs(*paths)


def _line(item: int, correct: bool, answer: str) -> str:
    return json.dumps({"id": f"item-{item}", "correct": correct, "slice": f"s{item % 20}", "prediction": answer}) + "\n"


def _compare(logs: Logs) -> Comparison:
    return compare_runs([read_run(logs.before), read_run(logs.after)])


def _counts(_: Logs, comparison: Comparison) -> Tensor:
    return torch.tensor([comparison.numbers["counts"][name] for name in ("n00", "n01", "n10", "n11")])


def _merge(logs: Logs) -> list[int]:
    """The 2x2 table alone: no slices, answers, intervals or tests."""
    import pandas as pd

    arms = []
    for path in (logs.before, logs.after):
        with path.open() as file:
            arms.append(pd.DataFrame([json.loads(line) for line in file]))
    both = arms[0].merge(arms[1], on="id", validate="one_to_one")
    pairs = zip((False, False, True, True), (False, True, False, True), strict=True)
    return [int(((both["correct_x"] == first) & (both["correct_y"] == second)).sum()) for first, second in pairs]


def _parse(logs: Logs) -> int:
    """Both files as Python objects, which is where every comparison begins."""
    number = 0
    for path in (logs.before, logs.after):
        with path.open() as file:
            number += sum(1 for _ in map(json.loads, file))
    return number


WORKLOADS: list[Workload[Any]] = [
    Workload(
        name=f"compare-{items}",
        about=f"{items:,} items a side, JSONL with ids, slices and answers, read and compared in full",
        samples=items,
        make=_logs,
        ours=Contestant(_compare, _counts),
        peers={_MERGE: Contestant(_merge, needs="pandas")},
        floor=Contestant(_parse),
        floor_name="json.loads of each line",
        # A million items in 20 seconds and 1 GB on two cores; torch and Python take 300 MiB, parsing 3 s.
        goals=(Goal("floors", 4), Goal("peak", 500)) if items == 1_000_000 else (),
        devices=("cpu",),
    )
    for items in (10_000, 1_000_000)
]
