"""Loaders, loops and interruptions: each row is exact, or an error that names the reason."""

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import pytest
import torch
from lightning.pytorch.utilities import CombinedLoader
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

from polyweave_torch.callbacks import ChannelMonitor, EnsembleMonitor, PairedEarlyStopping, SignificanceMonitor, observe
from polyweave_torch.callbacks._lightning import replayable
from tests.callbacks.modules import PACKAGES, images, loaders, make_module, make_trainer, table


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(images(37, seed=1), **{"batch_size": 8, **options})


@pytest.mark.parametrize(
    ("options", "samples"),
    [
        ({}, 37),
        ({"batch_size": 1}, 37),
        ({"batch_size": None}, 37),
        ({"drop_last": True}, 32),
        ({"num_workers": 2}, 37),
        ({"num_workers": 1, "persistent_workers": True}, 37),
    ],
)
def test_loaders(options: dict[str, Any], samples: int) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        observe(logits, y)

    if options.get("batch_size", 8) is None:

        class OneByOne(torch.utils.data.Dataset[Any]):
            def __len__(self) -> int:
                return 37

            def __getitem__(self, index: int) -> Any:
                x, y = images(37, seed=1)[index]
                return x[None], y[None]

        evaluated: Any = DataLoader(OneByOne(), batch_size=None)
    else:
        evaluated = loader(**options)
    monitor, module = ChannelMonitor(), make_module(L, step)
    make_trainer(L, [monitor]).fit(module, loaders()[0], evaluated)
    assert monitor.history[-1]["all/n"] == samples
    assert monitor.counts().tolist() == table(*module.truth[-2:])


def test_overfitting_batches() -> None:
    monitor, module = ChannelMonitor(), make_module(L)
    train = DataLoader(images(60), batch_size=16)
    make_trainer(L, [monitor], overfit_batches=2).fit(module, train, loader())
    assert monitor.counts().tolist() == table(*module.truth[-2:])


def test_several_loaders_have_their_own_references() -> None:
    channel, significance = ChannelMonitor(slices="target"), SignificanceMonitor()
    by_loader: dict[int, list[list[bool]]] = {0: [], 1: []}

    class Two(type(make_module(L))):  # type: ignore[misc]
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            x, y = batch
            logits = self(x)
            observe(logits, y)
            if not self.trainer.sanity_checking:
                if batch_idx == 0:
                    by_loader[dataloader_idx].append([])
                by_loader[dataloader_idx][-1] += (logits.argmax(1) == y).tolist()

    both = [loader(), DataLoader(images(20, seed=2), batch_size=7)]
    make_trainer(L, [channel, significance]).fit(Two(), loaders()[0], both)
    assert channel.counts().tolist() == table(*by_loader[0][-2:])
    assert channel.counts(loader=1).tolist() == table(*by_loader[1][-2:])
    latest = channel.history[-1]
    assert (latest["all/n"], latest["dl1/all/n"]) == (37, 20)
    assert "dl1/cochran_q/q" in significance.history[-1]
    assert "channel_bounds/dl1/all/c_low" in latest


def test_loaders_that_are_mixed_are_refused() -> None:
    mixed = CombinedLoader([loader(), loader()], mode="min_size")
    with pytest.raises(ValueError, match="mixes 2 of them in mode 'min_size'"):
        make_trainer(L, [ChannelMonitor()]).fit(make_module(L), loaders()[0], mixed)


def test_tests_are_compared_with_tests() -> None:
    monitor = ChannelMonitor()
    module = make_module(L)

    def test_step(batch: Any, batch_idx: int) -> None:
        x, y = batch
        observe(module(x), y)

    module.test_step = test_step
    trainer = make_trainer(L, [monitor])
    trainer.fit(module, *loaders())
    data = images(30, seed=7)
    right = []
    for _ in range(2):
        with torch.no_grad():
            module.net[-1].bias += torch.tensor([0.0, 0.4, 0.0])
            right.append((module(data.tensors[0]).argmax(1) == data.tensors[1]).tolist())
        trainer.test(module, DataLoader(data, batch_size=7), verbose=False)
    latest = monitor.history[-1]
    counts = table(*right)
    assert latest["channel_test/all/n"] == 30
    assert latest["channel_test/all/delta"] == pytest.approx((counts[0][1] - counts[1][0]) / 30)
    assert monitor.counts().tolist() == table(*module.truth[-2:]), "a test leaves the validations' counts"


