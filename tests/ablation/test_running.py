"""The harness: order, batches, errors, and the file that a run goes on from."""

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyweave_torch.ablation import (
    Case,
    Condition,
    FunctionEvaluator,
    Outcome,
    SimulatedEvaluator,
    SimulatedOutcome,
    analyze_outcomes,
    read_outcomes,
    run_ablation,
)
from tests.ablation.runs import ARMS, evaluate, make_cases, outcome


class Counting:
    """Evaluates, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.batches: list[int] = []

    def __call__(self, cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        self.batches.append(len(cases))
        self.asked += [(case.id, condition.name) for case in cases]
        return evaluate(cases, condition)


def pairs(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    return [(outcome.case_id, outcome.condition) for outcome in outcomes]


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_outcomes_and_their_order_do_not_depend_on_the_batch_size(batch_size: int) -> None:
    cases, counting = make_cases(3), Counting()
    outcomes = run_ablation(cases, ARMS, counting, batch_size=batch_size)
    assert outcomes == [outcome(case, arm) for case in cases for arm in ARMS]
    assert max(counting.batches) == min(batch_size, len(cases))
    assert sorted(counting.asked) == sorted(pairs(outcomes))


def test_a_run_that_is_stopped_early_is_paired(tmp_path: Path) -> None:
    class Stopped(Counting):
        def __call__(self, cases: Sequence[Case], condition: Condition) -> list[Outcome]:
            if len(self.batches) == 7:
                raise KeyboardInterrupt
            return super().__call__(cases, condition)

    with pytest.raises(KeyboardInterrupt):
        run_ablation(make_cases(3), ARMS, Stopped(), batch_size=2, out=tmp_path / "run.jsonl")
    found = pairs(list(read_outcomes(tmp_path / "run.jsonl")))
    assert len(found) == 14
    assert [sum(arm.name == name for _, name in found) for arm in ARMS] == [6, 4, 4]


def test_the_file_has_one_line_an_outcome_as_it_was_returned(tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "run.jsonl"
    outcomes = run_ablation(make_cases(2), ARMS, evaluate, out=out)
    assert [Outcome(**json.loads(line)) for line in out.read_text().splitlines()] == outcomes
    assert list(read_outcomes(out)) == outcomes


def test_each_batch_is_on_the_disk_before_the_next_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    out, fsync = tmp_path / "run.jsonl", os.fsync

    def recorded(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(out.stat().st_size if out.exists() else 0)

    def asks(cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        assert synced[-1] == out.stat().st_size
        return evaluate(cases, condition)

    monkeypatch.setattr(os, "fsync", recorded)
    assert not any(outcome.error for outcome in run_ablation(make_cases(2), ARMS, asks, batch_size=2, out=out))
    assert synced[-1] == out.stat().st_size


def test_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(3)
    outcomes = run_ablation(cases, ARMS, evaluate, batch_size=4, out=out)
    whole = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(whole[:10]))
    counting = Counting()
    assert run_ablation(cases, ARMS, counting, batch_size=4, out=out) == outcomes
    assert sorted(counting.asked) == sorted(pairs([Outcome(**json.loads(line)) for line in whole[10:]]))
    assert run_ablation(cases, ARMS, counting, batch_size=4, out=out) == outcomes
    assert len(counting.asked) == len(whole) - 10


@pytest.mark.parametrize("torn", [b'{"case_id": "simple-000", "str', b'{"case_id": "simple-0\n', b"\0\0\0\0", b"{"])
def test_a_torn_last_line_is_dropped_and_said(tmp_path: Path, torn: bytes) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(1)
    outcomes = run_ablation(cases, ARMS, evaluate, out=out)
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:4]) + torn)
    assert list(read_outcomes(out)) == outcomes[:4]
    with pytest.warns(UserWarning, match=f"dropped a torn last line of {len(torn)} bytes"):
        assert run_ablation(cases, ARMS, evaluate, out=out) == outcomes
    assert list(read_outcomes(out)) == outcomes


@pytest.mark.parametrize(
    "text", ["a note without an end", "one line\n", '{"id": "a", "stratum": "s"}\n', "two\nlines\n"]
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    out = tmp_path / "notes.txt"
    out.write_text(text)
    with pytest.raises(ValueError, match=r"holds no outcomes|is no outcome"):
        run_ablation(make_cases(1), ARMS, evaluate, out=out)
    assert [path.read_text() for path in tmp_path.iterdir()] == [text]


@pytest.mark.parametrize("size", [0, 1, 5, 40])
def test_a_run_killed_in_its_first_line_begins_anew(tmp_path: Path, size: int) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(1)
    outcomes = run_ablation(cases, ARMS, evaluate, out=out)
    os.truncate(out, size)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert run_ablation(cases, ARMS, evaluate, out=out) == outcomes
    assert len(said) == (size > 0)


def test_a_broken_line_that_is_not_the_last_one_is_an_error(tmp_path: Path) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(1)
    run_ablation(cases, ARMS, evaluate, out=out)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join([lines[0], lines[1][:20] + b"\n", *lines[2:]]))
    with pytest.raises(ValueError, match=r"run\.jsonl:2 is no outcome .*start over with resume=False \(--restart\)"):
        run_ablation(cases, ARMS, evaluate, out=out)


def test_an_outcome_that_the_file_has_twice_is_an_error(tmp_path: Path) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(1)
    run_ablation(cases, ARMS, evaluate, out=out)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join([*lines, lines[2]]))
    with pytest.raises(ValueError, match="case 'simple-000' has two outcomes under condition 'newest'"):
        run_ablation(cases, ARMS, evaluate, out=out)


_CASES = make_cases(2)
_CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("1 case changed ('media-001')", {"cases": [c._replace(gold=0) if c.id == "media-001" else c for c in _CASES]}),
    ("1 case gone ('simple-000')", {"cases": _CASES[1:]}),
    ("1 case new ('extra')", {"cases": [*_CASES, Case("extra", "simple")]}),
    ("the order of the cases changed", {"cases": _CASES[::-1]}),
    ("1 condition gone ('newest')", {"conditions": ARMS[:2]}),
    ("1 condition new ('last')", {"conditions": [*ARMS, Condition("last")]}),
    ("1 condition changed ('new')", {"conditions": [ARMS[0], Condition("new", {"tuned": False}), ARMS[2]]}),
    ("the order of the conditions changed", {"conditions": ARMS[::-1]}),
    ("the model was 'one' and is 'another'", {"model": "another"}),
    ("the mode was 'LIVE' and is 'SIMULATED'", {"evaluate": SimulatedEvaluator()}),
]


@pytest.mark.parametrize(("said", "change"), _CHANGES, ids=[said for said, _ in _CHANGES])
def test_a_run_of_something_else_is_refused_and_what_changed_is_said(
    tmp_path: Path, said: str, change: dict[str, Any]
) -> None:
    run: dict[str, Any] = {"cases": _CASES, "conditions": ARMS, "evaluate": evaluate, "model": "one"}
    out = tmp_path / "run.jsonl"
    run_ablation(**run, out=out)
    before = out.read_bytes()
    with pytest.raises(ValueError, match=r"is of another run.*start over with resume=False \(--restart\)") as error:
        run_ablation(**{**run, **change}, out=out)
    assert said in str(error.value)
    assert out.read_bytes() == before
    changed = run_ablation(**{**run, **change}, out=out, resume=False)
    assert list(read_outcomes(out)) == changed


def test_a_file_of_another_evaluator_is_refused_and_an_older_file_goes_on(tmp_path: Path) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(2)
    outcomes = run_ablation(cases, ARMS, SimulatedEvaluator(0), out=out)
    assert run_ablation(cases, ARMS, SimulatedEvaluator(0), out=out) == outcomes
    said = "the evaluator was 'seed 0, 5 attempts' and is 'seed 3, 5 attempts'"
    with pytest.raises(ValueError, match=said):
        run_ablation(cases, ARMS, SimulatedEvaluator(3), out=out)
    with pytest.raises(ValueError, match="and is 'seed 0, 2 attempts'"):
        run_ablation(cases, ARMS, SimulatedEvaluator(0, max_attempts=2), out=out)
    manifest = tmp_path / "run.jsonl.manifest"
    fields = json.loads(manifest.read_text())
    del fields["evaluator"]
    manifest.write_text(json.dumps(fields))
    assert run_ablation(cases, ARMS, SimulatedEvaluator(3), out=out) == outcomes
    del fields["cases"]
    manifest.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="is no manifest of a run"):
        run_ablation(cases, ARMS, SimulatedEvaluator(0), out=out)


def test_an_evaluator_names_itself(tmp_path: Path) -> None:
    class Named(Counting):
        identity = "checkpoint 1"

    out, named = tmp_path / "run.jsonl", Named()
    run_ablation(make_cases(1), ARMS, named, out=out)
    named.identity = "checkpoint 2"
    with pytest.raises(ValueError, match="the evaluator was 'checkpoint 1' and is 'checkpoint 2'"):
        run_ablation(make_cases(1), ARMS, named, out=out)


def test_a_file_without_its_manifest_goes_by_names_and_says_so(tmp_path: Path) -> None:
    out, cases = tmp_path / "run.jsonl", make_cases(2)
    outcomes = run_ablation(cases, ARMS, evaluate, out=out)
    (tmp_path / "run.jsonl.manifest").unlink()
    with pytest.raises(ValueError, match="case 'compleja-001' of the file is not among those of this run"):
        run_ablation(cases[:-1], ARMS, evaluate, out=out)
    with pytest.raises(ValueError, match="condition 'newest' of the file is not among those of this run"):
        run_ablation(cases, ARMS[:2], evaluate, out=out)
    with pytest.warns(UserWarning, match="has no manifest beside it"):
        assert run_ablation(cases, ARMS, evaluate, out=out) == outcomes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_ablation(cases, ARMS, evaluate, out=out)


def test_simulated_outcomes_stay_marked_in_the_file(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    run_ablation(make_cases(1), ARMS, SimulatedEvaluator(), out=out)
    assert {type(outcome) for outcome in read_outcomes(out)} == {SimulatedOutcome}
    again = run_ablation(make_cases(1), ARMS, SimulatedEvaluator(), out=out)
    assert {type(outcome) for outcome in again} == {SimulatedOutcome}


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("lazy", [False, True])
def test_an_exception_in_one_case_is_its_outcome(tmp_path: Path, batch_size: int, lazy: bool) -> None:
    def fails(cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        if condition.name == "new" and any(case.id == "media-001" for case in cases):
            raise RuntimeError("no answer")
        return evaluate(cases, condition)

    def yields(cases: Sequence[Case], condition: Condition) -> Any:
        yield from fails(cases, condition)

    cases, out = make_cases(3), tmp_path / "run.jsonl"
    outcomes = run_ablation(cases, ARMS, yields if lazy else fails, batch_size=batch_size, out=out)
    (failed,) = [found for found in outcomes if found.error]
    assert failed == Outcome("media-001", "media", "new", False, False, 0, error="RuntimeError: no answer")
    assert [found for found in outcomes if not found.error] == [
        outcome(case, arm) for case in cases for arm in ARMS if (case.id, arm.name) != ("media-001", "new")
    ]
    assert run_ablation(cases, ARMS, evaluate, batch_size=batch_size, out=out) == outcomes


def _bare(cases: Sequence[Case], condition: Condition) -> Any:
    return outcome(cases[0], condition)


def _missing(cases: Sequence[Case], condition: Condition) -> Any:
    return evaluate(cases[1:], condition)


def _twice(cases: Sequence[Case], condition: Condition) -> Any:
    return evaluate([cases[0], *cases[:-1]], condition)


def _other_condition(cases: Sequence[Case], condition: Condition) -> Any:
    return evaluate(cases, Condition("another"))


def _nothing(cases: Sequence[Case], condition: Condition) -> Any:
    return None


def _flags(cases: Sequence[Case], condition: Condition) -> Any:
    return [True for _ in cases]


@pytest.mark.parametrize("wrong", [_bare, _missing, _twice, _other_condition, _nothing, _flags])
def test_an_evaluator_that_returns_something_else_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must return a sequence of one Outcome for each of the 2 cases"):
        run_ablation(make_cases(2), ARMS, wrong, batch_size=2)


def test_an_evaluator_may_return_outcomes_in_any_order() -> None:
    outcomes = run_ablation(make_cases(2), ARMS, lambda cases, arm: evaluate(cases, arm)[::-1], batch_size=6)
    assert outcomes == run_ablation(make_cases(2), ARMS, evaluate)


def test_ids_names_and_batches_are_checked() -> None:
    with pytest.raises(ValueError, match="case 'simple-000' comes twice"):
        run_ablation([*make_cases(1), *make_cases(1)], ARMS, evaluate)
    with pytest.raises(ValueError, match="condition 'old' comes twice"):
        run_ablation(make_cases(1), [*ARMS, ARMS[0]], evaluate)
    with pytest.raises(ValueError, match="batch_size must be at least 1, but is 0"):
        run_ablation(make_cases(1), ARMS, evaluate, batch_size=0)


def test_numbers_of_numpy_and_torch_are_written_as_plain_ones(tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"first_try": np.bool_(True), "iterations": torch.tensor(3), "cost_usd": np.float32(0.5)}

    def foreign(cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        return [outcome(case, condition)._replace(**numbers, engaged={"x": bool(np.True_)}) for case in cases]

    out = tmp_path / "run.jsonl"
    outcomes = run_ablation(make_cases(1), ARMS, foreign, out=out)
    assert list(read_outcomes(out)) == outcomes
    assert (type(outcomes[0].first_try), type(outcomes[0].iterations), type(outcomes[0].cost_usd)) == (bool, int, float)
    with pytest.raises(ValueError, match="cost_usd of case 'simple-000' is nan"):
        run_ablation(make_cases(1), ARMS, lambda cases, arm: [outcome(cases[0], arm)._replace(cost_usd=float("nan"))])


NOT_OF_THEIR_KIND: list[tuple[str, Any, str]] = [
    ("first_try", "false", "'false', but must be true or false"),
    ("first_try", float("nan"), "nan, but must be true or false"),
    ("converged", None, "None, but must be true or false"),
    ("refused", "no", "'no', but must be true or false"),
    ("refused", torch.tensor([True, False]), r"tensor\(\[ True, False\]\), but must be true or false"),
    ("engaged", {"x": "yes"}, "'yes', but must be true or false"),
    ("engaged", None, "None, but must be a mapping of names to true or false"),
    ("iterations", None, "None, but must be a whole number of at most 64 bits"),
    ("iterations", 2.9, "2.9, but must be a whole number of at most 64 bits"),
    ("iterations", 10**30, "10+, but must be a whole number of at most 64 bits"),
    ("struct_errors0", "3", "'3', but must be a whole number of at most 64 bits"),
    ("cost_usd", 10**400, "10.*0, but must be a finite number; give 0.0 where it is not known"),
    ("cost_usd", "1", "'1', but must be a finite number; give 0.0 where it is not known"),
]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    NOT_OF_THEIR_KIND,
    ids=[f"{name}={str(value)[:12]}" for name, value, _ in NOT_OF_THEIR_KIND],
)
def test_what_is_not_of_its_kind_is_refused_wherever_it_comes_from(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    (case, *_), out = make_cases(1), tmp_path / "run.jsonl"
    wrong = outcome(case, ARMS[0])._replace(**{name: value})
    said = f"{name} of case 'simple-000' is {message}"
    with pytest.raises(ValueError, match=said):
        run_ablation([case], ARMS[:1], lambda cases, arm: [wrong])
    with pytest.raises(ValueError, match=said):
        analyze_outcomes([wrong])
    if not isinstance(value, torch.Tensor):
        out.write_text((json.dumps(wrong._asdict()) + "\n") * 2)
        with pytest.raises(ValueError, match=rf"run\.jsonl:1 is no outcome \({said}"):
            list(read_outcomes(out))


def test_zero_and_one_are_flags_and_whole_floats_are_counts() -> None:
    (case, *_) = make_cases(1)
    numbers: dict[str, Any] = {
        "first_try": 1,
        "converged": np.int64(1),
        "refused": torch.tensor(0.0),
        "iterations": 2.0,
    }
    wanted: dict[str, Any] = {"first_try": True, "converged": True, "refused": False, "iterations": 2}
    given = outcome(case, ARMS[0])._replace(**numbers)
    (found,) = run_ablation([case], ARMS[:1], lambda cases, arm: [given])
    assert found == given._replace(**wanted)
    assert analyze_outcomes([given]) == analyze_outcomes([found])


@pytest.mark.parametrize("answer", ["false", None, float("nan"), torch.tensor([True, False])])
def test_an_answer_that_is_neither_true_nor_false_ends_the_run(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"first_try of case 'simple-000' is .*, but must be true or false"):
        run_ablation(make_cases(1), ARMS, FunctionEvaluator(lambda case, arm: answer))


def test_options_that_json_has_no_form_for_are_compared_by_type(tmp_path: Path) -> None:
    out, arm = tmp_path / "run.jsonl", "arm"
    run_ablation(make_cases(1), [Condition(arm, {"model": object(), "k": {1, 2}})], evaluate, out=out)
    run_ablation(make_cases(1), [Condition(arm, {"model": object(), "k": {1, 2}})], evaluate, out=out)
    with pytest.raises(ValueError, match="1 condition changed"):
        run_ablation(make_cases(1), [Condition(arm, {"model": Counting(), "k": {1, 2}})], evaluate, out=out)
