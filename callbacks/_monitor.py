"""The hooks that every outcome monitor shares."""

import csv
import math
import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from polyweave_torch.callbacks._capture import Capture, Slices, Watch, shared_capture
from polyweave_torch.callbacks._epoch import ABSENT, Epoch
from polyweave_torch.callbacks._ids import IdFunction, as_labels
from polyweave_torch.callbacks._lightning import (
    Callback,
    LightningModule,
    Trainer,
    current_step,
    planned_batches,
    running,
)
from polyweave_torch.callbacks._outcomes import SOURCES, OwnSource, Source
from polyweave_torch.callbacks._references import References
from polyweave_torch.metrics.memory import REFERENCES


class SampleOutcomes(NamedTuple):
    """The outcomes of one evaluation of a dataloader: one row a sample, each id once, the same on every rank."""

    ids: list[int | str]
    """Numbers or texts, as the monitor was given them; else positions in the data set."""
    correct: Tensor
    """bool ``[N]``, on the CPU."""
    prediction: list[int | None]
    """Predicted classes; None where none is known, as with ``observe(correct=...)``."""
    slice: list[str]
    """Slice names; empty texts without slices."""


class OutcomeMonitor(Callback):
    """Collects one evaluation's outcomes, lets a subclass measure them, logs the values and keeps their history.

    A subclass implements :meth:`measure`. In ``fit`` each validation becomes a reference for later ones; the sanity
    check and ``trainer.validate`` move nothing. ``trainer.test`` has references of its own, so that tests of several
    checkpoints are compared with each other.
    """

    def __init__(
        self,
        outcomes: Source,
        *,
        ids: str | IdFunction | None,
        ignore_index: int | None,
        name: str,
        slices: Slices = None,
        max_slices: float = math.inf,
        threshold: float | None = None,
        every_n_validations: int = 1,
        window: int = 0,
    ) -> None:
        super().__init__()
        if outcomes not in SOURCES and not (callable(outcomes) or isinstance(outcomes, OwnSource)):
            raise ValueError(f"outcomes must be one of {list(SOURCES)} or a function, but is {outcomes!r}")
        if not (ids is None or isinstance(ids, str) or callable(ids)):
            raise ValueError(f"ids must be a key of the batch or a function of it, but is of type {type(ids).__name__}")
        for option, least in (("every_n_validations", every_n_validations), ("max_slices", max_slices)):
            if least < 1:
                raise ValueError(f"{option} must be at least 1, but is {least}")
        if threshold is not None and math.isnan(threshold):
            raise ValueError("threshold must be a number (0.0 for logits, 0.5 for probabilities), but is NaN")
        check_name(name)
        self.name = name
        self.every_n_validations = every_n_validations
        self.max_slices = max_slices
        self.history: list[dict[str, float]] = []
        """One dict a validation: ``epoch``, ``step``, and the logged keys. ``<name>/`` is left off them; keys of other
        groups (``<name>_bounds/...``, ``<name>_test/...``) stand whole."""
        self._slices = slices
        if slices is not None and not isinstance(slices, str) and not callable(slices):
            # A tensor, an array or a column of a table names slices by its values.
            self._slices = tuple(as_labels(slices))
            check_slices(set(self._slices), at_most=max_slices)
        self._watch = Watch(outcomes, ids, threshold, ignore_index)
        self._window = window
        self._validations = 0
        self._slice_names: tuple[str, ...] = ()
        self._references: dict[str, References] = {}
        self._latest: list[Epoch] = []
        self._texts: dict[int, str] = {}
        self._capture: Capture | None = None
        self._whole = True
        self._labelled = ""

    @property
    def state_key(self) -> str:
        """Two monitors of one class need different names to keep different states."""
        return self._generate_state_key(name=self.name)

    def measure(self, epoch: Epoch, references: References, path: str) -> dict[str, Tensor]:
        """Values of one dataloader by key below ``path``; the same keys on every rank."""
        raise TypeError(f"{type(self).__name__} does not implement measure")

    def complete(self, epoch: Epoch) -> Epoch:
        """Fill in what a subclass can tell from all rows only. The sanity check comes here too."""
        return epoch

    def draw(self, trainer: Trainer, path: str) -> None:
        """Show what is no scalar, where a subclass has such."""

    def outcomes(self, *, loader: int = 0) -> SampleOutcomes:
        """The outcomes of the latest evaluation.

        Args:
            loader: which dataloader's.

        Raises:
            ValueError: where there was no such evaluation yet.
        """
        if not self._latest:
            raise ValueError("no validation has run yet, so there are no outcomes")
        if not 0 <= loader < len(self._latest):
            raise ValueError(f"there are outcomes of {len(self._latest)} dataloaders, so none of loader {loader}")
        epoch = self._latest[loader]
        return SampleOutcomes(
            ids=[self._texts.get(number, number) for number in epoch.ids.tolist()],
            correct=epoch.correct.clone(),
            prediction=[None if label == ABSENT else label for label in epoch.prediction.tolist()],
            slice=[epoch.slice_names[index] for index in epoch.slice_index.tolist()] or [""] * len(epoch.ids),
        )

    def save_outcomes(self, path: str | Path, *, loader: int = 0) -> None:
        """Write :meth:`outcomes` as CSV with the columns id, correct, prediction and slice.

        ``polyweave-torch compare`` reads such files.

        Args:
            path: the file to write.
            loader: which dataloader's.

        Raises:
            ValueError: where there was no such evaluation yet.
        """
        ids, correct, prediction, slices = self.outcomes(loader=loader)
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "correct", "prediction", "slice"])
            writer.writerows(zip(ids, correct.int().tolist(), prediction, slices, strict=True))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start(trainer, pl_module)

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start(trainer, pl_module)

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self._capture is not None:
            self._capture.before_batch(dataloader_idx, batch_idx, batch)

    def on_test_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self.on_validation_batch_start(trainer, pl_module, batch, batch_idx, dataloader_idx)

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self._capture is not None:
            self._capture.after_batch(dataloader_idx, batch_idx, pl_module, batch, outputs)

    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self.on_validation_batch_end(trainer, pl_module, outputs, batch, batch_idx, dataloader_idx)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._end(trainer, pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._end(trainer, pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        if self._capture is not None:
            self._capture.close()

    def state_dict(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "validations": self._validations,
            "slice_names": list(self._slice_names),
            "references": {path: references.to_state() for path, references in self._references.items()},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])
        self._validations = state_dict["validations"]
        self._slice_names = tuple(state_dict["slice_names"])
        self._references = {}
        for path, state in state_dict["references"].items():
            self._of(path).load_state(state)

    def _start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        in_fit = running(trainer) == "fit" and not trainer.sanity_checking
        due = not in_fit or self._validations % self.every_n_validations == 0
        self._capture = shared_capture(trainer, self._watch) if due else None
        if self._capture is not None:
            self._check_labelled("test" if running(trainer) == "test" else "validation")
            self._capture.start(self, self._slices, trainer, pl_module)

    def _end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        test = running(trainer) == "test"
        counted = running(trainer) == "fit" and not trainer.sanity_checking
        if self._capture is None:
            self._validations += counted
            return
        self._whole = self._saw_all(trainer)
        epochs = [self.complete(epoch) for epoch in self._capture.finish(self._slices, trainer)]
        names = {*self._slice_names, *(name for epoch in epochs for name in epoch.slice_names)}
        check_slices(names, at_most=self.max_slices)
        if trainer.sanity_checking:  # the capture has been tried; what it saw is no validation of this fit
            return
        self._validations += counted
        self._slice_names = tuple(sorted(names))
        stage = f"{self.name}_test" if test else self.name
        paths = [stage if index == 0 else f"{stage}/dl{index}" for index in range(len(epochs))]
        values: dict[str, Tensor] = {}
        for path, epoch in zip(paths, epochs, strict=True):
            values.update(self.measure(epoch, self._of(path), path))
        self._log(trainer, pl_module, values)
        self._latest, self._texts = epochs, self._capture.texts
        for path, epoch in zip(paths, epochs, strict=True):
            self.draw(trainer, path)
            if self._whole and running(trainer) in ("fit", "test"):
                self._of(path).move(epoch)

    def _log(self, trainer: Trainer, pl_module: LightningModule, values: Mapping[str, Tensor]) -> None:
        if not values:
            return
        pl_module.log_dict(dict(values), sync_dist=trainer.world_size > 1)
        entry = {key.removeprefix(f"{self.name}/"): float(value) for key, value in values.items()}
        self.history.append({"epoch": float(trainer.current_epoch), "step": float(current_step(trainer)), **entry})

    def _check_labelled(self, stage: str) -> None:
        """Labels by sample are those of one data set, and another may have as many samples."""
        if not isinstance(self._slices, tuple):
            return
        self._labelled = self._labelled or stage
        if self._labelled != stage:
            warnings.warn(
                f"slices are labels by sample, read for the {self._labelled} set so far and for the {stage} set now; "
                f"where these are two data sets, give the {stage} set a Trainer and a monitor of its own with its "
                'labels, or read them off any batch: slices="target", slices="<batch key>" or slices=function(batch)',
                stacklevel=2,
            )

    def _saw_all(self, trainer: Trainer) -> bool:
        """Whether no batch is missing: Lightning resumes a checkpoint made inside a validation in its middle."""
        seen = self._capture.batches() if self._capture is not None else []
        planned = planned_batches(trainer)
        if trainer.sanity_checking or all(a >= b or b == float("inf") for a, b in zip(seen, planned, strict=True)):
            return True
        warnings.warn(
            f"this evaluation ran {seen} of {[int(batches) for batches in planned]} batches (Lightning resumed inside "
            "of it), so it is measured over those and becomes no reference",
            stacklevel=2,
        )
        return False

    def _of(self, path: str) -> References:
        return self._references.setdefault(path, References(self._window))


def tag(name: str) -> str:
    """A slice name as it may stand in a TensorBoard tag."""
    return re.sub(r"[^\w .-]", "_", name)


def check_name(name: str) -> None:
    """Refuse a monitor's name that can't begin a TensorBoard tag."""
    if not name or tag(name.replace("/", "")) != name.replace("/", ""):
        raise ValueError(f"name must be of letters, digits, spaces and the signs _ . - /, but is {name!r}")


def check_slices(names: Collection[str], *, at_most: float) -> None:
    """Refuse names that are reserved or become the same tag, and too many of them."""
    if len(names) > at_most:
        raise ValueError(
            f"there are {len(names)} slices, more than {at_most}; every slice is a group of charts, so monitor coarser "
            "ones, or raise max_slices="
        )
    seen: dict[str, str] = {}
    for name in sorted(names):
        short = tag(name)
        if short in ("", "all", "cochran_q", *REFERENCES) or re.fullmatch(r"dl\d+", short):
            raise ValueError(f"the slice name {name!r} is reserved; rename that slice")
        if short in seen:
            raise ValueError(f"the slices {seen[short]!r} and {name!r} would share the tag {short!r}; rename one")
        seen[short] = name
