"""The outcome monitors inside real Trainers of both packages, against the truth that the module keeps."""

import functools
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from polyweave_torch.callbacks import (
    ChannelMonitor,
    EnsembleMonitor,
    PairedEarlyStopping,
    PiScaleMonitor,
    SignificanceMonitor,
    observe,
)
from tests.callbacks.modules import CLASSES, PACKAGES, Keyed, images, loaders, make_module, make_trainer, table

LIGHTNING = PACKAGES["lightning.pytorch"]


def fit(monitors: list[Any], module: Any = None, loader: Any = None, package: Any = LIGHTNING, **options: Any) -> Any:
    module = make_module(package) if module is None else module
    train, validation = loaders()
    trainer = make_trainer(package, monitors, **options)
    trainer.fit(module, train, validation if loader is None else loader)
    return module


@pytest.mark.parametrize("package", PACKAGES)
def test_counts_are_exact_in_both_packages(package: str) -> None:
    channel, significance = ChannelMonitor(references=("previous", "first", "best")), SignificanceMonitor()
    module = fit([channel, significance], package=PACKAGES[package], max_epochs=5)
    truth = module.truth
    assert len(truth) == len(channel.history) == len(significance.history) == 5
    assert channel.counts().tolist() == table(truth[3], truth[4])
    assert channel.counts("first").tolist() == table(truth[0], truth[4])
    best = max(range(4), key=lambda i: (sum(truth[i]), -i))
    assert channel.counts("best").tolist() == table(truth[best], truth[4])
    for epoch, entry in enumerate(channel.history):
        (_, n01), (n10, _) = table(truth[max(epoch - 1, 0)], truth[epoch])
        assert entry["all/delta"] == pytest.approx((n01 - n10) / 60)
        assert significance.history[epoch]["all/discordant"] == n01 + n10


def test_the_first_validation_is_compared_with_itself() -> None:
    channel, significance = ChannelMonitor(slices="target"), SignificanceMonitor(slices="target")
    module = fit([channel, significance], max_epochs=1)
    first = channel.history[0]
    assert all(math.isfinite(value) for value in first.values())
    assert first["all/delta"] == 0.0
    wrong = 60 - sum(module.truth[0])
    assert first["all/c"] == pytest.approx(0.5 / (wrong + 1))
    tested = significance.history[0]
    assert (tested["all/p_value"], tested["cochran_q/q"], tested["cochran_q/p_value"]) == (1.0, 0.0, 1.0)


def test_early_stopping_and_checkpoints_can_monitor_our_keys(tmp_path: Path) -> None:
    stopping = LIGHTNING.callbacks.EarlyStopping("channel/all/delta", mode="max", patience=50)
    checkpoint = LIGHTNING.callbacks.ModelCheckpoint(tmp_path, monitor="significance/all/p_value")
    monitors = [ChannelMonitor(), SignificanceMonitor(), stopping, checkpoint]
    fit(monitors, enable_checkpointing=True)
    assert checkpoint.best_model_score is not None


@pytest.mark.parametrize(
    "returned",
    [
        {"preds": "classes", "target": "y"},
        {"logits": "logits", "labels": "y"},
        {"y_hat": "logits"},  # the target from the batch
    ],
)
def test_outputs_are_read(returned: dict[str, str]) -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> dict[str, Tensor]:
        values = {"classes": logits.argmax(1), "logits": logits, "y": y}
        return {key: values[name] for key, name in returned.items()}

    monitor = ChannelMonitor()
    module = fit([monitor], make_module(LIGHTNING, step))
    assert monitor.counts().tolist() == table(*module.truth[-2:])


def test_a_function_gives_outcomes() -> None:
    def outcomes(module: Any, batch: Any, outputs: Any) -> Tensor:
        x, y = batch
        right: Tensor = module(x).argmax(1) == y
        return right

    monitor = ChannelMonitor(outcomes)
    module = fit([monitor], make_module(LIGHTNING, lambda *_: None))
    assert monitor.counts().tolist() == table(*module.truth[-2:])


@pytest.mark.parametrize("text_ids", [False, True])
def test_ids_and_slices_from_the_batch_survive_shuffling(text_ids: bool) -> None:
    loader = DataLoader(
        Keyed(text_ids=text_ids), batch_size=7, shuffle=True, generator=torch.Generator().manual_seed(5)
    )
    monitor = ChannelMonitor(ids="id", slices="site")
    by_id: list[dict[Any, bool]] = []

    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        ids = batch.pop("id")  # steps may take keys out
        ids = ids.tolist() if isinstance(ids, Tensor) else ids
        right = (logits.argmax(1) == y).tolist()
        if not module.trainer.sanity_checking:
            if len(by_id) <= len(module.truth):
                by_id.append({})
            by_id[-1].update(zip(ids, right, strict=True))
        observe(logits, y)

    train = DataLoader(Keyed(), batch_size=10)
    make_trainer(LIGHTNING, [monitor]).fit(make_module(LIGHTNING, step), train, loader)
    keys = sorted(by_id[-1])
    expected = table([by_id[-2][key] for key in keys], [by_id[-1][key] for key in keys])
    assert monitor.counts().tolist() == expected
    assert torch.equal(monitor.counts("previous", "a") + monitor.counts("previous", "b"), monitor.counts())


