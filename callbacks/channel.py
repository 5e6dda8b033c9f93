"""ChannelMonitor: what each validation corrected and corrupted."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.callbacks._board import escape, show_figure, show_margins, show_table
from polyweave_torch.callbacks._capture import Slices
from polyweave_torch.callbacks._epoch import Epoch, tables
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import Trainer
from polyweave_torch.callbacks._monitor import OutcomeMonitor, tag
from polyweave_torch.callbacks._outcomes import OutcomeFunction
from polyweave_torch.callbacks._references import Reference, check_references
from polyweave_torch.functional.channel import ChannelEstimate, channel_intervals, estimate_channel
from polyweave_torch.functional.gating import phase_plane_diagnosis, quadrant_names


class ChannelMonitor(OutcomeMonitor):
    """Logs the channel from a reference validation to the current one, overall and for each slice.

    Put ``observe(preds, target)`` into ``validation_step`` or return a dict with predictions and targets from it; the
    validation loader must not shuffle, or its batches carry ids. Nothing about training changes.

    ======================================  ============================================================================
    Key                                     What is logged
    ======================================  ============================================================================
    ``channel/<slice>/c``                   correction rate: of the samples wrong before, the share now right (smoothed)
    ``channel/<slice>/gamma``               corruption rate: of the samples right before, the share now wrong (smoothed)
    ``channel/<slice>/delta``               accuracy now minus accuracy before, on the samples in both
    ``channel/<slice>/surplus``             c minus the break-even p0 / (1 - p0)·gamma
    ``channel/<slice>/quadrant``            -1 harmful, 0 marginal, 1 helpful, 2 unknown
    ``channel/<slice>/n``                   samples in both validations
    ``channel_bounds/<slice>/c_low`` ...    Wilson bounds of c and gamma
    ======================================  ============================================================================

    ``<slice>`` is ``all`` or a slice's name. References after the first one log under ``channel/<reference>/<slice>``.
    The first validation is compared with itself, so that every key exists and is finite from the start. Later, a rate
    whose group is empty is NaN with bounds 0 and 1. TensorBoard also gets the phase plane and a table of the slices.

    Args:
        outcomes: "auto" (``observe`` if the step calls it, else its outputs), "observe", "outputs", or a function
            ``(pl_module, batch, outputs)`` that gives bools or ``(preds, target)``.
        ids: key of the batch, or a function of it, that gives one id a sample; by default the position in the data set.
        slices: one label a sample of the data set, "target", a key of the batch, or a function of the batch.
        references: which validations to compare with: "previous", "first", "best".
        threshold: score above which a binary or multi-label prediction is positive.
        ignore_index: targets of this value are left out.
        confidence: level of the bounds.
        figure: draw the phase plane on TensorBoard (needs matplotlib).
        table: write the table of slices on TensorBoard.
        custom_scalars: lay out TensorBoard's custom scalars as charts of c and gamma with their bounds.
        every_n_validations: watch only every n-th validation.
        name: first part of every key.

    Raises:
        ValueError: during validation, where outcomes or ids can't be had, with the reason and what to do.

    Example:
        >>> monitor = ChannelMonitor(slices="target", references=("previous", "first"))
        >>> monitor.history
        []
    """

    def __init__(
        self,
        outcomes: str | OutcomeFunction = "auto",
        *,
        ids: str | IdFunction | None = None,
        slices: Slices = None,
        references: tuple[Reference, ...] = ("previous",),
        threshold: float | None = None,
        ignore_index: int | None = None,
        confidence: float = 0.95,
        figure: bool = True,
        table: bool = True,
        custom_scalars: bool = False,
        every_n_validations: int = 1,
        name: str = "channel",
    ) -> None:
        super().__init__(
            outcomes,
            ids=ids,
            slices=slices,
            threshold=threshold,
            ignore_index=ignore_index,
            every_n_validations=every_n_validations,
            name=name,
        )
        check_references(references)
        self.compared_with = references
        self.confidence = confidence
        self.figure = figure
        self.table = table
        self.custom_scalars = custom_scalars
        self._counts: dict[tuple[Reference, str], Tensor] = {}

    def counts(self, reference: Reference = "previous", slice: str = "all") -> Tensor:
        """Transitions of the latest validation: int64 ``[2, 2]``, ``[before, after]``.

        Args:
            reference: one of the monitor's references.
            slice: "all" or a slice's name.
        """
        if (reference, slice) not in self._counts:
            raise KeyError(f"no counts of {(reference, slice)}; there are {sorted(self._counts)}")
        return self._counts[reference, slice]

    def measure(self, trainer: Trainer, epoch: Epoch) -> dict[str, Tensor]:
        """The channels against each reference."""
        values: dict[str, Tensor] = {}
        for reference in self.compared_with:
            before = self.references.epochs.get(reference)
            now = tables(before or epoch, epoch)
            within = "" if reference == self.compared_with[0] else f"/{reference}"
            for slice_name in ("all", *self._slice_names):
                table = now.get(slice_name, torch.zeros(2, 2, dtype=torch.int64))
                self._counts[reference, slice_name] = table
                values.update(self._values(f"{within}/{tag(slice_name)}", table, itself=before is None))
        return values

    def draw(self, trainer: Trainer) -> None:
        """Phase plane, table and chart layout on TensorBoard."""
        reference = self.compared_with[0]
        channels = {s: estimate_channel(counts) for (r, s), counts in self._counts.items() if r == reference}
        if self.table:
            show_table(trainer, f"{self.name}/table", _HEAD, [_row(name, channels[name]) for name in channels])
        if self.figure:
            show_figure(trainer, f"{self.name}/phase_plane", "phase_plane", channels)
        if self.custom_scalars:
            show_margins(trainer, self.name, [tag(name) for name in channels], rates=("gamma", "c"))

    def _values(self, path: str, table: Tensor, *, itself: bool) -> Mapping[str, Tensor]:
        channel = estimate_channel(table)
        diagnosis = phase_plane_diagnosis(channel)
        bounds = channel_intervals(table, level=self.confidence)
        c = channel.c if itself else channel.c.where(channel.n0 > 0, torch.nan)
        gamma = channel.gamma if itself else channel.gamma.where(channel.n1 > 0, torch.nan)
        delta, surplus = channel.delta, diagnosis.surplus
        if itself:  # ModelCheckpoint and EarlyStopping need finite values from the first validation on
            delta, surplus = delta.nan_to_num(nan=0.0), surplus.nan_to_num(nan=0.0, neginf=0.0)
        return {
            f"{self.name}{path}/c": c,
            f"{self.name}{path}/gamma": gamma,
            f"{self.name}{path}/delta": delta,
            f"{self.name}{path}/surplus": surplus,
            f"{self.name}{path}/quadrant": diagnosis.quadrant.double(),
            f"{self.name}{path}/n": channel.total.double(),
            f"{self.name}_bounds{path}/c_low": bounds.c.low,
            f"{self.name}_bounds{path}/c_high": bounds.c.high,
            f"{self.name}_bounds{path}/gamma_low": bounds.gamma.low,
            f"{self.name}_bounds{path}/gamma_high": bounds.gamma.high,
        }


_HEAD = ("slice", "n", "accuracy", "corrected", "corrupted", "c", "gamma", "delta", "quadrant")


def _row(name: str, channel: ChannelEstimate) -> list[Any]:
    quadrant = quadrant_names(phase_plane_diagnosis(channel).quadrant)
    rates = [f"{float(rate):.4f}" for rate in (channel.c, channel.gamma, channel.delta)]
    corrected, corrupted = int(channel.counts[0, 1]), int(channel.counts[1, 0])
    return [escape(name), int(channel.total), f"{float(channel.p1):.4f}", corrected, corrupted, *rates, quadrant]
