"""Runs over the same items, compared: from aligned outcomes to every number, the verdict and the reports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyweave_torch.evallogs.alignment import Aligned, align
from polyweave_torch.evallogs.figures import can_draw, draw_figures
from polyweave_torch.evallogs.outcomes import Settings, compare_correct
from polyweave_torch.evallogs.page import Picture, to_html
from polyweave_torch.evallogs.report import report_sections
from polyweave_torch.evallogs.run import Run
from polyweave_torch.evallogs.scores import compare_scores
from polyweave_torch.evallogs.source import repeated
from polyweave_torch.evallogs.universe import Universe
from polyweave_torch.evallogs.verdicts import ACTIONS
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.functional._tables import plain
from polyweave_torch.functional.channel import channel_counts
from polyweave_torch.functional.mcnemar import Method
from polyweave_torch.layout import Section, to_markdown, to_text

Values = Tensor | NDArray[Any] | Sequence[Any]

SHOWN_FLIPS = 5
"""Flipped items that a report lists in each direction."""
PAGE_FLIPS = 200
"""Flipped items that a page lists in each direction."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What changed from the first to the last of several runs over the same items.

    Its parts are what :meth:`to_dict` returns; ``print(comparison)`` prints :meth:`to_text`.

    Example:
        >>> from polyweave_torch.evallogs import compare_outcomes
        >>> comparison = compare_outcomes([0] * 40 + [1] * 60, [0] * 10 + [1] * 85 + [0] * 5)
        >>> comparison.label, comparison.to_dict()["counts"]
        ('PROGRESS', {'n00': 10, 'n01': 30, 'n10': 5, 'n11': 55})
    """

    numbers: dict[str, Any]
    """Plain numbers, texts, lists and dicts; an undefined number is None."""
    aligned: Aligned
    """The outcomes behind them."""

    @property
    def label(self) -> str:
        """The verdict: REGRESS CAUTIOUS PROGRESS EQUIVALENT UNDERPOWERED or NOISE."""
        return str(self.numbers["verdict"]["label"])

    def flips(self, *, corrupted: bool | None = None) -> Iterator[dict[str, Any]]:
        """The items that flipped, in their order.

        Args:
            corrupted: True: only those that were right and became wrong; False: only those that became right; None:
                both.

        Yields:
            ``id``, ``slice``, ``direction`` ("corrupted" or "corrected"), ``before`` and ``after`` (right?),
            ``answer_before``, ``answer_after``; what is not known is None.
        """
        before, after = self.aligned.correct[:, 0], self.aligned.correct[:, -1]
        slices, answers = self.aligned.slices, self.aligned.answers
        flipped = before != after if corrupted is None else (before != after) & (before == corrupted)
        for item in np.flatnonzero(flipped).tolist():
            was_right = bool(before[item])
            yield {
                "id": self.aligned.ids[item],
                "slice": slices[item] if slices else None,
                "direction": "corrupted" if was_right else "corrected",
                "before": was_right,
                "after": not was_right,
                "answer_before": answers[0][item] if answers else None,
                "answer_after": answers[-1][item] if answers else None,
            }

    def to_dict(self, *, flips: int = SHOWN_FLIPS) -> dict[str, Any]:
        """The comparison as plain data, ready for JSON.

        Args:
            flips: how many flipped items to list in each direction.

        Returns:
            The object that ``polyweave-torch compare --json`` prints.
        """
        listed = {
            name: list(islice(self.flips(corrupted=name == "corrupted"), flips)) for name in ("corrupted", "corrected")
        }
        return {**self.numbers, "flipped": listed}

    def to_text(self, *, flips: int = SHOWN_FLIPS) -> str:
        """The report for a terminal, at most 100 columns wide."""
        return to_text(report_sections(self.to_dict(flips=flips)))

    def to_markdown(self, *, flips: int = SHOWN_FLIPS) -> str:
        """The report as markdown."""
        return to_markdown(report_sections(self.to_dict(flips=flips)))

    def to_html(self, *, flips: int = PAGE_FLIPS) -> str:
        """The report as one page with figures and sortable tables.

        It loads nothing and runs nothing that came from a file. Figures need matplotlib; without it the page says so.
        """
        sections = report_sections(self.to_dict(flips=flips))
        if not can_draw():
            said = "There are no figures, since matplotlib is not installed: pip install 'polyweave-torch[plot]'."
            return to_html([*sections, Section("Figures", [said])])
        return to_html(sections, [Picture(figure.title, figure.to_svg()) for figure in draw_figures(self.numbers)])

    def __str__(self) -> str:
        return self.to_text()


def compare_outcomes(
    before: Values,
    after: Values,
    *,
    slices: Values | None = None,
    ids: Values | None = None,
    margin: float | None = None,
    level: float = 0.95,
    alpha: float = 0.05,
    method: Method = "auto",
) -> Comparison:
    """Compare two arms from whether each was right on the same items.

    Args:
        before: ``[N]`` outcomes (bool, or 0 and 1), an array, a tensor or a sequence.
        after: ``[N]`` outcomes of the same items in the same order.
        slices: N labels, to look at each slice too; Holm's adjustment is over them.
        ids: N names of the items, for the list of those that flipped; by default their positions.
        margin: the smallest difference of accuracies that would matter, to test equivalence and non-inferiority.
        level: confidence level of the intervals.
        alpha: error rate of the tests.
        method: McNemar's test that decides, as in :func:`~polyweave_torch.functional.mcnemar`.

    Returns:
        :class:`Comparison`.

    Raises:
        ValueError: where lengths differ or an outcome is neither 0 nor 1.

    Example:
        >>> comparison = compare_outcomes([1, 1, 0, 0, 1], [1, 0, 1, 1, 1], slices=["a", "a", "a", "b", "b"])
        >>> comparison.label, comparison.to_dict()["slices"]["a"]["counts"]
        ('UNDERPOWERED', {'n00': 0, 'n01': 1, 'n10': 1, 'n11': 1})
    """
    first, last = (torch.as_tensor(arm).detach().cpu() for arm in (before, after))
    items = int(channel_counts(first, last).sum())
    correct = torch.stack((first.to(torch.bool), last.to(torch.bool)), 1).numpy()
    names = [str(item) for item in range(items)] if ids is None else _labels(ids, items, "ids")
    if len(set(names)) < len(names):
        twice = repeated(names)[0]
        raise ValueError(f"ids must name each item once, but {twice!r} comes more than once; an item is one pair")
    runs = [
        Run(
            name=name,
            path="",
            format="outcomes",
            ids=names,
            correct=correct[:, arm].astype(np.int8),
            errors=np.zeros(items, np.bool_),
        )
        for arm, name in enumerate(("before", "after"))
    ]
    aligned = Aligned(
        runs=runs,
        ids=names,
        correct=correct,
        scores=None,
        slices=None if slices is None else _labels(slices, items, "slices"),
        answers=None,
        alignment={"aligned": items, "only_before": 0, "only_after": 0, "unscored": 0, "errors": 0},
        warnings=[],
    )
    return compare_aligned(aligned, margin=margin, level=level, alpha=alpha, method=method)


def compare_runs(
    runs: Sequence[Run],
    *,
    missing: Literal["drop", "wrong"] = "drop",
    errors: Literal["drop", "wrong"] = "drop",
    universe: Universe | None = None,
    margin: float | None = None,
    level: float = 0.95,
    alpha: float = 0.05,
    method: Method = "auto",
    prompts_may_differ: bool = False,
) -> Comparison:
    """Align two or more runs by item and compare them: the first with the last, and from three on all pairs.

    Args:
        runs: as :func:`~polyweave_torch.evallogs.read_run` returns them.
        missing: what an item counts as in a run that lacks it.
        errors: what an item counts as in a run that failed on it. Left out of all runs by default, since what a log
            calls an error (a timeout, a lost connection) mostly says nothing of the model;
            :func:`~polyweave_torch.ablation.analyze_outcomes`, which sees its own runs, counts it as wrong.
        universe: the items that count, for runs that name only what they got right.
        margin: the smallest difference that would matter, to test equivalence and non-inferiority.
        level: confidence level of the intervals.
        alpha: error rate of the tests.
        method: McNemar's test that decides, as in :func:`~polyweave_torch.functional.mcnemar`.
        prompts_may_differ: the prompt is the change: where prompts differ, neither warn nor be CAUTIOUS for it.

    Returns:
        :class:`Comparison`. Runs whose outcomes are not 0 and 1 are compared by the paired bootstrap of their scores.

    Raises:
        ValueError: where the runs can't be aligned, or no item has an outcome in all of them.

    Example:
        >>> import pathlib, tempfile
        >>> from polyweave_torch.evallogs import read_run
        >>> logs = pathlib.Path(tempfile.mkdtemp())
        >>> for name, rows in (("monday", "a,1 b,0 c,1"), ("friday", "c,1 b,1 a,0 d,1")):
        ...     _ = (logs / f"{name}.csv").write_text("\\n".join(["id,correct", *rows.split()]))
        >>> comparison = compare_runs([read_run(logs / f"{name}.csv") for name in ("monday", "friday")])
        >>> comparison.label, comparison.to_dict()["counts"], comparison.to_dict()["alignment"]["only_after"]
        ('UNDERPOWERED', {'n00': 0, 'n01': 1, 'n10': 1, 'n11': 1}, 1)
    """
    aligned = align(runs, missing=missing, errors=errors, universe=universe, prompts_may_differ=prompts_may_differ)
    if not aligned.ids:
        raise ValueError(
            f"no item has an outcome in every run: {aligned.alignment['unscored']} are unscored and "
            f"{aligned.alignment['errors']} failed; check the metric, or count failures with errors='wrong' "
            "(--errors wrong)"
        )
    return compare_aligned(
        aligned, margin=margin, level=level, alpha=alpha, method=method, prompts_may_differ=prompts_may_differ
    )


def compare_aligned(
    aligned: Aligned,
    *,
    margin: float | None,
    level: float,
    alpha: float,
    method: Method,
    prompts_may_differ: bool = False,
) -> Comparison:
    """Compare runs that are aligned already; arguments as for :func:`compare_runs`."""
    check_open_unit(alpha, name="alpha")
    settings = Settings(margin, level, alpha, method, prompts_may_differ)
    numbers = compare_scores(aligned, settings) if aligned.scores is not None else compare_correct(aligned, settings)
    data: dict[str, Any] = plain(
        {
            "schema": 1,
            **numbers,
            "alignment": aligned.alignment,
            "verdict": {**numbers["verdict"], "action": ACTIONS[numbers["verdict"]["label"]]},
            "prompts_differ": aligned.prompts_differ,
            "level": level,
            "alpha": alpha,
            "warnings": [*aligned.warnings, *numbers["warnings"]],
        }
    )
    return Comparison(data, aligned)


def _labels(labels: Values, items: int, name: str) -> list[str]:
    values = labels.tolist() if isinstance(labels, (Tensor, np.ndarray)) else labels
    texts = [str(label) for label in values]
    if len(texts) != items:
        raise ValueError(f"{name} must hold one label an item, {items} like before, but holds {len(texts)}")
    return texts
