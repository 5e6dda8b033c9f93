"""examples/protocol_step.py: the same decisions and sums from the log files, read with json alone."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.examples.running import ROOT, Ran, load, normal, run, shown

LOGS = ROOT / "tests" / "data" / "evallogs"
Outcomes = dict[str, list[tuple[bool, bool]]]


@pytest.fixture(scope="module")
def ran() -> Ran:
    return run(load("protocol_step").main)


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def mmlu() -> Outcomes:
    """Right before and after by subject, in the order of the questions."""
    sides: list[dict[str, dict[int, bool]]] = []
    for side in ("before", "after"):
        right: dict[str, dict[int, bool]] = {}
        for file in (LOGS / "lm_eval" / "mmlu_0shot_vs_5shot" / side).glob("samples_*.jsonl"):
            for row in rows(file):
                right.setdefault(row["doc"]["subject"], {})[row["doc_id"]] = row["acc"] == 1.0
        sides.append(right)
    before, after = sides
    return {name: [(before[name][item], after[name][item]) for item in sorted(before[name])] for name in sorted(before)}


def reflexion() -> Outcomes:
    found = {}
    for benchmark, key in (("humaneval_py", "task_id"), ("mbpp_py", "name")):
        files = [next((LOGS / "reflexion" / benchmark / side).glob("*.jsonl")) for side in ("before", "after")]
        before, after = ({row[key]: bool(row["is_solved"]) for row in rows(file)} for file in files)
        found[benchmark] = [(right, after[item]) for item, right in before.items()]
    return found


def pays(items: list[tuple[bool, bool]]) -> bool:
    """Whether (1 - p0)c - p0 gamma > 0, with half a count added to each side of both rates."""
    counts = Counter(items)
    wrong, right = (sum(counts[before, after] for after in (False, True)) for before in (False, True))
    c, gamma = (counts[False, True] + 0.5) / (wrong + 1), (counts[True, False] + 0.5) / (right + 1)
    return wrong * c - right * gamma > 0


@pytest.mark.parametrize(("step", "outcomes"), [("five examples", mmlu()), ("reflection", reflexion())])
def test_the_policies_are_what_counting_finds(ran: Ran, step: str, outcomes: Outcomes) -> None:
    never = always = gated = runs = n = 0
    for items in outcomes.values():
        for decides, judged in ((items[::2], items[1::2]), (items[1::2], items[::2])):
            n += len(judged)
            never += sum(before for before, _ in judged)
            always += sum(after for _, after in judged)
            runs += len(judged) * pays(decides)
            gated += sum(after if pays(decides) else before for before, after in judged)
    assert ran.result[step] == (n, never, always, gated, runs)
    shares = "never {:.1f} %, always {:.1f} %, gated {:.1f} %".format(*(100 * k / n for k in (never, always, gated)))
    assert f"right: {shares}, run on {runs} of {n} items" in ran.printed


def test_the_page_quotes_the_output(ran: Ran) -> None:
    assert normal(ran.printed) == shown("protocol_step")