def test_outcomes_can_be_saved(tmp_path: Path) -> None:
    monitor, module = ChannelMonitor(slices="target"), make_module(L)
    with pytest.raises(ValueError, match="no validation has run yet"):
        monitor.save_outcomes(tmp_path / "none.csv")
    make_trainer(L, [monitor]).fit(module, loaders()[0], loader())
    monitor.save_outcomes(tmp_path / "outcomes.csv")
    with (tmp_path / "outcomes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    data = images(37, seed=1)
    with torch.no_grad():
        prediction = module(data.tensors[0]).argmax(1)
    target = data.tensors[1].tolist()
    assert [int(row["id"]) for row in rows] == list(range(37))
    assert [bool(int(row["correct"])) for row in rows] == module.truth[-1]
    assert [int(row["prediction"]) for row in rows] == prediction.tolist()
    assert [row["slice"] for row in rows] == [str(t) for t in target]


def test_a_validation_that_was_resumed_inside_is_no_reference() -> None:
    monitor, module = ChannelMonitor(), make_module(L)
    trainer = make_trainer(L, [monitor], max_epochs=1)
    trainer.fit(module, loaders()[0], loader())
    # As after resuming inside a validation: fewer batches come than the loop plans.
    stub: Any = Stub(trainer, planned=[5.0])
    monitor._start(stub, module)
    capture = monitor._capture
    assert capture is not None
    capture.before_batch(0, 0, None)
    observe(torch.ones(8, 3), torch.zeros(8).long())
    capture.after_batch(0, 0, module, None, None)
    with pytest.warns(UserWarning, match=r"ran \[1\] of \[5\] batches"):
        assert not monitor._saw_all(stub)
    capture.close()


def test_a_fit_that_resumes_inside_a_validation_goes_on_with_the_reference_before_it(tmp_path: Path) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        if module.trainer.current_epoch == 1 and len(module._seen) == 24:  # the third of five batches
            module.trainer.save_checkpoint(tmp_path / "inside.ckpt")
        observe(logits, y)

    train = DataLoader(images(60), batch_size=16)
    whole, module = ChannelMonitor(), make_module(L, step)
    make_trainer(L, [whole], max_epochs=3).fit(module, train, loader())
    fresh, resumed = ChannelMonitor(), make_module(L)
    trainer = make_trainer(L, [fresh], max_epochs=3)
    with pytest.warns(UserWarning, match=r"ran \[3\] of \[5\] batches .* becomes no reference"):
        trainer.fit(resumed, train, loader(), ckpt_path=tmp_path / "inside.ckpt", weights_only=True)
    assert fresh.history[0] == whole.history[0]
    seen = resumed.truth[0]
    assert seen == module.truth[1][:24], "Lightning starts at the first batch again, and leaves the last ones out"
    (_, n01), (n10, _) = table(module.truth[0][:24], seen)
    assert fresh.history[1]["all/n"] == len(seen)
    assert fresh.history[1]["all/delta"] == pytest.approx((n01 - n10) / len(seen))
    assert resumed.truth[1] == module.truth[2]
    assert fresh.counts().tolist() == table(module.truth[0], module.truth[2])


class Stub:
    """A Trainer in the middle of a validation of five batches."""

    sanity_checking = False

    def __init__(self, trainer: Any, planned: list[float]) -> None:
        self.trainer = trainer
        self.state = type("State", (), {"fn": type("Fn", (), {"value": "validate"})})()
        loop = type("Loop", (), {})()
        loop.max_batches = planned
        loop._combined_loader = type("Combined", (), {"flattened": [loader()], "_mode": "sequential"})()
        self.fit_loop = type("Fit", (), {"epoch_loop": type("Epoch", (), {"val_loop": loop})()})()
        self.validate_loop = self.test_loop = loop


@pytest.mark.parametrize("package", PACKAGES)
def test_the_private_attributes_that_we_use_exist(package: str) -> None:
    trainer = make_trainer(PACKAGES[package], [])
    for loop in (trainer.fit_loop.epoch_loop.val_loop, trainer.validate_loop, trainer.test_loop):
        assert hasattr(loop, "_combined_loader")
        assert isinstance(loop.max_batches, list)
    assert trainer.fit_loop.epoch_loop._batches_that_stepped == 0
    combined = __import__(f"{package}.utilities", fromlist=["CombinedLoader"]).CombinedLoader([loader()], "sequential")
    assert combined._mode == "sequential"
    assert len(combined.flattened) == 1


def test_only_pure_samplers_are_replayed() -> None:
    from lightning.fabric.utilities.distributed import DistributedSamplerWrapper
    from lightning.pytorch.overrides.distributed import UnrepeatedDistributedSampler

    data: Any = images(11)
    pure = [
        SequentialSampler(data),
        DistributedSampler(data, 2, 1, shuffle=True),
        UnrepeatedDistributedSampler(data, 2, 1),
        DistributedSamplerWrapper(SequentialSampler(data), num_replicas=2, rank=1),
    ]
    assert all(replayable(sampler) for sampler in pure)
    for sampler in pure:
        assert list(sampler) == list(sampler)
    random = torch.utils.data.RandomSampler(data)
    assert not replayable(random)
    assert not replayable(DistributedSamplerWrapper(random, num_replicas=2, rank=1))

    class Own(SequentialSampler):
        pass

    assert not replayable(Own(data)), "a subclass may do anything"


def votes_of(module: Any, x: Any) -> Any:
    logits = module(x)
    return torch.stack(
        [logits.argmax(1), (logits + torch.tensor([0.5, 0.0, 0.0])).argmax(1), logits[:, :2].argmax(1)], 1
    )


@pytest.mark.parametrize("how", ["observe", "outputs", "function"])
def test_the_ensemble_monitor_equals_a_loop(how: str) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> Any:
        votes = votes_of(module, batch[0])
        if how == "observe":
            observe(votes=votes, target=y)
        return {"votes": votes, "labels": y} if how == "outputs" else None

    function = (lambda module, batch, outputs: votes_of(module, batch[0])) if how == "function" else "auto"
    monitor = EnsembleMonitor(3, 3, votes=function)
    module = make_module(L, step)
    make_trainer(L, [monitor]).fit(module, loaders()[0], loader())
    data = images(37, seed=1)
    with torch.no_grad():
        votes = votes_of(module, data.tensors[0]).tolist()
    target = data.tensors[1].tolist()
    majority = [min(set(row), key=lambda c: (-row.count(c), c)) for row in votes]
    accuracy = sum(m == t for m, t in zip(majority, target, strict=True)) / 37
    mean = sum(v == t for row, t in zip(votes, target, strict=True) for v in row) / (37 * 3)
    pairs = sum((a != b) + (b != c) + (a != c) for a, b, c in votes) / (37 * 3)
    expected = {
        "accuracy": accuracy,
        "mean_member": mean,
        "gain": accuracy - mean,
        "disagreement": sum(len(set(row)) > 1 for row in votes) / 37,
        "pairwise": pairs,
    }
    latest = {key: value for key, value in monitor.history[-1].items() if key not in ("epoch", "step")}
    assert latest == pytest.approx(expected)


@pytest.mark.parametrize(
    ("give", "error", "message"),
    [
        (lambda votes, y: {"votes": votes.float(), "target": y}, TypeError, "argmax"),
        (lambda votes, y: {"votes": votes[:, :2], "target": y}, ValueError, "one column a member"),
        (lambda votes, y: {"votes": votes + 3, "target": y}, ValueError, r"\[0, 3\)"),
        (
            lambda votes, y: {"votes": votes, "target": y[:, None]},
            ValueError,
            r"target must have shape \[8\], one class for each row of votes, but came with \[8, 1\]; .*squeeze\(1\)",
        ),
        (lambda votes, y: {"votes": votes, "target": "012"}, TypeError, "target must be a tensor"),
    ],
)
def test_bad_votes_are_named(give: Any, error: type[Exception], message: str) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        observe(**give(votes_of(module, batch[0]), y))

    module = make_module(L, step)
    with pytest.raises(error, match=message):
        make_trainer(L, [EnsembleMonitor(3, 3)]).fit(module, loaders()[0], loader())
    assert module.trainer.global_step == 0, "before anything is trained"


@pytest.mark.parametrize("convert", [torch.Tensor.numpy, torch.Tensor.tolist])
def test_votes_and_targets_may_be_arrays_or_lists(convert: Any) -> None:
    def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
        observe(votes=convert(logits.argmax(1)[:, None]), target=convert(y))

    monitor, module = EnsembleMonitor(1, 3), make_module(L, step)
    make_trainer(L, [monitor]).fit(module, loaders()[0], loader())
    assert monitor.history[-1]["accuracy"] == pytest.approx(sum(module.truth[-1]) / 37)


def test_a_step_without_votes_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"no votes: the step returned .*observe\(votes"):
        make_trainer(L, [EnsembleMonitor(3, 3)]).fit(make_module(L, lambda *_: None), loaders()[0], loader())


