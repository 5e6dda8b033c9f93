"""Files are data: scores and checks by layer from JSONL and CSV, errors with file and line."""

from pathlib import Path

import pytest

from polyweave_torch.verdict.files import CHECK_LAYERS, Columns, read_layer_file
from tests.verdict.rows import LAYERS, Rows, Write, scored


def test_checks_become_scores_of_their_layers(write: Write) -> None:
    checks = [
        {"type": "contains", "passed": True, "weight": 3},
        {"type": "regex", "passed": False},
        {"type": "tool_called", "passed": False},
        {"type": "max_cost", "passed": 1, "weight": 0.5},
        {"type": "polite", "passed": True},
    ]
    rows: Rows = [{"id": 1, "checks": checks, "judge": 4}, {"id": 2, "judge": 0}, {"id": 3, "checks": []}]
    columns = Columns(LAYERS, {**CHECK_LAYERS, "polite": "behavior"})
    found = read_layer_file(write("run.jsonl", rows), columns)
    # Facts: 3 of 4; behavior: 1.5 of 2.5.
    assert found.scores["1"] == pytest.approx([4.0, 3.4, 4.0])
    assert str(found.scores["2"]) == "[nan, nan, 0.0]"
    assert str(found.scores["3"]) == "[nan, nan, nan]"


def test_one_check_a_row_is_the_same(write: Write) -> None:
    rows: Rows = [
        {"id": "a", "type": "contains", "passed": "true", "weight": 3, "judge": ""},
        {"id": "a", "type": "regex", "passed": "False", "weight": "", "judge": ""},
        {"id": "a", "type": "", "passed": "", "weight": "", "judge": 4.5},
        {"id": "b", "type": "tool_called", "passed": 1, "weight": 2, "judge": ""},
    ]
    wanted = {"a": "[4.0, nan, 4.5]", "b": "[nan, 5.0, nan]"}
    for name in ("run.csv", "run.jsonl"):
        found = read_layer_file(write(name, rows), Columns(LAYERS))
        assert {sample: str(scores) for sample, scores in found.scores.items()} == wanted


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": 1, "fact": 4}\n{"id": 2, "fact": "four"}\n', r":2: expected fact to be a finite number.*'four'"),
        ('{"id": 1, "fact": true}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": 1e999}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": [4]}\n', ":1: expected fact to be a finite number"),
        ('{"id": 1, "fact": __import__("os")}\n', ":1: not JSON"),
        ('{"id": 1, "fact": 4}\n{"id": 1, "fact": 5}\n', ":2: id '1' stands twice"),
        ('{"id": 1, "fact": 4, "fact": 5}\n', ":1: .*stands twice"),
        ('{"fact": 4}\n', ":1: expected id .*found None; name it with --id"),
        ('{"id": true, "fact": 4}\n', ":1: expected id"),
        ('{"id": 1, "fact": 4}\n[1]\n', ":2: expected a JSON object"),
        ('{"id": 1, "checks": {"type": "regex"}}\n', ":1: checks must be a list"),
        ('{"id": 1, "checks": [{"type": "regex", "passed": "maybe"}]}\n', ":1: expected passed to be true or false"),
        ('{"id": 1, "checks": [{"type": "regex"}]}\n', ":1: expected passed to be true or false"),
        ('{"id": 1, "checks": [{"type": "regex", "passed": 1, "weight": -1}]}\n', ":1: the weight of a check"),
        ('{"id": 1, "type": "regex", "passed": true, "judge": 4}\n', ":1: a row of one check holds a score too"),
        ('{"id": 1, "fact": 4}\n{"id": 1, "type": "regex", "passed": true}\n', "has a score and checks of the layer"),
        ('{"id": 1, "score": 4}\n', r"no row has a score of the layers \['fact', 'behavior', 'judge'\].*'score'"),
        ('{"id": 1, "fact": ' + "[" * 100_000 + "\n", ":1: nested too deeply"),
        ("id,fact\n1,4\n2\n", ":3: expected 2 cells as in the first line, but found 1"),
        ("id,fact,fact\n1,4,4\n", ":1: the column 'fact' stands 2 times"),
        ('id,fact\n1,"4\n', "not CSV"),
        ("", "no row has a score"),
        ("id,fact\n", "no row has a score"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_layer_file(path, Columns(LAYERS))
    assert str(path) in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b"id,fact\n1,4\n\xff\xfe,5\n")
    with pytest.raises(ValueError, match=r"run\.csv:3: not UTF-8"):
        read_layer_file(path, Columns(LAYERS))


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": 1, "fact": 4}\n{"id": "')
        file.truncate(80 * 2**20)  # a sparse file
    with pytest.raises(ValueError, match=r"run\.jsonl:2: the line is longer than"):
        read_layer_file(path, Columns(LAYERS))


def test_other_spellings_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    for content in (
        "\ufeffid,fact\r\na,4\r\n",
        "id\tfact\na\t4\n",
        "id;fact\n\na;4\n",
        'id,fact\n"a","4"\n',
        "id,fact\na, 4 \n",
    ):
        path.write_text(content, newline="")
        assert read_layer_file(path, Columns(("fact",))).scores == {"a": [4.0]}


def test_missing_scores_have_many_spellings(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"id": 1, "fact": null}\n{"id": 2, "fact": NaN}\n{"id": 3}\n{"id": 4, "fact": ""}\n{"id": 5, "fact": 3}\n'
    )
    found = read_layer_file(path, Columns(("fact",)))
    assert [str(score) for (score,) in found.scores.values()] == ["nan", "nan", "nan", "nan", "3.0"]


def test_a_run_is_scored_in_one_way(write: Write) -> None:
    rows = [*scored(4.0, 2, hash="a"), {"id": 9, "fact": 4, "judge": 4, "hash": "b"}]
    with pytest.raises(ValueError, match=r"run\.csv:4: hash is 'b', but was 'a' before"):
        read_layer_file(write("run.csv", rows), Columns(LAYERS, provenance=("hash",)))


def test_a_check_says_how_its_run_was_scored(write: Write) -> None:
    check = {"type": "contains", "passed": True}
    columns = Columns(LAYERS, provenance=("prompt",))
    rows: Rows = [{"id": 1, **check, "prompt": "p1"}, {"id": 2, **check}]
    for name in ("run.csv", "run.jsonl"):
        assert read_layer_file(write(name, rows), columns).provenance == {"prompt": "p1"}
        with pytest.raises(ValueError, match="prompt is 'p2', but was 'p1' before; a run is scored in one way"):
            read_layer_file(write(name, [*rows, {"id": 3, **check, "prompt": "p2"}]), columns)


@pytest.mark.parametrize("columns", [Columns(LAYERS, judges=("mark",)), Columns(LAYERS, human="mark")])
def test_a_check_with_a_mark_is_refused(write: Write, columns: Columns) -> None:
    check = {"id": 1, "type": "contains", "passed": True}
    path = write("run.jsonl", [check, {"id": 1, "mark": 4}])
    assert [*read_layer_file(path, columns).human.values(), *read_layer_file(path, columns).marks.values()] != []
    with pytest.raises(ValueError, match=r"run\.jsonl:1: a row of one check holds a mark too, mark; put marks in"):
        read_layer_file(write("run.jsonl", [{**check, "mark": 4}]), columns)
