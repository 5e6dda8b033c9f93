"""The command ``polyweave-torch``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="polyweave-torch", description="Paired diagnostics: what did a change correct, what did it corrupt?"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train two small ensembles on real digits and compare them")
    demo.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder to write to (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="same seed, same report (default: %(default)s)")
    demo.add_argument("--epochs", type=int, default=15, help="default: %(default)s")
    demo.add_argument("--members", type=int, default=5, help="networks in each ensemble (default: %(default)s)")
    demo.add_argument("--processes", type=int, default=1, help="share each step among so many (default: %(default)s)")
    arguments = parser.parse_args(argv)
    try:
        return _demo(arguments)
    except (ValueError, OSError) as error:
        print(f"polyweave-torch {arguments.command}: {error}", file=sys.stderr)
        return 2


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
