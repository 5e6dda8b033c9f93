"""Modules in the style of public ones, unchanged or with one line: exact numbers, or an error that says why not."""

import warnings
from typing import Any

import lightning.pytorch as L
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import BinaryAccuracy, MulticlassAccuracy, MulticlassF1Score, MultilabelAccuracy

from polyweave_torch import ChannelCounts, OutcomeMemory
from polyweave_torch.callbacks import ChannelMonitor, EnsembleMonitor, observe
from tests.callbacks.modules import CLASSES, Keyed, images, make_trainer, table

N = 43  # an uneven last batch, and with batches of 6 one of a single sample


class Base(L.LightningModule):
    """Keeps its own truth: outcomes by sample, in order of the data set, for every validation of the fit."""

    def __init__(self, outputs: int = CLASSES) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, outputs))
        self.truth: list[list[bool]] = []
        self.seen: list[bool] = []

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
        return nn.functional.cross_entropy(self.net(x)[:, :CLASSES], y)

    def keep(self, right: Tensor) -> None:
        self.seen += right.tolist()

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.truth.append(self.seen)
        self.seen = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)


class OneMetric(Base):
    """Returns nothing, updates one metric: half of what is public."""

    def __init__(self) -> None:
        super().__init__()
        self.accuracy = MulticlassAccuracy(CLASSES)
        self.loss = MeanMetric()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logits = self.net(x)
        self.keep(logits.argmax(1) == y)
        self.loss(nn.functional.cross_entropy(logits, y))
        self.accuracy(logits, y)
        self.log("accuracy", self.accuracy)


class LossOnly(Base):
    """Returns a bare loss; the one added line is observe."""

    def validation_step(self, batch: Any, batch_idx: int) -> Tensor:
        x, y = batch
        logits = self.net(x)
        self.keep(logits.argmax(1) == y)
        observe(logits, y)
        return nn.functional.cross_entropy(logits, y)


class Dictionary(Base):
    """Returns a dict with predictions."""

    def validation_step(self, batch: Any, batch_idx: int) -> dict[str, Tensor]:
        x, y = batch
        logits = self.net(x)
        self.keep(logits.argmax(1) == y)
        return {"loss": nn.functional.cross_entropy(logits, y), "preds": logits.argmax(1), "target": y}


class HuggingFace(Base):
    """Calls itself with the batch's entries and takes keys out of the batch."""

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.net(x)
        loss = torch.zeros(()) if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}

    def validation_step(self, batch: Any, batch_idx: int) -> dict[str, Tensor]:
        batch.pop("id")
        batch.pop("site")
        labels = batch.pop("y")
        outputs = self(**batch, labels=labels)
        self.keep(outputs["logits"].argmax(1) == labels)
        return {**outputs, "labels": labels}


class TwoHeads(Base):
    """Two heads with a metric each: which counts is not clear until it is said."""

    def __init__(self, *, said: bool) -> None:
        super().__init__(outputs=CLASSES + 2)
        self.said = said
        self.first, self.second = MulticlassAccuracy(CLASSES), MulticlassAccuracy(2)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logits = self.net(x)
        self.first.update(logits[:, :CLASSES], y)
        self.second.update(logits[:, CLASSES:], y % 2)
        self.keep(logits[:, :CLASSES].argmax(1) == y)
        if self.said:
            observe(logits[:, :CLASSES], y)


class SkipsSmallBatches(Base):
    """Does not update its metric for a batch of one."""

    def __init__(self) -> None:
        super().__init__()
        self.accuracy = MulticlassAccuracy(CLASSES)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logits = self.net(x)
        self.keep(logits.argmax(1) == y)
        if len(y) > 1:
            self.accuracy.update(logits, y)


class Collection(Base):
    """A collection whose compute groups update their leaders only, from the second batch on."""

    def __init__(self) -> None:
        super().__init__()
        metrics: dict[str, Any] = {"accuracy": MulticlassAccuracy(CLASSES), "f1": MulticlassF1Score(CLASSES)}
        self.metrics = MetricCollection(metrics, prefix="val_")

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logits = self.net(x)
        self.keep(logits.argmax(1) == y)
        self.metrics.update(logits, y)

    def on_validation_epoch_end(self) -> None:
        self.metrics.reset()
        super().on_validation_epoch_end()


