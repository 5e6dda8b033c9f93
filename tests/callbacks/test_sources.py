"""Where slices and ids come from, and how monitors share what they read."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from polyweave_torch.callbacks import ChannelMonitor, EnsembleMonitor, PairedEarlyStopping, SignificanceMonitor, observe
from tests.callbacks.modules import PACKAGES, Keyed, images, loaders, make_module, make_trainer, table

LIGHTNING = PACKAGES["lightning.pytorch"]


def fit(monitors: list[Any], step: Any, loader: Any, **options: Any) -> Any:
    module = make_module(LIGHTNING, step)
    make_trainer(LIGHTNING, monitors, **options).fit(module, loaders()[0], loader)
    return module


def right_by_id(monitor: ChannelMonitor) -> dict[int | str, bool]:
    outcomes = monitor.outcomes()
    return dict(zip(outcomes.ids, outcomes.correct.tolist(), strict=True))


def test_ids_and_slices_may_be_observed_on_a_shuffled_loader() -> None:
    seen: list[dict[int, tuple[bool, str]]] = []

    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        ids = (batch[0][:, 0] * 1e6).long()  # a sample is known by what it holds
        sides = ["left" if side < 0 else "right" for side in batch[0][:, 1].tolist()]
        observe(logits, y, ids=ids, slices=sides)
        if not module.trainer.sanity_checking:
            if len(seen) == len(module.truth):
                seen.append({})
            rows = zip((logits.argmax(1) == y).tolist(), sides, strict=True)
            seen[-1].update(zip(ids.tolist(), rows, strict=True))

    shuffled = DataLoader(images(37, seed=1), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(5))
    monitor = ChannelMonitor()
    fit([monitor], step, shuffled)
    before, after = seen[-2:]
    assert len(after) == 37
    for name in ("left", "right"):
        kept = [key for key, (_, side) in after.items() if side == name]
        assert monitor.counts(slice=name).tolist() == table([before[k][0] for k in kept], [after[k][0] for k in kept])
    assert torch.equal(monitor.counts(slice="left") + monitor.counts(slice="right"), monitor.counts())


def test_slices_may_be_a_function_of_the_batch() -> None:
    monitor = ChannelMonitor(slices=lambda batch: (batch[0][:, 0] > 0).tolist())
    module = fit([monitor], None, DataLoader(images(37, seed=1), batch_size=8))
    positive = (images(37, seed=1).tensors[0][:, 0] > 0).tolist()
    before, after = ([right for right, p in zip(truth, positive, strict=True) if p] for truth in module.truth[-2:])
    assert monitor.counts(slice="True").tolist() == table(before, after)


def test_a_slice_that_is_absent_later_is_nan_in_a_full_band() -> None:
    validations = itertools.count()
    monitor = ChannelMonitor(slices=lambda batch: ["rare" if next(validations) < 1 else "usual"] * len(batch[1]))
    significance = SignificanceMonitor(slices=monitor._slices)
    # One batch a validation: only the first one has the rare slice.
    fit([monitor, significance], None, DataLoader(images(20, seed=1), batch_size=20), num_sanity_val_steps=0)
    first, later = monitor.history[0], monitor.history[-1]
    assert (first["rare/n"], later["rare/n"], later["usual/n"]) == (20, 0, 20)
    assert all(math.isnan(later[f"rare/{rate}"]) for rate in ("c", "gamma", "delta"))
    for rate in ("c", "gamma"):
        assert (later[f"channel_bounds/rare/{rate}_low"], later[f"channel_bounds/rare/{rate}_high"]) == (0, 1)
    assert math.isnan(significance.history[-1]["rare/p_value"])
    assert later["rare/quadrant"] == 2


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(Keyed(text_ids=True))


def test_a_stream_with_ids_is_watched() -> None:
    monitor = ChannelMonitor(ids="id")
    module = fit([monitor], None, DataLoader(Stream(), batch_size=7))
    assert monitor.counts().tolist() == table(*module.truth[-2:])
    assert set(right_by_id(monitor)) == {f"item-{index}" for index in range(30)}


def test_monitors_that_read_outcomes_alike_read_them_once_whatever_their_slices() -> None:
    batches = 0

    def outcomes(module: Any, batch: Any, outputs: Any) -> tuple[Tensor, Tensor]:
        nonlocal batches
        batches += 1
        return module(batch[0]), batch[1]

    sites = ["ab"[index % 2] for index in range(37)]
    by_site, by_target = (
        ChannelMonitor(outcomes, slices=sites),
        ChannelMonitor(outcomes, slices="target", name="target"),
    )
    plain = SignificanceMonitor(outcomes), PairedEarlyStopping(outcomes=outcomes, patience=99)
    module = fit(
        [by_site, by_target, *plain],
        lambda *_: None,
        DataLoader(images(37, seed=1), batch_size=8),
        num_sanity_val_steps=0,
    )
    assert batches == 3 * 5
    before, after = module.truth[-2:]
    assert by_site.counts(slice="a").tolist() == table(before[::2], after[::2])
    target = images(37, seed=1).tensors[1].tolist()
    rows = [row for row, label in enumerate(target) if label == 2]
    assert by_target.counts(slice="2").tolist() == table([before[r] for r in rows], [after[r] for r in rows])
    assert set(plain[0].history[-1]) >= {"all/p_value", "cochran_q/q"}
    assert not any("a/" in key for key in plain[0].history[-1] if not key.startswith("all"))


def test_a_monitor_without_slices_of_its_own_takes_any_number_of_observed_ones() -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        rows = torch.arange(len(y)) + 100 * (batch[0][0, 0] > 9)
        observe(logits, y, votes=logits.argmax(1)[:, None], slices=rows)

    loader = DataLoader(images(60, seed=1), batch_size=60)
    ensemble = EnsembleMonitor(1, 3)
    fit([ensemble, ChannelMonitor(max_slices=60)], step, loader)
    assert len(set(ensemble.outcomes().slice)) == 60
    with pytest.raises(ValueError, match=r"60 slices, more than 50; .* raise max_slices="):
        fit([ChannelMonitor()], step, loader)


def test_nothing_of_a_validation_stays_on_the_device() -> None:
    monitor = ChannelMonitor()
    fit([monitor], None, DataLoader(images(37, seed=1), batch_size=8))
    capture = monitor._capture
    assert capture is not None
    assert capture.batches() == [5]
    assert [stream.rows for stream in capture._streams] == [[]]


def test_an_error_in_one_evaluation_leaves_nothing_to_the_next() -> None:
    def failing(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits, y)
        if fails and len(y) < 8:  # the last batch
            raise RuntimeError("the step fails")

    channel, significance = ChannelMonitor(), SignificanceMonitor(slices="target")
    loader = DataLoader(images(37, seed=1), batch_size=8)
    trainer, module = make_trainer(LIGHTNING, [channel, significance]), make_module(LIGHTNING, failing)
    fails = True
    with pytest.raises(RuntimeError, match="the step fails"):
        trainer.validate(module, loader, verbose=False)
    fails = False
    trainer.validate(module, loader, verbose=False)
    assert channel.history[-1]["all/n"] == 37
    assert significance.history[-1]["all/discordant"] == 0


class Turns(Keyed):
    """Several turns of one conversation, which share its id."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**super().__getitem__(index), "uid": f"q{index % 100}", "turn": index // 100}


