"""Votes and disagreements of ensembles against torch.mode, histograms, scipy and torch-uncertainty."""

from collections.abc import Sequence
from importlib import import_module
from itertools import combinations, islice, permutations
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from scipy.stats import mode
from torch import Tensor

from benchmarks.workload import Contestant, Goal, Workload, seeded
from polyweave_torch.functional.ensemble import disagreement_matrix, pairwise_disagreement
from polyweave_torch.functional.votes import VoteSummary, majority_vote, vote_summary

_MODE, _DOCUMENT = "torch.mode", "the document's loop"
_MODE_AND_STATISTICS = "torch.mode, the document's statistics"
# Cells of a histogram that a peer may fill at once: half a GiB. It does as many samples as fit.
_CELLS = 2**26
_LOOPED_PAIRS = 50


class Ensemble(NamedTuple):
    """Labels of M members, and as many of their samples as peers do."""

    preds: Tensor
    classes: int
    member_dim: int
    copy: Tensor
    by_histogram: tuple[Tensor, ...]
    """M rows [n], for the document, which takes a list and needs C cells a sample."""
    by_one_hot: Tensor
    """[M, n], for peers that need M·C."""
    probs: Tensor | None = None
    """[n, M, C], the one-hot labels, for a peer that takes nothing else."""

    @property
    def members(self) -> int:
        """M."""
        return self.preds.shape[self.member_dim]

    @property
    def samples(self) -> int:
        """N."""
        return self.preds.numel() // self.members


