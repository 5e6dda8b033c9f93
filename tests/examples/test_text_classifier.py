"""examples/text_classifier.py: its counts from the weights of the first and the last epoch, question by question."""

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.examples.running import Ran, load, normal, run, shown

LENGTHS = ("short", "medium", "long")


@pytest.fixture(scope="module")
def ran() -> Ran:
    return run(load("text_classifier").main)


def right_of(trainer: Any) -> list[tuple[str, bool]]:
    """Each validation question's length and whether the weights get it right, one at a time, without padding."""
    example = load("text_classifier")
    weights = {name: value.double().numpy() for name, value in trainer.lightning_module.state_dict().items()}
    found = []
    for doc in trainer.val_dataloaders.dataset:
        words = doc["question"].split()
        mean = weights["words.weight"][[example.crc32(word.encode()) % 4095 + 1 for word in words]].mean(0)
        logits = weights["head.weight"] @ mean + weights["head.bias"]
        length = LENGTHS[int(np.searchsorted([20, 40], len(words), side="right"))]
        found.append((length, example.SUBJECTS[int(logits.argmax())] == doc["subject"]))
    return found


def test_the_counts_are_those_of_the_two_nets(ran: Ran) -> None:
    first = right_of(run(load("text_classifier").main, epochs=1).result)
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for (length, before), (_, after) in zip(first, right_of(ran.result), strict=True):
        counts[length, before, after] += 1
        counts["all", before, after] += 1
    for line in ran.printed.splitlines():
        name = line.split()[0]
        wanted = [counts[name, before, after] for before in (False, True) for after in (False, True)]
        stayed_wrong, corrected, corrupted, stayed_right = map(int, re.findall(r"\d+", line))
        assert [stayed_wrong, corrected, corrupted, stayed_right] == wanted
    assert sum(counts[name, *change] for name in LENGTHS for change in [(False, True), (True, False)]) > 0


def test_the_page_quotes_the_output(ran: Ran) -> None:
    assert normal(ran.printed) == shown("text_classifier")