def test_an_id_that_names_several_samples_is_refused_and_the_advice_works() -> None:
    loader = DataLoader(Turns(450), batch_size=50)
    message = r"ids name 100 samples in 450 rows, for instance 'q\d+' 5 times; an id must name one sample\. Join the "
    with pytest.raises(ValueError, match=message):
        fit([ChannelMonitor(ids="uid")], None, loader)
    joined = ChannelMonitor(ids=lambda batch: [f"{u}/{k}" for u, k in zip(batch["uid"], batch["turn"], strict=True)])
    module = fit([joined], None, loader)
    assert joined.counts().tolist() == table(*module.truth[-2:])


def test_an_id_of_rows_that_are_left_out_may_repeat() -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(logits, y.masked_fill(torch.arange(len(y)) >= 5, -100))

    monitor = ChannelMonitor(ignore_index=-100, ids=lambda batch: batch["id"].masked_fill(torch.arange(10) >= 5, 0))
    fit([monitor], step, DataLoader(Keyed(), batch_size=10))
    assert monitor.history[-1]["all/n"] == 15


@pytest.mark.parametrize("number", [59, 61])
def test_slices_by_sample_must_be_as_many_as_the_samples(number: int) -> None:
    for run, stage in (("validate", "validation"), ("test", "test")):
        trainer, module = make_trainer(LIGHTNING, [ChannelMonitor(slices=["x"] * number)]), make_module(LIGHTNING)
        module.test_step = module.validation_step
        message = rf"slices has {number} labels, but the {stage} set has 60 samples; .* labels\[subset.indices\]"
        with pytest.raises(ValueError, match=message):
            getattr(trainer, run)(module, loaders()[1], verbose=False)


