from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.claims import Malformed, read_candidates, read_claims
from polyweave_torch.functional.claims import KnowledgeBase, score_claims

FABLE = [("lion", "LionA"), ("spared", "LionA", "MouseA"), ("implies", (("lion", "?x"),), ("animal", "?x"))]
SEXP = "(lion LionA) ; his majesty\n(spared LionA MouseA)\n(implies ((lion ?x)) (animal ?x))\n"
LISTS = '["lion", "LionA"]\n["spared", "LionA", "MouseA"]\n\n["implies", [["lion", "?x"]], ["animal", "?x"]]\n'


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fable.sexp", SEXP),
        ("fable.lisp", "\ufeff" + SEXP.replace("\n", "\r\n")),
        ("fable.txt", SEXP),
        ("fable.json", f"[{','.join(LISTS.split(chr(10) + chr(10))[0].splitlines())}, {LISTS.splitlines()[3]}]"),
        ("fable.jsonl", LISTS.replace("\n", "\r\n")),
    ],
)
def test_formats_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    assert read_claims(written(tmp_path, name, text)) == FABLE
    assert read_candidates(tmp_path / name) == FABLE


TRIPLES: list[Any] = [
    ("lion", "LionA"),
    ("lion", "LionB"),
    ("lion", "LionC"),
    ("spared", "LionA", "the mouse"),
    ("age", "LionA", "3"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "fable.csv",
            "id,Subject,predicate,object\n1,LionA,is a,lion\n2,LionB,rdf:type,lion\n3,LionC,instance-of,lion\n\n"
            '4,LionA,spared,"the mouse"\n5, LionA , age ,3\n',
        ),
        (
            "fable.tsv",
            "object\tsubject\tpredicate\nlion\tLionA\ttype\nlion\tLionB\ta\nlion\tLionC\tisA\n"
            "the mouse\tLionA\tspared\n3\tLionA\tage\n",
        ),
        (
            "fable.jsonl",
            '{"subject": "LionA", "predicate": "type", "object": "lion"}\n["lion", "LionB"]\n["lion", "LionC"]\n'
            '{"subject": "LionA", "predicate": "spared", "object": "the mouse", "score": 0.5}\n["age", "LionA", 3]\n',
        ),
    ],
)
def test_triples(tmp_path: Path, name: str, text: str) -> None:
    assert read_claims(written(tmp_path, name, text)) == TRIPLES


MALFORMED = [
    ("a.sexp", "(lion LionA)\n(mouse MouseA", "line 2, column 1: the parenthesis is never closed"),
    ("a.json", '[["lion", "LionA"], ["mouse"', "line 1, column 29: Expecting"),
    ("a.json", '{"lion": "LionA"}', "expected a list of claims, but got {'lion': 'LionA'}"),
    ("a.json", '[["lion", "LionA"], ["mouse", null]]', "claim 2: (mouse None) is no claim"),
    ("a.json", "[" * 100_000, "line 1: it nests too deep"),
    ("a.json", f'[["lion", {"[" * 500}"x"{"]" * 500}]]', "claim 1: (lion ((((("),
    ("a.jsonl", '["lion", "LionA"]\n["mouse"', "line 2, column 9: Expecting"),
    ("a.jsonl", '["lion", "LionA"]\n\n{"subject": "LionA", "predicate": "type"}', "line 3: expected text for subject"),
    ("a.csv", "subject,predicate\nLionA,lion\n", "line 1: expected the columns subject, predicate, object, but got"),
    (
        "a.csv",
        "subject,predicate,object\nLionA,lion\n",
        "line 2: expected text for subject, predicate, object, but got",
    ),
    (
        "a.csv",
        "subject,predicate,object\nLionA,likes,MouseA, and cheese\n",
        "line 2: expected 3 cells as in the first line, but found 4",
    ),
    ("a.csv", "subject,Subject,predicate,object\na,b,c,d\n", "line 1: the column 'subject' stands 2 times"),
    ("a.tsv", "subject\tpredicate\tobject\tid\tid\na\tb\tc\td\te\n", "line 1: the column 'id' stands 2 times"),
    ("a.csv", 'subject,predicate,object\nLionA,saw,"Mo"x\n', "line 2: "),
    ("a.csv", 'subject,predicate,object\nLionA,saw,"Mo\n', "line 2: unexpected end of data"),
]


@pytest.mark.parametrize(("name", "text", "message"), MALFORMED)
def test_what_people_wrote_must_be_well_formed(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(ValueError, match="a\\.") as caught:
        read_claims(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert len(str(caught.value)) < 500


def test_of_what_a_model_wrote_nothing_is_lost(tmp_path: Path) -> None:
    texts = {
        "a.sexp": "Sure:\n(lion LionA)\n(mouse (MouseA\n(wise LionA)\n",
        "a.json": '["Sure:", ["lion", "LionA"], ["mouse", ["MouseA", {}]], ["wise", "LionA"]]',
        "a.jsonl": 'Sure:\n["lion", "LionA"]\n["mouse", ["MouseA"\n["wise", "LionA"]\n',
        "a.csv": 'subject,predicate,object\nSure:\nLionA,type,lion\nMouseA,type,"mo"use\nLionA,type,wise\n',
    }
    kb = KnowledgeBase()
    kb.assert_claim(("lion", "LionA"), "fable")
    kb.assert_claim(("wise", "LionA"), "fable")
    for name, text in texts.items():
        read = read_candidates(written(tmp_path, name, text))
        assert [isinstance(item, Malformed) for item in read] == [True, False, True, False], name
        assert [item for item in read if not isinstance(item, Malformed)] == [("lion", "LionA"), ("wise", "LionA")]
        scores = score_claims(kb, "fable", read)
        assert (scores.strict.matched, scores.strict.candidates, len(scores.spurious)) == (2, 4, 2)


def test_a_file_of_no_known_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"fable\.pdf: expected a name that ends in one of \.sexp, "):
        read_candidates(written(tmp_path, "fable.pdf", ""))
    (tmp_path / "fable.txt").write_bytes(b"(lion L\xf6we)")
    with pytest.raises(ValueError, match=r"fable\.txt: expected UTF-8, but"):
        read_candidates(tmp_path / "fable.txt")
    with pytest.raises(FileNotFoundError):
        read_claims(tmp_path / "none.txt")


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "gold.json"
    path.write_text('[{"subject": "a", "subject": "b", "predicate": "p", "object": "o"}]')
    with pytest.raises(ValueError, match=r"gold\.json: line 1: the key 'subject' stands twice in one object"):
        read_claims(path)


def test_a_surplus_cell_is_no_match(tmp_path: Path) -> None:
    head = "subject,predicate,object\n"
    read = read_candidates(written(tmp_path, "a.csv", f"{head}LionA,likes,MouseA, and cheese\nLionA,type,lion\n"))
    assert read[1:] == [("lion", "LionA")]
    assert isinstance(read[0], Malformed)
    assert read[0].text == "LionA,likes,MouseA, and cheese"


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    long = "x" * 200_000
    path = written(tmp_path, "a.csv", f"subject,predicate,object,why\nLionA,spared,MouseA,{long}\n")
    assert read_claims(path) == [("spared", "LionA", "MouseA")]


def test_a_text_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "long.sexp"
    path.write_text("(a b)" + " " * 2**24)
    with pytest.raises(ValueError, match=r"long\.sexp: the text has 16,777,221 characters"):
        read_claims(path)