class Scripted:
    """Outcomes by validation, whatever the model does."""

    def __init__(self, validations: list[list[int]]) -> None:
        self.validations = validations
        self.epoch = -1

    def __call__(self, module: Any, batch: Any, logits: Any, y: Any) -> None:
        if module.trainer.sanity_checking:
            observe(correct=torch.zeros(len(y)))
            return
        self.epoch += 1
        observe(correct=torch.tensor(self.validations[self.epoch]))


def stopped_after(validations: list[list[int]], **options: Any) -> tuple[int, PairedEarlyStopping]:
    monitor = PairedEarlyStopping(**options)
    module = make_module(L, Scripted(validations))
    trainer = make_trainer(L, [monitor], max_epochs=len(validations))
    trainer.fit(module, loaders()[0], DataLoader(images(37, seed=1), batch_size=37))
    return len(monitor.history), monitor


WORSE, BETTER, BEST = [1] * 10 + [0] * 27, [1] * 25 + [0] * 12, [1] * 36 + [0]


def test_early_stopping_waits_for_better_validations() -> None:
    ran, monitor = stopped_after([WORSE] * 8, patience=3)
    assert ran == 4  # the reference, then three that are not better
    assert monitor.wait == 3
    assert "better by more than 0: no; stops training, after 3 in a row against epoch 0" in monitor.tested
    assert (monitor.reference_epoch, monitor.stopped_epoch) == (0, 3)
    assert [entry["wait"] for entry in monitor.history] == [0, 1, 2, 3]


