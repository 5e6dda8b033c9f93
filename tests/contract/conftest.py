"""The session's pool of ranks."""

from collections.abc import Iterator

import pytest

from tests.contract.ranks import RankPool


@pytest.fixture(scope="session")
def pool() -> Iterator[RankPool]:
    with RankPool() as made:
        yield made
