"""The demo's predictions."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import counts

TARGET = np.array([0, 1, 2, 1])
ADDITIVE = np.array([[0, 1, 0, 2], [0, 2, 0, 2], [1, 1, 2, 1]])
SIGMA_PI = np.array([[0, 1, 2, 2], [0, 1, 2, 2], [1, 1, 2, 1]])


def save(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, **{"test_target": TARGET, "validation_target": TARGET, **arrays})
    return path


def test_an_item_is_right_where_the_majority_is(tmp_path: Path) -> None:
    path = save(tmp_path / "predictions.npz", additive_test=ADDITIVE, sigma_pi_test=SIGMA_PI)
    with pytest.raises(ChoiceError) as caught:
        read_run(path)
    assert (caught.value.option, caught.value.choices) == ("arm", ["additive", "sigma_pi"])
    runs = [read_run(path, arm=arm) for arm in ("additive", "sigma_pi")]
    assert runs[0].correct.tolist() == [1, 1, 0, 0]
    assert runs[0].answers == ["0", "1", "0", "2"]
    assert runs[0].ids == ["0", "1", "2", "3"]
    assert counts(align(runs)) == {"n00": 1, "n01": 1, "n10": 0, "n11": 2}


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npz", additive_test=np.array([[{}, {}, {}, {}]], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_run(path)


@pytest.mark.parametrize("members", [ADDITIVE[:, :3], ADDITIVE[0], ADDITIVE / 2])
def test_other_shapes_are_refused(members: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected classes, additive_test \[members, samples\]"):
        read_run(save(tmp_path / "x.npz", additive_test=members))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("(3, 4", ""),
        ("((((((", ""),
        ("(3, 4}", ""),
        ("(3, 'x')", ""),
        ("(3, 5)", "its head says 120 bytes, but it has 96"),
        ("(3, 10**12)", ""),
        ("(3, 1000000000000)", "its head says 24000000000000 bytes, but it has 96"),
    ],
)
def test_a_damaged_head_is_a_clear_error_and_takes_no_memory(shape: str, said: str, tmp_path: Path) -> None:
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path = save(tmp_path / "x.npz")
    with zipfile.ZipFile(path, "a") as archive:
        content = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + ADDITIVE.astype("<i8").tobytes()
        archive.writestr("additive_test.npy", content)
    with pytest.raises(ValueError, match=rf"x\.npz: additive_test is no array of numbers: .*{said}"):
        read_run(path)
