"""``polyweave-torch claims``: score a folder of extracted claims."""

import argparse
import json
import sys
from pathlib import Path

from polyweave_torch.claims.folders import score_folder
from polyweave_torch.functional.claims import claims_table
from polyweave_torch.layout import print_report, shown

_LONGEST = 2_000
"""Characters of a warning."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.description = (
        "Score a folder of extracted claims against gold, document by document. Exit code 0 whatever the scores, 2 for "
        "bad input."
    )
    parser.add_argument("gold", type=Path, help="folder of the claims that people wrote, a file a document")
    parser.add_argument("candidates", type=Path, help="folder of the claims that a model read, under the same names")
    parser.add_argument(
        "--background", type=Path, nargs="+", default=[], metavar="FILE", help="claims that every document inherits"
    )
    parser.add_argument(
        "--symmetric", nargs="+", default=[], metavar="NAME", help="predicates whose arguments may stand in any order"
    )
    parser.add_argument(
        "--method", choices=("greedy", "optimal"), default="greedy", help="how names are aligned (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with missing and spurious claims")


def run(arguments: argparse.Namespace) -> int:
    """Print the table, or the JSON object, and warnings beside it; return the exit code 0."""
    scored = score_folder(
        arguments.gold,
        arguments.candidates,
        background=arguments.background,
        symmetric=arguments.symmetric,
        method=arguments.method,
    )
    print_report(json.dumps(scored.to_dict(), indent=2) if arguments.json else claims_table(scored.documents))
    for warning in scored.warnings:
        print(f"polyweave-torch claims: {shown(warning, _LONGEST)}", file=sys.stderr)
    return 0
