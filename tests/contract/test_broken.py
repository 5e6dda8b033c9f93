"""Every case of the contract catches a metric that was broken on purpose."""

import pytest

from tests.contract import rank_cases
from tests.contract.broken import BROKEN
from tests.contract.cases import CASES, fed
from tests.contract.entries import Entry, same, value
from tests.contract.ranks import RankPool

PAIRS = [(entry, case) for entry, cases in BROKEN for case in cases]


@pytest.mark.parametrize(("entry", "case"), PAIRS, ids=lambda part: part if isinstance(part, str) else part.name)
def test_the_named_case_catches(entry: Entry, case: str) -> None:
    # A wrong value, or what torch raises of a broken rule: a tensor of inference mode written to, no data to cat.
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        next(found for found in CASES if found.__name__ == case)(entry)


def test_every_case_catches_something() -> None:
    assert {case.__name__ for case in CASES} == {case for _, case in PAIRS}


@pytest.mark.parametrize("name", ["broken RatioOfBatches", "broken UnsyncedReadout"])
def test_ranks_catch(pool: RankPool, name: str) -> None:
    entry = rank_cases.find(name)
    alone = value(entry, fed(entry, entry.stream(0)))
    results = pool.run(2, rank_cases.split_value, name, "uneven")
    assert not all(same(result["first"], alone) for result in results)