def test_slices_by_sample_and_by_target_equal_a_filter() -> None:
    labels = ["left" if index < 25 else "right|side" for index in range(60)]
    by_sample, by_target = ChannelMonitor(slices=labels, name="a"), ChannelMonitor(slices="target", name="b")
    module = fit([by_sample, by_target])
    before, after = module.truth[-2:]
    assert by_sample.counts("previous", "left").tolist() == table(before[:25], after[:25])
    assert "right_side/c" in by_sample.history[-1]
    target = images(60, seed=1).tensors[1].tolist()
    for label in range(CLASSES):
        rows = [i for i, t in enumerate(target) if t == label]
        expected = table([before[i] for i in rows], [after[i] for i in rows])
        assert by_target.counts("previous", str(label)).tolist() == expected


@pytest.mark.parametrize(
    "options", [{"num_sanity_val_steps": 0}, {"num_sanity_val_steps": 2}, {"num_sanity_val_steps": -1}]
)
def test_the_sanity_check_is_no_validation(options: dict[str, int]) -> None:
    monitor = ChannelMonitor()
    module = fit([monitor], max_epochs=2, **options)
    assert len(monitor.history) == 2
    assert monitor.counts().tolist() == table(*module.truth)


def test_fast_dev_run_and_limited_batches() -> None:
    monitor = ChannelMonitor()
    fit([monitor, SignificanceMonitor()], fast_dev_run=True)
    assert [entry["all/n"] for entry in monitor.history] == [8]
    limited = ChannelMonitor()
    module = fit([limited], limit_val_batches=3)
    assert limited.counts().tolist() == table(*module.truth[-2:])
    assert limited.history[-1]["all/n"] == 24


def test_validating_does_not_move_the_references() -> None:
    monitor = ChannelMonitor(references=("previous", "first"))
    train, validation = loaders()
    module, trainer = make_module(LIGHTNING), make_trainer(LIGHTNING, [monitor])
    trainer.fit(module, train, validation)
    trainer.validate(module, validation, verbose=False)
    # The same weights twice: nothing moved against the last epoch of the fit.
    assert monitor.counts().tolist() == table(module.truth[2], module.truth[2])
    trainer.validate(module, validation, verbose=False)
    assert monitor.counts("first").tolist() == table(module.truth[0], module.truth[2])


def test_every_nth_validation_is_watched() -> None:
    monitor = ChannelMonitor(every_n_validations=2)
    module = fit([monitor], max_epochs=5)
    assert [entry["epoch"] for entry in monitor.history] == [0, 2, 4]
    assert monitor.counts().tolist() == table(module.truth[2], module.truth[4])


def test_a_validation_outside_of_fit_is_always_watched_and_counts_for_nothing() -> None:
    monitor = ChannelMonitor(every_n_validations=2)
    train, validation = loaders()
    module = make_module(LIGHTNING)
    make_trainer(LIGHTNING, [monitor], max_epochs=1).fit(module, train, validation)
    for _ in range(2):
        make_trainer(LIGHTNING, [monitor]).validate(module, validation, verbose=False)
    assert len(monitor.history) == 3
    make_trainer(LIGHTNING, [monitor], max_epochs=2).fit(module, train, validation)
    assert [entry["epoch"] for entry in monitor.history[3:]] == [1], "the second and the fourth validation are skipped"


def test_a_resumed_fit_goes_on_where_it_stood(tmp_path: Path) -> None:
    def monitors() -> list[Any]:
        return [ChannelMonitor(slices="target", references=("previous", "best")), SignificanceMonitor(window=3)]

    whole = monitors()
    straight = fit(whole, max_epochs=4)
    halves = monitors()
    train, validation = loaders()
    trainer = make_trainer(LIGHTNING, halves, max_epochs=2)
    trainer.fit(make_module(LIGHTNING), train, validation)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    fresh = monitors()
    module = make_module(LIGHTNING)
    # A loader whose generator stands where the first half left it.
    make_trainer(LIGHTNING, fresh, max_epochs=4).fit(
        module, train, validation, ckpt_path=tmp_path / "half.ckpt", weights_only=True
    )
    assert module.truth == straight.truth[2:]
    for resumed, reference in zip(fresh, whole, strict=True):
        for found, expected in zip(resumed.history, reference.history, strict=True):
            assert found == pytest.approx(expected, nan_ok=True)


