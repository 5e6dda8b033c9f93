"""Every comparison of ``TRUTH.json``, which another program computed: exact, or refused where it is a trap."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from polyweave_torch.evallogs.alignment import align
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError
from tests.evallogs.logs import DATA, TRUTH, cells, counts, slice_counts

MINI, NANO = "openai/gpt-5.4-mini-2026-03-17", "openai/gpt-5-nano-2025-08-07"
GPQA = "csv_long/gpqa_diamond_gpt5nano_vs_gpt54mini/gpqa_diamond_scores.csv"
SWEBENCH = "swebench/verified_final_lists/FINAL_RESULTS.json"
UNIVERSE = DATA / "swebench/verified_final_lists/all_instance_ids.json"


class Case(NamedTuple):
    before: str
    after: str
    options: dict[str, Any] = {}  # noqa: RUF012
    arms: tuple[str | None, str | None] = (None, None)
    policies: dict[str, Any] = {}  # noqa: RUF012


def folders(name: str, options: dict[str, Any] | None = None, policies: dict[str, Any] | None = None) -> Case:
    return Case(f"{name}/before", f"{name}/after", options or {}, policies=policies or {})


def lm_eval(metric: str, filter: str | None = None) -> dict[str, Any]:
    return {"metric": metric, "filter": filter, "slice": "doc.topic"}


PLAIN = "lm_eval_generated/plain"
LISTS = "lm_eval_generated/list_and_nan_metrics"
PROMPTFOO = "promptfoo_generated"
CASES = {
    "lm_eval/mmlu_0shot_vs_5shot": [folders("lm_eval/mmlu_0shot_vs_5shot")],
    f"{PLAIN}/arith_mc:acc": [folders(PLAIN, lm_eval("acc"))],
    f"{PLAIN}/arith_mc:acc_norm": [folders(PLAIN, lm_eval("acc_norm"))],
    **{
        f"{PLAIN}/arith_gen:exact_match,{name}": [folders(PLAIN, lm_eval("exact_match", name))]
        for name in ("strict-match", "flexible-extract", "maj@5")
    },
    "lm_eval_generated/limit50:acc": [
        Case(f"{PLAIN}/before", "lm_eval_generated/limit50/after", {"metric": "acc"}),
    ],
    "lm_eval_generated/unsorted_samples:by_doc_hash(RIGHT)": [
        folders("lm_eval_generated/unsorted_samples", {"metric": "acc", "id": "doc_hash"})
    ],
    f"{LISTS}:prompt_level_strict_acc": [folders(LISTS, {"metric": "prompt_level_strict_acc"})],
    f"{LISTS}:inst_level_strict_acc(all)": [folders(LISTS, {"metric": "inst_level_strict_acc"})],
    "inspect/popularity_gpt4omini_feb_vs_sep": [folders("inspect/popularity_gpt4omini_feb_vs_sep")],
    "inspect_generated/plain:match": [
        folders(f"inspect_generated/{kind}/plain", {"slice": "metadata.topic"}) for kind in ("json", "eval_zstd")
    ],
    "inspect_generated/errors:errors_excluded": [
        folders(f"inspect_generated/{kind}/errors") for kind in ("json", "eval_zstd")
    ],
    "inspect_generated/errors:errors_as_wrong": [
        folders(f"inspect_generated/{kind}/errors", policies={"errors": "wrong"}) for kind in ("json", "eval_zstd")
    ],
    "csv_long/gpqa_diamond:epoch1": [Case(GPQA, GPQA, {"epochs": "first"}, (MINI, NANO))],
    "csv_long/gpqa_diamond:majority_3_of_5": [Case(GPQA, GPQA, {"epochs": "majority"}, (MINI, NANO))],
    "swebench/verified_final_lists:baseline_vs_polydev": [
        Case(SWEBENCH, SWEBENCH, {}, ("baseline", "polydev"), {"universe": UNIVERSE})
    ],
    "swebench/verified_final_lists:baseline_vs_hybrid": [
        Case(SWEBENCH, SWEBENCH, {}, ("baseline", "hybrid"), {"universe": UNIVERSE})
    ],
    "reflexion/humaneval_py": [folders("reflexion/humaneval_py")],
    "reflexion/mbpp_py": [folders("reflexion/mbpp_py")],
    "human_eval/gpt35_reruns:1SPT_vs_1SPT(4)": [Case("human_eval/run_a.jsonl", "human_eval/run_b.jsonl")],
    f"{PROMPTFOO}:errors_as_fail": [
        Case(
            f"{PROMPTFOO}/before/out_before{kind}",
            f"{PROMPTFOO}/after/out_after{kind}",
            options,
            (None, None),
            policies,
        )
        for kind in (".json", ".jsonl")
        for options, policies in [({"slice": "testCase.metadata.topic"}, {"errors": "wrong"})]
    ],
    f"{PROMPTFOO}:errors_excluded": [folders(PROMPTFOO)],
    f"{PROMPTFOO}:both_in_one_file": [
        Case(f"{PROMPTFOO}/both_in_one_file", f"{PROMPTFOO}/both_in_one_file", {}, ("model-before", "model-after"))
    ],
    "evalscope_generated:before_vs_after": [folders("evalscope_generated")],
    "evalscope_generated:rep3_vs_after:group_id,generation_index0": [
        Case("evalscope_generated/before_rep3", "evalscope_generated/after", {"epochs": "first"})
    ],
    "helm_generated:exact_match": [folders("helm_generated", {"metric": "exact_match"})],
}
TRAPS = {
    f"{PLAIN}/arith_gen:TRAP_all_rows_as_items",
    "lm_eval_generated/unsorted_samples:by_doc_id(WRONG)",
    "csv_long/gpqa_diamond:TRAP_990_pairs",
    "evalscope_generated:rep3_vs_after:by_index(WRONG)",
}
MEANS = "csv_long/gpqa_diamond:item_means"


@pytest.mark.parametrize(("entry", "case"), [(entry, case) for entry, cases in CASES.items() for case in cases])
def test_counts_and_alignment_are_exact(entry: str, case: Case) -> None:
    truth = TRUTH[entry]
    runs = [
        read_run(DATA / path, **case.options, arm=arm)
        for path, arm in zip((case.before, case.after), case.arms, strict=True)
    ]
    aligned = align(runs, **case.policies)
    assert counts(aligned) == cells(truth)
    assert aligned.alignment["aligned"] == truth["n"] == len(aligned.ids)
    only = {name: truth.get(name, 0) for name in ("only_before", "only_after")}
    assert {name: aligned.alignment[name] for name in only} == only
    if case.policies.get("errors") != "wrong":
        assert aligned.alignment["errors"] + aligned.alignment["unscored"] == truth.get("unscored_in_common", 0)
    if "slices" in truth:
        assert slice_counts(aligned) == {name: cells(part) for name, part in truth["slices"].items()}


def test_item_means_of_five_epochs_are_scores() -> None:
    truth = TRUTH[MEANS]
    runs = [read_run(DATA / GPQA, arm=arm, epochs="mean") for arm in (MINI, NANO)]
    scores = align(runs).scores
    assert scores is not None
    assert scores.shape == (truth["n_items"], 2)
    assert scores.mean(0) == pytest.approx([truth["mean_before"], truth["mean_after"]], rel=1e-12)
    differences = scores[:, 1] - scores[:, 0]
    assert differences.std(ddof=1) / np.sqrt(len(differences)) == pytest.approx(truth["se"], rel=1e-12)


def test_filters_are_not_pooled_into_items() -> None:
    with pytest.raises(ChoiceError, match="3 filters") as caught:
        read_run(DATA / PLAIN / "before", metric="exact_match")
    assert caught.value.option == "filter"
    assert caught.value.choices == ["strict-match", "flexible-extract", "maj@5"]


def test_ids_that_the_content_contradicts_are_refused() -> None:
    folder = DATA / "lm_eval_generated/unsorted_samples"
    runs = [read_run(folder / side, metric="acc") for side in ("before", "after")]
    with pytest.raises(
        ValueError, match=r"other content under the same id in 19 of 20 items: '90' .* against .*doc_hash"
    ):
        align(runs)


def test_epochs_are_not_pooled_into_pairs() -> None:
    with pytest.raises(ChoiceError, match="990 rows for 198 items") as caught:
        read_run(DATA / GPQA, arm=MINI)
    assert caught.value.option == "epochs"


def test_attempts_are_not_questions() -> None:
    with pytest.raises(ChoiceError, match="120 rows for 40 items"):
        read_run(DATA / "evalscope_generated/before_rep3")
    with pytest.raises(ValueError, match="index numbers the attempts"):
        read_run(DATA / "evalscope_generated/before_rep3", id="index")


def test_every_entry_is_tried() -> None:
    assert set(CASES) | TRAPS | {MEANS} == set(TRUTH)
