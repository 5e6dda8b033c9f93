"""Tables with columns that the caller names: CSV, JSONL, JSON, Parquet."""

import csv
import datetime
import importlib
import json
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, counts, write_document, write_lines

# Without stubs.
pq: Any = importlib.import_module("pyarrow.parquet")
pa: Any = importlib.import_module("pyarrow")

GPQA = next((DATA / "csv_long").rglob("*.csv"))
ROWS: list[dict[str, Any]] = [
    {"question": "a", "right": True, "topic": "x", "seed": 1},
    {"question": "b", "right": False, "topic": "y", "seed": 2},
    {"question": "c", "right": None, "topic": "y", "seed": 3},
]
NAMED: dict[str, Any] = {"id": "question", "correct": "right", "slice": "topic"}


def write_table(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_all_kinds_give_the_same_run(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "table.dat"
    if kind in ("csv", "tsv"):
        write_table(path, ROWS, "\t" if kind == "tsv" else ",")
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        (write_lines if kind == "jsonl" else write_document)(path, ROWS)
    run = read_run(path, **NAMED)
    assert run.format == ("csv" if kind == "tsv" else kind)
    assert run.ids == ["a", "b", "c"]
    assert run.correct.tolist() == [1, 0, -1]
    assert run.slices == ["x", "y", "y"]


def test_what_a_monitor_saves_needs_no_options(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_text("id,correct,prediction,slice\n7,1,3,north\n8,0,5,south\n")
    run = read_run(path)
    assert run.ids == ["7", "8"]
    assert run.correct.tolist() == [1, 0]
    assert run.answers == ["3", "5"]
    assert run.slices == ["north", "south"]


def test_columns_are_not_guessed(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    said = (
        r"no column with a usual name for the item's id, nor for the outcome \(correct=, --correct\); choose with id="
    )
    with pytest.raises(ChoiceError, match=said) as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("id", list(ROWS[0]))
    path = write_lines(tmp_path / "y.jsonl", [{"id": 1, "passed": 1, "score": 0.3}])
    with pytest.raises(ChoiceError, match="2 columns that may be the outcome") as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("correct", ["passed", "score"])


def test_nested_fields_are_named_by_a_path(tmp_path: Path) -> None:
    rows = [
        {"meta": {"key": 4, "a.b": "x"}, "result": {"ok": 1}},
        {"meta": {"key": 5, "a.b": "y"}, "result": {"ok": 0}},
    ]
    run = read_run(write_lines(tmp_path / "x.jsonl", rows), id="meta.key", correct="result.ok", slice="meta.a.b")
    assert (run.ids, run.correct.tolist(), run.id_kind) == (["4", "5"], [1, 0], "int")
    assert run.slices == ["x", "y"]
    with pytest.raises(ValueError, match=r"x.jsonl:1: no field 'meta.name'; there are meta, result"):
        read_run(tmp_path / "x.jsonl", id="meta.name", correct="result.ok")


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("True", 1), ("PASS", 1), ("yes", 1), ("1.0", 1), ("false", 0), ("Fail", 0), ("0", 0), ("", -1), ("nan", -1)],
)
def test_words_for_outcomes(word: str, outcome: int, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"id,correct\na,{word}\nb,1\n")
    assert read_run(path).correct.tolist() == [outcome, 1]


@pytest.mark.parametrize("word", ["maybe", "inf", "1e999", "T", "[1]"])
def test_what_is_no_outcome_is_refused(word: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"id,correct\na,1\nb,{word}\n")
    with pytest.raises(
        ValueError, match=r"x.csv:3: expected an outcome \(true or false, yes or no, a number\)"
    ) as caught:
        read_run(path)
    assert word in str(caught.value) or "an infinite score" in str(caught.value)


def test_failed_rows_are_errors(tmp_path: Path) -> None:
    run = read_run(
        write_lines(
            tmp_path / "x.jsonl", [{"id": 1, "correct": None, "error": "timeout"}, {"id": 2, "correct": "ERROR"}]
        )
    )
    assert run.errors.tolist() == [True, True]
    assert run.correct.tolist() == [-1, -1]


def test_scores_stay_scores_without_a_threshold(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"id": item, "score": item / 4} for item in range(5)])
    run = read_run(path)
    assert run.scores is not None
    assert run.scores.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert read_run(path, threshold=0.5).correct.tolist() == [0, 0, 1, 1, 1]


