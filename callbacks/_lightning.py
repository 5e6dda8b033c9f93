"""Everything here that touches Lightning itself: its two packages, and the attributes it keeps private."""

import importlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

if TYPE_CHECKING:
    from lightning.pytorch import Callback as Callback
    from lightning.pytorch import LightningModule as LightningModule
    from lightning.pytorch import Trainer as Trainer
else:
    Trainer = LightningModule = Any

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _import(name: str) -> Any | None:
    """A module if its package is installed; an installed package that fails to import says so itself."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.split(".")[0] == error.name.split(".")[0]:
            return None
        raise


def _callback_bases() -> tuple[type, ...]:
    found, log = [], None
    for name in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        if (module := _import(name)) is not None:
            found.append(module.Callback)
            # Each package makes its logger that of all rank-zero messages; the one that the user imported keeps it.
            rank_zero: Any = importlib.import_module("lightning_utilities.core.rank_zero")
            log = rank_zero.log if log is None else log
            rank_zero.log = log
    if not found:
        raise ModuleNotFoundError(
            "polyweave_torch.callbacks needs Lightning, which is not installed; "
            "install it with: pip install 'polyweave-torch[lightning]'"
        )
    return tuple(dict.fromkeys(found))


if not TYPE_CHECKING:
    # The two packages have separate class trees, and a Trainer of either may run the callback.
    Callback = type("Callback", _callback_bases(), {"__doc__": "A callback for either Lightning package."})


def running(trainer: Trainer) -> str:
    """What the Trainer was asked for: "fit", "validate" or "test"."""
    return "" if trainer.state.fn is None else str(trainer.state.fn.value)


def evaluation_loaders(trainer: Trainer) -> list[Any]:
    """The flattened loaders of the evaluation that runs now.

    Raises:
        ValueError: where batches of several loaders come together, so that a batch belongs to none of them.
    """
    combined = _evaluation_loop(trainer)._combined_loader
    if combined is None:
        return []
    loaders = list(combined.flattened)
    if len(loaders) > 1 and combined._mode != "sequential":
        raise ValueError(
            f"the monitors follow dataloaders one after the other, but a CombinedLoader mixes {len(loaders)} of them "
            f"in mode {combined._mode!r}; use mode='sequential', or pass ids= with one loader"
        )
    return loaders


def planned_batches(trainer: Trainer) -> list[float]:
    """How many batches of each loader the evaluation that runs now means to see."""
    return [float(batches) for batches in _evaluation_loop(trainer).max_batches]


def splits_over_ranks(loader: Any) -> bool:
    """Whether the loader's sampler is known to give each rank its own part of the samples."""
    samplers = (getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None))
    return any(isinstance(sampler, DistributedSampler) for sampler in samplers)


def replayable(sampler: Any) -> bool:
    """Whether a second iterator over a sampler gives the same order, without drawing from a shared generator."""
    if type(sampler).__name__ in ("DistributedSamplerWrapper", "UnrepeatedDistributedSamplerWrapper"):
        return replayable(sampler.dataset._sampler)
    return type(sampler) in (SequentialSampler, DistributedSampler) or (
        type(sampler).__name__ == "UnrepeatedDistributedSampler"
    )


def _evaluation_loop(trainer: Trainer) -> Any:
    return {
        "fit": trainer.fit_loop.epoch_loop.val_loop,
        "validate": trainer.validate_loop,
        "test": trainer.test_loop,
    }[running(trainer)]


def current_step(trainer: Trainer) -> int:
    """The x axis that Lightning's own monitors use: batches after which an optimizer has stepped."""
    return int(trainer.fit_loop.epoch_loop._batches_that_stepped)


def accumulating(trainer: Trainer, pl_module: LightningModule) -> bool:
    """Whether the batch that has just run took no optimizer step, since gradients are accumulated."""
    return bool(pl_module.automatic_optimization and trainer.fit_loop._should_accumulate())


def log_values(trainer: Trainer, values: Mapping[str, Tensor]) -> None:
    """Send values to every logger and to ``callback_metrics``, where other callbacks find them."""
    trainer.callback_metrics.update(values)
    step = current_step(trainer)
    scalars = {key: float(value) for key, value in values.items()} if trainer.loggers else {}
    for logger in trainer.loggers:
        logger.log_metrics(scalars, step=step)


def tensorboard_writers(trainer: Trainer) -> list[Any]:
    """The SummaryWriters of this process: of every TensorBoard logger, and none on other ranks than 0."""
    if not trainer.is_global_zero or getattr(trainer, "fast_dev_run", False):
        return []
    classes = tuple(
        module.TensorBoardLogger for name in _PACKAGES if (module := _import(f"{name}.loggers")) is not None
    )
    return [logger.experiment for logger in trainer.loggers if isinstance(logger, classes)]


def loggers_named(trainer: Trainer, name: str) -> list[Any]:
    """The loggers of a class of either package, by its name, so that the logger's own package need not be there."""
    if not trainer.is_global_zero or getattr(trainer, "fast_dev_run", False):
        return []
    return [logger for logger in trainer.loggers if any(cls.__name__ == name for cls in type(logger).__mro__)]


def loader_of(loader: Any) -> DataLoader[Any]:
    """The DataLoader, or a TypeError for other iterables, whose samples have no order to replay."""
    if not isinstance(loader, DataLoader):
        raise TypeError(
            f"sample ids can be read off a DataLoader only, but the loader is a {type(loader).__name__}; "
            'pass ids="<batch key>" or ids=function(batch)'
        )
    return loader
