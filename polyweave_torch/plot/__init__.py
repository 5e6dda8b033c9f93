"""Figures, drawn with matplotlib (extra ``plot``). Each returns ``(Figure, Axes)`` and draws on ``ax`` where given."""

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "polyweave_torch.plot needs matplotlib, which is not installed; "
        "install it with: pip install 'polyweave-torch[plot]'"
    ) from error

from polyweave_torch.plot.ablation import success_rates
from polyweave_torch.plot.forest import forest
from polyweave_torch.plot.gate_growth import gate_growth
from polyweave_torch.plot.phase_plane import phase_plane
from polyweave_torch.plot.significance_matrix import significance_matrix
from polyweave_torch.plot.verdict import verdict_plot

__all__ = ["forest", "gate_growth", "phase_plane", "significance_matrix", "success_rates", "verdict_plot"]
