"""What a release verdict is made of: its numbers by name."""

from typing import Any, NamedTuple

from torch import Tensor

from polyweave_torch.functional.composite import RankedRun, Standardize
from polyweave_torch.functional.verdict_words import Reason, Verdict


class Estimator(NamedTuple):
    """What computed a verdict. Another version may give other numbers for the same scores."""

    id: str
    """The method, in words."""
    version: int
    """Raised where its numbers change."""


class VerdictSettings(NamedTuple):
    """The options under which a verdict was computed, as :func:`verdict` describes them."""

    layer_names: tuple[str, ...]
    """The L layers."""
    gate: float
    """What the mean of each present layer has to reach."""
    trivial_difference: float
    """Below this a gain of composites is practically none."""
    min_pairs: int
    """With fewer pairs there is no PROGRESS and no NOISE."""
    dissent: float
    """The inter-judge Pearson correlation below which judges disagree."""
    alpha: float
    """Chance of a false alarm, over all treatments."""
    resamples: int
    """Of the bootstrap."""
    seed: int
    """Of the bootstrap."""
    weights: tuple[float, ...] | None
    """Of the layers in the composite, in their order; None: all equal."""
    standardize: Standardize | None
    """How layers were brought on one scale; None: they were not."""
    wished_power: float | None
    """The power that the pairs should have; None: none was asked for."""
    top: float
    """The highest mark."""


class LayerDifference(NamedTuple):
    """Treatment against control in one layer, over the pairs that have it; numbers are 0-d float64 on the CPU."""

    estimate: Tensor
    """Mean of treatment - control, on the layer's own scale."""
    low: Tensor
    """Lower end."""
    high: Tensor
    """Upper end."""
    level: float
    """Coverage of the interval, adjusted for all treatments and layers."""
    control: Tensor
    """Mean of the control."""
    treatment: Tensor
    """Mean of the treatment."""
    pairs: Tensor
    """int64, pairs; 0 where the layer is missing."""
    under_gate: bool
    """The treatment's mean is under the gate."""
    fell: bool
    """Wholly below 0, and under the gate where the control was not."""
    saturated: bool
    """Over 90 % of both arms at the top mark: there is no room to differ in."""


class AuditMarks(NamedTuple):
    """Four independent checks of the evidence; None where there is nothing to check."""

    judges_agree: bool | None
    """Inter-judge Pearson of both arms (of the one that has marks) is at least ``dissent``."""
    significant: bool
    """The composite's interval excludes 0."""
    saturated: bool
    """Some layer is at its ceiling."""
    agrees_with_people: Tensor
    """float64 ``[2]``, control and treatment: Pearson of judge and people. Decides nothing."""


class PairVerdict(NamedTuple):
    """One treatment against the control; numbers are float64 on the CPU, 0-d but for ``pearson``."""

    name: str
    """The treatment."""
    label: Verdict
    """Its verdict."""
    reasons: tuple[Reason, ...]
    """All that held."""
    estimate: Tensor
    """Mean difference of the composites, treatment - control; standardised ones are in standard deviations."""
    low: Tensor
    """Lower end of its interval."""
    high: Tensor
    """Upper end."""
    layers: dict[str, LayerDifference]
    """Each layer by name."""
    pairs: Tensor
    """int64, samples with a composite in both arms."""
    incomplete: Tensor
    """int64, the other samples."""
    pearson: Tensor
    """``[2]``, control and treatment: :func:`inter_judge_pearson`; NaN where undefined or without marks."""
    level: float
    """Coverage of the composite's interval, adjusted for all treatments."""
    unlike: Tensor
    """int64, pairs whose composites have different layers behind them, and don't compare."""
    pairs_needed: Tensor
    """Pairs that the wished power needs; NaN where none was wished or the spread is unknown."""
    audit: AuditMarks
    """The four audit marks."""


class ReportFields(NamedTuple):
    """May it ship, why, and from what numbers."""

    label: Verdict
    """The worst of the treatments' verdicts."""
    exit_code: int
    """0 for PROGRESS, and for SOLO with the gate passed; else 1."""
    action: str
    """What to do."""
    reasons: tuple[Reason, ...]
    """All that held for any treatment."""
    pairs: tuple[PairVerdict, ...]
    """One for each treatment; none for SOLO."""
    estimator: Estimator
    """What computed it."""
    runs: tuple[RankedRun, ...]
    """Control and treatments by composite, the highest first."""
    settings: VerdictSettings
    """The options under which it was computed."""
    provenance: dict[str, dict[str, Any]]
    """What was declared of each run."""
