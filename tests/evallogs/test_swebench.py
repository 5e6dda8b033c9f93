"""SWE-bench reports: lists of v0 and v2, single instances; what a list doesn't say must come from the universe."""

from pathlib import Path
from typing import Any

import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError, Run
from tests.evallogs.logs import DATA, counts, write_document

LISTS = DATA / "swebench/verified_final_lists/FINAL_RESULTS.json"
REPORT = {
    "total_instances": 6,
    "submitted_instances": 5,
    "completed_ids": ["a__a-1", "a__a-2", "b__b-3"],
    "incomplete_ids": ["b__b-6"],
    "empty_patch_ids": ["b__b-4"],
    "submitted_ids": ["a__a-1", "a__a-2", "b__b-3", "b__b-4", "b__b-5"],
    "resolved_ids": ["a__a-1", "b__b-3"],
    "unresolved_ids": ["a__a-2"],
    "error_ids": ["b__b-5"],
    "schema_version": 2,
}
RESULT = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "tests_status": {}}


def outcomes(run: Run) -> dict[str, int]:
    return dict(zip(run.ids, run.correct.tolist(), strict=True))


@pytest.mark.parametrize("indent", [None, 4])
def test_report_v2_names_its_own_universe(tmp_path: Path, indent: int | None) -> None:
    run = read_run(write_document(tmp_path / "report.json", REPORT, indent))
    assert run.format == "swebench"
    assert outcomes(run) == {"a__a-1": 1, "b__b-3": 1, "a__a-2": 0, "b__b-4": 0, "b__b-5": -1}
    assert [name for name, failed in zip(run.ids, run.errors, strict=True) if failed] == ["b__b-5"]
    assert run.slices == [name.split("__")[0] for name in run.ids]
    assert not run.only_right
    assert any("1 ids were not submitted" in warning for warning in run.warnings)


def test_lists_v0_with_all_generated(tmp_path: Path) -> None:
    report = {
        "no_generation": ["b__b-4"],
        "generated": ["a__a-1", "a__a-2", "b__b-3"],
        "with_logs": ["a__a-1", "a__a-2", "b__b-3"],
        "install_fail": ["b__b-3"],
        "applied": ["a__a-1", "a__a-2"],
        "resolved": ["a__a-1"],
    }
    run = read_run(write_document(tmp_path / "results.json", report))
    assert outcomes(run) == {"a__a-1": 1, "b__b-3": -1, "a__a-2": 0, "b__b-4": 0}
    assert not run.only_right


def test_lists_without_the_rest_need_a_universe(tmp_path: Path) -> None:
    report = {"no_generation": ["a__a-9"], "no_logs": [], "resolved": ["a__a-1"]}
    run = read_run(write_document(tmp_path / "results.json", report))
    assert run.only_right
    with pytest.raises(ValueError, match="universe"):
        align([run, run])
    aligned = align([run, run], universe=["a__a-1", "a__a-2", "b__b-1", "a__a-9"])
    assert counts(aligned) == {"n00": 3, "n01": 0, "n10": 0, "n11": 1}
    assert aligned.slices == ["a", "a", "b", "a"]


def test_discordant_pairs_do_not_depend_on_the_universe_but_rates_do() -> None:
    runs = [read_run(LISTS, arm=arm) for arm in ("baseline", "polydev")]
    small, large = (counts(align(runs, universe=size)) for size in (500, "2294"))
    assert [small[name] for name in ("n01", "n10", "n11")] == [large[name] for name in ("n01", "n10", "n11")]
    assert large["n00"] - small["n00"] == 2294 - 500
    with pytest.raises(ValueError, match="the universe has 100 items, but the runs name 373"):
        align(runs, universe=100)


def test_arms_of_one_file_need_a_choice() -> None:
    with pytest.raises(ChoiceError) as caught:
        read_run(LISTS)
    assert (caught.value.option, caught.value.choices) == ("arm", ["baseline", "polydev", "hybrid"])


def test_an_id_that_stands_twice_counts_once(tmp_path: Path) -> None:
    report = REPORT | {"resolved_ids": ["a__a-1", "b__b-3", "b__b-3"]}
    run = read_run(write_document(tmp_path / "report.json", report))
    assert outcomes(run)["b__b-3"] == 1
    assert any("resolved_ids holds 1 ids more than once" in warning for warning in run.warnings)


def test_an_id_that_is_resolved_and_unresolved_is_refused(tmp_path: Path) -> None:
    report = REPORT | {"unresolved_ids": ["a__a-1", "a__a-2"]}
    with pytest.raises(ValueError, match="1 ids are resolved and unresolved, such as 'a__a-1'"):
        read_run(write_document(tmp_path / "report.json", report))


def test_reports_of_single_instances(tmp_path: Path) -> None:
    results: dict[str, dict[str, Any]] = {
        "base": {"a__a-1": True, "a__a-2": False, "b__b-3": True},
        "tuned": {"a__a-1": True, "a__a-2": True, "b__b-3": False},
    }
    for model, instances in results.items():
        for name, resolved in instances.items():
            path = tmp_path / model / name / "report.json"
            write_document(path, {name: {**RESULT, "resolved": resolved}}, 4)
    with pytest.raises(ChoiceError) as caught:
        read_run(tmp_path)
    assert (caught.value.option, caught.value.choices) == ("arm", ["base", "tuned"])
    runs = [read_run(tmp_path / "base"), read_run(tmp_path, arm="tuned")]
    assert [outcomes(run) for run in runs] == [results["base"], results["tuned"]]
    assert counts(align(runs)) == {"n00": 0, "n01": 1, "n10": 1, "n11": 1}
