"""Rows of tables, CSV and Parquet, each with its place."""

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.source import MAX_PIECE, optional_module, raw_lines, repeated


def read_table(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file by the names in its first line, each with its place; empty lines are passed over."""
    allow_long_cells()
    lines = raw_lines(path)
    above, first = 0, next(lines, "")
    while first and not first.strip():
        above, first = above + 1, next(lines, "")
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter(first), strict=True)
    name = str(path)
    try:
        header = next(reader)
        if twice := repeated(header):
            times = header.count(twice[0])
            raise ValueError(f"{path}:{above + reader.line_num}: the column {twice[0]!r} stands {times} times")
        for cells in reader:
            where = f"{name}:{above + reader.line_num}"
            if cells and len(cells) != len(header):
                raise ValueError(f"{where}: expected {len(header)} cells as in the first line, but found {len(cells)}")
            if cells:
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{above + reader.line_num}: not CSV: {error}") from error


def allow_long_cells() -> None:
    """Let a cell of CSV have as many characters as a line may have bytes; Python's own limit is 131,072."""
    # It holds for the whole process and stays, since other tables may be half read, also in other threads.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_PIECE))


def delimiter(line: str) -> str:
    """What divides the columns of a table."""
    return max(",\t;", key=line.count)


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file, each with its place."""
    parquet = optional_module("pyarrow.parquet", extra="parquet", why=f"{path} is a Parquet file")
    pyarrow = optional_module("pyarrow", extra="parquet", why=f"{path} is a Parquet file")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a whole Parquet file: {error}") from error
