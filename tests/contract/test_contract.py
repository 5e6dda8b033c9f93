"""Every public metric class against every case of the contract."""

from collections.abc import Callable

import pytest
from torchmetrics import Metric

import polyweave_torch
from tests.contract.cases import CASES
from tests.contract.entries import ENTRIES, Entry


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_contract(entry: Entry, case: Callable[[Entry], None]) -> None:
    case(entry)


def test_every_public_metric_has_an_entry() -> None:
    public = {
        name
        for name in polyweave_torch.__all__
        if isinstance(thing := getattr(polyweave_torch, name), type) and issubclass(thing, Metric)
    }
    assert public == {entry.name.split("[")[0] for entry in ENTRIES}