def test_labels_by_sample_are_those_of_one_data_set() -> None:
    labels = ["ab"[row % 2] for row in range(60)]
    monitor, module = ChannelMonitor(slices=labels), make_module(LIGHTNING)
    module.test_step = module.validation_step
    trainer = make_trainer(LIGHTNING, [monitor])
    trainer.fit(module, *loaders())
    said = (
        r"for the validation set so far and for the test set now; where these are two data sets, give the test set a "
    )
    with pytest.warns(UserWarning, match=said):
        trainer.test(module, loaders()[1], verbose=False)
    assert monitor.history[-1]["channel_test/a/n"] == 30
    with pytest.warns(UserWarning, match=said), pytest.raises(ValueError, match="60 labels, but the test set has 30"):
        trainer.test(module, DataLoader(images(30, seed=7), batch_size=8), verbose=False)
    own = ChannelMonitor(slices=labels[:30])
    make_trainer(LIGHTNING, [own]).test(module, DataLoader(images(30, seed=7), batch_size=8), verbose=False)
    assert own.history[-1]["channel_test/a/n"] == 15


def test_keys_of_the_batch_given_as_a_list_are_told_from_labels() -> None:
    advice = r'cross them: slices=lambda batch: \[f"\{a\}/\{b\}" for a, b in zip\(batch\["site"\], batch\["y"\]\)\]'
    for ids in (None, "id"):
        with pytest.raises(ValueError, match=f"slices has 2 labels.*{advice}"):
            fit([ChannelMonitor(ids=ids, slices=["site", "y"])], None, DataLoader(Keyed(), batch_size=7))
    crossed = ChannelMonitor(slices=lambda batch: [f"{a}/{b}" for a, b in zip(batch["site"], batch["y"], strict=True)])
    fit([crossed], None, DataLoader(Keyed(), batch_size=7))
    expected = {f"{'ab'[row % 2]}/{label}" for row, label in enumerate(images(30).tensors[1].tolist())}
    assert set(crossed.outcomes().slice) == expected


def test_a_batch_that_is_not_observed_is_named() -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        if len(y) == 8:
            observe(logits, y)

    with pytest.raises(ValueError, match="batch 4 did not call observe, though an earlier one did; call it in every"):
        fit([ChannelMonitor()], step, DataLoader(images(37), batch_size=8), num_sanity_val_steps=-1)


def test_swapped_arguments_are_guessed() -> None:
    def step(module: Any, batch: Any, logits: Tensor, y: Tensor) -> None:
        observe(y, logits)

    with pytest.raises(
        ValueError, match=r"shape \[8\] with targets of shape \[8, 3\].*did you swap preds and target\?"
    ):
        fit([ChannelMonitor()], step, DataLoader(images(37), batch_size=8))
