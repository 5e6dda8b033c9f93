"""What the monitors show beside scalars: tables, figures and chart layouts, on rank 0 only.

TensorBoard gets all of them; Weights & Biases and MLflow get tables and figures through their Lightning loggers. Other
loggers have the scalars.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from polyweave_torch.callbacks._lightning import Trainer, current_step, loggers_named, tensorboard_writers

_missing_said: set[str] = set()


def escape(name: str) -> str:
    """A name that may stand in a cell of a markdown table."""
    return name.replace("|", "&#124;")


def show_table(trainer: Trainer, key: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Show a table: as markdown text, or as the logger's own kind of table."""
    step = current_step(trainer)
    lines = [head, ["---"] * len(head), *[[escape(str(cell)) for cell in row] for row in rows]]
    text = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
    for writer in tensorboard_writers(trainer):
        writer.add_text(key, text, step)
    for logger in loggers_named(trainer, "WandbLogger"):
        logger.log_table(key, columns=list(head), data=[[str(cell) for cell in row] for row in rows], step=step)
    for logger in loggers_named(trainer, "MLFlowLogger"):
        logger.experiment.log_text(logger.run_id, text, f"{key}/step_{step:07d}.md")


def show_figure(trainer: Trainer, key: str, kind: str, data: Any, **options: Any) -> None:
    """Draw one of :mod:`polyweave_torch.plot`; without matplotlib say once what is missing."""
    writers = tensorboard_writers(trainer)
    wandb, mlflow = loggers_named(trainer, "WandbLogger"), loggers_named(trainer, "MLFlowLogger")
    if not (writers or wandb or mlflow):
        return
    try:
        from matplotlib.figure import Figure

        from polyweave_torch import plot
    except ModuleNotFoundError:
        if kind not in _missing_said:
            _missing_said.add(kind)
            warnings.warn(
                f"no {kind} figure is drawn, since matplotlib is not installed: "
                "pip install 'polyweave-torch[plot]', or pass figure=False",
                stacklevel=2,
            )
        return
    # Not one of pyplot's figures, so there is none to close or to leak.
    figure = Figure(figsize=(5, 5), dpi=100, layout="constrained")
    getattr(plot, kind)(data, ax=figure.subplots(), **options)
    step = current_step(trainer)
    for writer in writers:
        writer.add_figure(key, figure, step, close=False)
    for logger in wandb:
        logger.log_image(key, [figure], step=step)
    for logger in mlflow:
        logger.experiment.log_figure(logger.run_id, figure, f"{key}/step_{step:07d}.png")


def show_margins(trainer: Trainer, name: str, slices: Sequence[str], *, rates: Sequence[str]) -> None:
    """Lay out TensorBoard's custom scalars: for each rate and slice a chart with its bounds as a band."""
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
        if charts and not getattr(writer, "_polyweave_layout", False):  # one layout a run directory, the last wins
            writer.add_custom_scalars({name: charts})
            writer._polyweave_layout = True
