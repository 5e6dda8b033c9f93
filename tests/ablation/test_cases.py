"""Cases are read in one order, and what is no case is refused with its place."""

import json
import random
from pathlib import Path

import pytest

from polyweave_torch.ablation import Case, corpus_counts, load_cases, sample_stratified
from tests.ablation.runs import make_cases, write_cases


def line(case: Case) -> str:
    return json.dumps(case._asdict(), ensure_ascii=False)


def test_the_order_is_of_strata_as_declared_and_ids_whatever_the_lines(tmp_path: Path) -> None:
    cases = make_cases(4)
    shuffled = random.Random(0).sample(cases, len(cases))
    path = write_cases(tmp_path / "cases.jsonl", [line(case) for case in shuffled])
    assert load_cases(path, strata=["simple", "media", "compleja"]) == cases
    assert load_cases(str(path), strata=["compleja", "media", "simple"]) == [*cases[8:], *cases[4:8], *cases[:4]]


def test_without_a_declaration_the_ladder_is_climbed_and_other_strata_are_sorted(tmp_path: Path) -> None:
    ladder = write_cases(tmp_path / "ladder.jsonl", [line(case) for case in make_cases(1)[::-1]])
    assert [case.stratum for case in load_cases(ladder)] == ["simple", "media", "compleja"]
    others = write_cases(tmp_path / "others.jsonl", [line(Case(str(n), s)) for n, s in enumerate("zya")])
    assert [case.stratum for case in load_cases(others)] == ["a", "y", "z"]


def test_what_need_not_be_there_has_a_default_and_other_keys_are_left_alone(tmp_path: Path) -> None:
    path = write_cases(tmp_path / "cases.jsonl", ["", '{"id": "a", "stratum": "s", "author": "me"}', "  "])
    assert load_cases(path) == [Case("a", "s", "", "", None)]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "cases.jsonl:2: not JSON: Expecting property name"),
        ("[1]", "cases.jsonl:2: expected a JSON object a line, but found an array"),
        ('{"stratum": "s"}', "cases.jsonl:2: a case needs id as text that is not empty, but has None"),
        ('{"id": 7, "stratum": "s"}', "a case needs id as text that is not empty, but has 7"),
        ('{"id": "b", "stratum": ""}', "a case needs stratum as text that is not empty, but has ''"),
        ('{"id": "b", "stratum": "s", "domain": 3}', "domain must be text, but is 3"),
        ('{"id": "a", "stratum": "t"}', r"cases.jsonl:2: case 'a' stands at .*cases.jsonl:1 already"),
        ('{"id": "b", "stratum": "u"}', "case 'b' is of stratum 'u', but declared are s, t"),
    ],
)
def test_what_is_no_case_is_refused_with_its_line(tmp_path: Path, bad: str, message: str) -> None:
    path = write_cases(tmp_path / "cases.jsonl", ['{"id": "a", "stratum": "s"}', bad])
    with pytest.raises(ValueError, match=message):
        load_cases(path, strata=["s", "t"])


def test_every_gold_is_validated(tmp_path: Path) -> None:
    path = write_cases(tmp_path / "cases.jsonl", [line(case) for case in make_cases(2)])
    seen: list[object] = []
    load_cases(path, validate=seen.append)
    assert len(seen) == 6
    with pytest.raises(ValueError, match=r"cases\.jsonl:2: the gold of case 'simple-001' is not valid; mend it"):
        load_cases(path, validate=lambda gold: gold["answer"] < 1)

    def check(gold: dict[str, int]) -> None:
        if gold["answer"] == 1:
            raise ValueError("1 is no answer")

    with pytest.raises(ValueError, match="the gold of case 'simple-001' is not valid: 1 is no answer"):
        load_cases(path, validate=check)


def test_a_sample_has_the_first_cases_of_each_stratum() -> None:
    cases = make_cases(3)
    assert sample_stratified(cases, 2) == [*cases[:2], *cases[3:5], *cases[6:8]]
    assert sample_stratified(cases, 0) == sample_stratified(cases, -1) == sample_stratified(cases, 99) == cases


def test_counts_are_of_each_stratum() -> None:
    assert corpus_counts(make_cases(3)[1:]) == {"simple": 2, "media": 3, "compleja": 3}
    assert corpus_counts([]) == {}
