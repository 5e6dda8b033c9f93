"""On which slices is a step worth running? Two real steps, gated by what one half of the items says of each slice.

Checked on the other half. GPT-4 reflecting on its code gains 1.6 points where it pays, and loses half a point run
everywhere. Five examples in a prompt (MMLU) gain as much gated as always, and are then needed on 300 of 400 items.
"""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from polyweave_torch import ProtocolChannels
from polyweave_torch.evallogs import read_run, to_events
from polyweave_torch.functional import slice_gating_decisions

LOGS = Path(__file__).parents[1] / "tests" / "data" / "evallogs"
STEPS = {
    "five examples": [LOGS / "lm_eval" / "mmlu_0shot_vs_5shot"],
    "reflection": [LOGS / "reflexion" / "humaneval_py", LOGS / "reflexion" / "mbpp_py"],
}


class Policies(NamedTuple):
    """Of a step's items, how many are right under each policy, and on how many the gated step runs."""

    n: int
    never: int
    always: int
    gated: int
    runs: int


def read_halves(step: str, folders: list[Path]) -> tuple[ProtocolChannels, ProtocolChannels]:
    """Count every other item of each pair of logs apart. A log that names no slices is one slice."""
    halves = ProtocolChannels(), ProtocolChannels()
    for folder in folders:
        before, after = read_run(folder / "before"), read_run(folder / "after")
        for item, event in enumerate(to_events(before, after, protocol_id=step, default_slice=folder.name)):
            halves[item % 2].record(**event)
    return halves


def check(step: str, decided_on: ProtocolChannels, checked_on: ProtocolChannels) -> list[Policies]:
    """Gate by one half, and print each decision beside what the other half says of it."""
    policies = []
    for gate in slice_gating_decisions(decided_on.estimates(protocol_id=step)):
        there = checked_on.counts(step, gate.slice)
        n, never, always = int(there.sum()), int(there[1].sum()), int(there[:, 1].sum())
        policies.append(Policies(n, never, always, always if gate.activate else never, n * gate.activate))
        decision = f"{gate.expected_gain:+.3f}   {'run it' if gate.activate else 'leave it'}"
        print(f"  {gate.slice:29}{changed(gate.counts):>9}   {decision:19}{changed(there):>9}")
    return policies


def changed(counts: Tensor) -> str:
    """Corrected and corrupted items."""
    return f"+{int(counts[0, 1])} -{int(counts[1, 0])}"


def main() -> dict[str, Policies]:
    """Let each half decide for the other, and print the accuracy of three policies over all items."""
    results = {}
    for step, folders in STEPS.items():
        even, odd = read_halves(step, folders)
        print(f"{step:31}{'half':>9}    gain   decision   other half")
        result = Policies(*map(sum, zip(*check(step, even, odd), *check(step, odd, even), strict=True)))
        never, always, gated = (f"{100 * right / result.n:.1f} %" for right in result[1:4])
        print(f"  right: never {never}, always {always}, gated {gated}, run on {result.runs} of {result.n} items\n")
        results[step] = result
    return results


if __name__ == "__main__":
    main()
