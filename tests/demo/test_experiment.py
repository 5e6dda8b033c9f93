"""The demo end to end: what TensorBoard shows, and what the report says, recomputed by plain loops."""

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from polyweave_torch.cli import main
from polyweave_torch.demo.experiment import LOG_EVERY
from polyweave_torch.demo.model import ARMS

MEMBERS, EPOCHS = 2, 4
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(out), "--members", str(MEMBERS), "--epochs", str(EPOCHS)]) == 0
    return out


@pytest.fixture(scope="module")
def predictions(run: Path) -> dict[str, Any]:
    with np.load(run / "predictions.npz", allow_pickle=False) as saved:
        return dict(saved)


@pytest.fixture(scope="module")
def report(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "report.json").read_text())
    return loaded


def right(preds: Any, target: Any) -> list[bool]:
    return [bool(p == t) for p, t in zip(preds.tolist(), target.tolist(), strict=True)]


def counts(before: list[bool], after: list[bool]) -> tuple[int, int, int, int]:
    table = Counter(zip(before, after, strict=True))
    return (table[False, False], table[False, True], table[True, False], table[True, True])


def mcnemar_p(n10: int, n01: int) -> float:
    n = n10 + n01
    if n == 0:
        return 1.0
    if n < 25:
        tail: int = sum(math.comb(n, k) for k in range(min(n10, n01) + 1))
        return min(1.0, 2 * tail / (1 << n))
    return math.erfc(math.sqrt(max(0, abs(n10 - n01) - 1) ** 2 / n / 2))


