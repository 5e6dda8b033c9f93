"""What the ranks of the pool do with sharded gates. Functions of plain arguments, found by name."""

from typing import Any

import torch
from polyweave import PolyLinear, SigmaPiLinear
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

from polyweave_torch.functional.pi_scale import pi_scale_mean, pi_scales


def _model(width: int) -> Any:
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(6, 8), SigmaPiLinear(8, width), PolyLinear(width, width, rank=2))
    with torch.no_grad():
        model[1].pi_scale.normal_()
        model[2].quad_scale.normal_()
    return model


def _read(model: nn.Module) -> dict[str, Any]:
    scales = {name: scale.item() for name, scale in pi_scales(model).items()}
    return {**scales, "first": pi_scale_mean(model)}


def _step(model: nn.Module) -> None:
    model(torch.ones(3, 6)).square().mean().backward()


def fully_sharded(width: int, world: int) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Gates before and after sharding (FSDP2), and how many entries this rank holds of the first."""
    model = _model(width)
    whole = _read(model)
    mesh = init_device_mesh("cpu", (world,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    sharded = _read(model)
    _step(model)
    assert _read(model) == sharded
    return whole, sharded, model[1].pi_scale.to_local().numel()


def flat_sharded(width: int, use_orig_params: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gates before and after sharding (FSDP1), with a wrapped block inside a wrapped model."""
    model = _model(width)
    whole = _read(model)
    options: dict[str, Any] = {"use_orig_params": use_orig_params, "device_id": torch.device("cpu")}
    model[1] = FullyShardedDataParallel(model[1], **options)
    wrapped = FullyShardedDataParallel(model, **options)
    sharded = _read(wrapped)
    _step(wrapped)
    assert _read(wrapped) == sharded
    return whole, sharded


def replicated(width: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gates before and after DistributedDataParallel."""
    model = _model(width)
    whole = _read(model)
    return whole, _read(nn.parallel.DistributedDataParallel(model))
