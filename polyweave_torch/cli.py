"""The command ``polyweave-torch``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from polyweave_torch import verdict_command as verdict
from polyweave_torch.ablation import command as ablate
from polyweave_torch.claims import command as claims
from polyweave_torch.evallogs import command as compare

Run = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 where a gate failed, or 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="polyweave-torch", description="Paired diagnostics: what did a change correct, what did it corrupt?"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    rooms: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Run]] = {
        "demo": ("train two small ensembles on real digits and compare them", _demo_arguments, _demo),
        "verdict": ("may a treatment ship? one of six words, with reasons", verdict.add_arguments, verdict.run),
        "ablate": ("run cases under several conditions and report", ablate.add_arguments, ablate.run),
        "claims": ("score a folder of extracted claims against gold", claims.add_arguments, claims.run),
        "compare": ("what changed between finished evaluation runs, item by item", compare.add_arguments, compare.run),
    }
    for name, (about, add_arguments, _) in rooms.items():
        add_arguments(commands.add_parser(name, help=about, description=about))
    arguments = parser.parse_args(argv)
    try:
        return rooms[arguments.command][2](arguments)
    except BrokenPipeError:  # the reader, such as head, has what it wanted
        sys.stderr.close()
        return 0
    except (ValueError, OSError) as error:
        print(f"polyweave-torch {arguments.command}: {error}", file=sys.stderr)
        return 2


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