def holm(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted


def cochran(rows: list[list[bool]]) -> tuple[float, float]:
    k = len(rows[0])
    columns = [sum(row[j] for row in rows) for j in range(k)]
    totals = [sum(row) for row in rows]
    spread = k * sum(totals) - sum(t * t for t in totals)
    if spread == 0:
        return 0.0, 1.0
    q = (k - 1) * (k * sum(c * c for c in columns) - sum(columns) ** 2) / spread
    return q, float(stats.chi2.sf(q, k - 1))


def channel_values(table: tuple[int, int, int, int], *, itself: bool) -> dict[str, float]:
    n00, n01, n10, n11 = table
    n0, n1 = n00 + n01, n10 + n11
    c = (n01 + 0.5) / (n0 + 1) if n0 or itself else math.nan
    gamma = (n10 + 0.5) / (n1 + 1) if n1 or itself else math.nan
    p0 = n1 / (n0 + n1)
    # In the phase plane the smoothed rates stand even for an empty group.
    smoothed_c, smoothed_gamma = (n01 + 0.5) / (n0 + 1), (n10 + 0.5) / (n1 + 1)
    surplus = -math.inf if p0 == 1 else smoothed_c - p0 / (1 - p0) * smoothed_gamma
    quadrant = 1.0 if surplus > 0 else 0.0 if surplus > -0.05 else -1.0
    if itself and p0 == 1:
        surplus = 0.0
    if (n0 == 0 and p0 < 1) or (n1 == 0 and p0 > 0):
        quadrant = 2.0
    delta = (n01 - n10) / (n0 + n1)
    return {"c": c, "gamma": gamma, "delta": delta, "surplus": surplus, "quadrant": quadrant, "n": float(n0 + n1)}


def logged(run: Path, arm: str, member: int) -> dict[str, list[float]]:
    events = EventAccumulator(str(run / "logs" / arm / f"member_{member}"))
    events.Reload()
    return {tag: [event.value for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("member", range(MEMBERS))
def test_every_logged_channel_and_p_value_is_recomputed(
    run: Path, predictions: dict[str, Any], arm: str, member: int
) -> None:
    target = predictions["validation_target"]
    outcomes = [right(epoch, target) for epoch in predictions[f"{arm}_validation"][member]]
    assert len(outcomes) == EPOCHS
    expected: dict[str, list[float]] = {}
    slices = {"all": range(len(target)), **{str(d): np.flatnonzero(target == d).tolist() for d in range(10)}}
    for epoch, after in enumerate(outcomes):
        before = outcomes[max(epoch - 1, 0)]
        p_values = {}
        for name, members in slices.items():
            table = counts([before[i] for i in members], [after[i] for i in members])
            for key, value in channel_values(table, itself=epoch == 0).items():
                expected.setdefault(f"channel/{name}/{key}", []).append(value)
            p_values[name] = mcnemar_p(table[2], table[1])
            expected.setdefault(f"significance/{name}/p_value", []).append(p_values[name])
            expected.setdefault(f"significance/{name}/discordant", []).append(float(table[1] + table[2]))
        digits = [name for name in slices if name != "all"]
        adjusted = {"all": p_values["all"], **dict(zip(digits, holm([p_values[d] for d in digits]), strict=True))}
        for name, value in adjusted.items():
            expected.setdefault(f"significance/{name}/p_adjusted", []).append(value)
        window = outcomes[max(0, epoch - 4) : epoch + 1]
        q, p = cochran([list(row) for row in zip(*window, strict=True)]) if len(window) > 1 else (0.0, 1.0)
        expected.setdefault("significance/cochran_q/q", []).append(q)
        expected.setdefault("significance/cochran_q/p_value", []).append(p)
    found = logged(run, arm, member)
    shown = {tag for tag in found if tag.startswith(("channel/", "significance/"))}
    assert shown == set(expected)
    for tag, values in expected.items():
        assert found[tag] == pytest.approx(values, rel=1e-6, abs=1e-6, nan_ok=True), tag


@pytest.mark.parametrize("member", range(MEMBERS))
def test_every_logged_gate_is_recomputed(run: Path, predictions: dict[str, Any], member: int) -> None:
    gates = predictions["sigma_pi_gates"][member].astype(np.float64)
    steps = range(LOG_EVERY, len(gates), LOG_EVERY)
    means = [float(np.exp(gates[step]).mean()) for step in steps]
    start = float(np.exp(gates[0]).mean())
    found = logged(run, "sigma_pi", member)
    assert {tag for tag in found if tag.startswith("pi_scale/")} == {"pi_scale/hidden/mean", "pi_scale/hidden/growth"}
    assert found["pi_scale/hidden/mean"] == pytest.approx(means, abs=1e-6)
    assert found["pi_scale/hidden/growth"] == pytest.approx([mean - start for mean in means], abs=1e-6)


def votes(preds: Any) -> list[int]:
    result = []
    for column in preds.T.tolist():
        tally = Counter(column)
        result.append(min(label for label, n in tally.items() if n == max(tally.values())))
    return result


def test_the_report_is_recomputed(report: dict[str, Any], predictions: dict[str, Any]) -> None:
    target = predictions["test_target"]
    preds = {arm: predictions[f"{arm}_test"] for arm in ARMS}
    outcome = {arm: right(np.array(votes(preds[arm])), target) for arm in ARMS}
    p_values = []
    for name in ("all", *map(str, range(10))):
        members = [i for i, t in enumerate(target.tolist()) if name in ("all", str(t))]
        table = counts(*([outcome[arm][i] for i in members] for arm in ARMS))
        row = report["channel"][name]
        assert tuple(row["counts"].values()) == table
        values = channel_values(table, itself=True)
        assert [row["c"], row["gamma"], row["delta"]] == pytest.approx([values["c"], values["gamma"], values["delta"]])
        assert row["activate"] == ((1 - (p0 := (table[2] + table[3]) / sum(table))) * row["c"] - p0 * row["gamma"] > 0)
        p_values.append(mcnemar_p(table[2], table[1]))
        assert row["mcnemar"]["p_value"] == pytest.approx(p_values[-1], rel=1e-9)
    assert report["channel"]["all"]["mcnemar"]["p_adjusted"] == pytest.approx(p_values[0])
    adjusted = [report["channel"][str(d)]["mcnemar"]["p_adjusted"] for d in range(10)]
    assert adjusted == pytest.approx(holm(p_values[1:]), rel=1e-9)
    rows = [list(row) for row in zip(*(right(p, target) for arm in ARMS for p in preds[arm]), strict=True)]
    q, p = cochran(rows)
    assert [report["cochran_q"]["statistic"], report["cochran_q"]["p_value"]] == pytest.approx([q, p], rel=1e-9)
    for arm in ARMS:
        shown = report["arms"][arm]
        assert shown["ensemble"]["accuracy"] == pytest.approx(sum(outcome[arm]) / len(target))
        assert [m["accuracy"] for m in shown["members"]] == pytest.approx([np.mean(p == target) for p in preds[arm]])
        wilson = stats.binomtest(sum(outcome[arm]), len(target)).proportion_ci(method="wilson")
        assert [shown["ensemble"]["low"], shown["ensemble"]["high"]] == pytest.approx([wilson.low, wilson.high])
        columns = preds[arm].T.tolist()
        assert shown["disagreement"] == pytest.approx(sum(len(set(c)) > 1 for c in columns) / len(columns))
        pairs = [c[i] != c[j] for c in columns for i in range(MEMBERS) for j in range(i)]
        assert shown["pairwise_disagreement"] == pytest.approx(sum(pairs) / len(pairs))
    for member, gates in zip(report["gates"], predictions["sigma_pi_gates"].astype(np.float64), strict=True):
        shown_step = (len(gates) - 1) // LOG_EVERY * LOG_EVERY
        grown = np.exp(gates[shown_step]).mean() - np.exp(gates[0]).mean()
        assert member["hidden"] == pytest.approx(grown, abs=1e-6)


def test_the_table_calls_nothing_where_no_image_changed_sides(run: Path, report: dict[str, Any]) -> None:
    lines = [line for line in (run / "report.md").read_text().split("\n") if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = {row[0]: row for row in rows if len(row) == 11}
    assert table["digit"][7:9] == ["quadrant", "activate"]
    still = []
    for name, row in report["channel"].items():
        moved = row["counts"]["n01"] + row["counts"]["n10"]
        called = [row["quadrant"], "yes" if row["activate"] else "no"]
        assert table[name][7:9] == (called if moved else ["no change", "-"])
        still += [] if moved else [name]
    assert still


def test_same_seed_same_report(run: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "stale").write_text("left by an earlier run")
    assert main(["demo", "--out", str(tmp_path), "--members", str(MEMBERS), "--epochs", str(EPOCHS)]) == 0
    for name in ("report.json", "report.md"):
        assert (tmp_path / name).read_text() == (run / name).read_text()
    assert not (tmp_path / "logs" / "stale").exists()


def test_two_processes_give_the_same_report(run: Path, predictions: dict[str, Any], tmp_path: Path) -> None:
    settings = ["--members", str(MEMBERS), "--epochs", str(EPOCHS), "--processes", "2"]
    command = [sys.executable, "-m", "polyweave_torch.cli", "demo", "--out", str(tmp_path), *settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "report.json").read_text() == (run / "report.json").read_text()
    with np.load(tmp_path / "predictions.npz", allow_pickle=False) as shared:
        for name, alone in predictions.items():
            # Gates are sums of another order; what was predicted is the same.
            assert np.allclose(shared[name], alone, rtol=1e-9) if "gates" in name else (shared[name] == alone).all(), (
                name
            )
    for arm in ARMS:
        for member in range(MEMBERS):
            found, alone_logged = logged(tmp_path, arm, member), logged(run, arm, member)
            assert found.keys() == alone_logged.keys()
            for tag, values in alone_logged.items():
                assert found[tag] == pytest.approx(values, rel=1e-6, nan_ok=True), tag


def test_csv_and_board_are_written(run: Path) -> None:
    for arm in ARMS:
        for member in range(MEMBERS):
            header = (run / "csv" / arm / f"member_{member}" / "metrics.csv").read_text().split("\n")[0]
            assert "channel/all/c" in header
            events = EventAccumulator(str(run / "logs" / arm / f"member_{member}"))
            events.Reload()
            assert "channel/phase_plane" in events.Tags()["images"]
            assert "channel/table/text_summary" in events.Tags()["tensors"]


def test_bad_settings_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path), "--members", "0"]) == 2
    assert "members must be at least 1" in capsys.readouterr().err
