"""The command ``polyweave-torch compare``."""

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from polyweave_torch.evallogs.comparison import PAGE_FLIPS, SHOWN_FLIPS, Comparison, compare_runs
from polyweave_torch.evallogs.figures import write_figures
from polyweave_torch.evallogs.options import FieldError
from polyweave_torch.evallogs.progress import reading_bar
from polyweave_torch.evallogs.reading import read_run
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.evallogs.verdicts import GATES
from polyweave_torch.layout import counted, print_report

_DIGITS = 18


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``compare``."""
    parser.description = (
        "What changed between finished evaluation runs, item by item. Exit code 0 whatever the verdict, 1 where it is "
        "one that --fail-on names, 2 for bad input."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RUN",
        help="logs of two or more runs over the same items, before first: files or "
        "folders; one file that holds both needs --arm",
    )
    output = parser.add_argument_group("output").add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--markdown", action="store_true", help="print markdown")
    files = parser.add_argument_group("files")
    files.add_argument("--html", type=Path, metavar="FILE", help="write the report as one page, with figures")
    files.add_argument("--figures", type=Path, metavar="DIR", help="write the figures as PNG files (needs matplotlib)")
    files.add_argument(
        "--flips",
        type=_count,
        metavar="N",
        help=f"list so many flipped items in each direction (default: {SHOWN_FLIPS}, in a page {PAGE_FLIPS})",
    )
    files.add_argument("--flips-out", type=Path, metavar="FILE", help="write all flipped items, one JSON object a line")
    reading = parser.add_argument_group(
        "reading",
        "needed where a log leaves a choice; the error lists what there is. Columns of other names than the usual ones "
        "are chosen by --id, --correct and --slice: polyweave-torch compare old.csv new.csv --id question --correct "
        "grade --slice topic",
    )
    reading.add_argument("--format", help="the format of the logs, where their content doesn't tell")
    reading.add_argument(
        "--arm", nargs="+", metavar="NAME", help="the arms to compare in one file, or one for each run"
    )
    reading.add_argument("--id", metavar="COLUMN", help="what names an item")
    reading.add_argument("--correct", metavar="COLUMN", help="what says whether it was right")
    reading.add_argument("--slice", metavar="COLUMN", help="what says which slice it belongs to")
    reading.add_argument("--filter", help="of lm-evaluation-harness")
    reading.add_argument("--metric", help="the metric that says whether it was right")
    reading.add_argument("--scorer", help="of inspect_ai")
    reading.add_argument("--provider", help="of promptfoo")
    reading.add_argument(
        "--epochs", choices=("first", "mean", "majority", "any", "all"), help="what repeats of one item come to"
    )
    reading.add_argument("--threshold", type=float, metavar="T", help="a score of at least T is right")
    aligning = parser.add_argument_group("aligning")
    aligning.add_argument(
        "--missing", choices=("drop", "wrong"), default="drop", help="items that a run lacks (default: %(default)s)"
    )
    aligning.add_argument(
        "--errors",
        choices=("drop", "wrong"),
        default="drop",
        help="items that a run failed on; dropped by default, since an error mostly says nothing of the model, "
        "while ablate counts them as wrong (default: %(default)s)",
    )
    aligning.add_argument(
        "--prompts-may-differ", action="store_true", help="the prompt is the change: don't flag prompts that differ"
    )
    aligning.add_argument("--universe", metavar="FILE|N", help="the items that count: their ids, or how many they are")
    tests = parser.add_argument_group("tests")
    tests.add_argument("--margin", type=float, help="a difference that would matter, to test equivalence")
    tests.add_argument("--level", type=float, default=0.95, help="of intervals (default: %(default)s)")
    tests.add_argument("--alpha", type=float, default=0.05, help="of tests (default: %(default)s)")
    tests.add_argument(
        "--method",
        choices=("auto", "exact", "midp", "asymptotic", "edwards"),
        default="auto",
        help="McNemar's test that decides; auto: exact below 25 discordant items, else Edwards (default: %(default)s)",
    )
    gate = "exit with 1 at this verdict or a worse one"
    tests.add_argument("--fail-on", type=str.lower, choices=tuple(GATES), help=gate)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print and write.

    Args:
        arguments: as parsed after :func:`add_arguments`.

    Returns:
        0, or 1 where the verdict is one that ``--fail-on`` names.

    Raises:
        ValueError: where a log can't be read or the runs can't be compared; the message says what to do.
        OSError: where a file can't be opened.
    """
    comparison = compare_runs(
        _read(arguments),
        missing=arguments.missing,
        errors=arguments.errors,
        universe=_universe(arguments.universe),
        margin=arguments.margin,
        level=arguments.level,
        alpha=arguments.alpha,
        method=arguments.method,
        prompts_may_differ=arguments.prompts_may_differ,
    )
    if comparison.numbers["scores"] is not None:
        warnings = [*comparison.numbers["warnings"], *_idle(arguments)]
        comparison = replace(comparison, numbers={**comparison.numbers, "warnings": warnings})
    if arguments.html:
        flips = PAGE_FLIPS if arguments.flips is None else arguments.flips
        arguments.html.write_text(comparison.to_html(flips=flips), encoding="utf-8")
    if arguments.figures:
        write_figures(comparison.numbers, arguments.figures)
    if arguments.flips_out:
        _write_flips(comparison, arguments.flips_out)
    print_report(_output(comparison, arguments))
    if arguments.fail_on and comparison.label in GATES[arguments.fail_on]:
        print(f"polyweave-torch compare: {comparison.label} fails --fail-on {arguments.fail_on}", file=sys.stderr)
        return 1
    return 0


