"""Trainers on several gloo ranks, a process each: python -m tests.callbacks.ddp_cases RANK WORLD PORT FOLDER."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as L
import torch
from torch import distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from polyweave_torch.callbacks import (
    ChannelMonitor,
    EnsembleMonitor,
    PairedEarlyStopping,
    PiScaleMonitor,
    SignificanceMonitor,
    observe,
)
from tests.callbacks.modules import Keyed, images, make_module, make_trainer

EPOCHS = 3


def step(module: Any, batch: Any, logits: Any, y: Any) -> None:
    votes = torch.stack([logits.argmax(1), (logits + torch.tensor([0.3, 0.0, 0.0])).argmax(1)], 1)
    observe(logits, y, votes=votes)


def trainer_of_ranks(monitors: list[Any], **options: Any) -> Any:
    rank, world, port = sys.argv[1:4]
    # Lightning takes these away at the end of every fit.
    os.environ.update(LOCAL_RANK=rank, WORLD_SIZE=world, NODE_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    return make_trainer(L, monitors, devices=int(world), strategy="ddp_find_unused_parameters_true", **options)


def fit(
    name: str,
    folder: Path,
    loader: Any,
    *,
    ids: str | None = None,
    slices: Any = "target",
    checkpoint: Path | None = None,
    patience: int = 99,
    **options: Any,
) -> Any:
    """Train by a fixed script, so that the weights are the same on every number of ranks."""
    monitors: list[Any] = [
        ChannelMonitor(ids=ids, slices=slices, references=("previous", "first", "best")),
        SignificanceMonitor(ids=ids),
        EnsembleMonitor(2, 3, ids=ids),
        PairedEarlyStopping(patience, ids=ids),
        PiScaleMonitor(every_n_steps=1),
    ]
    module = make_module(L, step)
    # A gate that no step uses or trains: the script moves it.
    module.pi_scale = torch.nn.Parameter(torch.full((3,), -2.0), requires_grad=False)
    module.training_step = lambda batch, batch_idx: module.net[-1].bias.sum() * 0.0

    def shift() -> None:
        with torch.no_grad():
            module.net[-1].bias += torch.tensor([0.4, -0.3, 0.1])
            module.pi_scale += torch.tensor([0.1, 0.2, -0.1])

    module.on_train_epoch_start = shift
    # One training batch an epoch, since gates are logged by the step.
    trainer = trainer_of_ranks(monitors, **{"max_epochs": EPOCHS, "limit_train_batches": 1, **options})
    trainer.fit(module, DataLoader(images(12), batch_size=4), loader, ckpt_path=checkpoint, weights_only=True)
    trainer.validate(module, loader, verbose=False)
    kept: list[Any] = [monitor.history for monitor in monitors]
    for monitor in monitors[:3]:
        kept.append({field: list(values) for field, values in monitor.outcomes()._asdict().items()})
        kept[-1]["correct"] = monitor.outcomes().correct.tolist()
    (folder / f"{name}-{sys.argv[1]}.json").write_text(json.dumps(kept))
    return trainer, module, monitors


def near_tie(module: Any, batch: Any, logits: Any, y: Any) -> None:
    """As ``step``, but one sample is right on the first rank only."""
    tied = batch["id"] == 1005
    observe(torch.where(tied, (y + module.global_rank) % 3, logits.argmax(1)), y)


def refusal(loader: Any, ids: Any, step: Any = step, **options: Any) -> str:
    """What a validation with these ids is refused for, or nothing."""
    trainer = trainer_of_ranks([ChannelMonitor(ids=ids)], **options)
    try:
        trainer.validate(make_module(L, step), loader, verbose=False)
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[4])
    warnings.simplefilter("error")
    for message in (
        "does not have many workers",
        "LeafSpec",
        "The number of training batches",
        "find_unused_parameters",
    ):
        warnings.filterwarnings("ignore", message=f".*{message}")
    # Lightning's advice to evaluate on one device.
    warnings.filterwarnings("ignore", message=".*recommended to use")
    torch.set_num_threads(1)
    data = images(37, seed=1)
    fit("padded", folder, DataLoader(data, batch_size=5))
    fit("one sample", folder, DataLoader(images(1, seed=1), batch_size=5))
    fit("drop_last", folder, DataLoader(images(36, seed=1), batch_size=3 if world == 2 else 2, drop_last=True))
    sampler: Any = DistributedSampler(data, world, rank, shuffle=True, seed=9)
    fit("shuffled", folder, DataLoader(data, batch_size=5, sampler=sampler), use_distributed_sampler=False)
    fit("everywhere", folder, DataLoader(data, batch_size=5), use_distributed_sampler=False)
    # One process makes the checkpoint; every number of ranks goes on from it.
    checkpoint = folder.parent / "two epochs.ckpt"
    if world == 1:
        trainer, *_ = fit("begun", folder, DataLoader(data, batch_size=5), max_epochs=2)
        trainer.save_checkpoint(checkpoint)
    fit("resumed", folder, DataLoader(data, batch_size=5), checkpoint=checkpoint, max_epochs=4)
    fit("keyed", folder, DataLoader(Keyed(31, text_ids=True), batch_size=4), ids="id", slices="site")
    fit("stopped", folder, DataLoader(data, batch_size=5), patience=1, max_epochs=9)
    keyed = DataLoader(Keyed(31, text_ids=True), batch_size=4)
    even = DataLoader(Keyed(30, text_ids=True), batch_size=4)
    refused = {
        "padding": refusal(keyed, "id"),
        "every rank sees all": refusal(keyed, "id", use_distributed_sampler=False),
        "a near tie": refusal(DataLoader(Keyed(31), batch_size=4), "id", step=near_tie, use_distributed_sampler=False),
        "in one rank": refusal(keyed, lambda batch: [f"q{len(key)}" for key in batch["id"]]),
        # Neighbours stand on different ranks, whose own ids are all different.
        "over two ranks": refusal(even, lambda batch: [f"q{int(key[5:]) // 2}" for key in batch["id"]]),
        # As rare as padding, but of another class.
        "another target": refusal(even, lambda batch: ["item-0" if key == "item-5" else key for key in batch["id"]]),
    }
    (folder / f"refused-{rank}.json").write_text(json.dumps(refused))
    # A rank that ends while another still talks to it may abort: they end together.
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