def test_training_is_bit_identical_with_and_without_monitors() -> None:
    weights = []
    for monitors in ([], [ChannelMonitor(slices="target"), SignificanceMonitor()]):
        torch.manual_seed(3)
        module = fit(monitors, make_module(LIGHTNING, dropout=0.5))
        weights.append([parameter.detach().clone() for parameter in module.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("package", PACKAGES)
def test_several_loggers_get_the_values(package: str, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pl = PACKAGES[package]
    csv = pl.loggers.CSVLogger(tmp_path, name="csv")
    board = pl.loggers.TensorBoardLogger(tmp_path, name="board")
    monitor = ChannelMonitor(slices="target", custom_scalars=True)
    fit([monitor, SignificanceMonitor()], package=pl, logger=[csv, board], log_every_n_steps=1)
    events = EventAccumulator(board.log_dir)
    events.Reload()
    deltas = [event.value for event in events.Scalars("channel/all/delta")]
    assert deltas == pytest.approx([entry["all/delta"] for entry in monitor.history], abs=1e-7)
    assert "channel/phase_plane" in events.Tags()["images"]
    assert "channel/table/text_summary" in events.Tags()["tensors"]
    assert "custom_scalars__config__" in events.Tags()["tensors"]
    assert "significance/all/p_value" in (Path(csv.log_dir) / "metrics.csv").read_text()


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(images(20))


def bad_runs() -> list[Any]:
    def silent(*_: Any) -> None:
        return None

    def loss_only(module: Any, batch: Any, logits: Tensor, y: Tensor) -> Tensor:
        return logits.sum()

    def short(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits[:-1], y[:-1])

    def twice(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits, y)
        observe(logits, y)

    def half_right(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(correct=torch.full((len(y),), 0.5))

    def outside(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits, y + CLASSES)

    def per_pixel(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits[:, :, None], y[:, None])

    def binary(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits[:, 0], (y > 0).float())

    shuffled = DataLoader(images(), batch_size=8, shuffle=True)
    return [
        ("nothing.*Add observe", {"step": silent}),
        ("returned a Tensor", {"step": loss_only}),
        ("batch 0 has 8 samples, but 7 outcomes", {"step": short}),
        ("called 2 times", {"step": twice}),
        ("binary", {"step": half_right}),
        (r"targets must lie in \[0, 3\)", {"step": outside}),
        ("one outcome an element", {"step": per_pixel}),
        ("threshold=", {"step": binary}),
        ("RandomSampler", {"loader": shuffled}),
        ("IterableDataset", {"loader": DataLoader(Stream(), batch_size=5)}),
        ('"id" reads a batch that is a mapping', {"monitor": {"ids": "id"}}),
        ("slices has 59 labels, but the validation set has 60 samples", {"monitor": {"slices": ["x"] * 59}}),
        ("slices has 10 labels", {"monitor": {"slices": ["x"] * 10, "ids": in_order()}}),
        ("'all' is reserved", {"monitor": {"slices": slices_by_row("all")}}),
        ("would share the tag", {"monitor": {"slices": slices_by_row("a|b", "a+b")}}),
        ("more than 5;", {"monitor": {"slices": slices_by_row(*"abcdef"), "max_slices": 5}}),
    ]


def in_order() -> Any:
    """Ids from 0 on, whatever the batch."""
    numbers = itertools.count()
    return lambda batch: [next(numbers) for _ in batch[1]]


def slices_by_row(*names: str) -> Any:
    return lambda batch: [names[row % len(names)] for row in range(len(batch[1]))]


@pytest.mark.parametrize(("message", "how"), bad_runs())
def test_what_a_monitor_lacks_is_said_before_anything_is_kept(message: str, how: dict[str, Any]) -> None:
    monitor = ChannelMonitor(**how.get("monitor", {}))
    module = make_module(LIGHTNING, how.get("step"))
    with pytest.raises(ValueError, match=message):
        fit([monitor], module, how.get("loader"))
    assert module.trainer.global_step == 0, "before anything is trained"
    assert monitor.history == []
    assert not monitor._references


def test_a_missing_batch_key_lists_what_there_is() -> None:
    loader = DataLoader(Keyed(), batch_size=7)
    with pytest.raises(ValueError, match=r'"sample" is not in the batch, whose keys are .*id.*site'):
        fit([ChannelMonitor(ids="sample")], loader=loader)


def test_a_reordered_data_set_is_noticed() -> None:
    monitor = ChannelMonitor()
    train, validation = loaders()
    module, trainer = make_module(LIGHTNING), make_trainer(LIGHTNING, [monitor])
    trainer.fit(module, train, validation)
    with pytest.raises(ValueError, match="the data set changed"):
        trainer.validate(module, DataLoader(images(60, seed=2), batch_size=8), verbose=False)


def test_an_error_in_a_step_leaves_no_listener_behind() -> None:
    from polyweave_torch.callbacks._observe import _listening

    def failing(*_: Any) -> None:
        raise RuntimeError("the step fails")

    with pytest.raises(RuntimeError, match="the step fails"):
        fit([ChannelMonitor()], make_module(LIGHTNING, failing))
    assert _listening.get() is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ChannelMonitor("tap"), "outcomes"),
        (lambda: ChannelMonitor(references=()), "references"),
        (lambda: ChannelMonitor(references=("last",)), "references"),  # type: ignore[arg-type]
        (lambda: ChannelMonitor(every_n_validations=0), "every_n_validations"),
        (lambda: SignificanceMonitor(reference="best"), "selected for luck"),  # type: ignore[arg-type]
        (lambda: SignificanceMonitor(window=1), "window"),
        (lambda: SignificanceMonitor(alpha=0), "alpha"),
        (lambda: SignificanceMonitor(method="luck"), "method must be one of"),  # type: ignore[arg-type]
        (lambda: SignificanceMonitor(slices=["all", "b"]), "'all' is reserved"),
        (lambda: ChannelMonitor(slices=["cochran_q", "b"]), "'cochran_q' is reserved"),
        (lambda: ChannelMonitor(slices=["", "b"]), "'' is reserved"),
        (lambda: ChannelMonitor(slices=["a|b", "a+b"]), "would share the tag"),
        (lambda: ChannelMonitor(slices=[str(i) for i in range(60)]), "60 slices, more than 50.*max_slices="),
        (lambda: ChannelMonitor(max_slices=0), "max_slices"),
        (lambda: ChannelMonitor(confidence=1.5), "confidence must lie strictly between 0 and 1"),
        (lambda: ChannelMonitor(references="previous"), r'must be a tuple, such as \("previous",\)'),  # type: ignore[arg-type]
        (lambda: ChannelMonitor(outcomes=3), "outcomes must be one of"),  # type: ignore[arg-type]
        (lambda: ChannelMonitor(ids=[1, 2]), "ids must be a key of the batch or a function"),  # type: ignore[arg-type]
        (lambda: ChannelMonitor(threshold=math.nan), "threshold must be a number"),
        (lambda: ChannelMonitor(name=""), "name must be"),
        (lambda: PiScaleMonitor(name="p+q(1)"), "name must be"),
        (lambda: PiScaleMonitor(modules="net.0"), r"such as \['net.0'\]"),
        (lambda: EnsembleMonitor(0, 3), "num_members"),
        (lambda: EnsembleMonitor(3, 0), "num_classes"),
        (lambda: EnsembleMonitor(3, 3, votes=None), "votes must be"),  # type: ignore[arg-type]
        (lambda: EnsembleMonitor(3, 3, target=1), "target must be"),  # type: ignore[arg-type]
        (lambda: PairedEarlyStopping(ids=1), "ids must be"),  # type: ignore[arg-type]
        (lambda: observe(torch.zeros(3)), "preds with target"),
    ],
)
def test_settings_are_checked_at_once(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    "build",
    [
        ChannelMonitor,
        SignificanceMonitor,
        PairedEarlyStopping,
        PiScaleMonitor,
        functools.partial(EnsembleMonitor, 3, 3),
    ],
)
def test_two_monitors_of_one_class_keep_their_own_state(build: Any) -> None:
    assert build().state_key == build().state_key
    assert build().state_key != build(name="other").state_key


def test_ignored_targets_are_left_out() -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits, y.masked_fill(y == 2, -100))

    monitor = ChannelMonitor(ignore_index=-100)
    fit([monitor], make_module(LIGHTNING, step))
    kept = int((images(60, seed=1).tensors[1] != 2).sum())
    assert monitor.history[-1]["all/n"] == kept


def test_a_step_without_any_monitor_may_observe() -> None:
    module = fit([])
    assert len(module.truth) == 3


def test_many_validations_an_epoch() -> None:
    monitor = ChannelMonitor()
    module = fit([monitor], val_check_interval=1, max_epochs=1, limit_train_batches=3)
    assert len(monitor.history) == len(module.truth) == 3
    assert [entry["step"] for entry in monitor.history] == [0, 1, 2]
    assert monitor.counts().tolist() == table(*module.truth[-2:])
