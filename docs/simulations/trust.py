"""What the simulations share: tables that go into the pages of docs/trust, and tables of paired outcomes."""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor

from polyweave_torch.functional import channel_counts

PAGES = Path(__file__).parents[1] / "trust"
Floats = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]

# Of the samples that do not change, the share that is right. Only Newcombe's interval looks at it.
RIGHT = 0.7
# Probability that an enumeration leaves out on either side of each count.
_LEFT_OUT = 1e-10
_OUTCOMES_AT_ONCE = 2**21


class Table(NamedTuple):
    """A table of a page, as text."""

    name: str
    """Of its markers in the page."""
    page: str
    """File name in docs/trust."""
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    """How its numbers were made; seed and command are added."""


def percent(share: float, simulated: float | None = None, *, decimals: int = 1) -> str:
    """A share in per cent, with the simulated one in brackets."""
    if math.isnan(share):
        return "–"
    text = f"{100.0 * share:.{decimals}f}"
    return text if simulated is None else f"{text} ({100.0 * simulated:.{decimals}f})"


def markdown(table: Table, command: str) -> str:
    """The table in Markdown; columns of numbers are set to the right."""
    numeric = [
        all(cell[:1].isdigit() or cell[:1] in "–-+" for cell in column) for column in zip(*table.rows, strict=True)
    ]
    rule = ["---:" if right else "---" for right in numeric]
    lines = [f"| {' | '.join(cells)} |" for cells in (table.columns, rule, *table.rows)]
    return "\n".join([*lines, "", f"*{table.caption}*", f"`{command}`"])


def write(table: Table, command: str) -> None:
    """Put the table between its markers in its page."""
    path = PAGES / table.page
    text = path.read_text(encoding="utf-8")
    start, end = f"<!-- table: {table.name} -->", "<!-- end -->"
    if text.count(start) != 1:
        raise ValueError(f"{table.page} must hold {start} once, but holds it {text.count(start)} times")
    before, after = text.split(start)
    after = after[after.index(end) :]
    path.write_text(f"{before}{start}\n\n{markdown(table, command)}\n\n{after}", encoding="utf-8")


def main(script: str, description: str, tables: Callable[..., Iterator[Table]], **defaults: int) -> None:
    """Print the tables of a simulation, or write them into their pages; the defaults are its options."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/trust instead of printing them"
    )
    options = vars(parser.parse_args())
    to_page = options.pop("write")
    settings = " ".join(f"--{name} {value}" for name, value in options.items())
    command = f"python docs/simulations/{Path(script).name} {settings} --write"
    for table in tables(**options):
        if to_page:
            write(table, command)
        else:
            print(f"{table.name}\n\n{markdown(table, command)}\n")


def simulated_tables(p10: float, p01: float, n: int, *, sets: int, rng: np.random.Generator) -> Tensor:
    """Tables [sets, 2, 2] of n samples each, counted from outcomes as a user would."""
    tables = []
    at_once = max(1, _OUTCOMES_AT_ONCE // n)
    for start in range(0, sets, at_once):
        drawn = min(at_once, sets - start)
        u = rng.random(drawn * n)
        right = u < p10 + p01 + RIGHT * (1.0 - p10 - p01)
        before = (u < p10) | ((u >= p10 + p01) & right)
        after = (u >= p10) & right
        tables.append(
            channel_counts(
                torch.from_numpy(before),
                torch.from_numpy(after),
                slice_index=torch.arange(drawn).repeat_interleave(n),
                num_slices=drawn,
            )
        )
    return torch.cat(tables).reshape(sets, 2, 2)


class Enumeration(NamedTuple):
    """Tables that n pairs can give, one a row, and their probabilities."""

    counts: Tensor
    """int64 [T, 2, 2] by [before, after]."""
    probability: Floats
    """[T]; what is missing to 1 are tables too rare to matter."""

    def mean(self, values: Tensor | Floats) -> float:
        """The expectation of a value of each table."""
        return float(self.probability @ np.asarray(values, dtype=np.float64))


def enumerated_tables(p10: float, p01: float, n: int) -> Enumeration:
    """All tables by their discordant cells; the rest stands in n11, where no method but Newcombe's looks."""
    lost, gained = np.meshgrid(likely_counts(n, p10), likely_counts(n, p01), indexing="ij")
    possible = lost + gained <= n
    lost, gained = lost[possible], gained[possible]
    probability = binom.pmf(lost, n, p10) * binom.pmf(gained, n - lost, p01 / (1.0 - p10))
    return Enumeration(tables_of(np.zeros_like(lost), gained, lost, n - lost - gained), probability)


def likely_counts(n: int, share: float) -> Integers:
    """The counts of Binomial(n, share), but for the rarest."""
    low, high = binom.ppf(_LEFT_OUT, n, share), n - binom.ppf(_LEFT_OUT, n, 1.0 - share)
    return np.arange(int(low), int(high) + 1)


def tables_of(n00: Integers, n01: Integers, n10: Integers, n11: Integers) -> Tensor:
    """Four columns of counts as tables [T, 2, 2] by [before, after]."""
    return torch.from_numpy(np.stack((n00, n01, n10, n11), -1).astype(np.int64)).reshape(-1, 2, 2)
