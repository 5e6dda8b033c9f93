"""The demo's logs in TensorBoard, as Chromium shows them: rates, phase plane, gate and p-value of one network.

Drawn anew only into docs/images: that needs the logs that `make demo` writes to runs/demo, and Chromium. Elsewhere the
picture that was kept is taken.

Run: make demo, then python -m docs.figures.board
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import matplotlib.image

from tests.callbacks.browser import visit

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "images"
LOGS = ROOT / "runs" / "demo" / "logs"
TAGS = "channel/all/(c|gamma|delta)$|channel/phase_plane|growth|significance/all/p_value"
# Where the cards are: below the bar, between the list of runs and the settings.
TOP, LEFT, HEIGHT, WIDTH = 160, 390, 890, 1246


def main(folder: Path = KEPT) -> None:
    """Write ``board.png``."""
    if folder.resolve() != KEPT.resolve():
        shutil.copy(KEPT / "board.png", folder)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    member = LOGS / "sigma_pi" / "member_0"
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(member), "--port", str(port)]
    board = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/data/plugin/scalars/tags")
        url = f"http://127.0.0.1:{port}/?tagFilter={urllib.parse.quote(TAGS)}&smoothing=0#timeseries"
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
            visit(url, Path(scratch) / "profile") as page,
        ):
            page.call("Emulation.setDeviceMetricsOverride", width=1900, height=1250, deviceScaleFactor=1, mobile=False)
            page.wait_for(["6 cards"], images=1)
            time.sleep(5.0)  # the lines grow into place
            picture = Path(scratch) / "page.png"
            page.screenshot(picture)
            shown = matplotlib.image.imread(picture)
        matplotlib.image.imsave(folder / "board.png", shown[TOP : TOP + HEIGHT, LEFT : LEFT + WIDTH])
    finally:
        board.kill()
        board.wait()


def _wait(url: str) -> None:
    end = time.monotonic() + 90.0
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url) as answer:
            if b"channel" in answer.read():
                return
        time.sleep(0.5)
    raise TimeoutError("TensorBoard served no tags in 90 seconds")


if __name__ == "__main__":
    main()