def _idle(arguments: argparse.Namespace) -> list[str]:
    """What was asked for, but does nothing where outcomes are scores."""
    given = {"--figures": arguments.figures, "--flips": arguments.flips, "--flips-out": arguments.flips_out}
    return [
        f"{option} does nothing for scores, where no item is right or wrong"
        for option, value in given.items()
        if value is not None
    ]


def _read(arguments: argparse.Namespace) -> list[Run]:
    paths, arms = arguments.paths, arguments.arm
    if arms and len(paths) == 1:
        paths = paths * len(arms)
    if len(paths) < 2:
        raise ValueError(
            f"a comparison needs two runs, but only {paths[0]} came; name another, or two arms of this file (--arm A B)"
        )
    if arms and len(arms) != len(paths):
        raise ValueError(f"--arm names {counted(len(arms), 'arm')} for {len(paths)} runs; name one for each")
    runs: list[Run] = []
    try:
        for path, arm in zip(paths, arms or [None] * len(paths), strict=True):
            runs.append(_read_one(path, arm, arguments))
        return runs
    except FieldError as error:
        if not runs:
            raise
        raise ValueError(
            f"{error}. --id, --correct and --slice hold for all runs, so the files must name their columns alike; from "
            "Python, read_run takes other names for each"
        ) from error
    except ChoiceError as error:
        if arms or error.option not in ("arm", "provider") or len({*map(os.path.normpath, paths)}) == len(paths):
            raise
        raise ValueError(f"{error}. To compare two of them, name {paths[0]} once, with --arm BEFORE AFTER") from error


def _read_one(path: str, arm: str | None, arguments: argparse.Namespace) -> Run:
    with reading_bar(Path(path)):
        return read_run(
            path,
            format=arguments.format,
            filter=arguments.filter,
            metric=arguments.metric,
            scorer=arguments.scorer,
            provider=arguments.provider,
            epochs=arguments.epochs,
            id=arguments.id,
            correct=arguments.correct,
            slice=arguments.slice,
            arm=arm,
            threshold=arguments.threshold,
        )


def _universe(given: str | None) -> int | str | None:
    return int(given) if given is not None and given.isdecimal() and not Path(given).exists() else given


def _output(comparison: Comparison, arguments: argparse.Namespace) -> str:
    flips = SHOWN_FLIPS if arguments.flips is None else arguments.flips
    if arguments.json:
        return json.dumps(comparison.to_dict(flips=flips), allow_nan=False, indent=2)
    if arguments.markdown:
        return comparison.to_markdown(flips=flips)
    return comparison.to_text(flips=flips)


def _write_flips(comparison: Comparison, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for corrupted in (True, False):
            file.writelines(json.dumps(flip) + "\n" for flip in comparison.flips(corrupted=corrupted))


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a number of items is wanted, not {text!r}")
    if len(text) > _DIGITS:
        raise argparse.ArgumentTypeError(f"a number of at most {_DIGITS} digits is wanted, not one of {len(text)}")
    return int(text)
