"""Read a finished evaluation run from a file or folder, whatever wrote it."""

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from polyweave_torch.evallogs.options import Options
from polyweave_torch.evallogs.outline import Outline, outline
from polyweave_torch.evallogs.readers import (
    deepeval,
    evalplus,
    evalscope,
    generic,
    helm,
    human_eval,
    inspect_ai,
    lighteval,
    lm_eval,
    nemo_evaluator,
    olmes,
    openai_evals,
    predictions,
    promptfoo,
    reflexion,
    swebench,
)
from polyweave_torch.evallogs.run import ChoiceError, Run
from polyweave_torch.layout import shown


class _Reader(NamedTuple):
    name: str
    options: frozenset[str]
    sniff: Callable[[Outline], bool]
    read: Callable[[list[Path], Options], Run]


_MODULES = (
    *(lm_eval, inspect_ai, swebench, promptfoo, helm, evalscope, human_eval, reflexion, predictions),
    *(deepeval, evalplus, lighteval, nemo_evaluator, olmes, openai_evals),
)
_READERS = [_Reader(module.NAME, module.OPTIONS, module.sniff, module.read) for module in _MODULES]
_TABLE = _Reader("table", generic.OPTIONS, generic.sniff, generic.read)
_BY_NAME = {reader.name: reader for reader in _READERS} | dict.fromkeys(generic.FORMATS, _TABLE)
FORMATS = tuple(_BY_NAME)
_LOGS = (".json", ".jsonl", ".eval", ".csv", ".parquet", ".npz")
_MAX_FILES = 100_000


def read_run(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    filter: str | None = None,
    metric: str | None = None,
    scorer: str | None = None,
    provider: str | None = None,
    epochs: Literal["first", "mean", "majority", "any", "all"] | None = None,
    id: str | None = None,
    correct: str | None = None,
    slice: str | None = None,
    arm: str | None = None,
    threshold: float | None = None,
) -> Run:
    """Read the outcome of every item of one finished evaluation run.

    The format is told by content. Where a log can be read in more than one way nothing is guessed: a
    :class:`ChoiceError` names the choices and the option that decides. Files are data: nothing in them is evaluated.

    Args:
        path: a file, or a folder that holds one run (or several, see ``arm``).
        format: one of ``lm_eval``, ``inspect_ai``, ``swebench``, ``promptfoo``, ``helm``, ``evalscope``,
            ``human_eval``, ``reflexion``, ``predictions`` (the demo's arrays), ``deepeval``, ``evalplus``,
            ``lighteval``, ``nemo_evaluator``, ``olmes``, ``openai_evals``, and the tables ``jsonl``, ``json``,
            ``csv``, ``parquet``; None: told by content.
        filter: lm_eval: the answer filter.
        metric: lm_eval, evalscope, lighteval, olmes: the metric; deepeval: one instead of the success of all;
            evalplus: ``base`` instead of ``plus``; helm: the statistic; promptfoo: a named score or ``score`` instead
            of success; inspect_ai: the part of a score that has several.
        scorer: inspect_ai: the scorer.
        provider: promptfoo: the provider, by label.
        epochs: how repeats of an item become one outcome: the ``first``, their ``mean`` (a score), ``majority`` (more
            than half), ``any`` or ``all``.
        id: the field that names items: a column, or a dotted path as ``doc.key``.
        correct: tables: the column of outcomes.
        slice: the field that names each item's slice, like ``id``.
        arm: which run, where a file or folder holds several: a value of the column that names them (or
            ``column=value``), a provider, a model's folder, a SWE-bench arm, an arm of the demo.
        threshold: scores from here on count as right.

    Returns:
        The run; its ``scores`` are given where outcomes are not 0 and 1 and no threshold was.

    Raises:
        ChoiceError: where more than one reading is possible.
        ValueError: where the content is not what it should be; with file and line.

    Example:
        >>> import pathlib, tempfile
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
        >>> _ = log.write_text("id,correct,slice\\na,1,easy\\nb,0,hard\\n")
        >>> run = read_run(log)
        >>> run.format, run.ids, run.correct.tolist(), run.slices
        ('csv', ['a', 'b'], [1, 0], ['easy', 'hard'])
    """
    place = Path(path)
    if threshold is not None and math.isnan(threshold):
        raise ValueError("threshold must be a number, but is NaN")
    options = Options(filter, metric, scorer, provider, epochs, id, correct, slice, arm, threshold)
    reader, paths = _find(place, format, options)
    run = reader.read(paths, options)
    name = arm or (place.resolve().name if place.is_dir() else place.stem)
    return replace(run, name=name, path=str(place), warnings=[*run.warnings, *options.unused(reader.options)])


def _find(path: Path, format: str | None, options: Options) -> tuple[_Reader, list[Path]]:
    """The reader, and the files of its format."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, but is {format!r}")
    if not path.is_dir():
        return _reader_of(path, format, options), [path]
    found: dict[_Reader, list[Path]] = {}
    for file in _files(path):
        shape = _shape(file)
        reader = None if shape is None else _sniff(shape)
        if reader is not None:
            found.setdefault(reader, []).append(file)
    if format is not None:
        found = {reader: files for reader, files in found.items() if reader is _BY_NAME[format]}
    elif len(found) > 1:
        # Many tools put tables beside their logs.
        found.pop(_TABLE, None)
    if not found:
        raise ValueError(f"{path} holds no evaluation log{f' of format {format}' if format else ''}")
    if len(found) > 1:
        names = [reader.name for reader in found]
        raise ChoiceError(f"{path} holds logs of {len(found)} formats", option="format", choices=names)
    return next(iter(found.items()))


def _reader_of(path: Path, format: str | None, options: Options) -> _Reader:
    shape = outline(path)
    if format is not None:
        there = generic.format_of(shape)
        if format in generic.FORMATS and there not in (format, None):
            raise ValueError(f"{path}: format={format!r} (--format) was asked for, but it is {there}; leave it out")
        return _BY_NAME[format]
    # Only tables let the caller name the column of outcomes, so naming it says that this is one.
    reader = _TABLE if options.correct is not None and _TABLE.sniff(shape) else _sniff(shape)
    if reader is None:
        fields = ", ".join(map(shown, [*shape.record, *shape.names][:8])) or "nothing known"
        looks = "empty" if shape.kind == "empty" else f"{shape.kind}: {fields}"
        raise ValueError(f"{path}: not a known evaluation log ({looks}); known are {', '.join(FORMATS)}")
    return reader


def _sniff(shape: Outline) -> _Reader | None:
    return next((reader for reader in (*_READERS, _TABLE) if reader.sniff(shape)), None)


def _files(folder: Path) -> list[Path]:
    """The regular files below a folder, sorted; hidden ones aside, links to folders not followed."""
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [Path(root, name) for name in sorted(names) if not name.startswith(".")]
        if len(files) > _MAX_FILES:
            raise ValueError(f"{folder} holds more than {_MAX_FILES} files; pass the folder of one run")
    return [file for file in files if file.is_file()]


def _shape(path: Path) -> Outline | None:
    """A file's outline; None for one that is no log at all, of which a folder may hold some."""
    try:
        return outline(path)
    except ValueError:
        # A log that is broken must not go missing.
        if path.suffix in _LOGS:
            raise
        return None
