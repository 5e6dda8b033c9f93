"""Is one ensemble better than another, and by what: better members, or members that err apart?

Five dense nets against five convolutional ones on handwritten digits. The convolutional members are worse on their own
and err on different images, so that their vote wins by more and comes out ahead; the lead is no more than chance.
"""

from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from polyweave_torch import PairedOutcomes, functional

CLASSES, TRAIN = 10, 300


def dense() -> nn.Module:
    """One hidden layer: 2,410 weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def convolutional() -> nn.Module:
    """Two convolutions: 1,898 weights."""
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, CLASSES))


def train(build: Callable[[], nn.Module], seed: int, images: Tensor, labels: Tensor, epochs: int) -> nn.Module:
    """Train one member in float64, whose rounding is too small to change a prediction from one CPU to the next."""
    torch.manual_seed(seed)
    net = build().double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(30):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    return net


def main(members: int = 5, epochs: int = 25) -> dict[str, Tensor]:
    """Train both ensembles, describe them, and test their votes against each other: classes ``[M, N]`` by ensemble."""
    digits = load_digits()
    images, labels = torch.tensor(digits.images[:, None] / 16), torch.tensor(digits.target)
    target, preds = labels[TRAIN:], {}
    for name, build in {"dense": dense, "convolutional": convolutional}.items():
        nets = [train(build, seed, images[:TRAIN], labels[:TRAIN], epochs) for seed in range(members)]
        with torch.inference_mode():
            preds[name] = torch.stack([net(images[TRAIN:]).argmax(1) for net in nets])
    rows = {
        "mean member's accuracy": lambda p: functional.mean_accuracy(p, target),
        "accuracy of the vote": lambda p: functional.ensemble_accuracy(p, target),
        "gain of voting": lambda p: functional.ensemble_gain(p, target),
        "not unanimous": functional.disagreement_rate,
        "two members differ": functional.pairwise_disagreement,
        "just one of two is right": lambda p: functional.oracle_disagreement(p, target),
        "both of two are wrong": lambda p: functional.diversity(functional.outcome_gram((p == target).T)).double_fault,
        "kappa of correctness": lambda p: functional.diversity(functional.outcome_gram((p == target).T)).kappa,
    }
    print(f"{f'of {len(target)} images':26}" + "".join(f"{name:>15}" for name in preds))
    for row, measure in rows.items():
        print(f"{row:26}" + "".join(f"{measure(p):15.3f}" for p in preds.values()))
    votes = PairedOutcomes(num_conditions=2)
    votes.update(torch.stack([functional.majority_vote(p, CLASSES) == target for p in preds.values()], 1))
    table = votes.compute()[0, 1]
    gain, test = functional.paired_difference_interval(table), votes.mcnemar().result
    print(f"\nThe votes: corrected {int(table[0, 1])}, corrupted {int(table[1, 0])} of {len(target)}, a difference of")
    print(
        f"{gain.estimate:+.4f}, 95 % interval {gain.low:+.4f} to {gain.high:+.4f}, McNemar's p = {test.p_value[0]:.2g}"
    )
    return preds


if __name__ == "__main__":
    main()
