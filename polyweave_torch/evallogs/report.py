"""What the report of a comparison says: sections of prose and tables, from the plain numbers alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from polyweave_torch.layout import Section, Table, clipped, counted

Numbers = Mapping[str, Any]

_LISTED = 12
_NO_CHANGE = "no change"


def report_sections(numbers: Numbers) -> list[Section]:
    """The sections of the report, the verdict first.

    Args:
        numbers: as :meth:`~polyweave_torch.evallogs.Comparison.to_dict` returns them.
    """
    scored = numbers["scores"] is not None
    sections = [_verdict(numbers), _accuracy(numbers)]
    sections += [_scores(numbers)] if scored else [_channel(numbers), _tests(numbers)]
    sections += [_margin(numbers)] if numbers["equivalence"] else []
    sections += [_score_slices(numbers) if scored else _slices(numbers)] if numbers["slices"] else []
    sections += [_score_pairs(numbers) if scored else _pairs(numbers)] if numbers["pairs"] else []
    sections += [section for section in (_flipped(numbers),) if section.blocks]
    return sections


def _verdict(numbers: Numbers) -> Section:
    verdict = numbers["verdict"]
    reasons = [_reason(code, numbers) for code in verdict["reasons"]]
    blocks: list[str | list[str] | Table] = [[*_which_pair(numbers), *reasons]]
    if numbers["warnings"]:
        blocks += ["Warnings:", list(numbers["warnings"])]
    return Section(f"{verdict['label']}: {verdict['action']}", blocks)


def _which_pair(numbers: Numbers) -> list[str]:
    names = _names(numbers)
    if len(names) < 3:
        return []
    return [f"verdict of {names[0]} -> {names[-1]}, the first run against the last of {len(names)}; pairs below"]


def _reason(code: str, numbers: Numbers) -> str:
    kind, _, name = code.partition(":")
    alpha, delta, discordant = numbers["alpha"], numbers["delta"], numbers["mcnemar"]["discordant"]
    if numbers["scores"] is None:
        test, what, size = numbers["mcnemar"], "accuracy", f"{_points(delta)} points"
        basis = f"p = {_p(test['p_value'])} ({test['method']}), alpha {alpha:g}"
    else:
        what, size, basis = "the mean score", _signed(delta), f"by the bootstrap interval of level {1 - alpha:g}"
    margin = (numbers["equivalence"] or {}).get("margin")
    sentences = {
        "significantly-down": f"{what} fell by more than chance: {size}, {basis}",
        "significantly-up": f"{what} rose by more than chance: {size}, {basis}",
        "not-significant": _unchanged(numbers) or f"{what} changed within chance: {size}, {basis}",
        "slice-down": f"slice {clipped(name)} fell by more than chance, also when all slices are taken into account",
        "prompts-differ": f"the runs asked differently on {numbers['prompts_differ']} items: the prompt may be what "
        "changed, and not the model; where that is the change: --prompts-may-differ",
        "equivalent": f"the difference is shown to be smaller than the margin of {margin}",
        "not-equivalent": f"the difference is not shown to be smaller than the margin of {margin}",
        "underpowered": f"only {counted(discordant or 0, 'item')} changed; fewer than 25 can show little",
        "no-discordants": "no item changed, so there is nothing to test",
    }
    return sentences[kind]


def _unchanged(numbers: Numbers) -> str:
    """What to say where the difference is exactly 0, else nothing."""
    scores, counts = numbers["scores"], numbers["counts"]
    if numbers["delta"] != 0.0:
        return ""
    if scores is not None:
        balanced = f"{counted(scores['up'], 'item')} up, {scores['down']} down"
        return f"the mean score did not change: {balanced}" if scores["up"] or scores["down"] else "no score changed"
    if not counts["n01"] and not counts["n10"]:
        return "accuracy did not change"
    return f"accuracy did not change: {counts['n01']} corrected and {counts['n10']} corrupted"


def _stood_still(row: Numbers) -> bool:
    """Whether no item changed sides: rates are then made of nothing but the smoothing."""
    return not row["counts"]["n01"] and not row["counts"]["n10"]


def _accuracy(numbers: Numbers) -> Section:
    runs, alignment = numbers["runs"], numbers["alignment"]
    scored = numbers["scores"] is not None
    what = "mean score" if scored else "accuracy"
    interval = f"{numbers['level']:.4g} {'bootstrap' if scored else 'Wilson'}"
    rows = [
        (name, run["format"], _value(run["accuracy"], scored), _range([run["low"], run["high"]], scored))
        for name, run in zip(_names(numbers), runs, strict=True)
    ]
    items = ("aligned", "only before", "only after", "unscored", "errors")
    counted = ", ".join(f"{alignment[item.replace(' ', '_')]} {item}" for item in items)
    return Section(
        f"{what.capitalize()} on {alignment['aligned']} items",
        [Table(("run", "format", what if scored else "accuracy, %", interval), rows, "llrr"), f"Items: {counted}."],
    )


def _channel(numbers: Numbers) -> Section:
    counts, bounds, flips = numbers["counts"], numbers["intervals"], numbers["flip_rates"]
    wrong, right = counts["n00"] + counts["n01"], counts["n10"] + counts["n11"]
    level = f"{numbers['level']:.4g} interval"
    table = [
        ("wrong before", str(counts["n00"]), f"{counts['n01']} corrected"),
        ("right before", f"{counts['n10']} corrupted", str(counts["n11"])),
    ]
    rates = [
        ("c, correction rate", _value(numbers["c"]), _range(bounds["c"]), f"of the {wrong} wrong before"),
        ("gamma, corruption rate", _value(numbers["gamma"]), _range(bounds["gamma"]), f"of the {right} right before"),
        ("delta", _points(numbers["delta"]), _points_range(bounds["delta"]), "points of accuracy, after - before"),
        ("break-even c", _value(numbers["break_even"]), "", "what c must exceed to pay for gamma"),
    ]
    blocks: list[str | list[str] | Table] = [
        Table(("", "wrong after", "right after"), table, "lrr"),
        Table(("rate, %", "", level, ""), rates, "lrrl"),
        "Quadrant: none, since no item changed."
        if _stood_still(numbers)
        else f"Quadrant: {numbers['quadrant']} (surplus {_points(numbers['surplus'])} points of c over break-even, on "
        "rates smoothed by half an item).",
        f"Flips: {_value(flips['positive_flip_rate'])} % of all items became right, "
        f"{_value(flips['negative_flip_rate'])} % became wrong, churn {_value(flips['churn'])} %. Of the errors after, "
        f"{_value(flips['negative_flip_impact'])} % are new.",
    ]
    answers = numbers["answers"]
    if answers:
        blocks.append(
            f"Answers, known for {answers['n']} items: {_value(answers['churn'])} % changed, "
            f"{_value(answers['wrong_to_other_wrong'])} % from one wrong answer to another."
        )
    return Section(_changed(numbers), blocks)


def _tests(numbers: Numbers) -> Section:
    test, alpha = numbers["mcnemar"], numbers["alpha"]
    decides = f"{test['method']}, which decides"
    decides += f" (statistic {test['statistic']:.4g})" if test["statistic"] else ""
    rows = [
        (decides, _p(test["p_value"])),
        ("exact binomial", _p(test["p_exact"])),
        ("mid-p", _p(test["p_midp"])),
        ("chi-square, uncorrected", _p(test["p_chi2"])),
    ]
    power = f"Discordant items: {test['discordant']}; all in one direction would give p = {_p(test['smallest_p'])}."
    if test["smallest_p"] >= alpha:
        power += f" No outcome of so few can reach p < {alpha:g}."
    others = (f"{name.capitalize()}'s {_points_range(numbers['difference'][name])}" for name in ("newcombe", "wald"))
    return Section(
        "Is it more than chance? McNemar's test",
        [
            Table(("method", "p"), rows, "lr"),
            power,
            f"The interval of delta above is Tango's. It leaves out 0 where the uncorrected chi-square has p < "
            f"{1 - numbers['level']:.4g}; near that limit it can differ from {test['method']}, which decides. "
            f"{' and '.join(others)} for comparison.",
        ],
    )


def _margin(numbers: Numbers) -> Section:
    both, one = numbers["equivalence"], numbers["non_inferiority"]
    rows = [
        ("equivalent: |delta| < margin", "yes" if both["equivalent"] else "not shown", _p(both["p_value"])),
        ("non-inferior: delta > -margin", "yes" if one["non_inferior"] else "not shown", _p(one["p_value"])),
    ]
    how = "the bootstrap interval" if both["method"] == "bootstrap" else "Tango's score statistic"
    return Section(
        f"Within a margin of {both['margin']:g}?",
        [Table(("claim", "shown", "p"), rows, "llr"), f"One-sided tests at alpha {numbers['alpha']:g} by {how}."],
    )


def _slices(numbers: Numbers) -> Section:
    slices, alpha = numbers["slices"], numbers["alpha"]
    rows = [
        (
            name,
            str(row["n"]),
            str(row["counts"]["n01"]),
            str(row["counts"]["n10"]),
            _value(row["c"]),
            _value(row["gamma"]),
            _points(row["delta"]),
            _p(row["p_value"]),
            _p(row["p_adjusted"]),
            *((_NO_CHANGE, "-") if _stood_still(row) else (row["quadrant"], "yes" if row["activate"] else "no")),
        )
        for name, row in slices.items()
    ]
    head = ("slice", "n", "n01", "n10", "c %", "gamma %", "delta", "p", "p Holm", "quadrant", "use")
    blocks: list[str | list[str] | Table] = [Table(head, rows, "lrrrrrrrrll")]
    for key, said in (("p_value", "Taken alone"), ("p_adjusted", f"After Holm over the {len(slices)} slices")):
        moved = [
            f"{name} {'up' if row['delta'] > 0 else 'down'}"
            for name, row in slices.items()
            if row[key] is not None and row[key] < alpha
        ]
        blocks.append(f"{said}, p < {alpha:g}: {_listed(moved) or 'none'}.")
    blocks.append(_heterogeneity(numbers))
    blocks.append(_gating(slices))
    return Section("Slices", blocks)


def _heterogeneity(numbers: Numbers) -> str:
    test = numbers["heterogeneity"]
    said = f"Do the slices agree? Chi-square {test['statistic']:.4g} on {test['df']}, p = {_p(test['p_value'])}"
    if test["p_value"] < numbers["alpha"]:
        return f"{said}: no, the pooled difference hides slices that differ."
    return f"{said}: nothing says that they differ."


def _gating(slices: Mapping[str, Any]) -> str:
    moved = {name: row for name, row in slices.items() if not _stood_still(row)}
    use = [name for name, row in moved.items() if row["activate"]]
    keep = [name for name, row in moved.items() if not row["activate"]]
    still = [name for name in slices if name not in moved]
    return (
        f"By expected gain alone: use the change on {_listed(use) or 'no slice'}; keep what was before on "
        f"{_listed(keep) or 'no slice'}." + (f" Nothing changed on {_listed(still)}." if still else "")
    )


def _pairs(numbers: Numbers) -> Section:
    names = _names(numbers)
    rows = [
        (
            names[pair["first_index"]],
            names[pair["second_index"]],
            str(pair["counts"]["n01"]),
            str(pair["counts"]["n10"]),
            _points(pair["delta"]),
            _p(pair["p_value"]),
            _p(pair["p_adjusted"]),
            pair["method"],
        )
        for pair in numbers["pairs"]
    ]
    q = numbers["cochran_q"]
    omnibus = (
        f"Cochran's Q over the {q['k']} runs: {_number(q['statistic'])} on {q['df']} degrees of freedom, "
        f"p = {_p(q['p_value'])}."
    )
    head = ("before", "after", "n01", "n10", "delta", "p", "p Holm", "method")
    return Section("All pairs of runs", [omnibus, Table(head, rows, "llrrrrrl"), f"Holm over {len(rows)} pairs."])


def _scores(numbers: Numbers) -> Section:
    scores, t = numbers["scores"], numbers["scores"]["t_test"]
    rows = [
        ("paired bootstrap (decides)", _signed_range(scores["low"], scores["high"]), ""),
        ("paired t", _signed_range(t["low"], t["high"]), _p(t["p_value"])),
    ]
    return Section(
        _changed(numbers),
        [
            "The outcomes are scores, not right or wrong, so there is no 2x2 table: the mean difference over items is "
            "compared. A threshold (--threshold) would make them right or wrong.",
            f"Mean difference {_signed(scores['estimate'])}: {scores['up']} items up, {scores['down']} down.",
            Table(("method", f"{numbers['level']:.4g} interval", "p"), rows, "lrr"),
        ],
    )


def _score_slices(numbers: Numbers) -> Section:
    rows = [(name, str(row["n"]), *_score_cells(row)) for name, row in numbers["slices"].items()]
    return Section(
        "Slices", [Table(("slice", "n", "difference", "interval", "significant"), rows, "lrrrl"), _family(rows)]
    )


def _score_pairs(numbers: Numbers) -> Section:
    names = _names(numbers)
    rows = [(names[pair["first_index"]], names[pair["second_index"]], *_score_cells(pair)) for pair in numbers["pairs"]]
    head = ("before", "after", "difference", "interval", "significant")
    return Section("All pairs of runs", [Table(head, rows, "llrrl"), _family(rows)])


def _score_cells(row: Numbers) -> tuple[str, str, str]:
    return _signed(row["delta"]), _signed_range(row["low"], row["high"]), "yes" if row["significant"] else "no"


def _family(rows: Sequence[Any]) -> str:
    return f"Each interval has the level 1 - alpha/{len(rows)}, so that all {len(rows)} hold together."


def _flipped(numbers: Numbers) -> Section:
    blocks: list[str | list[str] | Table] = []
    for direction, total in (("corrupted", numbers["counts"]["n10"]), ("corrected", numbers["counts"]["n01"])):
        items = numbers["flipped"][direction]
        if items:
            blocks += [f"{direction.capitalize()}, {len(items)} of {total}:", _flip_table(items)]
    return Section("Items that flipped", blocks)


def _flip_table(items: Sequence[Numbers]) -> Table:
    keys = [key for key in ("slice", "answer_before", "answer_after") if any(item[key] is not None for item in items)]
    rows = [(item["id"], *("" if item[key] is None else item[key] for key in keys)) for item in items]
    return Table(("item", *(key.replace("_", " ") for key in keys)), rows, "l" * (1 + len(keys)))


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join([*map(clipped, names[:_LISTED]), *more])


def _changed(numbers: Numbers) -> str:
    names = _names(numbers)
    return f"What changed: {names[0]} -> {names[-1]}"


def _names(numbers: Numbers) -> list[str]:
    """The names of the runs, with their files where two runs share a name."""
    names = [run["name"] for run in numbers["runs"]]
    if len(set(names)) == len(names):
        return list(map(clipped, names))
    return [f"{clipped(run['path'])} ({clipped(run['name'])})" for run in numbers["runs"]]


def _value(value: float | None, as_score: bool = False) -> str:
    """A share in percent, or a score as it is."""
    if value is None:
        return "-"
    return f"{value:.4g}" if as_score else f"{100 * value:.2f}"


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.2f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4g}"


def _signed_range(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_signed(low)} to {_signed(high)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _range(ends: list[float | None], as_score: bool = False) -> str:
    return "-" if None in ends else f"{_value(ends[0], as_score)} to {_value(ends[1], as_score)}"


def _points_range(ends: list[float | None]) -> str:
    return "-" if None in ends else f"{_points(ends[0])} to {_points(ends[1])}"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<1e-300" if value < 1e-300 else f"{value:.3g}"