def test_early_stopping_takes_a_fresh_reference_after_an_improvement() -> None:
    # BETTER beats WORSE; the next one becomes the reference whatever it shows, so WORSE again is no failure of waiting.
    ran, monitor = stopped_after([WORSE, WORSE, BETTER, WORSE, BETTER, BETTER, BETTER, BETTER], patience=2)
    assert [entry["wait"] for entry in monitor.history] == [0, 1, 0, 0, 0, 0, 1, 2]
    assert ran == 8
    assert (monitor.reference_epoch, monitor.stopped_epoch) == (5, 7)


def test_a_margin_asks_for_more() -> None:
    slight = [1] * 16 + [0] * 21  # six corrections, none corrupted
    _, without = stopped_after([WORSE, slight], patience=1)
    assert "better by more than 0: yes" in without.tested
    _, with_margin = stopped_after([WORSE, slight], patience=1, margin=0.1)
    assert "better by more than 0.1: no" in with_margin.tested


def test_early_stopping_resumes(tmp_path: Path) -> None:
    monitor = PairedEarlyStopping(patience=3)
    trainer = make_trainer(L, [monitor], max_epochs=2)
    evaluated = DataLoader(images(37, seed=1), batch_size=37)
    train = loaders()[0]
    trainer.fit(make_module(L, Scripted([WORSE, WORSE])), train, evaluated)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    fresh = PairedEarlyStopping(patience=3)
    resumed = make_trainer(L, [fresh], max_epochs=9)
    module = make_module(L, Scripted([WORSE, WORSE, WORSE]))
    resumed.fit(module, train, evaluated, ckpt_path=tmp_path / "half.ckpt", weights_only=True)
    assert [entry["wait"] for entry in fresh.history] == [0, 1, 2, 3]
    assert (fresh.reference_epoch, fresh.stopped_epoch) == (0, 3)


@pytest.mark.parametrize(
    ("inside", "validations", "waits", "reference"),
    [
        (0, [WORSE, BETTER, BETTER, BETTER], [0, 0, 1], 1),
        (1, [WORSE, WORSE, WORSE, WORSE], [0, 0, 1], 0),
        (2, [WORSE, BETTER, WORSE, BETTER, BETTER], [0, 0, 0, 0, 1], 3),
    ],
    ids=["no first reference", "no failure of waiting", "no fresh reference"],
)
def test_early_stopping_decides_nothing_by_a_part_of_a_validation(
    tmp_path: Path, inside: int, validations: list[list[int]], waits: list[int], reference: int
) -> None:
    """A fit that goes on inside of a validation sees 24 of its 37 samples."""

    def steps(first: int) -> Any:
        def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
            number, end = first + len(module.truth), len(module._seen)
            observe(correct=torch.tensor(validations[number][end - len(y) : end]))
            if not first and number == inside and end == 24 and not module.trainer.sanity_checking:
                module.trainer.save_checkpoint(tmp_path / "inside.ckpt")

        return step

    options, train = {"max_epochs": len(validations), "num_sanity_val_steps": 0}, DataLoader(images(60), batch_size=16)
    make_trainer(L, [PairedEarlyStopping(1)], **options).fit(make_module(L, steps(0)), train, loader())
    monitor = PairedEarlyStopping(1)
    with pytest.warns(UserWarning, match=r"ran \[3\] of \[5\] batches"):
        make_trainer(L, [monitor], **options).fit(
            make_module(L, steps(inside)), train, loader(), ckpt_path=tmp_path / "inside.ckpt", weights_only=True
        )
    assert [entry["wait"] for entry in monitor.history] == waits
    assert (monitor.reference_epoch, monitor.stopped_epoch) == (reference, len(waits) - 1)


@pytest.mark.parametrize("options", [{"patience": 0}, {"alpha": 1.0}, {"margin": -0.1}])
def test_early_stopping_settings_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        PairedEarlyStopping(**options)
