"""Cases and evaluators that several tests, and the processes that they start, share."""

import time
from collections.abc import Sequence
from pathlib import Path

from polyweave_torch.ablation import Case, Condition, Outcome, run_ablation

STRATA = ("simple", "media", "compleja")
ARMS = [Condition("old", {}), Condition("new", {"tuned": True}), Condition("newest", {"tuned": True, "deep": 2})]


def make_cases(per_stratum: int) -> list[Case]:
    return [
        Case(f"{stratum}-{number:03}", stratum, "tests", f"case № {number}", {"answer": number})
        for stratum in STRATA
        for number in range(per_stratum)
    ]


def outcome(case: Case, condition: Condition) -> Outcome:
    """Of no meaning, but always the same, with every field in use."""
    number = sum(map(ord, case.id + condition.name)) % 7
    return Outcome(
        case.id,
        case.stratum,
        condition.name,
        first_try=number < 4,
        converged=number < 6,
        iterations=1 + number,
        struct_errors0=number // 2,
        sem_errors0=number % 2,
        refused=number == 6,
        input_tokens=100 + number,
        output_tokens=10 * number,
        cost_usd=number / 1000,
        engaged={"tuned": number != 5} if condition.options else {},
        error=None,
    )


def evaluate(cases: Sequence[Case], condition: Condition) -> list[Outcome]:
    return [outcome(case, condition) for case in cases]


def evaluate_slowly(cases: Sequence[Case], condition: Condition) -> list[Outcome]:
    time.sleep(0.001)
    return evaluate(cases, condition)


def run_slowly(out: Path, batch_size: int) -> None:
    """The work of a process that will be killed."""
    run_ablation(make_cases(15), ARMS, evaluate_slowly, batch_size=batch_size, out=out, progress=False)


def write_cases(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path
