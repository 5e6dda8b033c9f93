"""The report of the release verdict, as text, markdown and plain data."""

from typing import Any

from polyweave_torch.functional._tables import plain
from polyweave_torch.functional._verdict_text import to_markdown, to_text
from polyweave_torch.functional.verdict_results import ReportFields


class VerdictReport(ReportFields):
    """May it ship, why, and from what numbers. ``str()`` of it is the report for a terminal."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON; an undefined number is None."""
        report = plain(self)
        for entry, pair in zip(report["pairs"], self.pairs, strict=True):
            entry["action"] = pair.label.action
        return {"schema": 1, **report}

    def to_markdown(self) -> str:
        """The report as markdown."""
        return to_markdown(self)

    def __str__(self) -> str:
        """The report for a terminal."""
        return to_text(self)
