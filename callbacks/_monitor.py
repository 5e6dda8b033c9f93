"""The hooks that every outcome monitor shares."""

import re
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from polyweave_torch.callbacks._capture import Capture, Slices, Watch, shared_capture
from polyweave_torch.callbacks._epoch import Epoch
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import Callback, LightningModule, Trainer, current_step, running
from polyweave_torch.callbacks._observe import stop_listening
from polyweave_torch.callbacks._outcomes import OutcomeFunction
from polyweave_torch.callbacks._references import REFERENCES, References

MAX_SLICES = 50


class OutcomeMonitor(Callback):
    """Collects one validation's outcomes, lets a subclass measure them, logs the values and keeps their history.

    A subclass implements :meth:`measure`. References move in ``fit`` only, never in the sanity check.
    """

    def __init__(
        self,
        outcomes: str | OutcomeFunction,
        *,
        ids: str | IdFunction | None,
        slices: Slices,
        threshold: float | None,
        ignore_index: int | None,
        every_n_validations: int,
        name: str,
    ) -> None:
        super().__init__()
        if isinstance(outcomes, str) and outcomes not in ("auto", "observe", "outputs"):
            raise ValueError(f'outcomes must be "auto", "observe", "outputs" or a function, but is {outcomes!r}')
        if every_n_validations < 1:
            raise ValueError(f"every_n_validations must be at least 1, but is {every_n_validations}")
        self.name = name
        self.every_n_validations = every_n_validations
        self.history: list[dict[str, float]] = []
        self.references = References()
        self._watch = Watch(outcomes, ids, slices, threshold, ignore_index)
        self._validations = 0
        self._slice_names: tuple[str, ...] = ()
        self._capture: Capture | None = None

    @property
    def state_key(self) -> str:
        """Two monitors of one class need different names to keep different states."""
        return self._generate_state_key(name=self.name)

    def measure(self, trainer: Trainer, epoch: Epoch) -> dict[str, Tensor]:
        """Values to log, by key; the same keys on every rank."""
        raise TypeError(f"{type(self).__name__} does not implement measure")

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._capture = shared_capture(trainer, self._watch) if self._due(trainer) else None
        if self._capture is not None:
            self._capture.start(self, trainer)

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self._capture is not None:
            self._capture.before_batch(batch_idx, batch)

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
            self._capture.after_batch(batch_idx, pl_module, batch, outputs)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._capture is None:
            self._validations += not trainer.sanity_checking
            return
        epoch = self._capture.finish(trainer)
        if trainer.sanity_checking:  # the capture has been tried; what it saw is no validation of this fit
            return
        self._validations += 1
        check_slices(epoch.slice_names)
        self._slice_names = tuple(sorted({*self._slice_names, *epoch.slice_names}))
        if len(self._slice_names) > MAX_SLICES:
            raise ValueError(
                f"there are {len(self._slice_names)} slices, more than {MAX_SLICES}; every slice is a group of charts, "
                "so monitor coarser ones"
            )
        values = self.measure(trainer, epoch)
        pl_module.log_dict(dict(values), sync_dist=trainer.world_size > 1)
        entry = {key.removeprefix(f"{self.name}/"): float(value) for key, value in values.items()}
        self.history.append({"epoch": float(trainer.current_epoch), "step": float(current_step(trainer)), **entry})
        self.draw(trainer)
        if running(trainer) == "fit":
            self.references.move(epoch)

    def draw(self, trainer: Trainer) -> None:
        """Show what is no scalar, where a subclass has such."""

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        stop_listening()

    def state_dict(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "validations": self._validations,
            "slice_names": list(self._slice_names),
            "references": self.references.to_state(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])
        self._validations = state_dict["validations"]
        self._slice_names = tuple(state_dict["slice_names"])
        self.references.load_state(state_dict["references"])

    def _due(self, trainer: Trainer) -> bool:
        return trainer.sanity_checking or self._validations % self.every_n_validations == 0


def tag(name: str) -> str:
    """A slice name as it may stand in a TensorBoard tag."""
    return re.sub(r"[^\w .-]", "_", name)


def check_slices(names: Iterable[str]) -> None:
    """Refuse names that are reserved or become the same tag."""
    seen: dict[str, str] = {}
    for name in names:
        short = tag(name)
        if short in ("all", *REFERENCES) or re.fullmatch(r"dl\d+", short):
            raise ValueError(f"the slice name {name!r} is reserved; rename that slice")
        if short in seen:
            raise ValueError(f"the slices {seen[short]!r} and {name!r} would share the tag {short!r}; rename one")
        seen[short] = name
