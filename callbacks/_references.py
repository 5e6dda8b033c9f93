"""The evaluations that later ones are compared with."""

from typing import Any

from polyweave_torch.callbacks._epoch import Epoch
from polyweave_torch.metrics.memory import REFERENCES, Reference


def check_references(references: tuple[Reference, ...]) -> None:
    """Refuse unknown or repeated references."""
    if isinstance(references, str):
        raise ValueError(f'references must be a tuple, such as ("{references}",), but is the text {references!r}')
    unknown = [name for name in references if name not in REFERENCES]
    if unknown or not references or len(set(references)) != len(references):
        raise ValueError(f"references must be different ones of {list(REFERENCES)}, but are {list(references)}")


class References:
    """The previous, the first and the best evaluation over one dataloader, and the most recent ones."""

    def __init__(self, window: int = 0) -> None:
        self.window = window
        self.epochs: dict[Reference, Epoch] = {}
        self.recent: list[Epoch] = []

    def move(self, epoch: Epoch) -> None:
        """Let a finished evaluation become the previous one, the first if it is that, the best if it is better."""
        self.epochs["previous"] = epoch
        self.epochs.setdefault("first", epoch)
        best = self.epochs.setdefault("best", epoch)
        # Accuracies as fractions of integers: equals stay equal, and the earliest of them stays the best.
        if int(epoch.correct.sum()) * len(best.ids) > int(best.correct.sum()) * len(epoch.ids):
            self.epochs["best"] = epoch
        if self.window:
            self.recent = [*self.recent, epoch][-self.window :]

    def to_state(self) -> dict[str, Any]:
        """What a checkpoint may hold."""
        epochs: dict[str, Any] = {name: epoch.to_state() for name, epoch in self.epochs.items()}
        return {**epochs, "recent": [epoch.to_state() for epoch in self.recent]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Read :meth:`to_state` back."""
        self.epochs = {name: Epoch.from_state(state[name]) for name in REFERENCES if name in state}
        self.recent = [Epoch.from_state(epoch) for epoch in state["recent"]]
