"""What the report of an ablation says, in text or markdown."""

from collections.abc import Sequence

from polyweave_torch.ablation.analysis import TARGET_PER_STRATUM, Analysis, CondStats, PairTest
from polyweave_torch.ablation.record import SIMULATED
from polyweave_torch.functional import mcnemar_power, mcnemar_sample_size, target_per_stratum
from polyweave_torch.layout import Section, Table, clipped, counted, to_markdown, to_text

_SHOUT = "SIMULATED! SIMULATED! SIMULATED! No model was asked: these numbers try the instrument and measure nothing."

# Shares lost and gained of .70 -> .80, with .16 discordant pairs and between independent arms.
_PLAN, _INDEPENDENT = (0.03, 0.13), (0.14, 0.24)


def format_analysis(analysis: Analysis, *, markdown: bool = False) -> str:
    """The report of an ablation, for a terminal or as markdown.

    Args:
        analysis: from :func:`analyze_outcomes`.
        markdown: markdown in place of text of 100 columns.

    Example:
        >>> from polyweave_torch.ablation import Outcome, analyze_outcomes
        >>> arms = ("old", "new")
        >>> outcomes = [Outcome(str(n), "easy", arm, arm == "new", True, 1) for n in range(30) for arm in arms]
        >>> report = format_analysis(analyze_outcomes(outcomes))
        >>> print(report[: report.index("- mode")])
        Paired ablation of 2 conditions on 30 cases
        -------------------------------------------
        <BLANKLINE>
        >>> print(next(line for line in report.splitlines() if line.startswith("- old / new")))
        - old / new: SIGNIFICANT (Holm), new is better; 30 discordant cases
    """
    sections = [_head(analysis), _success(analysis), _attempts(analysis), *_tests(analysis), _power(analysis)]
    if analysis.mode == SIMULATED:
        sections.append(Section(SIMULATED, [_SHOUT]))
    return to_markdown(sections) if markdown else to_text(sections)


def _head(analysis: Analysis) -> Section:
    simulated = analysis.mode == SIMULATED
    strata = ", ".join(f"{clipped(stratum) or 'no stratum'} {number}" for stratum, number in analysis.counts.items())
    facts = [
        f"mode: {analysis.mode}",
        f"model: {clipped(analysis.model) or 'not named'}",
        f"cases: {analysis.total_cases} ({strata})",
        f"conditions: {', '.join(map(clipped, analysis.conditions))}",
        *([f"note: {analysis.note}"] if analysis.note else []),
    ]
    conditions, cases = counted(len(analysis.conditions), "condition"), counted(analysis.total_cases, "case")
    title = f"Paired ablation of {conditions} on {cases}"
    blocks: list[str | list[str] | Table] = [*([_SHOUT] if simulated else []), facts]
    warnings = _warnings(analysis)
    if warnings:
        blocks += ["Warnings:", warnings]
    return Section(f"SIMULATED: {title}" if simulated else title, blocks)


def _warnings(analysis: Analysis) -> list[str]:
    """What may fool who reads the tables alone."""
    overall = [stats for stats in analysis.per_condition if not stats.stratum]
    warnings = [warning for stats in overall for warning in _fell_back(stats, analysis.errors)]
    became = "left out" if analysis.errors == "drop" else "counted as wrong"
    for stats in overall:
        if stats.errors or stats.refused:
            example = analysis.error_examples.get(stats.condition)
            warnings.append(
                f"{clipped(stats.condition)}: {counted(stats.errors, 'error')} and "
                f"{counted(stats.refused, 'refusal')}, {became}"
                + (f"; the first error is {clipped(example)}" if example else "")
            )
    if analysis.incomplete:
        warnings.append(
            f"cases that lack a condition: {analysis.incomplete} of {analysis.total_cases}; they are left out of the "
            "pairs that need it, and of Cochran's Q"
        )
    return warnings


def _fell_back(stats: CondStats, errors: str) -> list[str]:
    # An error says nothing of the treatment.
    ran = stats.n - (stats.errors if errors == "wrong" else 0)
    return [
        f"{clipped(stats.condition)}: {clipped(name)} was in force in {engaged} of {ran} outcomes; in the other "
        f"{ran - engaged} this arm measured plain, not what its name says"
        for name, engaged in stats.engaged.items()
        if engaged < ran
    ]


def _success(analysis: Analysis) -> Section:
    rows = [
        (
            stats.stratum or "all",
            stats.condition,
            f"{stats.first_try_success}/{stats.n}",
            _number(stats.p_sem),
            f"[{stats.wilson_lo:.3f}, {stats.wilson_hi:.3f}]",
        )
        for stats in analysis.per_condition
    ]
    head = ("stratum", "condition", "right", "p", "95 % Wilson")
    return Section("Right at the first try", [Table(head, rows, "llrrr")])


def _attempts(analysis: Analysis) -> Section:
    rows = [
        (
            stats.stratum or "all",
            stats.condition,
            _number(stats.mean_iter),
            "-" if stats.median_iter is None else f"{stats.median_iter:g}",
            str(stats.non_converged),
            _number(stats.theoretical_iid_bound),
            _number(stats.mean_struct_err0),
            _number(stats.mean_sem_err0),
            _number(stats.mean_cost_usd, digits=4),
        )
        for stats in analysis.per_condition
    ]
    head = ("stratum", "condition", "mean", "median", "not conv.", "(1/p)", "struct.", "sem.", "USD")
    return Section(
        "Attempts, errors of the first attempt, cost",
        [
            Table(head, rows, "llrrrrrrr"),
            "Mean and median are of the attempts that converged cases took, as counted. (1/p) is what independent "
            "attempts would take: a reference only, for attempts that learn from the last one are not independent.",
        ],
    )


