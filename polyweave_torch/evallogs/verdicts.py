"""The words of ``compare``: one verdict on a change, with every reason that held and what to do about it."""

from collections.abc import Sequence
from typing import NamedTuple

from polyweave_torch.functional.verdict_words import Verdict

ACTIONS = {
    **{word.value: word.action for word in (Verdict.REGRESS, Verdict.CAUTIOUS, Verdict.PROGRESS)},
    "EQUIVALENT": "no loss or gain that matters",
    **{word.value: word.action for word in (Verdict.UNDERPOWERED, Verdict.NOISE)},
}
"""The verdicts in the order in which they are tried, and what to do."""

GATES = {"regress": ("REGRESS",), "cautious": ("REGRESS", "CAUTIOUS")}
"""The verdicts at which ``--fail-on`` fails."""


class Judgement(NamedTuple):
    """A verdict with its reasons."""

    label: str
    """One of :data:`ACTIONS`."""
    reasons: list[str]
    """Codes of all that held: "significantly-down" or "-up" or "not-significant", "slice-down:<name>",
    "prompts-differ", "equivalent" or "not-equivalent", "underpowered", "no-discordants"."""


def judge(
    *,
    significant: bool,
    delta: float,
    discordant: int,
    underpowered: bool,
    slices_down: Sequence[str] = (),
    prompts_differ: bool = False,
    equivalent: bool | None = None,
) -> Judgement:
    """Give the verdict on a change from before to after.

    The first that holds: REGRESS, significantly down; CAUTIOUS, a slice significantly down within its family, or
    prompts that differ, so that the change is not the only difference; PROGRESS, significantly up; EQUIVALENT, the
    difference shown to lie inside the margin; UNDERPOWERED, fewer than 25 discordant items; NOISE.

    Args:
        significant: whether the deciding test rejects that nothing changed.
        delta: accuracy after less accuracy before.
        discordant: items whose outcome changed.
        underpowered: whether these are too few.
        slices_down: slices that are significantly down after the adjustment over slices.
        prompts_differ: whether the runs asked differently.
        equivalent: whether equivalence at a margin was shown; None where no margin was given.

    Returns:
        :class:`Judgement`.

    Example:
        >>> judge(significant=True, delta=0.05, discordant=40, underpowered=False, slices_down=["sympy"])
        Judgement(label='CAUTIOUS', reasons=['significantly-up', 'slice-down:sympy'])
    """
    down, up = significant and delta < 0, significant and delta > 0
    reasons = ["significantly-down" if down else "significantly-up" if up else "not-significant"]
    reasons += [f"slice-down:{name}" for name in slices_down]
    if prompts_differ:
        reasons.append("prompts-differ")
    if equivalent is not None:
        reasons.append("equivalent" if equivalent else "not-equivalent")
    if underpowered:
        reasons.append("underpowered" if discordant else "no-discordants")
    if down:
        return Judgement("REGRESS", reasons)
    if slices_down or prompts_differ:
        return Judgement("CAUTIOUS", reasons)
    if up:
        return Judgement("PROGRESS", reasons)
    if equivalent:
        return Judgement("EQUIVALENT", reasons)
    return Judgement("UNDERPOWERED" if underpowered else "NOISE", reasons)
