"""Checks of arguments that several functional modules share. Each raises before anything is computed."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Counts = Tensor | Sequence[Any]
"""Whole numbers of samples."""
Values = Tensor | Sequence[Any]
"""Anything else that comes as a tensor or as (nested) sequences."""
Numbers = Values | float
"""Any number of numbers, one too."""


def rate_dtype(device: torch.device) -> torch.dtype:
    """The widest float of a device: float64, or float32 on MPS, which has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def is_integer(tensor: Tensor) -> bool:
    """Whether the dtype is an integer one (bool is not)."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def as_tensor(values: Numbers, *, empty: torch.dtype, device: torch.device | None = None) -> Tensor:
    """A tensor of the values; an empty list, which has no dtype of its own, gets ``empty``."""
    tensor = torch.as_tensor(values, device=device)
    return tensor if isinstance(values, Tensor) or tensor.numel() else tensor.to(empty)


def as_counts(counts: Counts, *, name: str = "counts", shape: tuple[int, ...] = (2, 2)) -> Tensor:
    """Return ``counts`` as an int64 tensor that ends in ``shape`` and holds no negative value."""
    tensor = as_tensor(counts, empty=torch.int64)
    if not is_integer(tensor):
        raise TypeError(
            f"{name} must be integers, but came as {tensor.dtype}; counts are whole numbers of samples, "
            "so pass them before any division or averaging"
        )
    if tuple(tensor.shape[-len(shape) :]) != shape:
        wanted = ", ".join(str(size) for size in shape)
        raise ValueError(f"{name} must have shape [..., {wanted}], but came with shape {list(tensor.shape)}")
    tensor = as_int64(tensor, name=name)
    if bool((tensor < 0).any()):
        raise ValueError(f"{name} must not be negative, but its smallest entry is {int(tensor.min())}")
    if shape[:2] == (2, 2) and bool(
        (tensor.to(rate_dtype(tensor.device)).flatten(-len(shape)).sum(-1) >= 2.0**63).any()
    ):
        raise ValueError(f"{name} must sum to less than 2^63, the end of int64, in each table")
    return tensor


def as_int64(integers: Tensor, *, name: str) -> Tensor:
    """Integers as int64: torch neither adds nor orders uint16, uint32 and uint64. Refuses what int64 cannot hold."""
    wide = integers.to(torch.int64)
    if integers.dtype == torch.uint64 and bool((wide < 0).any()):
        raise ValueError(f"{name} must be below 2^63, the end of int64, but holds {int(wide[wide < 0][0]) + 2**64}")
    return wide


def check_tensor(value: object, *, name: str) -> None:
    """Refuse what is no tensor, in an update that runs on a device."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but is a {type(value).__name__}; wrap it in torch.as_tensor(...)")


def check_outcome_dtype(outcome: Tensor, *, name: str) -> None:
    """Refuse complex outcomes; bools, integers and floats that hold 0 and 1 are all right."""
    if outcome.is_complex():
        raise TypeError(f"{name} must hold outcomes (bool, or 0 and 1), but came as {outcome.dtype}")


def check_binary(outcome: Tensor, *, name: str, mask: Tensor | None = None) -> None:
    """Refuse values other than 0 and 1 where the mask is True. Reads the values, so it waits for the device."""
    if outcome.dtype == torch.bool or outcome.numel() == 0:
        return
    wrong = (outcome != 0) & (outcome != 1)
    wrong = wrong if mask is None else wrong & mask
    if bool(wrong.any()):
        raise ValueError(
            f"{name} must be binary (True/False or 1/0), but holds {outcome[wrong][0].item()}; "
            "pass whether each sample was right, for instance preds == target"
        )


def check_range(index: Tensor, size: int, *, name: str, what: str, mask: Tensor | None = None) -> None:
    """Refuse indices outside ``[0, size)`` where the mask is True. Reads the values, so it waits for the device."""
    index = index if mask is None else index[mask]
    if index.numel() == 0:
        return
    low, high = (int(value) for value in torch.aminmax(as_int64(index, name=name)))
    if low < 0 or high >= size:
        raise ValueError(f"{name} must lie in [0, {size}) ({what}), but holds {low if low < 0 else high}")


def check_same_length(length: int, other: Tensor, *, name: str, other_name: str) -> None:
    """Refuse a second argument that does not have one value a sample."""
    if other.shape != (length,):
        raise ValueError(
            f"{other_name} must have one value a sample, shape [{length}] like {name}, "
            f"but came with shape {list(other.shape)}"
        )


def check_mask(mask: Tensor, shape: Sequence[int], *, like: str) -> None:
    """Refuse a mask that is not bool, or not of the ``shape`` of what it masks, ``like``. Reads no value."""
    check_tensor(mask, name="mask")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be bool (True keeps a sample), but came as {mask.dtype}")
    if list(mask.shape) != list(shape):
        each = "a sample" if len(shape) == 1 else "an outcome"
        raise ValueError(
            f"mask must have one value {each}, shape {list(shape)} like {like}, but came with shape {list(mask.shape)}"
        )


def check_index(index: Tensor, length: int, *, name: str, like: str) -> None:
    """Refuse indices that are not integers, or not one for each sample of ``like``. Reads no value."""
    check_tensor(index, name=name)
    check_same_length(length, index, name=like, other_name=name)
    if not is_integer(index) and index.numel():
        raise TypeError(f"{name} must be integers, but came as {index.dtype}")


def check_at_least_one(value: int, *, name: str) -> None:
    """Refuse a size below 1."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, but is {value}")


def check_open_unit(value: float, *, name: str) -> None:
    """Refuse a level or alpha outside (0, 1)."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, but is {value}")
