"""Checks of arguments that several functional modules share. Each raises before anything is computed."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Counts = Tensor | Sequence[Any]


def rate_dtype(device: torch.device) -> torch.dtype:
    """The widest float of a device: float64, or float32 on MPS, which has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def is_integer(tensor: Tensor) -> bool:
    """Whether the dtype is an integer one (bool is not)."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def as_counts(counts: Counts, *, name: str = "counts", shape: tuple[int, ...] = (2, 2)) -> Tensor:
    """Return ``counts`` as an int64 tensor that ends in ``shape`` and holds no negative value."""
    tensor = torch.as_tensor(counts)
    if not isinstance(counts, Tensor) and not tensor.numel():
        tensor = tensor.to(torch.int64)  # an empty list has no dtype of its own
    if not is_integer(tensor):
        raise TypeError(
            f"{name} must be integers, but came as {tensor.dtype}; counts are whole numbers of samples, "
            "so pass them before any division or averaging"
        )
    if tuple(tensor.shape[-len(shape) :]) != shape:
        wanted = ", ".join(str(size) for size in shape)
        raise ValueError(f"{name} must have shape [..., {wanted}], but came with shape {list(tensor.shape)}")
    if bool((tensor < 0).any()):
        raise ValueError(f"{name} must not be negative, but its smallest entry is {int(tensor.min())}")
    return tensor.to(torch.int64)


def check_tensor(value: object, *, name: str) -> None:
    """Refuse what is no tensor, in an update that runs on a device."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but is a {type(value).__name__}; wrap it in torch.as_tensor(...)")


def check_outcome_dtype(outcome: Tensor, *, name: str) -> None:
    """Refuse complex outcomes; bools, integers and floats that hold 0 and 1 are all right."""
    if outcome.is_complex():
        raise TypeError(f"{name} must hold outcomes (bool, or 0 and 1), but came as {outcome.dtype}")


def check_binary(outcome: Tensor, *, name: str) -> None:
    """Refuse values other than 0 and 1. Reads the values, so it waits for the device."""
    if outcome.dtype == torch.bool or outcome.numel() == 0:
        return
    wrong = (outcome != 0) & (outcome != 1)
    if bool(wrong.any()):
        raise ValueError(
            f"{name} must be binary (True/False or 1/0), but holds {outcome[wrong][0].item()}; "
            "pass whether each sample was right, for instance preds == target"
        )


def check_range(index: Tensor, size: int, *, name: str, what: str) -> None:
    """Refuse indices outside ``[0, size)``. Reads the values, so it waits for the device."""
    if index.numel() == 0:
        return
    low, high = (int(value) for value in torch.aminmax(index))
    if low < 0 or high >= size:
        raise ValueError(f"{name} must lie in [0, {size}) ({what}), but holds {low if low < 0 else high}")


def check_same_length(length: int, other: Tensor, *, name: str, other_name: str) -> None:
    """Refuse a second argument that does not have one value a sample."""
    if other.shape != (length,):
        raise ValueError(
            f"{other_name} must have one value a sample, shape [{length}] like {name}, "
            f"but came with shape {list(other.shape)}"
        )


def check_open_unit(value: float, *, name: str) -> None:
    """Refuse a level or alpha outside (0, 1)."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, but is {value}")
