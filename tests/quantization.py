"""The real answers of ``data/quantization_flips.csv`` and the tables published with them."""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

_FILE = Path(__file__).parent / "data" / "quantization_flips.csv"
_PUBLISHED = """
Qwen2.5-1.5B-Instruct arc int8 1000 233 14 5 748 9
Qwen2.5-1.5B-Instruct arc int4 1000 229 18 68 685 25
Qwen2.5-1.5B-Instruct mmlu int8 975 358 22 20 575 15
Qwen2.5-1.5B-Instruct mmlu int4 975 337 43 86 509 57
Qwen2.5-1.5B-Instruct csqa int8 986 207 15 11 753 3
Qwen2.5-1.5B-Instruct csqa int4 986 185 37 45 719 18
Qwen2.5-3B-Instruct arc int8 1000 155 17 21 807 13
Qwen2.5-3B-Instruct arc int4 1000 146 26 52 776 22
Qwen2.5-3B-Instruct mmlu int8 975 315 22 36 602 22
Qwen2.5-3B-Instruct mmlu int4 975 305 32 66 572 47
Qwen2.5-3B-Instruct csqa int8 986 154 27 27 778 7
Qwen2.5-3B-Instruct csqa int4 986 146 35 49 756 13
gemma-2-2b-it arc int8 1000 241 15 14 730 12
gemma-2-2b-it arc int4 1000 230 26 38 706 23
gemma-2-2b-it mmlu int8 975 397 22 13 543 16
gemma-2-2b-it mmlu int4 975 373 46 46 510 42
gemma-2-2b-it csqa int8 986 239 8 18 721 4
gemma-2-2b-it csqa int4 986 225 22 34 705 17
"""


class Published(NamedTuple):
    """One row of the article's table."""

    model: str
    benchmark: str
    after: str
    n: int
    counts: list[int]
    wrong_to_other_wrong: int

    def answers(self) -> tuple[Tensor, Tensor, Tensor]:
        """Letters before, after and right, as character codes."""
        return (
            letters(f"{self.model}/fp16", self.benchmark),
            letters(f"{self.model}/{self.after}", self.benchmark),
            letters("answer", self.benchmark),
        )


def published_rows() -> list[Published]:
    """The 18 published tables."""
    rows = []
    for line in _PUBLISHED.split("\n"):
        if line:
            model, benchmark, after, n, *counts, other = line.split()
            rows.append(Published(model, benchmark, after, int(n), [int(c) for c in counts], int(other)))
    return rows


def letters(column: str, benchmark: str | None = None) -> Tensor:
    """One column of the file, of one benchmark or of all."""
    return torch.tensor([ord(row[column]) for row in _rows() if benchmark in (None, row["benchmark"])])


@functools.cache
def _rows() -> list[dict[str, str]]:
    with _FILE.open(newline="") as file:
        return list(csv.DictReader(file))
