"""Sizes that a slip of the hand asks for are refused before they take memory."""

from pathlib import Path

import pytest

from polyweave_torch.cli import main
from polyweave_torch.evallogs import compare_outcomes


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("id,correct\n" + "".join(f"{number},1\n" for number in range(10_001)))
    return str(path)


def test_slices_have_a_limit(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", rows, rows, "--slice", "id"]) == 2
    assert "10001 items have 10001 slices, such as '0'; at most 10000 are compared" in capsys.readouterr().err
    right = [True] * 10_000
    assert len(compare_outcomes(right, right, slices=range(10_000)).to_dict()["slices"]) == 10_000


def test_a_universe_of_unnamed_items_has_a_limit(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", rows, rows, "--universe", "99999999999"]) == 2
    said = capsys.readouterr().err
    assert "the universe has 99999999999 items, of which the runs name 10001; at most 1000000 may be unnamed" in said


def test_a_number_of_flips_has_a_limit(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", rows, rows, "--flips", "9" * 30])
    assert ended.value.code == 2
    assert "a number of at most 18 digits is wanted, not one of 30" in capsys.readouterr().err


def test_an_object_without_fields_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a", "correct": {}}\n')
    assert main(["compare", str(path), str(path)]) == 2
    assert capsys.readouterr().err.endswith("but found dict\n")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and can't be read")
@pytest.mark.parametrize("command", ["compare", "verdict"])
def test_a_file_that_opens_but_cannot_be_read_is_named(
    rows: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "/proc/self/mem", rows]) == 2
    assert capsys.readouterr().err.startswith(f"polyweave-torch {command}: /proc/self/mem can't be opened (")
