"""lighteval details: Parquet files with the columns that lighteval 0.13 saves, rows in another order in each run."""

import random
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs import compare_runs, read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import counts

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")


def write_details(path: Path, wrong: set[int], *, seed: int = 0, extra: bool = False) -> Path:
    rows = [
        {
            "doc": {
                "query": f"{item} + {item} = ?",
                "id": str(item),
                "task_name": "sums",
                "specific": {"topic": item % 2},
            },
            "metric": {"exact_match": float(item not in wrong)} | ({"f1": 0.5} if extra else {}),
            "model_response": {"text": [f" {2 * item}"], "text_post_processed": [str(2 * item)]},
        }
        for item in range(6)
    ]
    random.Random(seed).shuffle(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_shuffled_rows_meet_by_their_id(tmp_path: Path) -> None:
    runs = [
        read_run(write_details(tmp_path / f"{seed}/details_sums|0_2026-11-30T08-00-00.0.parquet", wrong, seed=seed))
        for seed, wrong in enumerate(({1, 3}, {3, 4}))
    ]
    assert runs[0].format == "lighteval"
    assert runs[0].task == "sums|0"
    assert runs[0].ids != runs[1].ids
    assert counts(compare_runs(runs).aligned) == {"n00": 1, "n01": 1, "n10": 1, "n11": 3}
    assert dict(zip(runs[0].ids, runs[0].answers or [], strict=True))["3"] == "6"


def test_a_metric_and_a_slice_are_chosen(tmp_path: Path) -> None:
    path = write_details(tmp_path / "x.parquet", {1}, extra=True)
    with pytest.raises(ChoiceError, match="exact_match, f1"):
        read_run(path)
    run = read_run(path, metric="exact_match", slice="topic")
    assert run.slices == [str(int(name) % 2) for name in run.ids]


def test_the_latest_of_two_runs_of_a_task_is_read_and_two_tasks_are_slices(tmp_path: Path) -> None:
    for day, wrong in ((29, {0, 1, 2}), (30, {5})):
        write_details(tmp_path / f"details_sums|0_2026-11-{day}T08-00-00.0.parquet", wrong)
    run = read_run(tmp_path)
    assert int(run.correct.sum()) == 5
    assert any("run 2 times" in warning for warning in run.warnings)
    write_details(tmp_path / "details_more|0_2026-11-30T08-00-00.0.parquet", set())
    run = read_run(tmp_path)
    assert set(run.slices or []) == {"sums|0", "more|0"}


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = write_details(tmp_path / "x.parquet", set())
    for content in (path.read_bytes()[:-40], b"PAR1" + b"\xff" * 60):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.parquet: not a whole Parquet file"):
            read_run(path)