def _tests(analysis: Analysis) -> list[Section]:
    overall = [pair for pair in analysis.pairwise if not pair.stratum]
    strata = [pair for pair in analysis.pairwise if pair.stratum]
    sections = []
    if analysis.cochran is not None:
        q = analysis.cochran
        text = (
            f"Q = {float(q.statistic):.4f} on {int(q.df)} degrees of freedom, p = {_p(float(q.p_value))}, over the "
            f"{int(q.n)} cases that have all {int(q.k)} conditions."
        )
        sections.append(Section("Do the conditions differ at all? Cochran's Q", [text]))
    if overall:
        family = f"McNemar's test of every pair over all cases: {_tests_of(overall)} one Holm family."
        sections.append(_pairs("Pairs of conditions, all cases", family, overall, ("a", "b")))
    if strata:
        first, last = clipped(strata[0].a), clipped(strata[0].b)
        family = (
            f"McNemar's test of the first condition ({first}, a) against the last ({last}, b): "
            f"{_tests_of(strata)} another Holm family."
        )
        sections.append(_pairs("First against last condition, stratum by stratum", family, strata, ("stratum",)))
    return sections


def _tests_of(pairs: Sequence[PairTest]) -> str:
    return f"these {len(pairs)} tests are" if len(pairs) > 1 else "this one test is"


def _pairs(title: str, family: str, pairs: Sequence[PairTest], labels: Sequence[str]) -> Section:
    rows = [
        (
            *(str(getattr(pair, label)) for label in labels),
            str(pair.n),
            str(int(pair.result.b)),
            str(int(pair.result.c)),
            _p(float(pair.result.p_value)),
            _p(pair.holm_p),
            str(pair.result.method),
        )
        for pair in pairs
    ]
    head = (*labels, "cases", "a only", "b only", "p", "Holm p", "method")
    verdicts = [f"{_name(pair)}: {pair.verdict}{_better(pair)}; {_discordant(pair)}" for pair in pairs]
    return Section(title, [family, Table(head, rows, "l" * len(labels) + "rrrrrl"), verdicts])


def _name(pair: PairTest) -> str:
    return clipped(pair.stratum) or f"{clipped(pair.a)} / {clipped(pair.b)}"


def _better(pair: PairTest) -> str:
    if not pair.verdict.startswith("SIGNIFICANT"):
        return ""
    return f", {clipped(pair.a if pair.result.b > pair.result.c else pair.b)} is better"


def _discordant(pair: PairTest) -> str:
    return counted(int(pair.result.discordant), "discordant case")


def _power(analysis: Analysis) -> Section:
    rows = [
        (
            pair.a,
            pair.b,
            pair.stratum or "all",
            f"{int(pair.result.discordant)} of {pair.n}",
            _p(float(pair.result.smallest_p)),
            "-" if pair.cases_needed is None else str(pair.cases_needed),
        )
        for pair in analysis.pairwise
    ]
    head = ("a", "b", "stratum", "discordant", "smallest p", "cases needed")
    small = [
        f"{clipped(name) or 'no stratum'} {number}"
        for name, number in analysis.counts.items()
        if number < TARGET_PER_STRATUM
    ]
    corpus = (
        f"Strata with fewer than {TARGET_PER_STRATUM} cases: {', '.join(small)}."
        if small
        else f"Every stratum has {TARGET_PER_STRATUM} cases or more."
    )
    return Section(
        "What so many cases can show",
        [
            *([Table(head, rows, "lllrrr")] if rows else []),
            "Smallest p: what so many discordant cases can show at best. Cases needed: for 80 % power of the "
            "uncorrected chi-square, by Connor's formula, at alpha over the number of tests in the family, Holm's "
            "strictest step, and for 25 discordant cases, if the two kinds of discordant cases were as frequent as "
            "seen here; - where both are equally frequent. The tests that decide here may need more.",
            f"{corpus} {_plan()}",
            f"Significant: p < {analysis.alpha:g} after Holm's adjustment. The tests are exact below 25 discordant "
            "cases, else chi-square with Edwards' correction.",
        ],
    )


def _plan() -> str:
    """What the usual number of cases presumes, and what it comes to by the tests of this report."""
    uncorrected, deciding = (
        f"{100 * float(mcnemar_power(*_PLAN, TARGET_PER_STRATUM, method=method)):.0f} %"
        for method in ("asymptotic", "auto")
    )
    return (
        f"{TARGET_PER_STRATUM} is the usual plan for .70 -> .80 at 80 % power with about .16 discordant pairs. That is "
        f"the power of the uncorrected chi-square (exactly {uncorrected}); the test that decides here has {deciding}, "
        f"and needs {mcnemar_sample_size(*_PLAN)} cases for 80 %. The 25 discordant ones below which nothing is called "
        f"significant take {target_per_stratum(*_PLAN)} cases, and arms that succeed independently "
        f"{target_per_stratum(*_INDEPENDENT)}."
    )


def _number(value: float | None, *, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _p(value: float) -> str:
    return f"{value:.2e}" if value < 1e-4 else f"{value:.4f}"
