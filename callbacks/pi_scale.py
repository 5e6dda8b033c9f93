"""PiScaleMonitor: how strongly each Sigma-Pi block recruits its product."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from polyweave_torch.callbacks._lightning import (
    Callback,
    LightningModule,
    Trainer,
    accumulating,
    current_step,
    log_values,
    tensorboard_writers,
)
from polyweave_torch.callbacks._monitor import check_name
from polyweave_torch.functional.pi_scale import gate_blocks, gate_values


class PiScaleMonitor(Callback):
    """Logs the gate of every Sigma-Pi block and how it has grown.

    Recruitment is not accuracy: a larger gate says that a block leans on its product, not that it gains by it, and
    gates shrink as well as grow.

    =====================================  =============================================================================
    Key                                    What is logged
    =====================================  =============================================================================
    ``pi_scale/<block>/mean``              mean of exp(gate) over the block's units
    ``pi_scale/<block>/growth``            that mean minus its value before the first training step; negative where it
                                           shrank
    ``pi_scale/<block>/exponent_abs_mean`` with ``branch_energy``: mean absolute exponent of the product
    ``pi_scale/<block>/pi_share`` ...      with ``branch_energy``: what the block's own ``branch_energy(x)`` gives, for
                                           the first batch of an epoch (polyweave's: ``sigma_rms``, ``pi_rms``,
                                           ``pi_share``, ``pi_effect_postbn``); these are entries of their own in
                                           ``history``
    =====================================  =============================================================================

    Gates are read in training hooks, after the optimizer's step, on every rank (sharded gates are gathered).
    TensorBoard also gets a histogram of exp(gate) after every epoch.

    Args:
        every_n_steps: how often to log; by default as often as the Trainer logs (``log_every_n_steps``).
        histogram: whether to write histograms.
        modules: names of the blocks to watch; by default all that have a gate.
        branch_energy: also read each block's own diagnostics, once an epoch, on what the first batch feeds to it.
            Blocks without such methods are left out. Training is not changed by it.
        name: first part of every key.

    Raises:
        ValueError: where ``modules`` is one text, ``every_n_steps`` is below 1, or a named module has no gate.

    Example:
        >>> monitor = PiScaleMonitor(every_n_steps=10)
        >>> monitor.history
        []
    """

    def __init__(
        self,
        every_n_steps: int | None = None,
        *,
        histogram: bool = True,
        modules: Sequence[str] | None = None,
        branch_energy: bool = False,
        name: str = "pi_scale",
    ) -> None:
        super().__init__()
        check_name(name)
        if isinstance(modules, str):
            raise ValueError(f"modules must be a list of names, such as [{modules!r}], but is the text {modules!r}")
        if every_n_steps is not None and every_n_steps < 1:
            raise ValueError(f"every_n_steps must be at least 1, but is {every_n_steps}; None logs as the Trainer does")
        self.every_n_steps = every_n_steps
        self.histogram = histogram
        self.modules = modules
        self.branch_energy = branch_energy
        self.name = name
        self.history: list[dict[str, float]] = []
        self._first: dict[str, float] = {}
        self._inputs: dict[str, Tensor] = {}
        self._hooks: list[RemovableHandle] = []

    @property
    def state_key(self) -> str:
        """Two monitors need different names to keep different states."""
        return self._generate_state_key(name=self.name)

    @property
    def growth(self) -> dict[str, float]:
        """Latest growth of each block, since before the first step."""
        latest = next((entry for entry in reversed(self.history) if any("/growth" in key for key in entry)), {})
        keys = {block: f"{_shown(block)}/growth" for block in self._first}
        return {block: latest[key] for block, key in keys.items() if key in latest}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: D102
        gates = self._gates(pl_module)
        if not gates:
            warnings.warn(
                "PiScaleMonitor found no block with a gate (an attribute pi_scale or quad_scale), so it logs nothing",
                stacklevel=2,
            )
        if not self._first:  # a resumed fit keeps the values before its very first step
            self._first = {block: float(gate.mean()) for block, gate in gates.items()}

    def on_train_batch_start(  # noqa: D102
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if not self.branch_energy or batch_idx:
            return
        for name, block in gate_blocks(pl_module).items():
            if name in self._gates(pl_module) and hasattr(block, "branch_energy"):
                self._hooks.append(block.register_forward_pre_hook(self._keep_input(name)))

    def on_train_batch_end(  # noqa: D102
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._hooks:
            self._read_branches(trainer, pl_module)
        step = current_step(trainer)
        every = self.every_n_steps or getattr(trainer, "log_every_n_steps", 0)
        # Counted as Lightning counts its own logging: the first batch has step 0.
        if not self._first or not every or (step + 1) % every or accumulating(trainer, pl_module):
            return
        means = {block: gate.mean() for block, gate in self._gates(pl_module).items()}
        values: dict[str, Tensor] = {}
        for block, mean in means.items():
            values[f"{_shown(block)}/mean"] = mean
            values[f"{_shown(block)}/growth"] = mean - self._first.get(block, float("nan"))
        log_values(trainer, {f"{self.name}/{key}": value for key, value in values.items()})
        entry = {key: float(value) for key, value in values.items()}
        self.history.append({"epoch": float(trainer.current_epoch), "step": float(step), **entry})

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: D102
        if not self.histogram:
            return
        gates = self._gates(pl_module)
        for writer in tensorboard_writers(trainer):
            for block, gate in gates.items():
                writer.add_histogram(f"{self.name}/{_shown(block)}", gate, current_step(trainer))

    def on_exception(  # noqa: D102
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self._unhook()

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {"history": self.history, "first": self._first}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:  # noqa: D102
        self.history = list(state_dict["history"])
        self._first = dict(state_dict["first"])

    def _keep_input(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def keep(block: nn.Module, inputs: tuple[Any, ...]) -> None:
            if inputs and isinstance(inputs[0], Tensor):
                self._inputs.setdefault(name, inputs[0].detach())

        return keep

    def _read_branches(self, trainer: Trainer, pl_module: LightningModule) -> None:
        blocks, inputs = gate_blocks(pl_module), dict(self._inputs)
        self._unhook()
        values: dict[str, Tensor] = {}
        # The blocks' diagnostics are their own code: no gradient, no draw from the generators that training uses.
        with torch.no_grad(), torch.random.fork_rng():
            for name, x in inputs.items():
                read = dict(blocks[name].branch_energy(x))  # type: ignore[operator]
                if hasattr(blocks[name], "exponent_abs_mean"):
                    read["exponent_abs_mean"] = blocks[name].exponent_abs_mean()  # type: ignore[operator]
                for key, value in read.items():
                    values[f"{_shown(name)}/{key}"] = torch.as_tensor(value)
        log_values(trainer, {f"{self.name}/{key}": value for key, value in values.items()})
        entry = {key: float(value) for key, value in values.items()}
        step = float(current_step(trainer))
        self.history.append({"epoch": float(trainer.current_epoch), "step": step, **entry})

    def _unhook(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._inputs = {}

    def _gates(self, pl_module: nn.Module) -> dict[str, Tensor]:
        gates = gate_values(pl_module)
        if self.modules is None:
            return gates
        unknown = [name for name in self.modules if name not in gates]
        if unknown:
            raise ValueError(f"modules {unknown} have no gate; blocks with one are {sorted(gates)}")
        return {name: gates[name] for name in self.modules}


def _shown(block: str) -> str:
    """The block's name in a tag; a model that is itself the block has none."""
    return block or "model"
