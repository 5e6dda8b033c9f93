"""One capture of a validation's outcomes, shared by all monitors that watch it in the same way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from polyweave_torch.callbacks._epoch import Epoch, Rows, join
from polyweave_torch.callbacks._ids import IdFunction, as_ids, as_labels, read_key, replay
from polyweave_torch.callbacks._lightning import LightningModule, Trainer, evaluation_loaders
from polyweave_torch.callbacks._observe import Observed, listen, stop_listening
from polyweave_torch.callbacks._outcomes import OutcomeFunction, decide_source, read_outcomes

Slices = str | Sequence[Any] | Callable[[Any], Any] | None


@dataclass(frozen=True)
class Watch:
    """What to watch: where outcomes, ids and slices come from."""

    outcomes: str | OutcomeFunction
    ids: str | IdFunction | None
    slices: Slices
    threshold: float | None
    ignore_index: int | None

    def same(self, other: "Watch") -> bool:
        """Whether one capture serves both; long slice sequences are compared by identity."""
        mine, theirs = (self.slices, other.slices)
        slices_agree = mine is theirs or (isinstance(mine, str) and mine == theirs)
        rest = [(w.outcomes, w.ids, w.threshold, w.ignore_index) for w in (self, other)]
        return slices_agree and rest[0] == rest[1]


class Capture:
    """Collects the rows of each batch between the start and the end of one evaluation.

    Several monitors drive it through the same hooks; the first to come does the work.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.source: str | OutcomeFunction | None = None
        self._callers: set[int] = set()
        self._batches: list[Rows] = []
        self._indices: Iterator[list[int]] | Exception | None = None
        self._open: tuple[int, list[Observed], Any, list[str] | None] | None = None
        self._epoch: Epoch | None = None

    def start(self, caller: object, trainer: Trainer) -> None:
        """Begin an evaluation."""
        if self._callers and id(caller) not in self._callers:
            self._callers.add(id(caller))
            return
        self._callers, self._batches, self._open, self._epoch = {id(caller)}, [], None, None
        loaders = evaluation_loaders(trainer)
        if len(loaders) != 1:
            raise ValueError(
                f"the monitors watch one validation dataloader, but there are {len(loaders)}; "
                "concatenate the data sets and tell them apart by slices="
            )
        self._indices = None
        if self.watch.ids is None:
            try:
                self._indices = replay(loaders[0])
            except (TypeError, ValueError) as reason:  # raised at the first batch, unless its step observes ids
                self._indices = reason

    def before_batch(self, batch_idx: int, batch: Any) -> None:
        """Open a batch and read what its step might take out of it."""
        if self._open is not None and self._open[0] == batch_idx:
            return
        ids, slices = self.watch.ids, self.watch.slices
        if isinstance(self._indices, Iterator):
            known = next(self._indices, None)
        elif ids is None:
            known = None
        else:
            known = read_key(batch, ids, what="ids") if isinstance(ids, str) else ids(batch)
        labels = None
        if isinstance(slices, str) and slices != "target":
            labels = as_labels(read_key(batch, slices, what="slices"))
        elif callable(slices):
            labels = as_labels(slices(batch))
        self._open = (batch_idx, listen(), known, labels)

    def after_batch(self, batch_idx: int, pl_module: LightningModule, batch: Any, outputs: Any) -> None:
        """Read the outcomes of the open batch and close it."""
        if self._open is None or self._open[0] != batch_idx:
            return
        _, observed, known, labels = self._open
        self._open = None
        stop_listening()
        if self.source is None:
            self.source = decide_source(self.watch.outcomes, observed, outputs)
        outcomes = read_outcomes(
            self.source,
            observed,
            pl_module,
            batch,
            outputs,
            threshold=self.watch.threshold,
            ignore_index=self.watch.ignore_index,
        )
        ids = self._ids(observed, known)
        if observed and observed[0].slices is not None and labels is None:
            labels = as_labels(observed[0].slices)
        for what, size in (("outcomes", len(outcomes.correct)), ("slice labels", len(labels or ids))):
            if size != len(ids):
                raise ValueError(
                    f"batch {batch_idx} has {len(ids)} samples, but {size} {what}; the step must give one row for "
                    "every sample of its batch, in the batch's order (leave samples out with ignore_index)"
                )
        self._batches.append(Rows(ids, outcomes, labels))

    def finish(self, trainer: Trainer) -> Epoch:
        """The whole evaluation, of all ranks. Collective, once; further monitors get the same epoch."""
        if self._epoch is None:
            slices = self.watch.slices
            if slices is None and any(rows.labels is not None for rows in self._batches):
                slices = "observed"
            self._epoch = join(
                self._batches,
                slices="function" if callable(slices) else slices,
                distributed=trainer.world_size > 1,
                device=trainer.strategy.root_device,
            )
            self._batches, self._callers = [], set()
        return self._epoch

    def _ids(self, observed: list[Observed], known: Any) -> Tensor:
        if known is None and observed and observed[0].ids is not None:
            known = observed[0].ids
        if known is None:
            if isinstance(self._indices, Exception):
                raise self._indices
            raise ValueError("there are more validation batches than the loader's sampler has; pass ids=")
        return as_ids(known)


_captures: WeakKeyDictionary[Any, list[Capture]] = WeakKeyDictionary()


def shared_capture(trainer: Trainer, watch: Watch) -> Capture:
    """The capture of this trainer that watches in this way."""
    captures = _captures.setdefault(trainer, [])
    for capture in captures:
        if capture.watch.same(watch):
            return capture
    captures.append(Capture(watch))
    return captures[-1]
