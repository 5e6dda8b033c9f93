"""What importing the callbacks does to Lightning: nothing."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_the_users_package_keeps_its_logger(package: str) -> None:
    """With both packages installed, importing the other one would take the messages over."""
    code = (
        f"import {package} as L, logging\n"
        "import polyweave_torch.callbacks\n"
        f"logging.getLogger('{package}').setLevel(logging.ERROR)\n"
        "L.Trainer(accelerator='cpu', logger=False, enable_checkpointing=False)\n"
        "from lightning_utilities.core import rank_zero\n"
        f"assert rank_zero.log.name.startswith('{package}'), rank_zero.log.name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "GPU available" not in done.stderr
