"""Alignment by id, against a plain reading of the rules."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyweave_torch import ProtocolChannels
from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.events import to_events
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.universe import Universe, universe_ids
from tests.evallogs.logs import counts

Outcomes = dict[str, int]
"""1 right, 0 wrong, -1 unscored, -2 failed."""


def run(outcomes: Outcomes, name: str = "run", **more: Any) -> Run:
    values = np.array(list(outcomes.values()), np.int8)
    return Run(name, f"{name}.csv", "csv", list(outcomes), np.maximum(values, -1), values == -2, **more)


def plain(runs: list[Outcomes], missing: str, errors: str) -> dict[str, list[bool]]:
    """The aligned items by the rules, one at a time."""
    aligned = {}
    for item in {name for outcomes in runs for name in outcomes}:
        row = []
        for outcomes in runs:
            value: int | None = outcomes.get(item)
            if value is None:
                value = 0 if missing == "wrong" else -1
            if value == -2 and errors == "wrong":
                value = 0
            row.append(value)
        if min(row) >= 0:
            aligned[item] = [value == 1 for value in row]
    return aligned


outcome_tables = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([1, 0, -1, -2]), min_size=1)


@given(
    st.lists(outcome_tables, min_size=2, max_size=3),
    st.sampled_from(["drop", "wrong"]),
    st.sampled_from(["drop", "wrong"]),
)
def test_alignment_follows_the_rules(tables: list[Outcomes], missing: Any, errors: Any) -> None:
    tables = [{**table, "z": 1} for table in tables]
    aligned = align([run(table) for table in tables], missing=missing, errors=errors)
    expected = plain(tables, missing, errors)
    assert dict(zip(aligned.ids, aligned.correct.tolist(), strict=True)) == expected
    first, last = set(tables[0]), set(tables[-1])
    assert aligned.alignment["only_before"] == len(first - last)
    assert aligned.alignment["only_after"] == len(last - first)
    assert aligned.alignment["aligned"] == len(expected)
    considered = set.union(*map(set, tables)) if missing == "wrong" else set.intersection(*map(set, tables))
    failed = {item for item in considered if any(table.get(item) == -2 for table in tables)}
    unscored = {item for item in considered - failed if any(table.get(item) == -1 for table in tables)}
    assert aligned.alignment["errors"] == len(failed)
    assert aligned.alignment["unscored"] >= len(unscored)
    if errors == "drop":
        assert aligned.alignment["unscored"] == len(unscored)
        assert len(considered) == len(expected) + len(failed) + len(unscored)


@given(outcome_tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table: Outcomes, random: Any) -> None:
    names = list(table)
    random.shuffle(names)
    before = run({**table, "z": 1})
    straight = align([before, run({**table, "z": 0})])
    shuffled = align([before, run({"z": 0, **{name: table[name] for name in names}})])
    assert straight.ids == shuffled.ids
    assert straight.correct.tolist() == shuffled.correct.tolist()


def test_items_stand_in_the_order_of_the_first_run() -> None:
    assert align([run({"c": 1, "a": 0, "b": 1}), run({"a": 1, "b": 1, "c": 1})]).ids == ["c", "a", "b"]


def test_runs_without_a_common_item_are_refused_with_examples() -> None:
    numbers = run({"1": 1, "2": 0}, "x", id_kind="int")
    with pytest.raises(
        ValueError, match=r"ids '1', '2' against 'q1', 'q2'.*One has ids that are whole numbers, the other text"
    ):
        align([numbers, run({"q1": 1, "q2": 1}, "y")])
    with pytest.raises(ValueError, match="no item in common: ids 'a' against 'b'"):
        align([run({"a": 1}), run({"b": 1})], missing="wrong")


def test_a_small_part_in_common_is_warned_of_with_examples() -> None:
    padded, bare = run({f"{item:03}": 1 for item in range(120)}, "x"), run({str(item): 1 for item in range(120)}, "y")
    form = "; ids that differ in form (leading zeros, prefixes) do not match"
    said = "only 20 of 120 items are in both runs, for instance '000' only before, '0' only after" + form
    assert align([padded, bare]).warnings == [said]
    assert align([padded, bare], missing="wrong").warnings == [said]
    assert align([padded, padded, bare]).warnings[-1] == (
        "only 20 of 120 items are in all 3 runs, for instance '000' of x is not, '000' of x is not, '0' of y is not"
        + form
    )
    assert align([padded, bare], universe=[*padded.ids, *bare.ids[:100]]).warnings == []
    # Up to 5 % may be left out.
    for lost, warned in ((6, False), (7, True)):
        shorter = run({str(item): 1 for item in range(120 - lost)}, "z")
        for runs in ([bare, shorter], [shorter, bare]):
            assert [warning.endswith("only before") for warning in align(runs).warnings] == (
                [runs[0] is bare] if warned else []
            )


def test_one_item_under_two_ids_is_refused_with_both() -> None:
    before = run({"1": 1, "2": 0, "3": 1}, "x", hashes=["h1", "h2", "h3"])
    after = run({"1": 1, "7": 0, "8": 1}, "y", hashes=["h1", "h2", "h3"])
    with pytest.raises(
        ValueError, match=r"2 items have one id in x.csv and another in y.csv: '2' against '7', '3' against '8'"
    ):
        align([before, after])


def test_equal_content_under_several_ids_of_one_run_is_no_contradiction() -> None:
    before = run({"1": 1, "2": 0}, hashes=["same", "same"])
    after = run({"2": 1}, hashes=["same"])
    assert align([before, after]).ids == ["2"]


def test_unknown_content_contradicts_nothing() -> None:
    assert align([run({"1": 1, "2": 0}, hashes=["h", ""]), run({"1": 1, "2": 0}, hashes=["h", "g"])]).ids == ["1", "2"]


def test_scores_make_all_runs_scores() -> None:
    before = run({"a": -1, "b": -1, "c": -1}, scores=np.array([0.5, 1.0, np.nan]))
    aligned = align([before, run({"a": 1, "b": -2, "c": 1})])
    assert aligned.scores is not None
    assert (aligned.ids, aligned.scores.tolist()) == (["a"], [[0.5, 1.0]])
    wrong = align([before, run({"a": 1, "b": -2})], missing="wrong", errors="wrong")
    assert wrong.scores is not None
    assert wrong.scores.tolist() == [[0.5, 1.0], [1.0, 0.0]]


def test_slices_and_answers_follow_the_items() -> None:
    before = run({"a": 1, "b": 0, "c": 1}, slices=["x", "y", "x"], answers=["1", "2", None])
    after = run({"c": 1, "b": 1}, slices=["z", "y"], answers=["3", "4"])
    aligned = align([before, after])
    assert (aligned.ids, aligned.slices) == (["b", "c"], ["y", "x"])
    assert aligned.answers == [["2", None], ["4", "3"]]
    assert aligned.warnings[1:] == ["items whose slice differs between runs, where the first run's is used: 1"]
    assert align([before, run({"b": 1})]).answers is None
    assert align([run({"b": 1}), after]).slices == ["y"]
    assert align([run({"b": 1, "e": 1}), after], missing="wrong").slices == ["y", "(none)", "z"]


def test_differences_between_runs_are_said_once() -> None:
    before = run({"a": 1, "b": 1}, "x", prompts=["p", "q"], details={"n-shot": "0", "model": "m"}, warnings=["odd"])
    after = run({"a": 1, "b": 1}, "y", prompts=["p", "r"], details={"n-shot": "5", "model": "n"})
    aligned = align([before, after])
    assert aligned.prompts_differ == 1
    assert aligned.warnings == ["x.csv: odd", "prompts differ on 1 of 2 items", "n-shot differs: 0 against 5"]
    assert align([before, replace(before, path="y.csv", warnings=[])]).warnings == ["x.csv: odd"]


def test_warnings_hold_no_name_of_any_length() -> None:
    long = "x" * 60_000
    runs = [run({"a": 1, item: 1}, "x", details={"task": f"{item}{long}"}) for item in "bcd"]
    warnings = align([replace(each, name=long) for each in runs]).warnings
    assert len(warnings) == 2
    assert max(map(len, warnings)) < 2_000


def test_a_universe_may_be_a_file_ids_or_a_number(tmp_path: Path) -> None:
    before, after = (run(table, only_right=True) for table in ({"a": 1, "b": 1}, {"b": 1, "c": 1}))
    ids = ["a", "b", "c", "d"]
    files = {
        "array": json.dumps(ids),
        "objects": json.dumps([{"instance_id": name, "repo": "r"} for name in ids], indent=1),
        "lines": "\n".join(json.dumps({"id": name}) for name in ids),
        "text": "\n".join(ids) + "\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    universes: list[Universe] = [4, "4", ids, *(tmp_path / name for name in files), str(tmp_path / "text")]
    for universe in universes:
        aligned = align([before, after], universe=universe)
        assert counts(aligned) == {"n00": 1, "n01": 1, "n10": 1, "n11": 1}
        assert aligned.alignment["only_before"] == aligned.alignment["only_after"] == 0
    with pytest.raises(ValueError, match="1 items of the runs are not in the universe of 2: 'c'"):
        align([before, after], universe=["a", "b"])
    with pytest.raises(ValueError, match="names 1 item more than once, such as 'b'"):
        align([before, after], universe=["a", "b", "b", "c"])
    with pytest.raises(ValueError, match="names only the items that run got right"):
        align([before, after])


@pytest.mark.parametrize("head", ["instance_id", "ID", "\n doc_id"])
def test_the_head_of_a_column_is_no_item_of_a_universe(head: str, tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text(f"{head}\na\nb\n")
    with pytest.raises(ValueError, match=f"its first line, '{head.strip()}', is the name of a column and would count"):
        universe_ids(path, ["a", "b"])


def test_policies_are_checked() -> None:
    with pytest.raises(ValueError, match="two or more runs"):
        align([run({"a": 1})])
    with pytest.raises(ValueError, match="missing must be 'drop' or 'wrong', but is 'keep'"):
        align([run({"a": 1}), run({"a": 1})], missing="keep")  # type: ignore[arg-type]


def test_events_feed_protocol_channels() -> None:
    before = run({"a": 0, "b": 1, "c": 1, "d": -2}, "base", slices=["x", "x", "y", "y"])
    after = run({"d": 1, "c": 0, "b": 1, "a": 1}, "tuned")
    channels = ProtocolChannels()
    for event in to_events(before, after):
        channels.record(**event)
    assert channels.labels == [("base -> tuned", "x"), ("base -> tuned", "y")]
    assert channels.counts("base -> tuned", "x").tolist() == [[0, 1], [0, 1]]
    assert channels.counts("base -> tuned", "y").tolist() == [[0, 0], [1, 0]]
    assert {event["protocol_id"] for event in to_events(before, after, protocol_id="step")} == {"step"}
    scores = run({"a": -1}, scores=np.array([0.5]))
    with pytest.raises(ValueError, match="threshold"):
        to_events(scores, scores)


def test_events_of_runs_without_slices_have_the_default_one() -> None:
    before, after = run({"a": 0, "b": 1}, "base"), run({"a": 1, "b": 1}, "tuned")
    channels, unnamed = ProtocolChannels(), ProtocolChannels()
    for event in to_events(before, after):
        channels.record(**event)
        unnamed.record(event["before_correct"], event["after_correct"], event["protocol_id"])
    assert channels.labels == unnamed.labels == [("base -> tuned", "all")]
    assert {event["slice"] for event in to_events(before, after, default_slice="math")} == {"math"}
