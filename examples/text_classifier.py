"""Which questions does a text classifier learn to tell apart, short or long ones, and which does it lose again?

Written as for ``transformers``: batches are dicts, ``self(**batch)`` gives ``.loss`` and ``.logits``. Of 200 real MMLU
questions (Hendrycks et al., MIT licence) it leaves a third of the short ones wrong throughout, and few of the others.
"""

import json
import logging
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import lightning.pytorch as L
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from polyweave_torch.callbacks import ChannelMonitor

LOGS = Path(__file__).parents[1] / "tests" / "data" / "evallogs" / "lm_eval" / "mmlu_0shot_vs_5shot" / "before"
SUBJECTS = ("abstract_algebra", "college_computer_science", "high_school_statistics", "machine_learning")
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


class Classifier(L.LightningModule):
    """The mean of the words' vectors and a linear layer, where yours has ``AutoModelForSequenceClassification``."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(4096, 32), nn.Linear(32, len(SUBJECTS))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> SimpleNamespace:
        """An output as that of ``transformers``."""
        logits = self.head((self.words(input_ids) * attention_mask[..., None]).sum(1) / attention_mask.sum(1)[:, None])
        return SimpleNamespace(loss=nn.functional.cross_entropy(logits, labels), logits=logits)

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> Tensor:
        """The model's own loss."""
        return self.validation_step(batch, batch_idx).loss

    def validation_step(self, batch: dict[str, Any], batch_idx: int) -> SimpleNamespace:
        """The model's output, whose logits the monitor reads. It has read the lengths before they are popped."""
        batch.pop("length")
        return self(**batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def collate(docs: list[dict[str, Any]]) -> dict[str, Any]:
    """A batch: words hashed to ids, as a tokenizer's would be; the subject; and how long each question is."""
    tokens = [torch.tensor([crc32(word.encode()) % 4095 + 1 for word in doc["question"].split()]) for doc in docs]
    input_ids = nn.utils.rnn.pad_sequence(tokens, batch_first=True)
    lengths = ["short" if len(ids) < 20 else "medium" if len(ids) < 40 else "long" for ids in tokens]
    labels = torch.tensor([SUBJECTS.index(doc["subject"]) for doc in docs])
    return {"input_ids": input_ids, "attention_mask": (input_ids > 0).long(), "labels": labels, "length": lengths}


def main(epochs: int = 10) -> L.Trainer:
    """Train on every other question, watch on the others, and print what became of them since the first epoch."""
    torch.manual_seed(0)
    docs = [json.loads(line)["doc"] for file in sorted(LOGS.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    train = DataLoader(docs[::2], batch_size=16, shuffle=True, collate_fn=collate)
    channels = ChannelMonitor(slices="length", references=("first",))
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", precision="64-true", callbacks=[channels], **QUIET)
    trainer.fit(Classifier(), train, DataLoader(docs[1::2], batch_size=50, collate_fn=collate))
    for name in ("short", "medium", "long", "all"):
        (wrong, corrected), (corrupted, right) = channels.counts("first", name).tolist()
        print(f"{name:7}{wrong:3} stayed wrong, {corrected:2} corrected, {corrupted} corrupted, {right:2} stayed right")
    return trainer


if __name__ == "__main__":
    logging.disable(logging.INFO)  # Lightning's greetings
    warnings.filterwarnings("ignore", ".*(does not have many workers|LeafSpec)")
    main()
