"""Shared by all tests."""

from collections.abc import Iterator

import matplotlib
import pytest
import torch

from tests.contract.ranks import RankPool

matplotlib.use("Agg")
# Operations shared out over threads wait for the slowest: on a busy machine for seconds.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pool() -> Iterator[RankPool]:
    """The session's gloo ranks."""
    with RankPool() as made:
        yield made
