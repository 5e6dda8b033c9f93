"""What the monitors log, draw and say, for outcomes that are written down beforehand."""

import math
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import EarlyStopping
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint
from torch.utils.data import DataLoader

from polyweave_torch import plot
from polyweave_torch.callbacks import ChannelMonitor, SignificanceMonitor
from tests.callbacks.modules import PACKAGES, images, loaders, make_module, make_trainer
from tests.callbacks.test_matrix import Scripted

LIGHTNING = PACKAGES["lightning.pytorch"]
# The second corrects nine samples and corrupts one, the third changes nothing.
VALIDATIONS = [[0] * 20 + [1] * 17, [1] * 9 + [0] * 12 + [1] * 16, [1] * 9 + [0] * 12 + [1] * 16]
PERFECT = [[1] * 36 + [0], [1] * 37, [1] * 36 + [0]]


def run(monitors: list[Any], validations: list[list[int]], **options: Any) -> Any:
    trainer = make_trainer(LIGHTNING, monitors, max_epochs=len(validations), **options)
    loader = DataLoader(images(37, seed=1), batch_size=37)
    trainer.fit(make_module(LIGHTNING, Scripted(validations)), loaders()[0], loader)
    return trainer


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_the_bounds_have_the_level_that_was_asked_for(confidence: float) -> None:
    monitor = ChannelMonitor(confidence=confidence)
    run([monitor], VALIDATIONS[:2])
    latest = monitor.history[-1]
    for rate, hits, group in (("c", 9, 20), ("gamma", 1, 17)):
        expected = proportion_confint(hits, group, alpha=1 - confidence, method="wilson")
        found = [latest[f"channel_bounds/all/{rate}_{end}"] for end in ("low", "high")]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("method", ["exact", "midp"])
def test_the_method_decides_the_p_value_and_alpha_what_is_significant(method: Any) -> None:
    exact = float(binomtest(1, 10).pvalue)
    p = exact if method == "exact" else exact - math.comb(10, 1) / 2**10
    assert (method == "exact") == (p > 0.015)
    monitor = SignificanceMonitor(method=method, alpha=0.015)
    assert monitor.significant == []
    run([monitor], VALIDATIONS[:2])
    assert monitor.history[-1]["all/p_value"] == pytest.approx(p)
    assert monitor.significant == ([] if method == "exact" else ["all"])


def test_counts_are_by_default_those_of_the_first_reference() -> None:
    monitor = ChannelMonitor(references=("first", "previous"))
    with pytest.raises(ValueError, match=r"no validation has been counted yet; .* must stand behind this monitor"):
        monitor.counts()
    run([monitor], VALIDATIONS)
    with pytest.raises(KeyError, match=r"no counts of \('first', 'Oslo'\); there are .*'all'"):
        monitor.counts(slice="Oslo")
    assert monitor.counts().tolist() == monitor.counts("first").tolist() == [[11, 9], [1, 16]]
    assert monitor.counts("previous").tolist() == [[12, 0], [0, 25]]


def test_where_all_was_right_no_correction_can_pay(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loggers = LIGHTNING.loggers
    csv, board = loggers.CSVLogger(tmp_path, name="csv"), loggers.TensorBoardLogger(tmp_path, name="board")
    monitor = ChannelMonitor(custom_scalars=True)
    run([monitor], PERFECT, logger=[csv, board], log_every_n_steps=1)
    latest = monitor.history[-1]
    assert latest["all/surplus"] == -math.inf
    assert math.isnan(latest["all/c"])
    assert latest["all/delta"] == pytest.approx(-1 / 37)
    assert latest["all/quadrant"] == -1
    events = EventAccumulator(board.log_dir)
    events.Reload()
    assert [event.value for event in events.Scalars("channel/all/surplus")][-1] == -math.inf
    assert len(events.Tensors("channel/table/text_summary")) == len(events.Images("channel/phase_plane")) == 3
    assert "-inf" in (Path(csv.log_dir) / "metrics.csv").read_text()


def test_the_table_calls_no_change_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[list[list[Any]]] = []
    monkeypatch.setattr(
        "polyweave_torch.callbacks.channel.show_table", lambda trainer, key, head, rows: tables.append(rows)
    )
    run([ChannelMonitor()], VALIDATIONS)
    assert [rows[0][-1] for rows in tables] == ["no change", "HELPFUL", "no change"]


@pytest.mark.parametrize(("key", "epochs"), [("surplus", 3), ("delta", 4), ("gamma", 4)])
def test_a_finite_check_stops_at_the_surplus_and_not_at_delta(key: str, epochs: int) -> None:
    stopping = EarlyStopping(f"channel/all/{key}", mode="max", patience=50)
    monitor = ChannelMonitor()
    run([monitor, stopping], [*PERFECT, PERFECT[0]])
    assert len(monitor.history) == epochs


def test_the_figure_has_the_monitors_level_and_the_last_six_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict[str, Any]] = []
    monkeypatch.setattr(plot, "phase_plane", lambda channels, **options: drawn.append(options))
    monitor = ChannelMonitor(confidence=0.9)
    logger = LIGHTNING.loggers.TensorBoardLogger(tmp_path)
    validations = [[1] * (8 + 2 * epoch) + [0] * (29 - 2 * epoch) for epoch in range(8)]
    run([monitor], validations, logger=logger, log_every_n_steps=1)
    assert {options["level"] for options in drawn} == {0.9}
    points = [(entry["all/gamma"], entry["all/c"]) for entry in monitor.history]
    assert drawn[-1]["trail"] == points[-6:]
    assert len(set(points)) == 8


def test_the_history_leaves_off_the_monitors_name_only() -> None:
    monitor = ChannelMonitor(name="val/channel")
    run([monitor], VALIDATIONS[:1])
    groups = {key.rsplit("/", 1)[0] for key in monitor.history[0]}
    assert groups == {"epoch", "step", "all", "val/channel_bounds/all"}
