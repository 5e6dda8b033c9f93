import argparse
import json
from pathlib import Path

import pytest

from polyweave_torch.claims import score_folder
from polyweave_torch.claims.command import add_arguments, run
from polyweave_torch.functional.claims import KnowledgeBase, claims_table, parse_claims, score_claims

GOLD = {
    "lion.sexp": "(lion LionA) (mouse MouseA) (friends LionA MouseA)",
    "race.csv": "subject,predicate,object\nTortoiseA,type,tortoise\nTortoiseA,beat,HareA\n",
    "ant.json": '[["ant", "AntA"]]',
}
READ = {
    "lion.jsonl": '["lion", "Leo"]\n["mouse", "Mo"]\n["friends", "Mo", "Leo"]\n["animal", "Leo"]\n["mouse"\n',
    "race.sexp": "(tortoise Tom) (beat Tom HareA) (beat HareA Tom)",
}
WORLD = "(implies ((lion ?x)) (animal ?x))"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for folder, texts in (("gold", GOLD), ("read", READ)):
        (tmp_path / folder).mkdir()
        for name, text in texts.items():
            (tmp_path / folder / name).write_text(text)
    (tmp_path / "gold" / "README.md").write_text("not a document")
    (tmp_path / "world.txt").write_text(WORLD)
    return tmp_path / "gold", tmp_path / "read"


def arguments(*words: str | Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def test_a_folder_is_scored_document_by_document(folders: tuple[Path, Path], tmp_path: Path) -> None:
    gold, read = folders
    scored = score_folder(gold, read, background=[tmp_path / "world.txt"], symmetric=["friends"])
    assert [name for name, _ in scored.documents] == ["ant", "lion", "race"]
    by_name = dict(scored.documents)
    assert by_name["lion"].aligned[:4] == (3, 5, 1, 3)
    assert by_name["race"].aligned[:4] == (2, 3, 0, 2)
    assert by_name["ant"].aligned[:4] == (0, 0, 0, 1)
    assert scored.warnings == [
        f"{read} has no document ant; it counts as one of which nothing was read",
        f"{read / 'lion.jsonl'}: line 5, column 9: Expecting ',' delimiter",
    ]
    kb = KnowledgeBase(symmetric=["friends"])
    for claim in parse_claims(GOLD["lion.sexp"]):
        kb.assert_claim(claim, "lion")
    kb.assert_claim(parse_claims(WORLD)[0], "world")
    kb.inherits("lion", "world")
    assert (
        score_claims(kb, "lion", parse_claims("(friends Mo Leo) (mouse Mo) (lion Leo) (animal Leo)")).aligned.matched
        == 3
    )


def test_the_command_prints_the_table(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(*folders)) == 0
    printed = capsys.readouterr()
    assert printed.out == claims_table(score_folder(*folders).documents) + "\n"
    assert printed.out.splitlines()[-1].startswith("| total | 6 | 8 | 50 % | 67 % | ")
    assert printed.err.count("polyweave-torch claims: ") == 2


def test_the_command_prints_json(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("--json", "--symmetric", "friends", "--background", tmp_path / "world.txt", "--method", "optimal")
    assert run(arguments(*folders, *options)) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == 1
    assert report["documents"]["lion"]["renaming"] == {"Leo": "LionA", "Mo": "MouseA"}
    assert report["documents"]["lion"]["spurious"] == ['["mouse"']
    assert report["documents"]["race"]["spurious"] == ["(beat HareA TortoiseA)"]
    assert report["documents"]["ant"]["missing"] == ["(ant AntA)"]
    total = report["total"]["aligned"]
    assert [total[name] for name in ("matched", "candidates", "derivable", "gold")] == [5, 8, 1, 6]
    assert (total["precision"], total["recall"]) == (5 / 7, 5 / 6)
    assert len(report["warnings"]) == 2


def test_bad_folders_are_clear_errors(folders: tuple[Path, Path], tmp_path: Path) -> None:
    gold, read = folders
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty has no documents; expected files that end in one of"):
        score_folder(gold, tmp_path / "empty")
    (read / "fox.txt").write_text("(fox FoxA)")
    with pytest.raises(ValueError, match=r"fox\.txt: .*gold has no document of this name"):
        score_folder(gold, read)
    (gold / "ant.txt").write_text("(ant AntA)")
    with pytest.raises(ValueError, match=r"ant\.txt and .*ant\.json are one document by name"):
        score_folder(gold, read)
    with pytest.raises(FileNotFoundError):
        score_folder(gold / "none", read)


def test_names_of_documents_are_no_markup_and_no_control_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("gold", "read"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "<script>\x1b[31m.sexp").write_text("(lion LionA)")
    (tmp_path / "gold" / "\x1b[32m.sexp").write_text("(lion LionA)")
    assert run(arguments(tmp_path / "gold", tmp_path / "read")) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert "| &lt;script>\\\\x1b[31m |" in printed.out
    assert "no document \\x1b[32m;" in printed.err
