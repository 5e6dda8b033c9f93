"""The reports: one content in three layouts, narrow enough, and nothing from a file escapes its cell."""

import html
import re

import numpy as np
import pytest

from polyweave_torch.evallogs import Comparison, compare_outcomes
from polyweave_torch.evallogs.alignment import Aligned
from polyweave_torch.evallogs.comparison import compare_aligned
from polyweave_torch.evallogs.page import to_html
from polyweave_torch.evallogs.report import report_sections
from polyweave_torch.evallogs.run import Run
from polyweave_torch.layout import Section, Table, to_markdown, to_text

SCRIPT = "<script>alert(1)</script>"


def hostile(text: str, *, runs: int = 2, scores: bool = False) -> Comparison:
    """A comparison in which every text that a file can bring is ``text``."""
    rng = np.random.default_rng(0)
    items = 40
    ids = [f"{item}{text}" for item in range(items)]
    outcomes = rng.random((items, runs))
    labels = [f"{item % 3}{text}" for item in range(items)]
    aligned = Aligned(
        runs=[
            Run(
                name=f"{text}{arm}",
                path=text,
                format=text,
                ids=ids,
                correct=np.ones(items, np.int8),
                errors=np.zeros(items, np.bool_),
                details={text: text},
            )
            for arm in range(runs)
        ],
        ids=ids,
        correct=outcomes > 0.5,
        scores=outcomes if scores else None,
        slices=labels,
        answers=[[f"{text}{rng.integers(3)}" for _ in range(items)] for _ in range(runs)],
        alignment={"aligned": items, "only_before": 1, "only_after": 2, "unscored": 3, "errors": 4},
        warnings=[text],
        prompts_differ=7,
    )
    return compare_aligned(aligned, margin=0.1, level=0.95, alpha=0.05, method="auto")


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize(
    "text", ["x", "a-very-long-name_" * 20, "名" * 150, "two words " * 30, "line\nbreak\x1b[31m\ud800"]
)
def test_text_fits_100_columns_and_prints(text: str, scores: bool) -> None:
    report = hostile(text, runs=4, scores=scores).to_text(flips=50)
    assert max(map(len, report.split("\n"))) <= 100
    assert all(line.isprintable() for line in report.split("\n"))
    report.encode("utf-8")


@pytest.mark.parametrize(
    "text", ["a|b", "`x`", "[click](http://x)", "*b*", SCRIPT, "back\\slash", "![i](x)", "line\nbreak"]
)
def test_nothing_from_a_file_becomes_markdown(text: str) -> None:
    def shape(report: str) -> list[int]:
        return [len(re.findall(r"(?<!\\)\|", line)) for line in report.split("\n")]

    report = hostile(text, runs=3).to_markdown()
    assert shape(report) == shape(hostile("plain", runs=3).to_markdown())
    assert "<script" not in report
    assert not re.search(r"(?<!\\)\]\(", report)
    assert not re.search(r"(?<!\\)`", report)


def cells(sections: list[Section]) -> list[str]:
    return [
        cell
        for section in sections
        for block in section.blocks
        if isinstance(block, Table)
        for row in (block.head, *block.rows)
        for cell in row
    ]


def test_the_three_layouts_hold_the_same_cells() -> None:
    comparison = hostile("name", runs=3)
    sections = report_sections(comparison.to_dict())
    wanted = cells(sections)
    text = " ".join(to_text(sections).split())
    markdown, page = to_markdown(sections), to_html(sections)
    for cell in wanted:
        assert " ".join(cell.split()) in text
        assert cell.replace("|", "&#124;").replace("<", "&lt;") in markdown
        assert f">{html.escape(cell)}</t" in page


def test_the_report_says_what_the_numbers_say() -> None:
    before, after = [0] * 81 + [1] * 419, [0] * 49 + [1] * 32 + [0] * 114 + [1] * 305
    report = " ".join(str(compare_outcomes(before, after)).split())
    for said in (
        "REGRESS: do not ship",
        "83.80",  # accuracy before
        "67.40",
        "c, correction rate 39.51 29.57 to 50.39 of the 81 wrong before",
        "gamma, corruption rate 27.21 23.17 to 31.66 of the 419 right before",
        "delta -16.40",
        "break-even c 140.74",
        "Quadrant: HARMFUL",
        "chi2-edwards, which decides (statistic 44.94)",
        "exact binomial 5.42e-12",
        "mid-p 3.46e-12",
        "Discordant items: 146",
        "The interval of delta above is Tango's.",
    ):
        assert said in report


