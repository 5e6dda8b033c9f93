"""Files of scores."""

import csv
import json
from pathlib import Path

import pytest

from tests.verdict.rows import Rows, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes rows as JSONL or CSV, as the name says."""

    def written(name: str, rows: Rows) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            if path.suffix == ".csv":
                writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
                writer.writeheader()
                writer.writerows(rows)
            else:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return path

    return written
