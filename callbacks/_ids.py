"""Which sample is which: the ids of a batch's rows, known at batch start."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, IterableDataset

from polyweave_torch.callbacks._lightning import loader_of, replayable

IdFunction = Callable[[Any], Any]


def replay(loader: Any) -> Iterator[list[int]]:
    """The sample indices of each batch to come, from a second iterator over the loader's batch sampler.

    Raises:
        ValueError, TypeError: where the loader's order cannot be repeated without changing it.
    """
    loader = loader_of(loader)
    advice = 'pass ids="<batch key>" or ids=function(batch), giving one id a sample'
    if isinstance(loader.dataset, IterableDataset):
        raise ValueError(f"the samples of an IterableDataset have no index; {advice}")
    if not replayable(loader.sampler):
        raise ValueError(
            f"the loader's sampler is a {type(loader.sampler).__name__}, whose order cannot be repeated "
            f"without drawing from the random generators that training uses; use shuffle=False, or {advice}"
        )
    if loader.batch_sampler is None:
        return ([index] for index in loader.sampler)
    if type(loader.batch_sampler) is not BatchSampler:
        raise ValueError(f"the order of a {type(loader.batch_sampler).__name__} is not known; {advice}")
    return iter(loader.batch_sampler)


def read_key(batch: Any, key: str, *, what: str) -> Any:
    """The entry of a batch that a monitor was told to read."""
    if not isinstance(batch, Mapping):
        raise ValueError(
            f'{what}="{key}" reads a batch that is a mapping, but the batch is a {type(batch).__name__}; '
            f"pass {what}=function(batch)"
        )
    if key not in batch:
        raise ValueError(f'{what}="{key}" is not in the batch, whose keys are {sorted(map(str, batch))}')
    return batch[key]


def as_ids(values: Any) -> Tensor:
    """Ids as int64 ``[N]``: integers as they are, strings by a hash of 8 bytes (blake2b)."""
    if isinstance(values, Tensor):
        if values.dim() != 1 or values.is_floating_point():
            raise ValueError(f"ids must be integers [N], but came as {values.dtype} of shape {list(values.shape)}")
        return values.detach().to(torch.int64)
    return torch.tensor([_as_id(value) for value in values], dtype=torch.int64)


def as_labels(values: Any) -> list[str]:
    """Slice labels of a batch as strings."""
    items: Sequence[Any] = values.tolist() if isinstance(values, Tensor) else list(values)
    return [str(item) for item in items]


def crossing(slices: Sequence[Any]) -> str:
    """What to do where these few labels were meant as keys of the batch; else nothing."""
    if not 2 <= len(slices) <= 4:
        return ""
    first, second = slices[:2]
    return (
        "; if these are keys of the batch, cross them: "
        f'slices=lambda batch: [f"{{a}}/{{b}}" for a, b in zip(batch["{first}"], batch["{second}"])]'
    )


def _as_id(value: Any) -> int:
    if isinstance(value, str):
        return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "big", signed=True)
    if isinstance(value, Integral):
        return int(value)
    raise TypeError(f"ids must be integers or strings, but hold {value!r} of type {type(value).__name__}")
