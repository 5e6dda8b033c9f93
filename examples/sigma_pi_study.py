"""Does a net gain by a multiplicative branch? The same net, from the same start, with and without it.

Recruitment is not accuracy: in all three pairs the gate grew and the product moves most of what the block puts out, but
the predictions changed on 3 % of the images only, about as often for the better as for the worse.
"""

import logging
import warnings

import lightning.pytorch as L
import torch
from polyweave import ConvSigmaPi2d
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from polyweave_torch.callbacks import PiScaleMonitor
from polyweave_torch.functional import channel_counts, estimate_channel, holm_bonferroni, mcnemar

# In float64, whose rounding is too small to change a prediction from one CPU to the next.
SETTINGS = {"accelerator": "cpu", "precision": "64-true", "logger": False, "log_every_n_steps": 5}
QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


class Net(L.LightningModule):
    """A Sigma-Pi block and two layers; with the product switched off the block is convolution, batch norm and ReLU."""

    def __init__(self, product: bool) -> None:
        super().__init__()
        self.block = ConvSigmaPi2d(channels=4)
        self.block.pi_enabled = product
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``[N, 10]`` of 8x8 images, folded into 4 channels of 4x4."""
        return self.head(self.block(nn.functional.pixel_unshuffle(images, 2)))

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """Cross entropy."""
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.003)


def train(product: bool, seed: int, data: TensorDataset, epochs: int) -> tuple[Net, PiScaleMonitor]:
    """Train one net; the two nets of a seed have the same start and the same batches."""
    torch.manual_seed(seed)
    net, monitor = Net(product), PiScaleMonitor(branch_energy=True)
    L.Trainer(max_epochs=epochs, callbacks=[monitor], **SETTINGS, **QUIET).fit(net, DataLoader(data, 32, shuffle=True))
    return net.eval(), monitor


def main(seeds: int = 3, epochs: int = 10) -> list[tuple[Tensor, Net, PiScaleMonitor]]:
    """Train a pair of nets for each seed and print what the product changed on the images not trained on."""
    source, studies = load_digits(), []
    # Pixels in [0.1, 1.1]: the logarithm in the product wants them away from 0.
    data = TensorDataset(torch.tensor(source.images[:, None] / 16 + 0.1), torch.tensor(source.target))
    seen, (images, labels) = TensorDataset(*data[:500]), data[500:]
    for seed in range(seeds):
        (plain, _), (net, monitor) = (train(product, seed, seen, epochs) for product in (False, True))
        with torch.inference_mode():
            before, after = (each(images).argmax(1) == labels for each in (plain, net))
        studies.append((channel_counts(before, after), net, monitor))
    tables = torch.stack([counts for counts, _, _ in studies])
    p_values, channel = holm_bonferroni(mcnemar(counts=tables).p_value), estimate_channel(tables)
    print("seed  gate grew  moves output by   plain  Sigma-Pi  corrected  corrupted  p (Holm)")
    for seed, (counts, _, monitor) in enumerate(studies):
        moves = [entry["block/pi_effect_postbn"] for entry in monitor.history if "block/pi_effect_postbn" in entry]
        print(f"{seed:4}{monitor.growth['block']:+11.4f}{moves[-1]:17.0%}{channel.p0[seed]:8.3f}", end="")
        print(f"{channel.p1[seed]:10.3f}{int(counts[0, 1]):11}{int(counts[1, 0]):11}{p_values[seed]:10.2g}")
    return studies


if __name__ == "__main__":
    logging.disable(logging.INFO)  # Lightning's greetings
    warnings.filterwarnings("ignore", ".*(does not have many workers|LeafSpec)")
    main()