def test_slices_are_read_out_alone_and_after_holm() -> None:
    # SWE-bench's pattern: nothing pooled, two projects in opposite directions, neither after Holm over many.
    groups = {"django": (43, 31, 12, 145), "sympy": (20, 4, 13, 38), **{f"p{i}": (5, 0, 0, 5) for i in range(10)}}
    before: list[int] = []
    after: list[int] = []
    labels: list[str] = []
    for name, (n00, n01, n10, n11) in groups.items():
        before += [0] * (n00 + n01) + [1] * (n10 + n11)
        after += [0] * n00 + [1] * n01 + [0] * n10 + [1] * n11
        labels += [name] * (n00 + n01 + n10 + n11)
    report = " ".join(str(compare_outcomes(before, after, slices=labels)).split())
    assert "Taken alone, p < 0.05: django up, sympy down." in report
    assert "After Holm over the 12 slices, p < 0.05: none." in report
    assert "the pooled difference hides slices that differ" in report
    assert "use the change on django; keep what was before on sympy. Nothing changed on p0, p1, " in report


def test_where_no_item_changed_sides_no_quadrant_is_called() -> None:
    # By the formula a lone item that both have right is HARMFUL: all that its rates are made of is the smoothing.
    comparison = compare_outcomes([0, 1, 1], [1, 1, 0], slices=["moved", "still", "moved"])
    assert comparison.to_dict()["slices"]["still"]["quadrant"] == "HARMFUL"
    assert re.search(r"^still .* no change  -$", comparison.to_text(), re.MULTILINE)
    assert re.search(r"^\| still \| .*\| no change \| - \|$", comparison.to_markdown(), re.MULTILINE)
    assert '<td class="l">no change</td>' in comparison.to_html()
    assert "Nothing changed on still." in " ".join(comparison.to_text().split())
    for report in (still := compare_outcomes([1], [1])).to_text(), still.to_markdown(), still.to_html():
        assert "Quadrant: none, since no item changed." in report
        assert "HARMFUL" not in report
    assert still.to_dict()["quadrant"] == "HARMFUL"


def test_no_difference_is_not_called_a_change() -> None:
    same, swapped = compare_outcomes([0, 1, 1], [0, 1, 1]), compare_outcomes([0, 1, 1], [1, 0, 1])
    assert "- accuracy did not change\n" in str(same)
    assert "- accuracy did not change: 1 corrected and 1 corrupted\n" in str(swapped)
    assert "- only 1 item changed;" in str(compare_outcomes([0, 1, 1], [1, 1, 1]))
    for comparison in (same, swapped):
        assert "changed within chance" not in str(comparison)
    numbers = hostile("x", scores=True).to_dict()
    numbers |= {"delta": 0.0, "verdict": {**numbers["verdict"], "reasons": ["not-significant"]}}
    for up, said in ((0, "no score changed"), (1, "the mean score did not change: 1 item up, 2 down")):
        numbers["scores"] = {**numbers["scores"], "up": up, "down": 2 * up}
        assert f"- {said}\n" in to_text(report_sections(numbers))


def test_each_slice_is_advised_by_its_expected_gain() -> None:
    up, down = [0] * 20 + [1] * 20, [1] * 38 + [0] * 2
    report = " ".join(str(compare_outcomes(up + down, down + up, slices=["a"] * 40 + ["b"] * 40)).split())
    assert "use the change on a; keep what was before on b." in report


def test_long_lists_are_cut_and_say_so() -> None:
    labels = [f"s{item:03}" for item in range(100)]
    report = " ".join(str(compare_outcomes([0, 1] * 50, [1, 0] * 50, slices=labels)).split())
    assert "38 more" in report


@pytest.mark.parametrize("scores", [False, True])
def test_long_names_lose_their_middle_outside_of_tables_too(scores: bool) -> None:
    numbers = hostile("x" * 60_000, runs=3, scores=scores).to_dict()
    numbers["verdict"]["reasons"] += [f"slice-down:{name}" for name in numbers["slices"]]
    for run in numbers["runs"]:
        run["name"] = "x" * 60_000
    report = to_markdown(report_sections({**numbers, "warnings": []}))
    assert max(map(len, report.splitlines())) < 5_000


def test_flipped_items_are_listed_as_many_as_asked() -> None:
    comparison = compare_outcomes([1] * 8 + [0] * 4, [0] * 8 + [1] * 4, ids=[f"item{i}" for i in range(12)])
    assert "Corrupted, 5 of 8:" in str(comparison)
    assert "Corrupted, 8 of 8:" in comparison.to_text(flips=100)
    assert "Corrected, 4 of 4:" in comparison.to_markdown(flips=100)
    assert "Items that flipped" not in comparison.to_html(flips=0)


def test_of_three_runs_the_report_says_which_two_the_verdict_is_of() -> None:
    first = hostile("p", runs=3).to_text().split("\n")[2]
    assert first == "- verdict of p0 -> p2, the first run against the last of 3; pairs below"
    assert "verdict of" not in hostile("p").to_text()


def test_runs_of_one_name_are_told_apart_by_their_files() -> None:
    numbers = hostile("x").to_dict()
    for run, path in zip(numbers["runs"], ("old/log", "new/log"), strict=True):
        run |= {"name": "model", "path": path}
    assert "What changed: old/log (model) -> new/log (model)" in to_text(report_sections(numbers))
