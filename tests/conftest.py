"""Shared by all tests."""

import warnings
from collections.abc import Iterator

import matplotlib
import pytest

from tests.contract.ranks import RankPool

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _third_party_warnings() -> Iterator[None]:
    """Warnings are errors, but for these lines of Lightning 2.6, each by message and category."""
    with warnings.catch_warnings():
        # Lightning's tree utilities on torch 2.13.
        warnings.filterwarnings("ignore", message=r".*LeafSpec.*", category=FutureWarning)
        # Its advice on loaders, which the tests keep small, in one process, and once shuffled on purpose.
        warnings.filterwarnings("ignore", message=r".*does not have many workers", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"The number of training batches", category=UserWarning)
        warnings.filterwarnings("ignore", message=r".*sampler has shuffling enabled", category=UserWarning)
        yield


@pytest.fixture(scope="session")
def pool() -> Iterator[RankPool]:
    """The session's gloo ranks."""
    with RankPool() as made:
        yield made