def test_an_arm_is_found_by_its_value(tmp_path: Path) -> None:
    with pytest.raises(ChoiceError, match="2 arms, by model_id") as caught:
        read_run(GPQA, epochs="first")
    assert caught.value.option == "arm"
    assert caught.value.choices == ["openai/gpt-5-nano-2025-08-07", "openai/gpt-5.4-mini-2026-03-17"]
    with pytest.raises(ChoiceError, match="no arm 'gpt-4'") as caught:
        read_run(GPQA, arm="gpt-4", epochs="first")
    assert caught.value.choices == ["openai/gpt-5-nano-2025-08-07", "openai/gpt-5.4-mini-2026-03-17"]
    rows = [{"id": "a", "correct": 1, "left": "x", "right": "y"}, {"id": "b", "correct": 0, "left": "y", "right": "x"}]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(ValueError, match="'x' stands in left and right; say which names the arm"):
        read_run(path, arm="x")
    assert read_run(path, arm="right=x").ids == ["b"]


def test_an_arm_may_be_a_number_or_true_or_false(tmp_path: Path) -> None:
    rows = [{"id": "a", "correct": run, "run": run, "seed": 1, "arm": run == 1} for run in (1, 0)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    for arm, right in (("1", 1), ("0", 0), ("true", 1), ("false", 0), ("run=1", 1), ("arm=false", 0)):
        assert read_run(path, arm=arm).correct.tolist() == [right]


def test_an_arm_that_another_column_divides_is_not_taken_for_epochs(tmp_path: Path) -> None:
    rows = [{"id": 1, "correct": 1, "model": model, "condition": c} for model in "AB" for c in "xy"]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(ValueError, match=r"rows of the arm 'A' differ in condition \(x, y\), and an item has several"):
        read_run(path, arm="A")
    assert read_run(path, arm="A", epochs="majority").correct.tolist() == [1]
    apart = write_lines(tmp_path / "y.jsonl", [{**row, "id": number} for number, row in enumerate(rows)])
    assert read_run(apart, arm="A").correct.tolist() == [1, 1]


def test_item_means_do_not_depend_on_row_order(tmp_path: Path) -> None:
    lines = GPQA.read_text().splitlines()
    body = lines[1:]
    random.Random(0).shuffle(body)
    (tmp_path / "x.csv").write_text("\n".join([lines[0], *body]))
    arm = "openai/gpt-5-nano-2025-08-07"
    for how in ("first", "mean", "majority"):
        runs = [read_run(path, arm=arm, epochs=how) for path in (GPQA, tmp_path / "x.csv")]
        outcomes = [
            dict(zip(run.ids, (run.correct if run.scores is None else run.scores).tolist(), strict=True))
            for run in runs
        ]
        assert outcomes[0] == outcomes[1]


def test_cells_may_hold_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,correct,prediction\na,1,"two\n\nlines, one cell"\nb,0,\n')
    assert read_run(path).answers == ["two\n\nlines, one cell", ""]


def test_cells_may_be_long(tmp_path: Path) -> None:
    path, long = tmp_path / "x.csv", "x" * 200_000
    path.write_text(f"id,correct,prediction\na,1,{long}\n")
    assert read_run(path).answers == [long]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,correct\na,1\nb\n", r"x.csv:3: expected 2 cells as in the first line, but found 1"),
        ("\n \nid,correct\na,1\n\nb\n", r"x.csv:6: expected 2 cells as in the first line, but found 1"),
        ('id,correct\na,1\n"b"c,0\n', r"x.csv:3: not CSV: "),
        ("id,correct,id\na,1,b\n", r"x.csv:1: the column 'id' stands 2 times"),
        ("id,correct\n,1\n", r"x.csv:2: expected an id"),
        ("id,correct\na,1\na,0\n", r"2 rows for 1 items, for instance 2 of 'a', and"),
        ("id,correct\n", r"no rows to compare"),
        ("", r"not a known evaluation log \(empty\)"),
        ("hello\nworld\n", r"not a known evaluation log"),
    ],
)
def test_broken_tables_are_clear_errors(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_run(tmp_path / "x.csv")


def test_naming_the_outcome_says_that_a_file_is_a_table(tmp_path: Path) -> None:
    rows = [{"task_id": 0, "passed": True, "plus": False}]
    path = write_lines(tmp_path / "x.jsonl", rows)
    assert read_run(path).format == "human_eval"
    run = read_run(path, id="task_id", correct="plus")
    assert (run.format, run.correct.tolist()) == ("jsonl", [0])


def test_numbers_and_text_that_name_the_same_items_align(tmp_path: Path) -> None:
    numbers = write_lines(tmp_path / "x.jsonl", [{"id": 1, "correct": 1}, {"id": 2.0, "correct": 0}])
    text = write_lines(tmp_path / "y.jsonl", [{"id": "2", "correct": 1}, {"id": "1", "correct": 1}])
    assert counts(align([read_run(numbers), read_run(text)])) == {"n00": 0, "n01": 1, "n10": 0, "n11": 1}


def test_parquet_without_its_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "x")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match=r"pip install 'polyweave-torch\[parquet\]'"):
        read_run(tmp_path / "x", **NAMED)


