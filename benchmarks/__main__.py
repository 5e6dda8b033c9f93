"""``python -m benchmarks``: time and memory side by side with peers."""

import argparse
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from benchmarks.report import as_json, header, machine, summary, table
from benchmarks.runner import WORKLOADS, Result, run


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the workloads that the command line names, and print their tables as they come."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time and memory side by side with peers."
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=["*"], help="workloads, or patterns: 'vote-*'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON, too")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each, at least 1 (default: 7)")
    options = parser.parse_args(arguments)
    names = [name for name, workload in WORKLOADS.items() if options.device in workload.devices]
    for pattern in options.only:
        if not any(fnmatchcase(name, pattern) for name in names):
            listed = "\n  ".join(names)
            parser.error(f"no workload on {options.device} is named {pattern!r}; there are\n  {listed}")
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, but is {options.rounds}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a CUDA GPU and a torch that was built for it; there is none here")

    about = machine(options.device, options.rounds)
    print(header(about))
    results: list[Result] = []
    for name in names:
        if any(fnmatchcase(name, pattern) for pattern in options.only):
            results.append(run(WORKLOADS[name], options.device, options.rounds))
            print(f"\n{table(results[-1])}", flush=True)
    print(f"\n{summary(results)}")
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(as_json(about, results), indent=1) + "\n")


if __name__ == "__main__":
    main()
