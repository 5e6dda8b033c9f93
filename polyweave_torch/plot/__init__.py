"""Figures, drawn with matplotlib (extra ``plot``). Each returns ``(Figure, Axes)`` and draws on ``ax`` where given."""

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "polyweave_torch.plot needs matplotlib, which is not installed; "
        "install it with: pip install 'polyweave-torch[plot]'"
    ) from error

from polyweave_torch.plot.phase_plane import phase_plane

__all__ = ["phase_plane"]
