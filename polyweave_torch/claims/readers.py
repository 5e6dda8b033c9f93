"""Claims from files: s-expressions, JSON lists, and subject-predicate-object triples."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from polyweave_torch.evallogs.source import repeated
from polyweave_torch.evallogs.tables import allow_long_cells
from polyweave_torch.functional.claims.sentences import Claim, Malformed, as_claim, printed_form, scan_claims
from polyweave_torch.layout import clipped

Item: TypeAlias = Claim | Malformed

_TRIPLE = ("subject", "predicate", "object")
_TYPE_PREDICATES = frozenset({"a", "instance_of", "is_a", "isa", "rdf:type", "type"})


def read_claims(path: str | Path) -> list[Claim]:
    """Read the claims of a file that people wrote.

    - ``.json``: a list of claims, each as nested lists, ``["lion", "LionA"]``, or as an object with ``subject``,
      ``predicate`` and ``object``;
    - ``.jsonl``: one such claim on each line;
    - ``.csv``, ``.tsv``: triples under the columns ``subject``, ``predicate`` and ``object``;
    - ``.sexp``, ``.lisp``, ``.kif``, ``.txt``: s-expressions, as :func:`~polyweave_torch.functional.parse_claims` takes
      them.

    A triple is the claim ``(predicate subject object)``. Where its predicate says what kind of thing the subject is
    (``a``, ``is a``, ``isA``, ``instance of``, ``type``, ``rdf:type``) it is ``(object subject)``, by which names are
    aligned. Numbers are symbols, as written.

    Args:
        path: the file, UTF-8.

    Raises:
        ValueError: naming the file and the place of the first thing that is no claim.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "fable.csv")
        ...     _ = path.write_text("subject,predicate,object\\nLionA,is a,lion\\nLionA,spared,MouseA\\n")
        ...     read_claims(path)
        [('lion', 'LionA'), ('spared', 'LionA', 'MouseA')]
    """
    claims = []
    for item in _items(Path(path)):
        if isinstance(item, Malformed):
            raise ValueError(f"{path}: {item.reason}")
        claims.append(item)
    return claims


def read_candidates(path: str | Path) -> list[Item]:
    """Read the claims that a model wrote, as far as they can be read.

    Args:
        path: a file as for :func:`read_claims`.

    Returns:
        Claims as :func:`~polyweave_torch.functional.score_claims` takes them, with
        :class:`~polyweave_torch.claims.Malformed` for what is none.

    Raises:
        ValueError: where the format is unknown or the file is not UTF-8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "fable.jsonl")
        ...     _ = path.write_text('["lion", "Leo"]\\n["mouse"\\n')
        ...     read_candidates(path)
        [('lion', 'Leo'), Malformed(text='["mouse"')]
    """
    return list(_items(Path(path)))


def _items(path: Path) -> Iterator[Item]:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: expected a name that ends in one of {', '.join(FORMATS)}")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is not a regular file; save what it gives to a file first")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, but {error}") from error
    try:
        yield from FORMATS[path.suffix](text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _json_list(text: str) -> Iterator[Item]:
    try:
        claims = _decode(text)
        if not isinstance(claims, list):
            raise ValueError(f"expected a list of claims, but got {printed_form(claims)[:60]}")
    except ValueError as error:
        yield Malformed(text, str(error))
    else:
        yield from (_item(claim, f"claim {number}") for number, claim in enumerate(claims, 1))


def _json_lines(text: str) -> Iterator[Item]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                claim = _decode(line, number)
            except ValueError as error:
                yield Malformed(line, str(error))
            else:
                yield _item(claim, f"line {number}")


def _triples(text: str, delimiter: str) -> Iterator[Item]:
    allow_long_cells()
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        start = rows.line_num
        try:
            row, wrong = next(rows), ""
        except StopIteration:
            return
        except csv.Error as error:
            row, wrong = [], str(error)
        if header and len(row) > len(header):
            wrong = f"expected {len(header)} cells as in the first line, but found {len(row)}"
        if wrong:
            lines = text.splitlines(keepends=True)[start : rows.line_num]
            yield Malformed("".join(lines).strip(), f"line {start + 1}: {wrong}")
        elif header and row:
            yield _item(dict(zip(header, row, strict=False)), f"line {start + 1}")
        elif row:
            header = [name.strip().lower() for name in row]
            if twice := repeated(header):
                times = header.count(twice[0])
                yield Malformed(text, f"line {start + 1}: the column {clipped(twice[0])!r} stands {times} times")
                return
            if not set(_TRIPLE) <= set(header):
                yield Malformed(text, f"line {start + 1}: expected the columns {', '.join(_TRIPLE)}, but got {header}")
                return


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
        raise ValueError(f"the key {clipped(twice)!r} stands twice in one object")
    return members


def _decode(text: str, first_line: int = 1) -> Any:
    try:
        return json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=_members)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise ValueError(f"line {line}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError(f"line {first_line}: it nests too deep") from error
    except ValueError as error:
        raise ValueError(f"line {first_line}: {error}") from error


def _item(value: Any, place: str) -> Item:
    try:
        return as_claim(_claim_of(value) if isinstance(value, dict) else value)
    except ValueError as error:
        return Malformed(printed_form(value), f"{place}: {error}")


def _claim_of(triple: dict[str, Any]) -> Claim:
    parts = [triple.get(name) for name in _TRIPLE]
    subject, predicate, object_ = (part.strip() if isinstance(part, str) else "" for part in parts)
    if not (subject and predicate and object_):
        raise ValueError(f"expected text for {', '.join(_TRIPLE)}, but got {printed_form(parts)}")
    kind = predicate.lower().replace(" ", "_").replace("-", "_") in _TYPE_PREDICATES
    return (object_, subject) if kind else (predicate, subject, object_)


FORMATS: dict[str, Callable[[str], Iterator[Item]]] = {
    ".sexp": scan_claims,
    ".lisp": scan_claims,
    ".kif": scan_claims,
    ".txt": scan_claims,
    ".json": _json_list,
    ".jsonl": _json_lines,
    ".csv": partial(_triples, delimiter=","),
    ".tsv": partial(_triples, delimiter="\t"),
}
