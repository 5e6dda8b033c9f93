"""The command ``polyweave-torch verdict``."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

from polyweave_torch.functional.verdict import CONTROL, verdict
from polyweave_torch.layout import print_report, shown
from polyweave_torch.verdict.files import CHECK_LAYERS, Columns, LayerFile, read_layer_file, sample_order

_LISTED = 40
_MOST_RESAMPLES = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``verdict``."""
    parser.description = (
        "May a treatment ship? Reads scores from 1 to 5 of the same samples by layer, compares each treatment with the "
        "control, and says in one of six words what to do. Exit code 0 for PROGRESS (and for a lone control that "
        "passes the gate), 1 for any other word, 2 for bad input."
    )
    parser.add_argument("control", type=Path, help="JSONL or CSV: an id and scores by layer, or checks, in each row")
    parser.add_argument("treatments", type=Path, nargs="*", metavar="treatment", help="likewise, of the same samples")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--markdown", action="store_true", help="print markdown")
    files = parser.add_argument_group("files")
    files.add_argument("--id", default="id", metavar="COLUMN", help="what names a sample (default: %(default)s)")
    files.add_argument(
        "--layers", type=_listed, default="fact,behavior,judge", metavar="NAME,...", help="default: %(default)s"
    )
    files.add_argument(
        "--check",
        action="append",
        type=_assignment,
        default=[],
        metavar="TYPE=LAYER",
        help="the layer of a type of check, beside: " + ", ".join(f"{kind}={of}" for kind, of in CHECK_LAYERS.items()),
    )
    files.add_argument(
        "--judges", type=_listed, default=(), metavar="COLUMN,...", help="marks of single judges: do they agree?"
    )
    files.add_argument("--human", metavar="COLUMN", help="marks of people, to compare the judges with")
    files.add_argument(
        "--provenance",
        type=_listed,
        default=(),
        metavar="COLUMN,...",
        help="how a run was scored; runs that differ are flagged",
    )
    rules = parser.add_argument_group("rules")
    rules.add_argument("--gate", type=float, default=3.5, help="mean that each layer must reach (default: %(default)s)")
    rules.add_argument(
        "--trivial-difference", type=float, default=0.1, help="smaller gains are none (default: %(default)s)"
    )
    rules.add_argument("--min-pairs", type=int, default=20, help="fewer show nothing (default: %(default)s)")
    rules.add_argument("--wished-power", "--power", type=float, help="ask for the pairs that this power needs")
    rules.add_argument("--dissent", type=float, default=0.4, help="judges correlate at least so (default: %(default)s)")
    rules.add_argument("--top", type=float, default=5.0, help="the highest mark (default: %(default)s)")
    rules.add_argument("--weights", type=_weights, metavar="LAYER=WEIGHT,...", help="default: all equal")
    rules.add_argument("--standardize", choices=("z", "rank"), help="bring layers on one scale first")
    rules.add_argument("--alpha", type=float, default=0.05, help="chance of a false alarm (default: %(default)s)")
    rules.add_argument(
        "--resamples",
        type=int,
        default=1000,
        help=f"of the bootstrap, at most {_MOST_RESAMPLES} (default: %(default)s)",
    )
    rules.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Read, judge, print.

    Args:
        arguments: as parsed after :func:`add_arguments`.

    Returns:
        0 where it may ship, else 1.

    Raises:
        ValueError: where a file or an option is wrong; the message says what to do.
        OSError: where a file can't be opened.
    """
    if arguments.resamples > _MOST_RESAMPLES:
        raise ValueError(f"--resamples must be at most {_MOST_RESAMPLES}, but is {arguments.resamples}")
    columns = Columns(
        layers=arguments.layers,
        checks={**CHECK_LAYERS, **dict(arguments.check)},
        id=arguments.id,
        judges=arguments.judges,
        human=arguments.human,
        provenance=arguments.provenance,
    )
    control = read_layer_file(arguments.control, columns)
    treatments = {
        name: read_layer_file(path, columns) for name, path in _names(arguments.control, arguments.treatments).items()
    }
    for file in treatments.values():
        if not control.scores.keys() & file.scores.keys():
            raise ValueError(f"no {columns.id} of {file.path} is in {control.path}; are these the same samples?")
    runs = {CONTROL: control, **treatments}
    _check_columns(columns, list(runs.values()))
    samples = sample_order(runs.values())
    marks = {name: _marks(file, samples, len(columns.judges)) for name, file in runs.items() if columns.judges}
    report = verdict(
        _scores(control, samples, columns),
        {name: _scores(file, samples, columns) for name, file in treatments.items()},
        layer_names=columns.layers,
        gate=arguments.gate,
        trivial_difference=arguments.trivial_difference,
        min_pairs=arguments.min_pairs,
        dissent=arguments.dissent,
        alpha=arguments.alpha,
        resamples=arguments.resamples,
        seed=arguments.seed,
        weights=arguments.weights,
        standardize=arguments.standardize,
        control_marks=marks.pop(CONTROL, None),
        treatment_marks=marks,
        human_marks=None
        if columns.human is None
        else {name: [file.human.get(sample, math.nan) for sample in samples] for name, file in runs.items()},
        wished_power=arguments.wished_power,
        top=arguments.top,
        provenance={name: file.provenance for name, file in runs.items()},
    )
    if arguments.json:
        files = {name: {"path": str(file.path), "samples": len(file.scores)} for name, file in runs.items()}
        print_report(json.dumps({**report.to_dict(), "files": files}, allow_nan=False, indent=2))
    else:
        print_report(report.to_markdown() if arguments.markdown else str(report))
    return report.exit_code


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _assignment(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but found {text!r}")
    return name, value


def _weights(text: str) -> dict[str, float]:
    assigned = dict(_assignment(part) for part in _listed(text))
    try:
        return {name: float(value) for name, value in assigned.items()}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected numbers as in fact=2,judge=1, but found {text!r}") from error


def _names(control: Path, treatments: Sequence[Path]) -> dict[str, Path]:
    """Each treatment by its file's name without ending, or by its path where that is not its own."""
    stems = [path.stem for path in (control, *treatments)]
    named = {
        path.stem if stems.count(path.stem) == 1 and path.stem != CONTROL else str(path): path for path in treatments
    }
    if len(named) != len(treatments):
        raise ValueError(f"a treatment is named twice: {[str(path) for path in treatments]}")
    return named


def _check_columns(columns: Columns, files: Sequence[LayerFile]) -> None:
    """Refuse a column that was named, but stands in no file: it is misspelt."""
    there = list(dict.fromkeys(name for file in files for name in file.columns))
    human = () if columns.human is None else (columns.human,)
    for option, names in (("judges", columns.judges), ("human", human), ("provenance", columns.provenance)):
        for name in names:
            if name not in there:
                raise ValueError(
                    f"--{option} names the column {name!r}, which no file has; there are "
                    f"{', '.join(map(shown, there[:_LISTED]))}"
                )


def _scores(file: LayerFile, samples: Sequence[str], columns: Columns) -> list[list[float]]:
    missing = [math.nan] * len(columns.layers)
    return [file.scores.get(sample, missing) for sample in samples]


def _marks(file: LayerFile, samples: Sequence[str], judges: int) -> list[list[float]]:
    return [file.marks.get(sample, [math.nan] * judges) for sample in samples]