def _ensemble(device: torch.device, samples: int, *, members: int, classes: int, member_dim: int = 0) -> Ensemble:
    shape = (members, samples) if member_dim == 0 else (samples, members)
    preds = torch.randint(classes, shape, generator=seeded(device), device=device)
    rows = preds.movedim(member_dim, 0)
    return Ensemble(
        preds=preds,
        classes=classes,
        member_dim=member_dim,
        copy=torch.empty_like(preds),
        by_histogram=rows[:, : max(1, _CELLS // classes)].unbind(0),
        by_one_hot=rows[:, : max(1, _CELLS // (classes * members))],
    )


def _vote(ensemble: Ensemble) -> Tensor:
    return majority_vote(ensemble.preds, ensemble.classes, member_dim=ensemble.member_dim)


def _read_out(ensemble: Ensemble) -> tuple[VoteSummary, Tensor, Tensor]:
    """The vote, disagreement rate and pairwise disagreement."""
    summary = vote_summary(ensemble.preds, ensemble.classes, member_dim=ensemble.member_dim)
    pairs = ensemble.samples * ensemble.members * (ensemble.members - 1) // 2
    unanimous, agreeing = torch.count_nonzero(summary.unanimous), summary.agreeing_pairs.sum()
    return summary, 1.0 - unanimous / ensemble.samples, 1.0 - agreeing / pairs


def _torch_mode(ensemble: Ensemble) -> Tensor:
    return torch.mode(ensemble.preds, dim=ensemble.member_dim).values


def _one_of_equals(ensemble: Ensemble, vote: Tensor) -> Tensor:
    """torch.mode promises the lowest of equal classes on the CPU only; elsewhere any of them counts as ours."""
    if vote.device.type == "cpu":
        return vote
    rows, ours = ensemble.preds.movedim(ensemble.member_dim, 0), _vote(ensemble)
    return torch.where((rows == vote).sum(0) == (rows == ours).sum(0), ours, vote)


def _document_vote(ensemble: Ensemble) -> Tensor:
    """Member after member into a histogram [N, C], and the first of its largest cells."""
    stacked = torch.stack(ensemble.by_histogram)
    samples, device = stacked.shape[1], stacked.device
    histogram = torch.zeros((samples, ensemble.classes), dtype=torch.int64, device=device)
    for row in stacked:
        histogram.scatter_add_(1, row.unsqueeze(1), torch.ones((samples, 1), dtype=torch.int64, device=device))
    return histogram.argmax(1)


def _document_rate(members: Sequence[Tensor]) -> Tensor:
    stacked = torch.stack(tuple(members))
    return (stacked != stacked[:1]).any(0).float().mean()


def _document_pairwise(members: Sequence[Tensor]) -> Tensor:
    stacked = torch.stack(tuple(members))
    return torch.stack([(first != second).float().mean() for first, second in combinations(stacked, 2)]).mean()


def _document_read_out(ensemble: Ensemble) -> tuple[Tensor, Tensor, Tensor]:
    members = ensemble.by_histogram
    return _document_vote(ensemble), _document_rate(members), _document_pairwise(members)


def _mode_read_out(ensemble: Ensemble) -> tuple[Tensor, Tensor, Tensor]:
    members = ensemble.preds.unbind(0)
    return _torch_mode(ensemble), _document_rate(members), _document_pairwise(members)


def _one_hot_vote(ensemble: Ensemble) -> Tensor:
    return F.one_hot(ensemble.by_one_hot, ensemble.classes).sum(0).argmax(-1)


def _scipy_vote(ensemble: Ensemble) -> Tensor:
    return torch.from_numpy(mode(ensemble.preds.cpu().numpy(), axis=0).mode)


def _torch_uncertainty(ensemble: Ensemble) -> Tensor:
    metric = import_module("torch_uncertainty.metrics.classification").Disagreement().to(ensemble.preds.device)
    metric.update(ensemble.probs)
    return torch.as_tensor(metric.compute())


def _ordered_pairs_in_loop(ensemble: Ensemble) -> Tensor:
    pairs = islice(permutations(ensemble.preds, 2), _LOOPED_PAIRS)
    return torch.stack([(first != second).float().mean() for first, second in pairs])


def _pairs_in_loop(ensemble: Ensemble) -> Tensor:
    pairs = islice(combinations(ensemble.preds, 2), _LOOPED_PAIRS)
    return torch.stack([(first != second).float().mean() for first, second in pairs])


def _upper_triangle(ensemble: Ensemble, matrix: Tensor) -> Tensor:
    first, second = torch.triu_indices(ensemble.members, ensemble.members, 1, device=matrix.device)
    return matrix[first, second]


def _votes_and_rates(ensemble: Ensemble, output: tuple[VoteSummary | Tensor, Tensor, Tensor]) -> Tensor:
    vote, *rates = output
    vote = vote.vote if isinstance(vote, VoteSummary) else _one_of_equals(ensemble, vote)
    return torch.cat((torch.stack(rates).double(), vote.double()))


def _one_hot_share(ensemble: Ensemble) -> float:
    return ensemble.by_one_hot.shape[1] / ensemble.samples


def _histogram_share(ensemble: Ensemble) -> float:
    return len(ensemble.by_histogram[0]) / ensemble.samples


def _ordered_pairs_share(ensemble: Ensemble) -> float:
    return min(1.0, _LOOPED_PAIRS / (ensemble.members * (ensemble.members - 1)))


def _pairs_share(ensemble: Ensemble) -> float:
    return min(1.0, _LOOPED_PAIRS / (ensemble.members * (ensemble.members - 1) // 2))


def _with_probs(ensemble: Ensemble) -> Ensemble:
    return ensemble._replace(probs=F.one_hot(ensemble.by_one_hot.t(), ensemble.classes).float())


_COPY: Contestant[Ensemble] = Contestant(lambda ensemble: ensemble.copy.copy_(ensemble.preds))


def _vote_workload(
    members: int, samples: int, classes: int, times: float, *, floors: float | None = None
) -> Workload[Ensemble]:
    goals = [Goal("times", times, _MODE)]
    goals += [] if floors is None else [Goal("floors", floors)]
    goals += [Goal("temporaries", 24.0)] if members <= 32 else []
    return Workload(
        name=f"vote-{members}x{samples}-{classes}",
        about=f"majority vote of {members} members on {samples:,} samples, {classes:,} classes, int64 [M, N]",
        samples=samples,
        make=lambda device, size: _ensemble(device, size, members=members, classes=classes),
        ours=Contestant(_vote),
        peers={
            _MODE: Contestant(_torch_mode, _one_of_equals),
            _DOCUMENT: Contestant(_document_vote, share=_histogram_share),
            "one_hot, sum, argmax": Contestant(_one_hot_vote, share=_one_hot_share),
            "scipy.stats.mode": Contestant(_scipy_vote),
        },
        floor=_COPY,
        goals=tuple(goals),
    )


def _sample_first_workload(members: int, samples: int, classes: int) -> Workload[Ensemble]:
    return Workload(
        name=f"vote-sample-first-{members}x{samples}-{classes}",
        about=f"majority vote of {members} members on {samples:,} samples, {classes:,} classes, int64 [N, M]",
        samples=samples,
        make=lambda device, size: _ensemble(device, size, members=members, classes=classes, member_dim=1),
        ours=Contestant(_vote),
        peers={_MODE: Contestant(_torch_mode, _one_of_equals)},
        floor=_COPY,
        goals=(Goal("times", 3.0, _MODE),),
    )


def _read_out_workload(classes: int, times: float) -> Workload[Ensemble]:
    return Workload(
        name=f"read-out-5x1000000-{classes}",
        about=f"vote and both disagreements of 5 members on 1,000,000 samples, {classes:,} classes, int64 [M, N]",
        samples=1_000_000,
        make=lambda device, size: _ensemble(device, size, members=5, classes=classes),
        ours=Contestant(_read_out, _votes_and_rates),
        peers={
            _MODE_AND_STATISTICS: Contestant(_mode_read_out, _votes_and_rates),
            _DOCUMENT: Contestant(_document_read_out, _votes_and_rates, share=_histogram_share),
        },
        floor=_COPY,
        goals=(Goal("times", times, _DOCUMENT), Goal("times", 10.0, _MODE_AND_STATISTICS)),
        tolerance=1e-6,
    )


def _cuda_workload(members: int) -> Workload[Ensemble]:
    """At 85 % of the bandwidth of a copy, which writes as much as it reads; a vote writes one row."""
    return Workload(
        name=f"vote-cuda-{members}x10000000-100",
        about=f"majority vote of {members} members on 10,000,000 samples, 100 classes, int64 [M, N]",
        samples=10_000_000,
        make=lambda device, size: _ensemble(device, size, members=members, classes=100),
        ours=Contestant(_vote),
        peers={_MODE: Contestant(_torch_mode, _one_of_equals)},
        floor=_COPY,
        goals=(
            Goal("floors", (members + 1) / (2 * members) / 0.85, device="cuda"),
            Goal("times", 20.0, _MODE, device="cuda"),
        ),
        devices=("cuda",),
    )


WORKLOADS: list[Workload[Any]] = [
    _vote_workload(5, 1_000_000, 10, 4.0, floors=1.5),
    _vote_workload(5, 1_000_000, 1000, 4.0),
    _vote_workload(10, 1_000_000, 100, 4.0),
    _vote_workload(16, 1_000_000, 100, 4.0, floors=2.0),
    _vote_workload(32, 300_000, 1000, 4.0),
    _vote_workload(100, 100_000, 1000, 2.5),
    _vote_workload(5, 2_000_000, 50257, 4.0),
    _sample_first_workload(5, 1_000_000, 10),
    _sample_first_workload(10, 1_000_000, 100),
    _sample_first_workload(32, 300_000, 1000),
    _sample_first_workload(100, 100_000, 1000),
    _read_out_workload(10, 20.0),
    _read_out_workload(1000, 300.0),
    Workload(
        name="pairwise-disagreement-5x1000000-100",
        about="pairwise disagreement of 5 members on 1,000,000 samples, 100 classes, int64 [M, N]",
        samples=1_000_000,
        make=lambda device, size: _with_probs(_ensemble(device, size, members=5, classes=100)),
        ours=Contestant(lambda ensemble: pairwise_disagreement(ensemble.preds)),
        peers={
            _DOCUMENT: Contestant(lambda ensemble: _document_pairwise(ensemble.preds.unbind(0))),
            "torch-uncertainty Disagreement": Contestant(
                _torch_uncertainty, share=_one_hot_share, needs="torch_uncertainty"
            ),
        },
        floor=_COPY,
        tolerance=1e-6,
    ),
    Workload(
        name="disagreement-matrix-100x1000000",
        about="disagreement of all pairs of 100 members on 1,000,000 samples, 100 classes, int64 [M, N]",
        samples=1_000_000,
        make=lambda device, size: _ensemble(device, size, members=100, classes=100),
        ours=Contestant(lambda ensemble: disagreement_matrix(ensemble.preds), _upper_triangle),
        peers={
            "double loop": Contestant(_ordered_pairs_in_loop, share=_ordered_pairs_share),
            "loop over i < j": Contestant(_pairs_in_loop, share=_pairs_share),
        },
        floor=_COPY,
        goals=(Goal("times", 20.0, "double loop"),),
        tolerance=1e-6,
    ),
    *(_cuda_workload(members) for members in (5, 10, 16)),
]
