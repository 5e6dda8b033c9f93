"""What TensorBoard serves and draws, and what Weights & Biases and MLflow are given."""

import json
import math
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import pytest
from lightning.pytorch.loggers import MLFlowLogger, TensorBoardLogger, WandbLogger

from polyweave_torch.callbacks import ChannelMonitor, PiScaleMonitor, SignificanceMonitor, _board
from tests.callbacks.browser import CHROMIUM, visit
from tests.callbacks.modules import loaders, make_trainer
from tests.callbacks.test_pi_scale import sigma_pi_module

SITES = ["north|east" if index % 3 else "south" for index in range(60)]


class Board:
    """A started TensorBoard over one run, and the monitors that wrote it."""

    def __init__(self, folder: Path) -> None:
        self.channel = ChannelMonitor(slices=SITES, custom_scalars=True)
        self.significance = SignificanceMonitor()
        self.gates = PiScaleMonitor(every_n_steps=2)
        logger = TensorBoardLogger(folder, name="run", version=0)
        monitors = [self.channel, self.significance, self.gates]
        trainer = make_trainer(L, monitors, logger=logger, log_every_n_steps=1, max_epochs=4)
        trainer.fit(sigma_pi_module(L), *loaders())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 90
        while not self._ready():
            if time.monotonic() > end:
                raise TimeoutError("TensorBoard served no tags in 90 s")
            time.sleep(0.5)

    def get(self, path: str, **query: str) -> Any:
        """What an endpoint answers."""
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}") as answer:
            return json.load(answer)

    def scalar(self, tag: str) -> list[float]:
        """The values of a tag."""
        rows = self.get("/data/plugin/scalars/scalars", run="run/version_0", tag=tag)
        return [math.nan if row[2] == "NaN" else float(row[2]) for row in rows]

    def _ready(self) -> bool:
        try:
            return bool(self.get("/data/plugin/scalars/tags").get("run/version_0"))
        except (urllib.error.URLError, ConnectionError):
            return False


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    made = Board(tmp_path_factory.mktemp("board"))
    yield made
    made.process.kill()
    made.process.wait()


def test_served_scalars_equal_the_history(board: Board) -> None:
    tags = set(board.get("/data/plugin/scalars/tags")["run/version_0"])
    for monitor in (board.channel, board.significance, board.gates):
        for key in monitor.history[0].keys() - {"epoch", "step"}:
            tag = key if key.startswith(f"{monitor.name}_") else f"{monitor.name}/{key}"
            assert tag in tags
            kept = [entry[key] for entry in monitor.history]
            assert board.scalar(tag) == pytest.approx(kept, abs=1e-6, nan_ok=True), tag


def test_the_layout_the_table_and_the_figures_are_served(board: Board) -> None:
    layout = board.get("/data/plugin/custom_scalars/layout")
    charts = [chart for category in layout["category"] for chart in category["chart"]]
    assert {chart["title"] for chart in charts} == {
        f"{name} {rate}" for name in ("all", "north_east", "south") for rate in ("c", "gamma")
    }
    tables = board.get("/data/plugin/text/text", run="run/version_0", tag="channel/table/text_summary")
    assert "<table>" in tables[-1]["text"]
    assert "north|east" in tables[-1]["text"].replace("&#124;", "|")
    for tag in ("channel/phase_plane", "significance/matrix"):
        images = board.get("/data/plugin/images/images", run="run/version_0", tag=tag, sample="0")
        with urllib.request.urlopen(f"{board.url}/data/plugin/images/individualImage?{images[-1]['query']}") as answer:
            head = answer.read(24)
        # A PNG of 500 x 500 pixels.
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")) == (500, 500)
    histograms = board.get("/data/plugin/histograms/tags")["run/version_0"]
    assert "pi_scale/net.0" in histograms


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium; .ci/run installs it")
def test_a_browser_draws_the_charts_and_the_image(board: Board, tmp_path: Path) -> None:
    with visit(f"{board.url}/#custom_scalars", tmp_path / "charts") as page:
        page.wait_for(["all c", "all gamma", "south c"], paths=2)
    with visit(f"{board.url}/#images", tmp_path / "images") as page:
        page.wait_for(["channel/phase_plane"], images=1)
        page.screenshot(tmp_path / "images.png")
    assert (tmp_path / "images.png").stat().st_size > 10_000


def test_mlflow_gets_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    logger = MLFlowLogger("trial", tracking_uri=f"file:{tmp_path}")
    monitor = ChannelMonitor(slices=SITES)
    trainer = make_trainer(L, [monitor], logger=logger, max_epochs=2, log_every_n_steps=1)
    trainer.fit(sigma_pi_module(L), *loaders())
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.endswith("artifacts/channel/phase_plane/step_0000007.png") for path in written)
    table = next(path for path in written if path.endswith("artifacts/channel/table/step_0000007.md"))
    assert "north&#124;east" in (tmp_path / table).read_text()
    assert any(path.endswith("metrics/channel/all/delta") for path in written)


def test_wandb_gets_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true"), ("WANDB_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    logger = WandbLogger(project="trial", save_dir=tmp_path, offline=True)
    monitor = ChannelMonitor(slices=SITES)
    trainer = make_trainer(L, [monitor], logger=logger, max_epochs=2, log_every_n_steps=1)
    trainer.fit(sigma_pi_module(L), *loaders())
    media = Path(logger.experiment.dir) / "media"
    logger.experiment.finish()
    assert len(list(media.rglob("channel/phase_plane*.png"))) == 2
    tables = sorted(media.rglob("channel/table*.json"))
    assert len(tables) == 2
    content = json.loads(tables[-1].read_text())
    assert content["columns"][0] == "slice"
    assert {row[0] for row in content["data"]} == {"all", "north|east", "south"}


def test_without_matplotlib_the_monitors_work_and_say_once_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(_board, "_missing_said", set())
    monitor = ChannelMonitor()
    logger = TensorBoardLogger(tmp_path)
    trainer = make_trainer(L, [monitor], logger=logger, max_epochs=3, log_every_n_steps=1)
    with pytest.warns(UserWarning, match=r"matplotlib is not installed: pip install 'polyweave-torch\[plot\]'") as said:
        trainer.fit(sigma_pi_module(L), *loaders())
    assert len([w for w in said if "matplotlib" in str(w.message)]) == 1
    assert len(monitor.history) == 3
