"""Figures of a comparison, drawn with matplotlib (extra ``plot``) from its numbers alone."""

import io
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from polyweave_torch.evallogs.source import optional_module
from polyweave_torch.functional.channel import estimate_channel
from polyweave_torch.functional.difference import paired_difference_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Numbers = Mapping[str, Any]

_SLICES = 30
"""Slices that a figure shows: of more, the largest."""
_WHY = "figures are drawn with matplotlib"


class Figure(NamedTuple):
    """A drawn figure."""

    name: str
    title: str
    canvas: "Canvas"

    def to_svg(self) -> bytes:
        """The figure as one SVG document, text drawn as shapes; the same figure gives the same bytes."""
        file = io.BytesIO()
        with optional_module("matplotlib", extra="plot", why=_WHY).rc_context({"svg.hashsalt": self.name}):
            self.canvas.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_figures(numbers: Numbers) -> Iterator[Figure]:
    """Draw the phase plane, the forest and the flips by slice.

    Args:
        numbers: as :meth:`~polyweave_torch.evallogs.Comparison.to_dict` returns them.

    Yields:
        :class:`Figure`; none where outcomes are scores, which have no 2x2 tables.

    Raises:
        ValueError: where matplotlib is not installed.
    """
    if numbers["scores"] is not None:
        return
    module = optional_module("matplotlib.figure", extra="plot", why=_WHY)
    tables = _tables(numbers)
    height = 1.6 + 0.3 * len(tables)
    for name, title, draw, size in (
        ("phase_plane", "Corrected against corrupted", _phase_plane, (5.5, 5.5)),
        ("forest", "Difference of accuracy", _forest, (6.5, height)),
        ("flips", "Flipped items", _flips, (6.5, height)),
    ):
        canvas = module.Figure(figsize=size, layout="constrained")
        draw(canvas.subplots(), tables, numbers)
        yield Figure(name, title, canvas)


def write_figures(numbers: Numbers, folder: Path) -> None:
    """Write each figure as ``<name>.png`` into a folder, which is made where it is missing."""
    figures = list(draw_figures(numbers))
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        figure.canvas.savefig(folder / f"{figure.name}.png", dpi=150)


def _tables(numbers: Numbers) -> dict[str, Tensor]:
    """The 2x2 table of all items and of each slice, by a name that matplotlib's own font can draw."""
    slices = sorted(numbers["slices"].items(), key=lambda item: -item[1]["n"])[:_SLICES]
    counts = {"all items": numbers["counts"], **{name: row["counts"] for name, row in sorted(slices)}}
    tables: dict[str, Tensor] = {}
    for name, row in counts.items():
        drawn = "".join(letter if letter.isprintable() and ord(letter) < 0x250 else "?" for letter in name)
        # Two names can look alike once drawn, and both must stay.
        while drawn in tables:
            drawn += "'"
        tables[drawn] = torch.tensor([[row["n00"], row["n01"]], [row["n10"], row["n11"]]])
    return tables


def _phase_plane(ax: "Axes", tables: Mapping[str, Tensor], numbers: Numbers) -> None:
    from polyweave_torch.plot import phase_plane

    channels = {name: estimate_channel(table) for name, table in tables.items()}
    phase_plane(channels, level=numbers["level"], ax=ax)


def _forest(ax: "Axes", tables: Mapping[str, Tensor], numbers: Numbers) -> None:
    from polyweave_torch.plot import forest

    differences = {name: paired_difference_interval(table, level=numbers["level"]) for name, table in tables.items()}
    forest(differences, margin=(numbers["equivalence"] or {}).get("margin"), ax=ax)


def _flips(ax: "Axes", tables: Mapping[str, Tensor], numbers: Numbers) -> None:
    """Bars to the left for what was corrupted, to the right for what was corrected."""
    from matplotlib.ticker import MaxNLocator

    from polyweave_torch.plot.style import FONT, HARM, HELP, shorten

    # All items would dwarf their slices.
    shown = list(tables)[1:] or list(tables)
    for row, name in enumerate(shown):
        corrupted, corrected = int(tables[name][1, 0]), int(tables[name][0, 1])
        ax.barh(row, -corrupted, color=HARM, label="corrupted" if row == 0 else None)
        ax.barh(row, corrected, color=HELP, label="corrected" if row == 0 else None)
        for count, side in ((-corrupted, "right"), (corrected, "left")):
            ax.annotate(
                f"{abs(count)}",
                (count, row),
                xytext=(-4 if side == "right" else 4, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=FONT - 4,
            )
    ax.axvline(0.0, color="black", linewidth=1)
    ax.margins(x=0.12)
    ax.set_yticks(range(len(shown)), [shorten(name) for name in shown], fontsize=FONT - 2)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.set_xlabel("items", fontsize=FONT)
    ax.tick_params(axis="x", labelsize=FONT - 2)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=FONT - 3, frameon=False)
