"""A pool of spawned gloo ranks, made once a session: spawning costs seconds, a case milliseconds."""

import multiprocessing
import tempfile
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import distributed as dist

WORLD = 4
SECONDS = 120.0


class RankPool:
    """Runs ``function(*arguments)`` on the first ranks of four processes and returns one result a rank.

    The function must be importable by name. On fewer than four ranks it runs in a process group of its own, which it
    finds in :func:`group`.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        rendezvous = f"file://{Path(self._folder.name) / 'rendezvous'}"
        self._connections: list[Connection] = []
        self._processes = []
        for rank in range(WORLD):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, rendezvous, theirs), daemon=True)
            process.start()
            self._connections.append(ours)
            self._processes.append(process)

    def run(self, world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Results of ranks 0 to ``world`` - 1."""
        connections = self._connections[:world]
        for connection in connections:
            connection.send((world, function, arguments))
        answers = []
        for rank, connection in enumerate(connections):
            if not connection.poll(SECONDS):
                self.close()
                raise TimeoutError(f"{function.__name__} did not end on rank {rank} of {world} in {SECONDS} s")
            answers.append(connection.recv())
        for rank, (failed, result) in enumerate(answers):
            if failed:
                raise AssertionError(f"rank {rank} of {world}: {result}")
        return [result for _, result in answers]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.terminate()
            process.join()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_groups: dict[int, Any] = {}
_current: list[int] = [1]


def group() -> Any:
    """The process group of the ranks that run the present case; None is the whole world."""
    return _groups[_current[0]]


def world_size() -> int:
    """How many ranks run the present case, as the group itself says."""
    return dist.get_world_size(group())


def rank() -> int:
    """This process's rank in the present case."""
    return dist.get_rank(group())


def _serve(rank: int, rendezvous: str, connection: Connection) -> None:
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=WORLD)
    _groups[WORLD] = None
    for size in range(2, WORLD):
        _groups[size] = dist.new_group(list(range(size)))
    while True:
        world, function, arguments = connection.recv()
        _current[0] = world
        try:
            connection.send((False, function(*arguments)))
        except Exception:  # whatever a case raises is its result
            connection.send((True, traceback.format_exc()))
