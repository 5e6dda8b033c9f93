"""Every format, asked for by name, on files of every other kind: exit code 2 and one line that names the file."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from polyweave_torch.cli import main
from polyweave_torch.evallogs.reading import FORMATS

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = {
    "rows.jsonl": '{"id": "a", "correct": 1}\n',
    "rows.csv": "id,correct\na,1\n",
    "rows.json": '[{"id": "a", "correct": 1}]',
    "numbers.json": "[1, 2]",
    "object.json": '{\n"eval": 3, "samples": [1], "results": 5, "resolved_ids": 1}',
    "plain.txt": "hello\n",
    "nothing": "",
    "broken.zip": "PK\x03\x04" + "\0" * 50,
    "broken.parquet": "PAR1" + "\0" * 50,
}
OWN = {"jsonl": "rows.jsonl", "csv": "rows.csv", "json": "rows.json", "parquet": "rows.parquet"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("kinds")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(bytes(range(128, 256)))
    np.savez(folder / "arrays.npz", a=np.zeros(2))
    np.savez(folder / "objects.npz", a_test=np.zeros((1, 2), int), test_target=np.array([{}, 1], object))
    with zipfile.ZipFile(folder / "log.eval", "w") as archive:
        archive.writestr("header.json", '{"eval": {"task": "t"}}')
        archive.writestr("samples/1.json", "[1]")
    parquet.write_table(pyarrow.table({"id": ["a"], "correct": [1]}), folder / "rows.parquet")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_another_kind_is_refused_in_one_line(
    files: list[Path], format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in files:
        code = main(["compare", str(path), str(path), "--format", format])
        printed = capsys.readouterr()
        if path.name == OWN.get(format):
            assert code == 0, printed.err
            continue
        assert code == 2, (path, printed.err)
        assert not printed.out
        assert printed.err.count("\n") == 1, (path, printed.err)
        assert str(path) in printed.err
