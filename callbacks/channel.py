"""ChannelMonitor: what each validation corrected and corrupted."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.callbacks._board import show_figure, show_margins, show_table
from polyweave_torch.callbacks._capture import Slices
from polyweave_torch.callbacks._epoch import Epoch, tables
from polyweave_torch.callbacks._ids import IdFunction
from polyweave_torch.callbacks._lightning import Trainer
from polyweave_torch.callbacks._monitor import OutcomeMonitor, tag
from polyweave_torch.callbacks._outcomes import Source
from polyweave_torch.callbacks._references import References, check_references
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional.channel import ChannelEstimate, channel_intervals, estimate_channel
from polyweave_torch.functional.gating import phase_plane_diagnosis, quadrant_names
from polyweave_torch.metrics.memory import Reference

_TRAIL = 6
"""Points of the phase plane's trail."""
_HEAD = ("slice", "n", "accuracy", "corrected", "corrupted", "c", "gamma", "delta", "quadrant")


class ChannelMonitor(OutcomeMonitor):
    """Logs the channel from a reference validation to the current one, overall and for each slice.

    Outcomes come from the module as it is where it has one torchmetrics metric or returns predictions; else put
    ``observe(preds, target)`` into ``validation_step``. The validation loader must not shuffle, or its batches carry
    ids. Nothing about training changes.

    ======================================  ============================================================================
    Key                                     What is logged
    ======================================  ============================================================================
    ``channel/<slice>/c``                   correction rate: of the samples wrong before, the share now right (smoothed)
    ``channel/<slice>/gamma``               corruption rate: of the samples right before, the share now wrong (smoothed)
    ``channel/<slice>/delta``               accuracy now minus accuracy before, on the samples in both
    ``channel/<slice>/surplus``             c minus the break-even p0 / (1 - p0)·gamma; -inf where all were right before
    ``channel/<slice>/quadrant``            -1 harmful, 0 marginal, 1 helpful, 2 unknown
    ``channel/<slice>/n``                   samples in both validations
    ``channel_bounds/<slice>/c_low`` ...    Wilson bounds of c and gamma
    ======================================  ============================================================================

    ``<slice>`` is ``all`` or a slice's name. References after the first one log under ``channel/<reference>/<slice>``,
    further dataloaders under ``channel/dl1/<slice>``, tests under ``channel_test/<slice>``. The first validation is
    compared with itself, so that every key exists and is finite from the start. Later, a rate whose group is empty is
    NaN with bounds 0 and 1. Where all samples were right before, c is such a rate and no correction could pay: the
    surplus is -inf. Either value ends an EarlyStopping with ``check_finite``; ``delta`` and ``gamma`` are finite there.
    TensorBoard also gets the phase plane and a table of the slices.

    ``history`` has one dict a validation: ``epoch``, ``step`` and the logged keys, without ``channel/``; those of
    bounds and of tests stand whole (``channel_bounds/...``, ``channel_test/...``).

    Args:
        outcomes: "auto" (``observe`` if the step calls it, else its outputs, else the module's one metric), "observe",
            "outputs", "metric", or a function ``(pl_module, batch, outputs)`` that gives bools or ``(preds, target)``.
        ids: key of the batch, or a function of it, that gives one id a sample; by default the position in the data set.
        slices: one label a sample of the data set, "target", a key of the batch, or a function of the batch. Labels by
            sample are those of one data set: a test of another needs a Trainer and a monitor of its own.
        max_slices: more slices are an error, since each is a group of charts.
        references: which validations to compare with: "previous", "first", "best".
        threshold: score above which a binary or multi-label prediction is positive.
        ignore_index: targets of this value are left out.
        confidence: level of the bounds and of the phase plane's crosses.
        figure: draw the phase plane on TensorBoard (needs matplotlib).
        table: write the table of slices on TensorBoard.
        custom_scalars: lay out TensorBoard's custom scalars as charts of c and gamma with their bounds.
        every_n_validations: watch only every n-th validation.
        name: first part of every key.

    Raises:
        ValueError: at once, where an option can't be; during validation, where outcomes or ids can't be had, with the
            reason and what to do.

    Example:
        >>> monitor = ChannelMonitor(slices="target", references=("previous", "first"))
        >>> monitor.history
        []
    """

    def __init__(
        self,
        outcomes: Source = "auto",
        *,
        ids: str | IdFunction | None = None,
        slices: Slices = None,
        max_slices: int = 50,
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
            max_slices=max_slices,
            threshold=threshold,
            ignore_index=ignore_index,
            every_n_validations=every_n_validations,
            name=name,
        )
        check_references(references)
        check_open_unit(confidence, name="confidence")
        self.compared_with = references
        self.confidence = confidence
        self.figure = figure
        self.table = table
        self.custom_scalars = custom_scalars
        self._tables: dict[str, dict[tuple[Reference, str], Tensor]] = {}

    def counts(self, reference: Reference | None = None, slice: str = "all", *, loader: int = 0) -> Tensor:
        """Transitions of the latest validation: int64 ``[2, 2]``, ``[before, after]``.

        Args:
            reference: one of the monitor's references; by default the first of them.
            slice: "all" or a slice's name.
            loader: which dataloader's.

        Raises:
            KeyError: where there are no such counts.
            ValueError: where no validation has been counted yet.
        """
        if self.name not in self._tables:
            raise ValueError(
                "no validation has been counted yet; call counts() after one has ended (the sanity check is none). A "
                "callback that reads it must stand behind this monitor in Trainer(callbacks=[...])"
            )
        reference = self.compared_with[0] if reference is None else reference
        tables_of = self._tables.get(self.name if loader == 0 else f"{self.name}/dl{loader}", {})
        if (reference, slice) not in tables_of:
            raise KeyError(f"no counts of {(reference, slice)}; there are {sorted(tables_of)}")
        return tables_of[reference, slice]

    def measure(self, epoch: Epoch, references: References, path: str) -> dict[str, Tensor]:
        """The channels against each reference."""
        values: dict[str, Tensor] = {}
        kept = self._tables.setdefault(path, {})
        for reference in self.compared_with:
            before = references.epochs.get(reference)
            now = tables(before or epoch, epoch)
            within = "" if reference == self.compared_with[0] else f"/{reference}"
            for slice_name in ("all", *self._slice_names):
                kept[reference, slice_name] = now.get(slice_name, torch.zeros(2, 2, dtype=torch.int64))
                of_slice = f"{within}/{tag(slice_name)}"
                values.update(self._values(path, of_slice, kept[reference, slice_name], itself=before is None))
        return values

    def draw(self, trainer: Trainer, path: str) -> None:
        """Phase plane, table and chart layout on TensorBoard."""
        reference = self.compared_with[0]
        channels = {s: estimate_channel(counts) for (r, s), counts in self._tables[path].items() if r == reference}
        if self.table:
            show_table(trainer, f"{path}/table", _HEAD, [_row(name, channels[name]) for name in channels])
        if self.figure:
            show_figure(
                trainer, f"{path}/phase_plane", "phase_plane", channels, trail=self._trail(path), level=self.confidence
            )
        if self.custom_scalars and path == self.name:
            show_margins(trainer, self.name, [tag(name) for name in channels], rates=("gamma", "c"))

    def _trail(self, path: str) -> list[tuple[float, float]]:
        """Corruption and correction of the last validations, the present one last."""
        key = f"{path}/all".removeprefix(f"{self.name}/")
        seen = [entry for entry in self.history if f"{key}/c" in entry][-_TRAIL:]
        return [(entry[f"{key}/gamma"], entry[f"{key}/c"]) for entry in seen]

    def _values(self, path: str, of_slice: str, table: Tensor, *, itself: bool) -> Mapping[str, Tensor]:
        channel = estimate_channel(table)
        diagnosis = phase_plane_diagnosis(channel)
        bounds = channel_intervals(table, level=self.confidence)
        c = channel.c if itself else channel.c.where(channel.n0 > 0, torch.nan)
        gamma = channel.gamma if itself else channel.gamma.where(channel.n1 > 0, torch.nan)
        delta, surplus = channel.delta, diagnosis.surplus
        if itself:  # ModelCheckpoint and EarlyStopping need finite values from the first validation on
            delta, surplus = delta.nan_to_num(nan=0.0), surplus.nan_to_num(nan=0.0, neginf=0.0)
        loader = path.removeprefix(self.name).removeprefix("_test")  # "" or "/dl1"; the name may hold "/dl" too
        bounds_path = f"{path.removesuffix(loader)}_bounds{loader}{of_slice}"
        path = path + of_slice
        return {
            f"{path}/c": c,
            f"{path}/gamma": gamma,
            f"{path}/delta": delta,
            f"{path}/surplus": surplus,
            f"{path}/quadrant": diagnosis.quadrant.double(),
            f"{path}/n": channel.total.double(),
            f"{bounds_path}/c_low": bounds.c.low,
            f"{bounds_path}/c_high": bounds.c.high,
            f"{bounds_path}/gamma_low": bounds.gamma.low,
            f"{bounds_path}/gamma_high": bounds.gamma.high,
        }


def _row(name: str, channel: ChannelEstimate) -> list[Any]:
    rates = [f"{float(rate):.4f}" for rate in (channel.c, channel.gamma, channel.delta)]
    corrected, corrupted = int(channel.counts[0, 1]), int(channel.counts[1, 0])
    # Without any change the rates are made of smoothing alone, and so is the sign of their surplus.
    still = int(channel.total) > 0 and corrected + corrupted == 0
    quadrant = "no change" if still else quadrant_names(phase_plane_diagnosis(channel).quadrant)
    return [name, int(channel.total), f"{float(channel.p1):.4f}", corrected, corrupted, *rates, quadrant]
