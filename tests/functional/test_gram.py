import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polyweave_torch.functional.gram import OutcomeGram, gram_update, outcome_gram, paired_tables
from polyweave_torch.functional.mcnemar import mcnemar_pairs


def outcomes(rows: int, conditions: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random outcomes, mask and strata 0 to 4 (4 is outside of 4 slices)."""
    generator = torch.Generator().manual_seed(seed)
    correct = torch.rand(rows, conditions, generator=generator) < 0.6
    mask = torch.rand(rows, conditions, generator=generator) < 0.8
    return correct, mask, torch.randint(0, 5, (rows,), generator=generator)


def brute_force(correct: list[list[bool]], mask: list[list[bool]], conditions: int) -> list[object]:
    pairs = list(itertools.product(range(conditions), repeat=2))
    rows = list(zip(correct, mask, strict=True))
    whole = [x for x, seen in rows if all(seen)]

    def table(counts: list[int]) -> list[list[int]]:
        return [counts[i * conditions : (i + 1) * conditions] for i in range(conditions)]

    return [
        table([sum(x[i] and x[j] and m[i] and m[j] for x, m in rows) for i, j in pairs]),
        table([sum(x[i] and m[i] and m[j] for x, m in rows) for i, j in pairs]),
        table([sum(m[i] and m[j] for _, m in rows) for i, j in pairs]),
        table([sum(x[i] and x[j] for x in whole) for i, j in pairs]),
        len(whole),
        [sum(sum(x) == total for x in whole) for total in range(conditions + 1)],
    ]


def as_lists(gram: OutcomeGram) -> list[object]:
    return [counts.tolist() for counts in gram]


def same(first: OutcomeGram, second: OutcomeGram) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_a_plain_count(rows: int, conditions: int, seed: int, masked: bool) -> None:
    correct, mask, _ = outcomes(rows, conditions, seed=seed)
    mask = mask if masked else torch.ones_like(mask)
    expected = brute_force(correct.tolist(), mask.tolist(), conditions)
    assert as_lists(outcome_gram(correct, mask=mask)) == expected
    if not masked:
        assert as_lists(outcome_gram(correct)) == expected


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float64])
def test_any_dtype_of_zeros_and_ones_counts_alike(dtype: torch.dtype) -> None:
    correct, mask, _ = outcomes(50, 3)
    gram = outcome_gram(correct.to(dtype), mask=mask)
    assert same(gram, outcome_gram(correct, mask=mask))
    assert all(counts.dtype == torch.int64 for counts in gram)


@pytest.mark.parametrize(("conditions", "strata"), [(6, 4), (3, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_each_slice_counts_its_own_rows(conditions: int, strata: int, masked: bool) -> None:
    correct, mask, slice_index = outcomes(200, conditions)
    seen = mask if masked else None
    sliced = gram_update(correct, mask=seen, slice_index=slice_index.to(torch.uint8), num_slices=strata)
    for s in range(strata):
        rows = slice_index == s
        alone = gram_update(correct[rows], mask=mask[rows] if masked else None)
        assert same(OutcomeGram(*(counts[s] for counts in sliced)), alone)


def test_one_slice_keeps_its_dimension() -> None:
    correct, mask, _ = outcomes(20, 3)
    sliced, flat = gram_update(correct, mask=mask, num_slices=1), gram_update(correct, mask=mask)
    assert sliced.gram.shape == (1, 3, 3)
    assert same(OutcomeGram(*(counts[0] for counts in sliced)), flat)


@pytest.mark.parametrize("masked", [False, True])
def test_counts_add_over_batches(masked: bool) -> None:
    correct, mask, slice_index = outcomes(100, 4)

    def count(part: slice) -> OutcomeGram:
        seen = mask[part] if masked else None
        return gram_update(correct[part], mask=seen, slice_index=slice_index[part], num_slices=4)

    batches = [count(part) for part in (slice(0, 7), slice(7, 7), slice(7, 60), slice(60, 100))]
    total = OutcomeGram(*(torch.stack(counts).sum(0) for counts in zip(*batches, strict=True)))
    assert same(total, count(slice(0, 100)))


def test_counts_do_not_depend_on_the_blocks() -> None:
    # 3,000 rows of 300 conditions are several blocks.
    correct, mask, slice_index = outcomes(3000, 300)
    counts = gram_update(correct, mask=mask, slice_index=slice_index, num_slices=5)
    x, m = (correct & mask).double(), mask.double()
    assert torch.equal(counts.gram.sum(0).double(), x.T @ x)
    assert torch.equal(counts.observed.sum(0).double(), x.T @ m)


def test_counts_are_exact_beyond_what_float32_can_count() -> None:
    # 2^24 + 1 is the first integer that float32 does not have.
    rows = 2**24 + 1
    gram = gram_update(torch.ones(1, 1, dtype=torch.bool).expand(rows, 1))
    assert [counts.tolist() for counts in gram] == [[[rows]], [[rows]], [[rows]], [[rows]], rows, [0, rows]]


def test_autocast_does_not_change_the_counts() -> None:
    correct = torch.ones(1000, 2, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert gram_update(correct).gram.tolist() == [[1000, 1000], [1000, 1000]]


def test_the_update_compiles_to_one_graph() -> None:
    compiled = torch.compile(gram_update, fullgraph=True, backend="aot_eager")
    correct, mask, slice_index = outcomes(40, 3)
    assert same(compiled(correct), gram_update(correct))
    options: dict[str, Any] = {"mask": mask, "slice_index": slice_index, "num_slices": 4}
    assert same(compiled(correct, **options), gram_update(correct, **options))


@pytest.mark.parametrize("masked", [False, True])
def test_tables_are_those_of_a_plain_count(masked: bool) -> None:
    correct, mask, _ = outcomes(60, 3)
    seen = mask if masked else torch.ones_like(mask)
    tables = paired_tables(outcome_gram(correct, mask=mask if masked else None))
    for i, j, before, after in itertools.product(range(3), range(3), range(2), range(2)):
        rows = seen[:, i] & seen[:, j] & (correct[:, i] == before) & (correct[:, j] == after)
        assert tables[i, j, before, after].item() == int(rows.sum())


def test_a_bare_matrix_gives_the_same_tables() -> None:
    correct, _, slice_index = outcomes(60, 3)
    gram = gram_update(correct, slice_index=slice_index, num_slices=5)
    assert torch.equal(paired_tables(gram.gram, n=gram.complete_n), paired_tables(gram))
    assert torch.equal(paired_tables(gram.gram[0].tolist(), n=int(gram.complete_n[0])), paired_tables(gram)[0])


def test_values_behind_the_mask_are_not_read() -> None:
    correct = torch.tensor([[1.0, float("nan")], [0.0, 1.0]])
    mask = torch.tensor([[True, False], [True, True]])
    assert outcome_gram(correct, mask=mask).observed.tolist() == [[1, 0], [1, 1]]
    with pytest.raises(ValueError, match="binary"):
        outcome_gram(correct)


def test_no_conditions_and_no_rows_are_empty_not_wrong() -> None:
    assert outcome_gram(torch.ones(4, 0)).row_totals.tolist() == [4]
    assert paired_tables(outcome_gram(torch.ones(0, 2))).sum() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": torch.ones(3, dtype=torch.bool)}, r"mask must have one value an outcome, shape \[3, 2\]"),
        ({"slice_index": torch.zeros(2, dtype=torch.int64), "num_slices": 2}, "one value a sample"),
        ({"slice_index": torch.zeros(3, dtype=torch.int64)}, "num_slices=None belong together"),
        ({"num_slices": 2}, "num_slices=2 belong together"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gram_update(torch.ones(3, 2), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": torch.ones(3, 2)}, "mask must be bool"),
        ({"mask": [[True, True]] * 3}, "mask must be a tensor, but is a list"),
        ({"slice_index": torch.zeros(3), "num_slices": 2}, "slice_index must be integers"),
        ({"slice_index": [0, 1, 1], "num_slices": 2}, "slice_index must be a tensor, but is a list"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gram_update(torch.ones(3, 2), **options)


def test_masks_may_be_lists() -> None:
    correct, mask = [[1, 0], [1, 1], [0, 7]], [[True, True], [True, True], [True, False]]
    assert same(outcome_gram(correct, mask=mask), outcome_gram(torch.tensor(correct), mask=torch.tensor(mask)))


def test_outcomes_need_rows_and_columns() -> None:
    with pytest.raises(ValueError, match=r"shape \[N, K\]"):
        outcome_gram([1, 0, 1])


@pytest.mark.parametrize(
    ("gram", "n", "message"),
    [
        ([[3, 2, 1], [2, 2, 1]], 4, r"\[\.\.\., K, K\]"),
        ([[3, 2], [1, 2]], 4, "symmetric"),
        ([[3, 3], [3, 2]], 4, "symmetric"),
        ([[3, 0], [0, 2]], 4, "no more than n rows"),
        ([[3, 2], [2, 2]], [4, 4], "one number of rows a matrix"),
    ],
)
def test_what_cannot_be_a_gram_matrix_is_refused(gram: list[list[int]], n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_tables(gram, n=n)


def test_the_number_of_rows_comes_from_one_place() -> None:
    gram = outcome_gram(torch.ones(3, 2))
    with pytest.raises(TypeError, match="part of an OutcomeGram"):
        paired_tables(gram, n=3)
    with pytest.raises(TypeError, match="n, the number of rows"):
        paired_tables(gram.gram)
    with pytest.raises(TypeError, match="must be integers"):
        paired_tables(gram.gram / 3, n=1)


def test_outcomes_in_place_of_a_gram_matrix_are_told_where_to_go() -> None:
    with pytest.raises(TypeError, match=r"n, the number of rows.*outcome_gram"):
        mcnemar_pairs(torch.tensor([[1, 0], [0, 1]]))


@pytest.mark.parametrize("n", [4.9, 4.0, float("nan"), torch.tensor(4.0)])
def test_a_number_of_rows_is_whole(n: Any) -> None:
    with pytest.raises(TypeError, match="n, the number of rows, must be integers"):
        paired_tables(torch.tensor([[3, 2], [2, 2]]), n=n)
