"""The words of the release verdict, and the reasons for them."""

from enum import StrEnum


class Verdict(StrEnum):
    """May it ship? One of six words."""

    PROGRESS = "PROGRESS"
    CAUTIOUS = "CAUTIOUS"
    REGRESS = "REGRESS"
    NOISE = "NOISE"
    UNDERPOWERED = "UNDERPOWERED"
    SOLO = "SOLO"

    @property
    def action(self) -> str:
        """What to do."""
        return _ACTIONS[self]

    @property
    def code(self) -> int:
        """A number to log: 0 PROGRESS, 1 NOISE, 2 UNDERPOWERED, 3 CAUTIOUS, 4 REGRESS (worse is higher), -1 SOLO."""
        return _CODES.index(self) - 1


_CODES = (Verdict.SOLO, Verdict.PROGRESS, Verdict.NOISE, Verdict.UNDERPOWERED, Verdict.CAUTIOUS, Verdict.REGRESS)
_ACTIONS = {
    Verdict.PROGRESS: "ship",
    Verdict.CAUTIOUS: "investigate first",
    Verdict.REGRESS: "do not ship",
    Verdict.NOISE: "no call",
    Verdict.UNDERPOWERED: "add cases",
    Verdict.SOLO: "add a control",
}


class Reason(StrEnum):
    """What held. Some decide, the others are said so that nobody overlooks them."""

    COMPOSITE_UP = "composite-up"
    COMPOSITE_DOWN = "composite-down"
    COMPOSITE_UNCLEAR = "composite-unclear"
    LAYER_UP = "layer-up"
    LAYER_DOWN = "layer-down"
    LAYER_FELL = "layer-fell-under-gate"
    LAYER_UNDER_GATE = "layer-under-gate"
    NO_LAYERS = "no-layers"
    FEW_PAIRS = "few-pairs"
    BELOW_POWER = "below-wished-power"
    TRIVIAL = "trivial"
    SATURATED = "saturated"
    ALL_SATURATED = "all-saturated"
    JUDGES_DISAGREE = "judges-disagree"
    JUDGES_UNDEFINED = "judges-undefined"
    INCOMPLETE_PAIRS = "incomplete-pairs"
    LAYERS_DIFFER = "layers-differ"
    PROVENANCE_DIFFERS = "provenance-differs"
    OUTSIDE_SCALE = "outside-scale"
    GATE_PASSED = "gate-passed"
    GATE_FAILED = "gate-failed"
