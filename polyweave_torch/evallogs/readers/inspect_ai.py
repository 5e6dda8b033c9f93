"""inspect_ai: ``.json`` logs and ``.eval`` archives (deflate or zstd), one row a sample and epoch."""

import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.archives import open_member, read_member
from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import JsonStream
from polyweave_torch.evallogs.json_values import entries, parse, part
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.rows import Rows, fingerprint, outcome
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.evallogs.source import decode, open_log

NAME = "inspect_ai"
OPTIONS = frozenset({"scorer", "metric", "epochs", "id", "slice", "arm", "threshold"})

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_Samples = Iterator[tuple[str, Mapping[str, Any]]]


def sniff(shape: Outline) -> bool:
    """An archive with a header or journal, or an object with ``eval`` and ``samples`` or ``plan``."""
    if shape.kind == "zip":
        return "header.json" in shape.names or "_journal/start.json" in shape.names
    record = shape.record
    about = record.get("eval")
    return isinstance(about, dict) and ("task" in about or "model" in about) and "status" in record


def read(paths: list[Path], options: Options) -> Run:
    """Read one log. Samples that crashed have an error and no scores; NaN and null are unscored."""
    path, options = one_file(paths, options)
    rows = Rows(path)
    header: dict[str, Any] = {}
    scores = _Scores(str(path), options)
    if outline(path).kind == "zip":
        with zipfile.ZipFile(path) as archive:
            header = _header(archive, str(path))
            for where, sample in _archived(archive, str(path), options):
                _add(rows, where, sample, scores, options)
    else:
        with open_log(path) as file:
            for place, where, piece in JsonStream(file, str(path)).pieces({("samples",)}):
                if place == ("samples",):
                    _add(rows, where, piece, scores, options)
                elif place in (("status",), ("eval",), ("plan",)):
                    header[place[0]] = piece
    scores.check()
    warnings = list(scores.warnings)
    if header.get("status", "success") != "success":
        warnings.append(f"the evaluation did not finish (status {label(header['status'])})")
    return rows.finish(options, format=NAME, details=_details(header, scores, str(path)), warnings=warnings)


def _add(rows: Rows, where: str, sample: Any, scores: "_Scores", options: Options) -> None:
    if not isinstance(sample, Mapping):
        raise ValueError(f"{where}: expected a sample, but found {type(sample).__name__}")
    value, answer, scored = scores.of(sample, where)
    rows.add(
        where,
        lookup(sample, options.id or "id", where, inside=("metadata",)),
        value,
        failed=bool(sample.get("error")) and not scored,
        epoch=sample.get("epoch", 1),
        slice=None if options.slice is None else label(lookup(sample, options.slice, where, inside=("metadata",))),
        answer=answer,
        prompt=_asked(sample.get("input")),
    )


class _Scores:
    """Finds the outcome among a sample's scores, and remembers which scorers there are."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.options = options
        self.scorers: dict[str, None] = {}
        self.scorer: str | None = options.scorer
        self.metric: str | None = None
        self.warnings: list[str] = []

    def of(self, sample: Mapping[str, Any], where: str) -> tuple[float, str | None, bool]:
        """The outcome, the answer, and whether there was a score at all."""
        # The first logs had one score without a name.
        scores = part(sample, "scores", where) or ({"score": sample["score"]} if sample.get("score") else {})
        self.scorers.update(dict.fromkeys(scores))
        if self.scorer is None and scores:
            self.scorer = next(iter(scores))
        if self.options.scorer is None and len(self.scorers) > 1:
            raise ChoiceError(
                f"{self.path} has {len(self.scorers)} scorers", option="scorer", choices=list(self.scorers)
            )
        score = scores.get(self.scorer or "")
        if score is None:
            return math.nan, None, False
        if not isinstance(score, Mapping):
            raise ValueError(f"{where}: expected a score with a value, but found {type(score).__name__}")
        answer = score.get("answer")
        return self._value(score.get("value"), where), None if answer is None else label(answer), True

    def _value(self, value: Any, where: str) -> float:
        if isinstance(value, Mapping):
            self.metric = choose(
                self.options.metric, list(map(str, value)), option="metric", where=where, what="part of the score"
            )
            value = value[self.metric]
        return _GRADES[value] if isinstance(value, str) and value in _GRADES else outcome(value, where)

    def check(self) -> None:
        """Refuse a scorer that no sample has; say where a metric was asked for in vain."""
        if self.options.scorer is not None and self.options.scorer not in self.scorers:
            choose(self.options.scorer, list(self.scorers), option="scorer", where=self.path, what="scorer")
        if self.options.metric is not None and self.metric is None:
            self.warnings.append(f"metric={self.options.metric} was not used: the scores are single values")


def _header(archive: zipfile.ZipFile, path: str) -> dict[str, Any]:
    names = set(archive.namelist())
    # A log that crashed has no header, only how it started.
    name = "header.json" if "header.json" in names else "_journal/start.json"
    if name not in names:
        raise ValueError(f"{path}: expected a log of inspect_ai, but the archive holds neither header.json nor {name}")
    header = _member(archive, name, path)
    if not isinstance(header, dict):
        raise ValueError(f"{path}: {name} is not an object")
    return {"status": "started", **header}


def _archived(archive: zipfile.ZipFile, path: str, options: Options) -> _Samples:
    """The samples' summaries, which hold all but the fields of some slices; else the samples."""
    names = list(dict.fromkeys(archive.namelist()))
    summaries = [name for name in names if name == "summaries.json"]
    # A log that crashed has them in parts.
    summaries = summaries or [name for name in names if name.startswith("_journal/summaries/")]
    for number, (where, summary) in enumerate(_pieces(archive, summaries, path)):
        if number == 0 and not _knows(summary, options):
            break
        yield where, summary
    else:
        if summaries:
            return
    for name in names:
        if name.startswith("samples/") and name.endswith(".json"):
            yield f"{path}:{name}", _member(archive, name, path)


def _pieces(archive: zipfile.ZipFile, names: list[str], path: str) -> _Samples:
    for name in names:
        with open_member(archive, name, path) as file:
            for _, where, summary in JsonStream(file, f"{path}:{name}").pieces({()}):
                yield where, summary


def _knows(summary: Any, options: Options) -> bool:
    try:
        return all(
            lookup(summary, field, "", inside=("metadata",)) is not None
            for field in (options.id, options.slice)
            if field
        )
    except ValueError:
        return False


def _member(archive: zipfile.ZipFile, name: str, path: str) -> Any:
    return parse(decode(read_member(archive, name, path), f"{path}:{name}"), f"{path}:{name}")


def _asked(question: Any) -> str:
    """A hash of the question, without the ids that messages get anew in each run."""
    if isinstance(question, list):
        question = [
            {name: message.get(name) for name in ("role", "content")} if isinstance(message, dict) else message
            for message in question
        ]
    return "" if question is None else fingerprint(question)


def _details(header: Mapping[str, Any], scores: _Scores, path: str) -> dict[str, str]:
    about = part(header, "eval", path)
    steps = entries(part(header, "plan", path), "steps", path)
    version = part(about, "packages", path).get("inspect_ai")
    said = {
        "model": about.get("model"),
        "task": about.get("task"),
        "task version": about.get("task_version"),
        "harness": version and f"inspect_ai {version}",
        "solver": ", ".join(str(step.get("solver")) for step in steps if isinstance(step, dict)) or None,
        "scorer": scores.scorer,
        "metric": scores.metric,
    }
    return {name: label(value) for name, value in said.items() if value is not None}