class SortsItsBatch(Base):
    """Sorts its batch by target, so that its rows are no longer the loader's."""

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        order = y.argsort(stable=True)
        x, y = x[order], y[order]
        observe(self.net(x), y)


class Binary(Base):
    """A binary metric, which knows its threshold and whether it got logits."""

    def __init__(self) -> None:
        super().__init__()
        self.accuracy = BinaryAccuracy(threshold=0.4)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logit = self.net(x)[:, 0]
        self.keep((logit.sigmoid() > 0.4) == (y > 0))
        self.accuracy(logit, (y > 0).long())


class Multilabel(Base):
    """A multi-label metric: a sample is right where all its labels are."""

    def __init__(self) -> None:
        super().__init__()
        self.accuracy = MultilabelAccuracy(num_labels=2)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        probs, labels = self.net(x)[:, :2].sigmoid(), torch.stack([y > 0, y > 1], 1).long()
        self.keep(((probs > 0.5).long() == labels).all(1))
        self.accuracy.update(probs, labels)


class IgnoresPadding(Base):
    """A metric that leaves a class out."""

    def __init__(self) -> None:
        super().__init__()
        self.accuracy = MulticlassAccuracy(CLASSES, ignore_index=2)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        logits = self.net(x)
        self.keep((logits.argmax(1) == y)[y != 2])
        self.accuracy.update(logits, y)


def run(module: Base, *, keyed: bool = False, batch_size: int = 6, **options: Any) -> ChannelMonitor:
    monitor = ChannelMonitor(**options)
    data: Any = Keyed(N) if keyed else images(N, seed=1)
    train: Any = Keyed(60) if keyed else images(60)
    trainer = make_trainer(L, [monitor], max_epochs=4)
    trainer.fit(module, DataLoader(train, batch_size=16), DataLoader(data, batch_size=batch_size))
    return monitor


@pytest.mark.parametrize(
    "build",
    [OneMetric, LossOnly, Dictionary, Collection, Binary, Multilabel, IgnoresPadding, lambda: TwoHeads(said=True)],
)
def test_modules_as_they_are_give_exact_counts(build: Any) -> None:
    module = build()
    monitor = run(module)
    assert len(module.truth) == len(monitor.history) == 4
    assert monitor.counts().tolist() == table(*module.truth[-2:])


def test_a_step_that_pops_keys_gives_exact_counts_by_the_batches_ids() -> None:
    module = HuggingFace()
    monitor = run(module, keyed=True, ids="id", slices="site")
    assert monitor.counts().tolist() == table(*module.truth[-2:])
    even = [row for row in range(N) if row % 2 == 0]
    before, after = ([epoch[row] for row in even] for epoch in module.truth[-2:])
    assert monitor.counts("previous", "a").tolist() == table(before, after)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TwoHeads(said=False), "'first' and 'second' saw different data"),
        (SkipsSmallBatches, "'accuracy' was updated 0 times in this batch"),
        (SortsItsBatch, "in another order than the batch"),
        (Base, "no outcomes found: validation_step returned nothing"),
    ],
)
def test_what_can_not_be_read_says_so(build: Any, message: str) -> None:
    module = build()
    if type(module) is Base:
        setattr(module, "validation_step", lambda batch, batch_idx: None)  # noqa: B010
    with pytest.raises(ValueError, match=message):
        run(module)


def tapped(module: Any) -> bool:
    return "_Wires" in module.accuracy.update.__code__.co_qualname


def test_the_metrics_are_given_back_and_count_as_without_us() -> None:
    values = []
    for monitors in ([], [ChannelMonitor(), ChannelMonitor(slices="target", name="other")]):
        module = OneMetric()
        trainer = make_trainer(L, monitors, max_epochs=2)
        trainer.fit(module, DataLoader(images(60), batch_size=16), DataLoader(images(N, seed=1), batch_size=6))
        assert not tapped(module)
        values.append(float(trainer.callback_metrics["accuracy"]))
    assert values[0] == values[1]


def test_a_failing_step_gives_the_metrics_back() -> None:
    class Fails(OneMetric):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            assert tapped(self)
            raise RuntimeError("the step fails")

    module = Fails()
    with pytest.raises(RuntimeError, match="the step fails"):
        run(module)
    assert not tapped(module)


