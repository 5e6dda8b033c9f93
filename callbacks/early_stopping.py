"""PairedEarlyStopping: stop when a paired test no longer finds the model better than its reference."""

import logging
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.callbacks._epoch import Epoch, tables
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import LightningModule, Trainer, running
from polyweave_torch.callbacks._monitor import OutcomeMonitor
from polyweave_torch.callbacks._outcomes import Source
from polyweave_torch.callbacks._references import References
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional.difference import paired_difference_interval

_log = logging.getLogger(__name__)


class PairedEarlyStopping(OutcomeMonitor):
    """Stops training when ``patience`` validations in a row are not better than the reference by a paired test.

    A validation is better where the lower end of Tango's interval of the paired difference of accuracy (at level
    1 - alpha, two-sided) lies above ``margin``; with margin 0 that is McNemar's test with chi-square, in the direction
    of a gain. The reference is the first validation. After an accepted improvement the *next* validation becomes the
    reference, whatever it shows: the accepted one was selected for its luck, and few would ever beat it.
    A validation that Lightning resumed inside of, so that it has a part of the samples, decides nothing.

    ====================================  ==============================================================================
    Key                                   What is logged
    ====================================  ==============================================================================
    ``paired_early_stopping/delta``       accuracy now minus accuracy of the reference, on the samples in both
    ``paired_early_stopping/low``         lower end of its interval
    ``paired_early_stopping/wait``        validations in a row without improvement
    ====================================  ==============================================================================

    Args:
        patience: validations in a row without improvement after which training stops.
        alpha: error rate of the test.
        margin: how much better a validation must be, in accuracy.
        outcomes: as in :class:`ChannelMonitor`.
        ids: as in :class:`ChannelMonitor`.
        threshold: as in :class:`ChannelMonitor`.
        ignore_index: as in :class:`ChannelMonitor`.
        name: first part of every key.

    Raises:
        ValueError: where ``patience`` is below 1, ``alpha`` outside (0, 1), or ``margin`` outside [0, 1).

    Example:
        >>> stopping = PairedEarlyStopping(patience=5, margin=0.002)
        >>> stopping.wait
        0
    """

    def __init__(
        self,
        patience: int = 3,
        *,
        alpha: float = 0.05,
        margin: float = 0.0,
        outcomes: Source = "auto",
        ids: str | IdFunction | None = None,
        threshold: float | None = None,
        ignore_index: int | None = None,
        name: str = "paired_early_stopping",
    ) -> None:
        super().__init__(
            outcomes,
            ids=ids,
            threshold=threshold,
            ignore_index=ignore_index,
            name=name,
        )
        if patience < 1:
            raise ValueError(f"patience must be at least 1 validation, but is {patience}")
        check_open_unit(alpha, name="alpha")
        if not 0.0 <= margin < 1.0:
            raise ValueError(f"margin must lie in [0, 1), in accuracy, but is {margin}")
        self.patience = patience
        self.alpha = alpha
        self.margin = margin
        self.wait = 0
        self.tested = ""
        """What the latest validation was tested for, and what came of it, in a sentence."""
        self.reference_epoch: int | None = None
        """The epoch whose validation is the reference."""
        self.stopped_epoch = 0
        """The epoch after which this callback stopped training; 0 where it didn't, as in Lightning's EarlyStopping."""
        self._reference: Epoch | None = None
        self._take_next = False
        self._decision: tuple[Epoch, bool, bool] | None = None

    def measure(self, epoch: Epoch, references: References, path: str) -> dict[str, Tensor]:
        """The difference from the reference."""
        if path != self.name:  # further dataloaders and tests decide nothing
            return {}
        counts = tables(self._reference or epoch, epoch)["all"]
        difference = paired_difference_interval(counts, level=1 - self.alpha, method="tango")
        fresh = self._reference is None or self._take_next
        improved = not fresh and bool(difference.low > self.margin)
        said = "taken as the reference, not tested" if fresh else "yes" if improved else "no"
        self.tested = (
            f"corrected {int(counts[0, 1])}, corrupted {int(counts[1, 0])} of {int(counts.sum())}: difference "
            f"{float(difference.estimate):+.4f}, {100 * (1 - self.alpha):g} % interval from "
            f"{float(difference.low):+.4f}; better by more than {self.margin:g}: "
            + (said if self._whole else "not asked of a part of the validation")
        )
        # A part of a validation is neither a reference nor better or worse than one.
        self._decision = (epoch, fresh, improved) if self._whole else None
        wait = self.wait if not self._whole else 0 if fresh or improved else self.wait + 1
        low = torch.zeros_like(difference.low) if self._reference is None else difference.low
        return {
            f"{path}/delta": difference.estimate.nan_to_num(nan=0.0),
            f"{path}/low": low,
            f"{path}/wait": torch.tensor(float(wait)),
        }

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: D102
        super().on_validation_epoch_end(trainer, pl_module)
        if trainer.sanity_checking or running(trainer) != "fit" or self._decision is None:
            return
        epoch, fresh, improved = self._decision
        self._decision = None
        if fresh:
            self._reference, self.reference_epoch = epoch, trainer.current_epoch
        self._take_next = improved
        self.wait = 0 if fresh or improved else self.wait + 1
        if self.wait >= self.patience:
            trainer.should_stop = True
            self.stopped_epoch = trainer.current_epoch
            self.tested += f"; stops training, after {self.wait} in a row against epoch {self.reference_epoch}"
        if trainer.is_global_zero:
            _log.info("validation after epoch %d: %s", trainer.current_epoch, self.tested)

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        reference = None if self._reference is None else self._reference.to_state()
        own = {
            "wait": self.wait,
            "tested": self.tested,
            "reference": reference,
            "reference_epoch": self.reference_epoch,
            "take_next": self._take_next,
            "stopped_epoch": self.stopped_epoch,
        }
        return {**super().state_dict(), "stopping": own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:  # noqa: D102
        super().load_state_dict(state_dict)
        own = state_dict["stopping"]
        self.wait, self.tested, self._take_next = own["wait"], own["tested"], own["take_next"]
        self.reference_epoch, self.stopped_epoch = own["reference_epoch"], own["stopped_epoch"]
        self._reference = None if own["reference"] is None else Epoch.from_state(own["reference"])
