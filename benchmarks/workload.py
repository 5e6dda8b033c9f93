"""What a benchmark declares: the work, those who do it, the numbers they must agree on, and the goals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

Inputs = TypeVar("Inputs")


def output_itself(inputs: Any, output: Any) -> Tensor:
    """The value of a contestant that returns its numbers."""
    return torch.as_tensor(output)


def all_of_it(inputs: Any) -> float:
    """The share of a contestant that does the whole work."""
    return 1.0


@dataclass(frozen=True)
class Contestant(Generic[Inputs]):
    """One way to do the work."""

    call: Callable[[Inputs], Any]
    """Does it. This is timed, and may leave its numbers in the inputs where it has state."""
    value: Callable[[Inputs, Any], Tensor] = output_itself
    """The numbers, from the inputs and what ``call`` returned."""
    share: Callable[[Inputs], float] = all_of_it
    """The part of the work that ``call`` does, where all of it would take minutes or too much memory. Its time is
    divided by this, and its numbers are compared with as many of ours, from the first on."""
    needs: str | None = None
    """A package that has to be installed."""


@dataclass(frozen=True)
class Goal:
    """A bound on a figure of the workload, for one kind of device."""

    figure: Literal["times", "beyond_floor", "floors", "peak", "temporaries", "kept"]
    """How often ours is as fast as ``peer``, in all, or in what both take beyond the floor; how many floors it takes;
    MiB of memory at most, beyond the result, and of the result."""
    limit: float
    peer: str = ""
    device: str = "cpu"


@dataclass(frozen=True)
class Workload(Generic[Inputs]):
    """Work of one size."""

    name: str
    about: str
    """One line for the reader of the table."""
    samples: int
    """The size N that memory is stated by."""
    make: Callable[[torch.device, int], Inputs]
    """Inputs of N samples, the same ones at every call."""
    ours: Contestant[Inputs]
    peers: dict[str, Contestant[Inputs]]
    floor: Contestant[Inputs] | None = None
    """What nobody can be faster than."""
    floor_name: str = "copy of the input"
    goals: tuple[Goal, ...] = ()
    tolerance: float = 0.0
    """How far a peer's numbers may be from ours."""
    devices: tuple[str, ...] = ("cpu", "cuda")


def seeded(device: torch.device) -> torch.Generator:
    """The generator that inputs are drawn with."""
    return torch.Generator(device).manual_seed(0)