def test_filtered_rows_are_noticed() -> None:
    class Filters(OneMetric):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            x, y = batch
            keep = y != 2
            self.accuracy.update(self.net(x)[keep], y[keep])

    with pytest.raises(ValueError, match=r"samples, but \d+ outcomes"):
        run(Filters())


def test_the_source_can_be_named() -> None:
    module = OneMetric()
    assert run(module, outcomes="metric").counts().tolist() == table(*module.truth[-2:])
    with pytest.raises(ValueError, match="did not call observe"):
        run(OneMetric(), outcomes="observe")
    with pytest.raises(ValueError, match="no predictions found"):
        run(OneMetric(), outcomes="outputs")
    with warnings.catch_warnings(), pytest.raises(ValueError, match="none of the module's metrics"):
        run(LossOnly(), outcomes="metric")


def test_slices_may_be_an_array_a_series_or_a_tensor() -> None:
    labels = np.arange(N) % 3
    counts = []
    for slices in (labels, torch.as_tensor(labels), pd.Series(labels, index=range(N, 0, -1)), [str(v) for v in labels]):
        monitor = run(LossOnly(), slices=slices)
        counts.append([monitor.counts("previous", str(k)).tolist() for k in range(3)])
    assert counts[0] == counts[1] == counts[2] == counts[3]


class OwnMetrics(OneMetric):
    """Other metrics beside the one with predictions: means, and this library's own."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.table = OutcomeMemory(N), ChannelCounts()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        _, y = batch
        self.memory.update(torch.arange(len(y)), torch.ones(len(y)))
        self.table.update(torch.ones(len(y)), torch.ones(len(y)))
        self.loss.update(torch.ones(()), torch.tensor(len(y)))
        super().validation_step(batch, batch_idx)


def test_metrics_without_predictions_are_not_read() -> None:
    module = OwnMetrics()
    assert run(module).counts().tolist() == table(*module.truth[-2:])
    del module.accuracy

    class OnlyOwn(OwnMetrics):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.memory.update(torch.arange(len(batch[1])), torch.ones(len(batch[1])))

    with pytest.raises(ValueError, match="no outcomes found"):
        run(OnlyOwn())


def test_a_metric_of_the_top_classes_is_refused() -> None:
    class TopTwo(OneMetric):
        def __init__(self) -> None:
            super().__init__()
            self.accuracy = MulticlassAccuracy(CLASSES, top_k=2)

    with pytest.raises(ValueError, match="counts the top 2 classes as right"):
        run(TopTwo())


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda logits, y: [logits, None], "must be a tensor with one row a sample"),
        (lambda logits, y: None, "must be a tensor with one row a sample"),
        (lambda logits, y: (None, y), "preds must be a tensor"),
    ],
)
def test_a_function_that_gives_no_outcomes_is_told_what_to_give(give: Any, message: str) -> None:
    def outcomes(module: Any, batch: Any, outputs: Any) -> Any:
        return give(module.net(batch[0]), batch[1])

    with pytest.raises(TypeError, match=message):
        run(LossOnly(), outcomes=outcomes)


def test_lists_and_arrays_are_outcomes_too() -> None:
    class Lists(Base):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            x, y = batch
            classes = self.net(x).argmax(1)
            self.keep(classes == y)
            observe(classes.numpy(), y.tolist()) if batch_idx % 2 else observe(correct=(classes == y).tolist())

    module = Lists()
    assert run(module).counts().tolist() == table(*module.truth[-2:])


def test_a_model_that_diverged_is_wrong_not_class_zero() -> None:
    class Diverged(Base):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            x, y = batch
            observe(self.net(x) * torch.nan, y)

    assert run(Diverged()).counts().tolist() == [[N, 0], [0, 0]]


def test_votes_and_a_metric_serve_their_own_monitors() -> None:
    class Both(OneMetric):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            super().validation_step(batch, batch_idx)
            observe(votes=torch.zeros(len(batch[1]), 2).long(), target=batch[1])

    module, ensemble, channel = Both(), EnsembleMonitor(2, CLASSES), ChannelMonitor()
    trainer = make_trainer(L, [ensemble, channel], max_epochs=2)
    trainer.fit(module, DataLoader(images(60), batch_size=16), DataLoader(images(N, seed=1), batch_size=6))
    assert channel.counts().tolist() == table(*module.truth)
    assert ensemble.history[-1]["disagreement"] == 0.0
