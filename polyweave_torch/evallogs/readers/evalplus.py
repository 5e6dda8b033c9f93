"""evalplus results: ``eval`` holds the samples of each task, with the status of its base and its extra tests."""

from collections.abc import Mapping
from pathlib import Path

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import JsonStream
from polyweave_torch.evallogs.options import Options, label
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.evallogs.source import open_log

NAME = "evalplus"
OPTIONS = frozenset({"epochs", "metric", "arm"})

_METRICS = ("plus", "base")
# Walks into ``eval``, so that each task comes as one piece.
_TASKS: set[tuple[str, ...]] = {("eval", "")}


def sniff(shape: Outline) -> bool:
    """An object with the hash of a data set beside ``eval``."""
    return isinstance(shape.record.get("hash"), str) and isinstance(shape.record.get("eval"), Mapping)


def read(paths: list[Path], options: Options) -> Run:
    """Read one file. A sample is right where it passes all tests, or with ``metric="base"`` the base tests."""
    path, options = one_file(paths, options)
    metric = options.metric or _METRICS[0]
    if metric not in _METRICS:
        raise ChoiceError(f"{path} has no metric {metric!r}", option="metric", choices=_METRICS)
    rows = Rows(path)
    details = {"metric": metric}
    with open_log(path) as file:
        for place, where, value in JsonStream(file, str(path)).pieces(_TASKS):
            if place == ("hash",):
                details["data set hash"] = label(value)
            if len(place) != 2 or place[0] != "eval":
                continue
            if not isinstance(value, list):
                raise ValueError(f"{where}: expected the samples of {place[1]!r}, but found {type(value).__name__}")
            for sample in value:
                right = _is_right(sample, metric, where)
                answer = sample.get("solution")
                rows.add(where, place[1], float(right), answer=None if answer is None else label(answer))
    return rows.finish(options, format=NAME, details=details, warnings=[])


def _is_right(sample: object, metric: str, where: str) -> bool:
    if not isinstance(sample, Mapping) or not isinstance(sample.get("base_status"), str):
        raise ValueError(f"{where}: expected samples with base_status and plus_status")
    passed = bool(sample["base_status"] == "pass")
    if metric == "base":
        return passed
    if not isinstance(sample.get("plus_status"), str):
        raise ChoiceError(f"{where}: only the base tests were run", option="metric", choices=["base"])
    return passed and bool(sample["plus_status"] == "pass")
