"""How strongly Sigma-Pi blocks recruit their multiplicative branch, read from their gates."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

GATE_NAMES = ("pi_scale", "quad_scale")
_WRAPPER_NAMES = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


@torch.no_grad()
def pi_scale_mean(obj: object) -> float:
    r"""Recruitment of the multiplicative branch: the mean of :math:`\exp(\text{gate})` over the gate's entries.

    The first gate found counts, in the order of ``module.modules()``; :func:`pi_scales` reads all of them. The mean is
    taken in float32 or wider whatever the gate's dtype. This waits for the device; :func:`pi_scales` does not.

    Args:
        obj: a gate itself (a tensor of log scales), an object with a tensor attribute ``pi_scale`` or ``quad_scale``,
            or a module that has such a block somewhere inside.

    Returns:
        The mean as a Python float; near 0 when the product branch is all but switched off.

    Raises:
        ValueError: where there is no gate.

    Example:
        >>> import torch
        >>> round(pi_scale_mean(torch.full((8,), -2.0)), 4)
        0.1353
    """
    if isinstance(obj, Tensor):
        return float(_recruitment(obj).mean())
    gates = gate_values(obj) if isinstance(obj, nn.Module) else {name: _recruitment(gate) for name, gate in _gates(obj)}
    if not gates:
        raise ValueError(
            f"expected a Sigma-Pi gate, but {type(obj).__name__} has no tensor attribute named "
            f"{' or '.join(GATE_NAMES)}, nor a submodule with one; pass the block, or a model that contains one"
        )
    return float(next(iter(gates.values())).mean())


def pi_scales(module: nn.Module) -> dict[str, Tensor]:
    r"""Recruitment of every Sigma-Pi block of a model: the mean of :math:`\exp(\text{gate})` by block name.

    Gates are the tensor attributes ``pi_scale`` and ``quad_scale`` of any submodule, plain or parametrised; a block
    whose gate is ``None`` has none, and a module used twice counts once. Sharded gates (FSDP2, FSDP1) are gathered, so
    every rank must call this, and every rank gets the value of the whole gate.

    Args:
        module: the model; it may be compiled, or wrapped for parallel training or activation checkpointing.

    Returns:
        Block name (without the wrappers' parts; ``""`` where the model is itself the block) to a 0-d tensor on the
        gate's device, float32 or wider. Empty where the model has no gate.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
        >>> model[1].pi_scale = torch.nn.Parameter(torch.zeros(2))
        >>> pi_scales(model)
        {'1': tensor(1.)}
    """
    return {name: values.mean() for name, values in gate_values(module).items()}


@torch.no_grad()
def gate_values(module: nn.Module) -> dict[str, Tensor]:
    """Like :func:`pi_scales`, but with the whole ``exp(gate)`` of each block, as a histogram wants it."""
    values: dict[str, Tensor] = {}
    with _gathered(module):
        for path, block in module.named_modules():
            for gate_name, gate in _gates(block):
                name = _display_name(module, path)
                values[name if name not in values else f"{name}.{gate_name}".lstrip(".")] = _recruitment(gate)
    return values


def gate_blocks(module: nn.Module) -> dict[str, nn.Module]:
    """The blocks that have a gate, by the names of :func:`pi_scales`."""
    blocks = ((_display_name(module, path), block) for path, block in module.named_modules() if any(_gates(block)))
    return dict(blocks)


def _gates(obj: object) -> Iterator[tuple[str, Tensor]]:
    """The gates that an object holds itself. Wrappers forward attributes they don't own: those don't count."""
    for name in GATE_NAMES:
        if isinstance(obj, nn.Module):
            owned = name in obj._parameters or name in obj._buffers or name in vars(obj) or hasattr(type(obj), name)
        else:
            owned = True
        gate = getattr(obj, name, None) if owned else None
        if isinstance(gate, Tensor):
            yield name, gate


def _recruitment(gate: Tensor) -> Tensor:
    gate = gate.detach()
    if hasattr(gate, "full_tensor"):
        # A DTensor. The mean over a shard would be another wrong number on each rank.
        gate = gate.full_tensor()
    return gate.to(torch.promote_types(gate.dtype, torch.float32)).exp()


def _display_name(root: nn.Module, path: str) -> str:
    """``path`` without the parts that compilation, sharding, checkpointing and parallel wrappers add."""
    parts = []
    parent = root
    for part in path.split(".") if path else []:
        # ``module`` is also an honest name; it is a wrapper's where the parent is nothing but a shell around it.
        shell = part == "module" and len(parent._modules) == 1 and not parent._parameters
        if part not in _WRAPPER_NAMES and not shell:
            parts.append(part)
        parent = parent._modules[part]  # type: ignore[assignment]
    return ".".join(parts)


def _gathered(module: nn.Module) -> contextlib.AbstractContextManager[None]:
    """FSDP1 leaves flat shards in the parameters' place: unshard for the time of reading. Nothing to do elsewhere."""
    if not any("_fsdp_wrapped_module" in block._modules for block in module.modules()):
        return contextlib.nullcontext()
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel.summon_full_params(module, writeback=False)
