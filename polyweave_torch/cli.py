"""The command ``polyweave-torch``."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from polyweave_torch.ablation import command as ablate
from polyweave_torch.claims import command as claims
from polyweave_torch.evallogs import command as compare
from polyweave_torch.layout import shown
from polyweave_torch.verdict import command as verdict

_LONGEST = 10_000
"""Characters of an error message."""
_OPTIONS = {
    "out": "a place to write to",
    "html": "a file to write",
    "figures": "a folder to write to",
    "flips_out": "a file to write",
    "figure": "a file to write",
    "universe": "a file of ids, one a line",
}
"""Options that name a path, and what is expected there."""
_UNFORESEEN = "Exit code 3: an error that nobody foresaw, with its traceback."


class _Room(NamedTuple):
    """A command."""

    about: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    reads: str
    """What it expects where a file can't be opened."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 where a gate failed, 2 for bad input, or 3 for an error of ours."""
    parser = argparse.ArgumentParser(
        prog="polyweave-torch",
        description="Paired diagnostics: what did a change correct, what did it corrupt?",
        epilog=_UNFORESEEN,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True)
    rooms = {
        "demo": _Room(
            "train two small ensembles on real digits and compare them",
            _demo_arguments,
            _demo,
            "a folder to write to",
        ),
        "verdict": _Room(
            "may a treatment ship? one of six words, with reasons",
            verdict.add_arguments,
            verdict.run,
            "a JSONL or CSV file of scores or checks",
        ),
        "ablate": _Room(
            "run cases under several conditions and report",
            ablate.add_arguments,
            ablate.run,
            "a JSONL file of cases",
        ),
        "claims": _Room(
            "score a folder of extracted claims against gold",
            claims.add_arguments,
            claims.run,
            "a folder with a file of claims for each document",
        ),
        "compare": _Room(
            "what changed between finished evaluation runs, item by item",
            compare.add_arguments,
            compare.run,
            "the log of a finished run, or a folder that holds it",
        ),
    }
    for name, room in rooms.items():
        room.add_arguments(commands.add_parser(name, help=room.about, description=room.about, epilog=_UNFORESEEN))
    arguments = parser.parse_args(argv)
    room = rooms[arguments.command]
    try:
        return room.run(arguments)
    except (ValueError, OSError) as error:
        said = _unopened(error, room.reads, arguments) if isinstance(error, OSError) else error
        # Names are escaped where a message is made; what slipped through must not reach the terminal raw either.
        print(f"polyweave-torch {arguments.command}: {shown(said, _LONGEST)}", file=sys.stderr)
        return 2
    except Exception:  # Python's own exit code, 1, would say that a gate failed
        traceback.print_exc()
        return 3


class _Version(argparse.Action):
    """Looks the version up where it is asked for: an uninstalled source tree has none, and runs all the same."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{parser.prog} {version('polyweave-torch')}")
        parser.exit()


def _unopened(error: OSError, reads: str, arguments: argparse.Namespace) -> str:
    """Which file can't be opened, what was expected there, and what to do."""
    if not isinstance(error.filename, (str, bytes)):
        return str(error)
    path = Path(os.fsdecode(error.filename))
    for option, expected in _OPTIONS.items():
        given = getattr(arguments, option, None)
        if given is not None and Path(given) == path:
            reads = f"{expected}, by --{option.replace('_', '-')}"
    if isinstance(error, FileNotFoundError):
        if path.parent.is_dir():
            return f"{path} is not there; expected {reads}. Check the path"
        return f"{path} is not there, nor is the folder {path.parent}. Check the path, or make the folder"
    return f"{path} can't be opened ({error.strerror}); expected {reads}"


def _demo_arguments(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder to write to (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="same seed, same report (default: %(default)s)")
    demo.add_argument("--epochs", type=int, default=15, help="default: %(default)s")
    demo.add_argument("--members", type=int, default=5, help="networks in each ensemble (default: %(default)s)")
    demo.add_argument("--processes", type=int, default=1, help="share each step among so many (default: %(default)s)")


def _demo(arguments: argparse.Namespace) -> int:
    try:
        from polyweave_torch.demo import run_demo
    except ModuleNotFoundError as error:
        raise ValueError(f"{error}. The demo needs: pip install 'polyweave-torch[demo]'") from error
    run_demo(
        arguments.out,
        seed=arguments.seed,
        epochs=arguments.epochs,
        members=arguments.members,
        processes=arguments.processes,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
