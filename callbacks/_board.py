"""What the monitors put on TensorBoard beside scalars: tables, figures, chart layouts. On rank 0 only."""

import warnings
from collections.abc import Sequence
from typing import Any

from polyweave_torch.callbacks._lightning import Trainer, current_step, tensorboard_writers


def escape(name: str) -> str:
    """A name that may stand in a cell of a markdown table."""
    return name.replace("|", "&#124;")


def show_table(trainer: Trainer, key: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a markdown table as text."""
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
    for writer in tensorboard_writers(trainer):
        writer.add_text(key, text, current_step(trainer))


def show_figure(trainer: Trainer, key: str, kind: str, data: Any) -> None:
    """Draw one of :mod:`polyweave_torch.plot`; without matplotlib say once what is missing."""
    writers = tensorboard_writers(trainer)
    if not writers:
        return
    try:
        from matplotlib.figure import Figure

        from polyweave_torch import plot
    except ModuleNotFoundError:
        if kind not in _missing_said:
            _missing_said.add(kind)
            warnings.warn(
                f"no {kind} figure on TensorBoard, since matplotlib is not installed: "
                "pip install 'polyweave-torch[plot]', or pass figure=False",
                stacklevel=2,
            )
        return
    for writer in writers:
        figure = Figure(figsize=(5, 5), dpi=100, layout="constrained")
        getattr(plot, kind)(data, ax=figure.subplots())
        writer.add_figure(key, figure, current_step(trainer))


def show_margins(trainer: Trainer, name: str, slices: Sequence[str], *, rates: Sequence[str]) -> None:
    """Lay out custom scalars: for each rate a chart a slice, with its bounds as a band."""
    charts = {
        f"{slice_name} {rate}": [
            "Margin",
            [
                f"{name}/{slice_name}/{rate}",
                f"{name}_bounds/{slice_name}/{rate}_low",
                f"{name}_bounds/{slice_name}/{rate}_high",
            ],
        ]
        for slice_name in reversed(slices)
        for rate in rates
    }
    for writer in tensorboard_writers(trainer):
        if charts and not getattr(writer, "_polyweave_layout", False):
            writer.add_custom_scalars({name: charts})
            writer._polyweave_layout = True


_missing_said: set[str] = set()
