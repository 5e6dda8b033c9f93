"""The command ``polyweave-torch ablate``."""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from polyweave_torch.ablation.analysis import Analysis, analyze_outcomes
from polyweave_torch.ablation.cases import corpus_counts, load_cases, sample_stratified
from polyweave_torch.ablation.evaluators import SimulatedEvaluator, baseline_conditions
from polyweave_torch.ablation.outcomes import Condition
from polyweave_torch.ablation.report import format_analysis
from polyweave_torch.ablation.running import Evaluate, run_ablation
from polyweave_torch.evallogs.json_values import parse
from polyweave_torch.functional._checks import check_open_unit
from polyweave_torch.layout import print_report, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ablate``."""
    parser.description = (
        "Run every case under every condition, and report what so many cases can show. Exit code 0 whatever was found, "
        "2 for bad input."
    )
    parser.add_argument(
        "cases", type=Path, help='cases, one JSON object a line: {"id", "stratum", "domain", "description", "gold"}'
    )
    parser.add_argument(
        "--conditions",
        nargs="+",
        metavar="NAME[=OPTIONS]",
        help='the arms, in their order: a name, or a name and its options as JSON, as in hot={"temperature":1}; '
        "--simulate has three of its own",
    )
    evaluators = parser.add_mutually_exclusive_group(required=True)
    evaluators.add_argument(
        "--evaluate",
        metavar="MODULE:FUNCTION",
        help="what evaluates: called with a batch of cases and a condition, it returns an Outcome for each case",
    )
    evaluators.add_argument("--simulate", action="store_true", help="no model: try the harness on invented faults")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write outcomes here, and go on from what is in it")
    parser.add_argument("--restart", action="store_true", help="start over, and lose what is in --out")
    parser.add_argument("--batch-size", type=int, default=1, metavar="N", help="cases in a call (default: %(default)s)")
    parser.add_argument("--strata", nargs="+", metavar="NAME", help="the strata, in their order")
    parser.add_argument("--per-stratum", type=int, default=0, metavar="N", help="take the first N cases of each")
    parser.add_argument("--seed", type=int, default=0, help="of --simulate (default: %(default)s)")
    parser.add_argument("--alpha", type=float, default=0.05, help="of the tests (default: %(default)s)")
    parser.add_argument(
        "--errors",
        choices=("wrong", "drop"),
        default="wrong",
        help="what errors and refusals count as; wrong by default, since an arm that fails to answer has not answered "
        "right, while compare leaves out what a harness failed on (default: %(default)s)",
    )
    parser.add_argument("--model", default="", help="what is evaluated, for the report")
    parser.add_argument("--note", default="", help="a line for the report")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the success of each arm and stratum")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--markdown", action="store_true", help="print markdown")


def run(arguments: argparse.Namespace) -> int:
    """Run what is left to run, analyse all of it, print the report.

    Args:
        arguments: as parsed after :func:`add_arguments`.

    Returns:
        0.

    Raises:
        ValueError: where cases, conditions or the evaluator are not usable, or ``--out`` is of another run.
        OSError: where a file can't be opened.
    """
    # What only the report needs is looked at before hours of evaluation.
    check_open_unit(arguments.alpha, name="--alpha")
    if arguments.figure:
        _check_figure(arguments.figure)
    cases = sample_stratified(load_cases(arguments.cases, strata=arguments.strata), arguments.per_stratum)
    if not cases:
        raise ValueError(f"{arguments.cases} holds no case")
    conditions = _conditions(arguments)
    outcomes = run_ablation(
        cases,
        conditions,
        SimulatedEvaluator(arguments.seed) if arguments.simulate else _evaluator(arguments.evaluate),
        model=arguments.model,
        batch_size=arguments.batch_size,
        out=arguments.out,
        resume=not arguments.restart,
    )
    analysis = analyze_outcomes(
        outcomes,
        alpha=arguments.alpha,
        strata=list(corpus_counts(cases)),
        conditions=conditions,
        errors=arguments.errors,
        model=arguments.model,
        note=arguments.note,
    )
    if arguments.json:
        print_report(analysis.to_json(indent=2))
    else:
        print_report(format_analysis(analysis, markdown=arguments.markdown))
    if arguments.figure:
        _draw(analysis, arguments.figure)
    return 0


def _check_figure(path: Path) -> None:
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ModuleNotFoundError as error:
        raise ValueError(f"--figure: {error}; install it with: pip install 'polyweave-torch[plot]'") from error
    endings = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in endings:
        raise ValueError(f"--figure {path}: expected a file that ends in one of {', '.join(sorted(endings))}")
    if not path.parent.is_dir():
        raise ValueError(f"--figure {path}: the folder {path.parent} is not there; make it first")


def _draw(analysis: Analysis, path: Path) -> None:
    from matplotlib import pyplot as plt

    from polyweave_torch.plot.ablation import success_rates

    success_rates(analysis)
    plt.savefig(path)
    plt.close()


def _conditions(arguments: argparse.Namespace) -> list[Condition]:
    if arguments.conditions:
        return [_condition(text) for text in arguments.conditions]
    if arguments.simulate:
        return baseline_conditions()
    raise ValueError("--evaluate needs --conditions: the names of the arms, as in --conditions plain structured")


def _condition(text: str) -> Condition:
    name, equals, options = text.partition("=")
    if not equals:
        known = {condition.name: condition for condition in baseline_conditions()}
        return known.get(name, Condition(name, {}))
    where = f"--conditions {shown(text)}"
    try:
        parsed = parse(options.strip(), "options")
    except ValueError as error:
        raise ValueError(f"{where}: expected a JSON object after the = ({error})") from error
    if not name or not isinstance(parsed, dict):
        raise ValueError(f'{where}: expected NAME or NAME={{"option": value}}')
    return Condition(name, parsed)


def _evaluator(reference: str) -> Evaluate:
    """What MODULE:FUNCTION names; modules are looked for in the current folder, too."""
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ValueError(f"--evaluate {reference}: expected MODULE:FUNCTION, as in my_model:evaluate")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--evaluate {reference}: {error}") from error
    if not callable(found):
        raise ValueError(f"--evaluate {reference}: a {type(found).__name__} can't be called")
    evaluate: Evaluate = found
    return evaluate
