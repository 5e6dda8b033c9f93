"""Read logs of finished evaluation runs, align them by item, compare them."""

from polyweave_torch.evallogs.alignment import Aligned
from polyweave_torch.evallogs.comparison import Comparison, compare_outcomes, compare_runs
from polyweave_torch.evallogs.events import Event, to_events
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError, Run

__all__ = [
    "Aligned",
    "ChoiceError",
    "Comparison",
    "Event",
    "Run",
    "compare_outcomes",
    "compare_runs",
    "read_run",
    "to_events",
]