def test_a_damaged_parquet_file_is_a_clear_error(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cut: not a whole Parquet file"):
        read_run(tmp_path / "cut", **NAMED)


def test_dates_decimals_and_bytes_are_names_too(tmp_path: Path) -> None:
    values = [datetime.date(2026, 11, 30), Decimal("0.50"), b"x", [datetime.date(2026, 11, 30)]]
    texts = ["2026-11-30", "0.50", "b'x'", '["2026-11-30"]']
    for value, text in zip(values, texts, strict=True):
        rows = [{"id": 1, "correct": 1, "run": value, "slice": value, "prediction": value}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
        run = read_run(tmp_path / "x.parquet", arm=text)
        assert (run.slices, run.answers) == ([text], [text])


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "opened",))

    (tmp_path / "x.csv").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="not UTF-8"):
        read_run(tmp_path / "x.csv")
    assert not (tmp_path / "opened").exists()


def test_options_that_mean_nothing_are_said(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"id": 1, "correct": 1}])
    assert read_run(path, scorer="judge").warnings == ["scorer=judge means nothing in this format"]


def test_a_given_format_is_believed(tmp_path: Path) -> None:
    path = write_document(tmp_path / "x.json", [{"id": 1, "correct": 1}])
    assert read_run(path, format="json").ids == ["1"]
    with pytest.raises(ValueError, match="format must be one of lm_eval, inspect_ai"):
        read_run(path, format="xml")
    (tmp_path / "y.json").write_text(json.dumps({"a": [1]}, indent=2))
    with pytest.raises(ValueError, match="expected a table"):
        read_run(tmp_path / "y.json", format="csv")


def test_an_arm_may_be_one_of_several_files(tmp_path: Path) -> None:
    for name, correct in (("x.csv", 1), ("y.csv", 0)):
        (tmp_path / name).write_text(f"id,correct\na,{correct}\n")
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path)
    assert (caught.value.option, caught.value.choices) == ("arm", ["x.csv", "y.csv"])
    assert read_run(tmp_path, arm="y.csv").correct.tolist() == [0]


def test_a_message_does_not_list_a_thousand_choices(tmp_path: Path) -> None:
    rows = [{"id": 1, "correct": 1, "model": f"m{number}"} for number in range(1000)]
    with pytest.raises(ChoiceError, match=r"m39 and 960 more$") as caught:
        read_run(write_lines(tmp_path / "x.jsonl", rows))
    assert len(caught.value.choices) == 1000
