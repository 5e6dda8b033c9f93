"""inspect_ai logs of the tool, and ones built by hand: crashed, of the first generation, with other kinds of scores."""

import json
import math
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs import archives
from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, write_document

ABOUT = {"task": "sums", "task_version": 3, "model": "m", "packages": {"inspect_ai": "0.3.1"}}


def sample(item: Any, value: Any, epoch: int = 1, **more: Any) -> dict[str, Any]:
    scores = {"match": {"value": value, "answer": "7"}}
    return {"id": item, "epoch": epoch, "input": "1+1?", "target": "2", "scores": scores, **more}


def log(samples: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": ABOUT, "plan": {}, "results": {}, "samples": samples, **more}


def archive(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, json.dumps(content))
    return path


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("kind", ["plain", "errors"])
def test_json_and_zstd_archives_of_one_run_are_the_same(kind: str, side: str) -> None:
    runs = [read_run(DATA / "inspect_generated" / form / kind / side) for form in ("json", "eval_zstd")]
    for name in ("format", "details", "warnings"):
        assert getattr(runs[0], name) == getattr(runs[1], name)
    by_id = []
    for run in runs:
        assert run.answers is not None
        assert run.prompts is not None
        columns = zip(run.answers, run.prompts, run.correct.tolist(), run.errors.tolist(), strict=True)
        by_id.append(dict(zip(run.ids, columns, strict=True)))
    assert by_id[0] == by_id[1]


def test_a_crashed_sample_is_an_error_and_has_no_outcome() -> None:
    run = read_run(DATA / "inspect_generated/json/errors/after")
    assert run.errors.sum() == 3
    assert (run.correct[run.errors] == -1).all()
    assert (run.correct[~run.errors] >= 0).all()


def test_grades_and_booleans_and_missing_scores(tmp_path: Path) -> None:
    values = ["C", "I", "N", True, False, 1, 0.0, None, math.nan, "1"]
    run = read_run(write_document(tmp_path / "log.json", log([sample(i, value) for i, value in enumerate(values)])))
    assert run.correct.tolist() == [1, 0, 0, 1, 0, 1, 0, -1, -1, 1]
    assert run.id_kind == "int"
    assert run.details["task version"] == "3"


def test_a_partly_right_answer_makes_scores_unless_a_threshold_decides(tmp_path: Path) -> None:
    path = write_document(tmp_path / "log.json", log([sample("a", "C"), sample("b", "P"), sample("c", "N")]))
    scores = read_run(path).scores
    assert scores is not None
    assert scores.tolist() == [1.0, 0.5, 0.0]
    assert read_run(path, threshold=0.5).correct.tolist() == [1, 1, 0]


def test_a_score_of_several_parts_needs_a_choice(tmp_path: Path) -> None:
    path = write_document(tmp_path / "log.json", log([sample("a", {"fact": 1, "style": 0})]))
    with pytest.raises(ChoiceError) as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("metric", ["fact", "style"])
    assert read_run(path, metric="style").correct.tolist() == [0]
    assert read_run(path, metric="fact").correct.tolist() == [1]


def test_several_scorers_need_a_choice(tmp_path: Path) -> None:
    samples = [sample("a", "C"), sample("b", "I")]
    for entry in samples:
        entry["scores"]["judge"] = {"value": "C"}
    path = write_document(tmp_path / "log.json", log(samples))
    with pytest.raises(ChoiceError) as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("scorer", ["match", "judge"])
    assert read_run(path, scorer="match").correct.tolist() == [1, 0]
    assert read_run(path, scorer="judge").correct.tolist() == [1, 1]
    with pytest.raises(ChoiceError, match="no scorer 'exact'"):
        read_run(path, scorer="exact")


def test_epochs_are_attempts_in_any_order(tmp_path: Path) -> None:
    samples = [sample("a", "I", 2), sample("a", "C", 3), sample("a", "C", 1), sample("b", "I", 1), sample("b", "C", 2)]
    path = write_document(tmp_path / "log.json", log(samples))
    with pytest.raises(ChoiceError, match="5 rows for 2 items"):
        read_run(path)
    assert read_run(path, epochs="first").correct.tolist() == [1, 0]
    assert read_run(path, epochs="majority").correct.tolist() == [1, 0]
    assert read_run(path, epochs="any").correct.tolist() == [1, 1]
    assert read_run(path, epochs="all").correct.tolist() == [0, 0]
    with pytest.raises(ValueError, match="1 items stand twice, such as 'a' in epoch 2"):
        read_run(write_document(tmp_path / "twice.json", log([*samples, sample("a", "C", 2)])), epochs="first")


def test_a_crashed_log_has_only_its_journal(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "crashed.eval",
        {
            "_journal/start.json": {"version": 2, "eval": ABOUT, "plan": {}},
            "_journal/summaries/1.json": [sample("a", "C"), sample("b", "I")],
            "_journal/summaries/2.json": [sample("c", "C")],
        },
    )
    run = read_run(path)
    assert run.ids == ["a", "b", "c"]
    assert run.correct.tolist() == [1, 0, 1]
    assert run.warnings == ["the evaluation did not finish (status started)"]
    assert run.details["model"] == "m"


def test_an_archive_without_summaries_is_read_sample_by_sample(tmp_path: Path) -> None:
    header = {name: value for name, value in log([]).items() if name != "samples"}
    samples = {f"samples/{item}_epoch_1.json": sample(item, "C", metadata={"topic": item}) for item in ("a", "b")}
    run = read_run(archive(tmp_path / "log.eval", {**samples, "header.json": header}), slice="topic")
    assert run.ids == ["a", "b"]
    assert run.slices == ["a", "b"]


def test_slices_that_the_summaries_lack_come_from_the_samples(tmp_path: Path) -> None:
    header = {name: value for name, value in log([]).items() if name != "samples"}
    members = {
        "samples/a_epoch_1.json": sample("a", "C", metadata={"topic": "logic"}),
        "summaries.json": [sample("a", "C")],
        "header.json": header,
    }
    path = archive(tmp_path / "log.eval", members)
    assert read_run(path, slice="metadata.topic").slices == ["logic"]
    with pytest.raises(ValueError, match="no field 'level'"):
        read_run(path, slice="level")


def test_the_first_logs_had_one_score_without_a_name(tmp_path: Path) -> None:
    samples = [{"id": 1, "epoch": 1, "input": "?", "target": "2", "score": {"value": "C"}}]
    assert read_run(write_document(tmp_path / "log.json", log(samples, version=1))).correct.tolist() == [1]


def test_messages_ids_are_no_part_of_the_question(tmp_path: Path) -> None:
    def asked(name: str, question: str) -> Path:
        message = {"id": name, "role": "user", "content": question}
        return write_document(tmp_path / f"{name}.json", log([sample("a", "C") | {"input": [message]}]))

    same = align([read_run(asked("x", "1+1?")), read_run(asked("y", "1+1?"))])
    other = align([read_run(asked("x", "1+1?")), read_run(asked("z", "1+1=?"))])
    assert (same.prompts_differ, other.prompts_differ) == (0, 1)


def test_an_unfinished_log_says_so(tmp_path: Path) -> None:
    run = read_run(write_document(tmp_path / "log.json", log([sample("a", "C")], status="cancelled")))
    assert run.warnings == ["the evaluation did not finish (status cancelled)"]


def test_several_logs_in_a_folder_need_a_choice(tmp_path: Path) -> None:
    for name, value in (("x.json", "C"), ("y.json", "I")):
        write_document(tmp_path / name, log([sample("a", value)]))
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path)
    assert (caught.value.option, caught.value.choices) == ("arm", ["x.json", "y.json"])
    assert read_run(tmp_path, arm="y.json").correct.tolist() == [0]


def test_zstd_without_its_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ValueError, match=r"pip install 'polyweave-torch\[zstd\]'"):
        read_run(DATA / "inspect_generated/eval_zstd/plain/before")


@pytest.mark.parametrize("form", ["inspect", "inspect_generated/eval_zstd"])
def test_a_damaged_archive_is_a_clear_error(form: str, tmp_path: Path) -> None:
    whole = next((DATA / form).rglob("*.eval")).read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut.eval: not a whole zip file"):
        read_run(tmp_path / "cut.eval")
    with zipfile.ZipFile(next((DATA / form).rglob("*.eval"))) as file:
        place = file.getinfo("header.json").header_offset + 80
    damaged = bytearray(whole)
    damaged[place : place + 40] = bytes(40)
    (tmp_path / "damaged.eval").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"damaged.eval"):
        read_run(tmp_path / "damaged.eval")


def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_PIECE", 1000)
    path = archive(tmp_path / "bomb.eval", {"header.json": " " * 100_000})
    assert path.stat().st_size < 1000
    with pytest.raises(ValueError, match=r"header.json unpacks to more than"):
        read_run(path)
