"""What the monitors log, draw and say, for outcomes that are written down beforehand."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from torch.utils.data import DataLoader

from polyweave_torch import plot
from polyweave_torch.callbacks import ChannelMonitor, SignificanceMonitor, observe
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


def classes_of_rows(batch: Any) -> list[str]:
    return [str(label) if row % 4 else "left out" for row, label in enumerate(batch[1].tolist())]


@pytest.mark.parametrize("slices", ["target", classes_of_rows])
def test_slices_without_samples_are_neither_logged_nor_tested(slices: Any) -> None:
    """Every fourth row has no target, and each validation has other samples of class 2."""
    data = images(60, seed=1)
    right = torch.rand(2, 60, generator=torch.Generator().manual_seed(3)) < torch.tensor([[0.2], [0.6]])
    validations = itertools.count()

    def ids(batch: Any) -> Any:
        return torch.arange(60) + 1000 * next(validations) * (batch[1] == 2)

    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        wrong = ~right[len(module.truth)]
        observe((y + wrong) % 3, y.masked_fill(torch.arange(60) % 4 == 0, -100))

    options: Any = {"ids": ids, "slices": slices, "ignore_index": -100, "max_slices": 3}
    channel, significance = ChannelMonitor(**options), SignificanceMonitor(**options, method="exact")
    trainer = make_trainer(LIGHTNING, [channel, significance], max_epochs=2, num_sanity_val_steps=0)
    trainer.fit(make_module(LIGHTNING, step), loaders()[0], DataLoader(data, batch_size=60))
    (before, after), target = right.tolist(), data.tensors[1].tolist()
    discordant = {name: [0, 0] for name in ("0", "1")}
    for row in range(60):
        if row % 4 and target[row] != 2 and before[row] != after[row]:
            discordant[str(target[row])][after[row]] += 1
    p_values = [float(binomtest(corrected, lost + corrected).pvalue) for lost, corrected in discordant.values()]
    assert max(p_values) < 0.5, "a larger family must show"
    latest = significance.history[-1]
    assert [latest[f"{name}/p_value"] for name in discordant] == pytest.approx(p_values)
    adjusted = multipletests(p_values, method="holm")[1].tolist()
    assert [latest[f"{name}/p_adjusted"] for name in discordant] == pytest.approx(adjusted)
    assert math.isnan(latest["2/p_value"])
    assert math.isnan(latest["2/p_adjusted"])
    assert channel.history[-1]["2/n"] == 0
    named = {key.split("/")[-2] for monitor in (channel, significance) for key in monitor.history[-1] if "/" in key}
    assert named == {"all", "0", "1", "2", "cochran_q"}


def test_a_test_leaves_what_the_latest_validation_changed() -> None:
    monitor = SignificanceMonitor()
    module = make_module(LIGHTNING, Scripted([*VALIDATIONS[:2], VALIDATIONS[1]]))
    module.test_step = module.validation_step
    trainer, loader = make_trainer(LIGHTNING, [monitor], max_epochs=2), DataLoader(images(37, seed=1), batch_size=37)
    trainer.fit(module, loaders()[0], loader)
    assert monitor.significant == ["all"]
    trainer.test(module, loader, verbose=False)
    assert "significance_test/all/p_adjusted" in monitor.history[-1]
    assert monitor.significant == ["all"]


@pytest.mark.parametrize("name", ["channel", "exp/dlrm", "exp/dl1"])
def test_the_margin_charts_read_the_bounds_that_are_logged(tmp_path: Path, name: str) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.custom_scalar.layout_pb2 import Layout

    board = LIGHTNING.loggers.TensorBoardLogger(tmp_path)
    monitor = ChannelMonitor(name=name, custom_scalars=True, figure=False)
    trainer = make_trainer(LIGHTNING, [monitor], max_epochs=1, logger=board, log_every_n_steps=1)
    trainer.fit(make_module(LIGHTNING), loaders()[0], [loaders()[1]] * 2)
    events = EventAccumulator(board.log_dir)
    events.Reload()
    layout = Layout.FromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    read = {
        tag
        for chart in layout.category[0].chart
        for series in chart.margin.series
        for tag in (series.value, series.lower, series.upper)
    }
    logged = set(events.Tags()["scalars"])
    assert len(read) == 6
    assert read <= logged
    assert f"{name}_bounds/dl1/all/c_low" in logged
