"""SignificanceMonitor: whether a validation differs from its reference by more than chance."""

from typing import Literal

import torch
from torch import Tensor

from polyweave_torch.callbacks._board import show_figure
from polyweave_torch.callbacks._capture import Slices
from polyweave_torch.callbacks._epoch import Epoch, match, tables
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import Trainer
from polyweave_torch.callbacks._monitor import OutcomeMonitor, tag
from polyweave_torch.callbacks._outcomes import Source
from polyweave_torch.callbacks._references import References
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional.cochran import cochran_q
from polyweave_torch.functional.gram import outcome_gram
from polyweave_torch.functional.mcnemar import Method, PairwiseMcNemar, mcnemar, mcnemar_pairs
from polyweave_torch.functional.multiplicity import holm_bonferroni


class SignificanceMonitor(OutcomeMonitor):
    """Logs McNemar's test against a reference validation, Holm-adjusted over slices, and Cochran's Q over recent ones.

    =====================================  =============================================================================
    Key                                    What is logged
    =====================================  =============================================================================
    ``significance/all/p_value``           McNemar's p over all samples in both validations
    ``significance/all/p_adjusted``        the same: the overall test is a family of its own
    ``significance/<slice>/p_value``       McNemar's p within a slice
    ``significance/<slice>/p_adjusted``    Holm-adjusted over the slices
    ``significance/<slice>/discordant``    samples whose correctness changed; below 25 the test can show little
    ``significance/cochran_q/q``           Cochran's Q over the last ``window`` validations, on their common samples
    ``significance/cochran_q/p_value``     its p-value
    =====================================  =============================================================================

    The first validation is compared with itself: p 1, Q 0. There is no p-value against the best validation, since that
    one was selected for luck: under no change such a test alarms in 18 % of validations at alpha = 0.05, where the
    others do in 4 to 5 % (docs/simulations/significance_alarms.py).

    Args:
        outcomes: as in :class:`ChannelMonitor`.
        ids: as in :class:`ChannelMonitor`.
        slices: as in :class:`ChannelMonitor`.
        max_slices: as in :class:`ChannelMonitor`.
        reference: "previous" or "first".
        window: validations in Cochran's Q, at least 2.
        alpha: error rate at which :attr:`significant` speaks.
        method: form of McNemar's test, see :func:`~polyweave_torch.functional.mcnemar`.
        threshold: as in :class:`ChannelMonitor`.
        ignore_index: as in :class:`ChannelMonitor`.
        figure: draw the matrix of all pairs of recent validations (needs matplotlib).
        name: first part of every key.

    Raises:
        ValueError: where ``reference`` or ``method`` is unknown, ``window`` is below 2, or ``alpha`` outside (0, 1).

    Example:
        >>> monitor = SignificanceMonitor(slices="target", reference="first")
        >>> monitor.significant
        []
    """

    def __init__(
        self,
        outcomes: Source = "auto",
        *,
        ids: str | IdFunction | None = None,
        slices: Slices = None,
        max_slices: int = 50,
        reference: Literal["previous", "first"] = "previous",
        window: int = 5,
        alpha: float = 0.05,
        method: Method = "auto",
        threshold: float | None = None,
        ignore_index: int | None = None,
        figure: bool = True,
        name: str = "significance",
    ) -> None:
        super().__init__(
            outcomes,
            ids=ids,
            slices=slices,
            max_slices=max_slices,
            threshold=threshold,
            ignore_index=ignore_index,
            name=name,
            window=window - 1,
        )
        if reference not in ("previous", "first"):
            raise ValueError(
                f'reference must be "previous" or "first", but is {reference!r}; the best validation was selected for '
                "luck, so a p-value against it would alarm too often (ChannelMonitor gives its counts)"
            )
        if window < 2:
            raise ValueError(f"window must be at least 2 validations, but is {window}")
        check_open_unit(alpha, name="alpha")
        mcnemar(0, 0, method=method)  # an unknown method is an error now, not after the first epoch
        self.reference = reference
        self.window = window
        self.alpha = alpha
        self.method: Method = method
        self.figure = figure
        self._pairs: dict[str, PairwiseMcNemar] = {}

    @property
    def significant(self) -> list[str]:
        """What the latest validation changed significantly: "all" and slices whose adjusted p is below alpha."""
        latest = next((entry for entry in reversed(self.history) if "all/p_adjusted" in entry), {})
        names = {tag(name): name for name in ("all", *self._slice_names)}
        return [name for short, name in names.items() if latest.get(f"{short}/p_adjusted", 1.0) < self.alpha]

    def measure(self, epoch: Epoch, references: References, path: str) -> dict[str, Tensor]:
        """Tests against the reference and over the recent validations."""
        now = tables(references.epochs.get(self.reference) or epoch, epoch)
        names = ("all", *self._slice_names)
        counts = torch.stack([now.get(name, torch.zeros(2, 2, dtype=torch.int64)) for name in names])
        result = mcnemar(counts=counts, method=self.method)
        # A slice without a sample in both validations was not tested: NaN, and no member of the family.
        absent = counts.sum((1, 2)) == 0
        p_values = result.p_value.masked_fill(absent, torch.nan)
        adjusted = torch.cat([p_values[:1], holm_bonferroni(p_values[1:])])
        values: dict[str, Tensor] = {}
        for row, name in enumerate(names):
            values[f"{path}/{tag(name)}/p_value"] = p_values[row]
            values[f"{path}/{tag(name)}/p_adjusted"] = adjusted[row]
            values[f"{path}/{tag(name)}/discordant"] = result.discordant[row].double()
        recent = [*references.recent, epoch]
        shared = _shared_outcomes(recent)
        omnibus = cochran_q(shared)
        names_of = [f"{age} before" for age in range(len(recent) - 1, 0, -1)] + ["now"]
        self._pairs[path] = mcnemar_pairs(outcome_gram(shared), method=self.method, names=names_of)
        alone = len(recent) == 1
        values[f"{path}/cochran_q/q"] = torch.zeros((), dtype=torch.float64) if alone else omnibus.statistic
        values[f"{path}/cochran_q/p_value"] = torch.ones((), dtype=torch.float64) if alone else omnibus.p_value
        return values

    def draw(self, trainer: Trainer, path: str) -> None:
        """The matrix of the recent validations."""
        if self.figure and len(self._pairs[path].adjusted_p):
            show_figure(trainer, f"{path}/matrix", "significance_matrix", self._pairs[path], alpha=self.alpha)


def _shared_outcomes(epochs: list[Epoch]) -> Tensor:
    """Bool ``[n, len(epochs)]`` of the samples that all validations saw."""
    last = epochs[-1]
    kept = torch.ones(len(last.ids), dtype=torch.bool)
    columns = []
    for epoch in epochs:
        rows, place = match(epoch, last)
        column = torch.zeros(len(last.ids), dtype=torch.bool)
        column[rows] = epoch.correct[place]
        kept &= torch.zeros_like(kept).index_fill(0, rows, True)
        columns.append(column)
    return torch.stack(columns, 1)[kept]
