"""The Triton kernel: in Triton's interpreter on any machine, and on a GPU where there is one."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

from polyweave_torch.functional.votes import vote_summary
from polyweave_torch.kernels.triton_vote import HAS_TRITON
from polyweave_torch.kernels.vote import prefers_triton
from tests.functional.ensembles import random_labels


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton 3.3 or later")
def test_the_kernel_agrees_with_the_plain_form_in_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.kernels.triton_cases"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all equal"


def test_labels_on_a_cpu_take_the_plain_form() -> None:
    assert not prefers_triton(random_labels(5, 10, 0, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_gives_the_cpus_votes() -> None:
    for members, ignore_index in product((1, 5, 16, 33, 60), (None, -1)):
        abstain = 0.0 if ignore_index is None else 0.3
        labels = random_labels(members, 100_003, 0, 9, abstain=abstain, ignore_index=-1)
        for preds in (labels, labels.t().contiguous().t(), labels.to(torch.int8)):
            wanted = vote_summary(preds, 10, ignore_index=ignore_index)
            for got, expected in zip(vote_summary(preds.cuda(), 10, ignore_index=ignore_index), wanted, strict=True):
                assert torch.equal(got.cpu(), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_label_out_of_range_is_no_device_assert() -> None:
    with pytest.raises(ValueError, match=r"preds must lie in \[0, 10\)"):
        vote_summary(torch.full((5, 100), 10, device="cuda"), 10)
    assert vote_summary(torch.full((5, 100), 9, device="cuda"), 10).vote.eq(9).all()
