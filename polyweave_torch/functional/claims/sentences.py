"""Claims as nested tuples, and their text: s-expressions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Term: TypeAlias = "str | tuple[Term, ...]"
Claim: TypeAlias = tuple[Term, ...]

MAX_DEPTH = 100
"""How deep a claim may nest. Comparing and hashing nested tuples needs stack for each level."""
MAX_TEXT = 2**24
"""Characters that one text may hold."""

_TOKEN = re.compile(
    r'(?P<skip>\s+|;[^\n]*)|(?P<open>\()|(?P<close>\))|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<symbol>[^\s()";]+)', re.DOTALL
)
_SYMBOL = re.compile(r'[^\s()";]+')
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


@dataclass(frozen=True)
class Malformed:
    """Text that is no claim. As a candidate it counts and matches nothing. (Not a tuple, since that would be one.)"""

    text: str
    """As written."""
    reason: str = field(repr=False)
    """Where it goes wrong, and how."""


def parse_claims(text: str) -> list[Claim]:
    r"""Read claims from s-expression text.

    A fact is ``(predicate argument ...)``, a rule ``(implies (antecedent ...) consequent)`` with variables ``?x``, an
    exception ``(exceptWhen rule exception)``. The antecedents may also be written ``(and antecedent ...)``, and a
    single one as it is. A symbol with spaces, parentheses, ``;`` or ``"`` stands in double quotes, with ``\"`` and
    ``\\`` inside; ``;`` begins a comment.

    Args:
        text: any number of claims, at most 2^24 characters.

    Raises:
        ValueError: with line and column, where parentheses or quotation marks are not balanced, something stands
            outside of parentheses, a claim nests more than 100 deep, or has not the form of a claim.

    Example:
        >>> parse_claims("(lion LionA) (spared LionA MouseA)")
        [('lion', 'LionA'), ('spared', 'LionA', 'MouseA')]
        >>> parse_claims("(implies ((lion ?x)) (animal ?x))")
        [('implies', (('lion', '?x'),), ('animal', '?x'))]
    """
    claims = []
    for item in scan_claims(text):
        if isinstance(item, Malformed):
            raise ValueError(item.reason)
        claims.append(item)
    return claims


def scan_claims(text: str) -> Iterator["Claim | Malformed"]:
    """Read claims one by one. After malformed text, go on at the next line that begins with a parenthesis.

    Args:
        text: as :func:`parse_claims` takes it.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"the text has {len(text):,} characters, more than {MAX_TEXT:,}; split it into documents")
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is not None and token.lastgroup == "skip":
            position = token.end()
            continue
        try:
            claim, position = _read_claim(text, position)
        except ValueError as error:
            end = text.find("\n(", position)
            end = len(text) if end < 0 else end
            yield Malformed(text[position:end].strip(), str(error))
            position = end
        else:
            yield claim


def format_claim(claim: Claim) -> str:
    """The s-expression text of a claim, on one line; :func:`parse_claims` reads it back.

    Args:
        claim: a fact, rule or exception.

    Raises:
        ValueError: where it is no claim.

    Example:
        >>> format_claim(("implies", (("lion", "?x"),), ("likes", "?x", "fresh meat")))
        '(implies ((lion ?x)) (likes ?x "fresh meat"))'
    """
    return printed_form(as_claim(claim))


def as_claim(thing: object) -> Claim:
    """Return a claim as nested tuples; lists, as JSON has them, count as tuples.

    Raises:
        ValueError: saying why it is no claim.
    """
    fault = find_fault(thing)
    if fault is not None:
        text = printed_form(thing)
        raise ValueError(f"{text if len(text) <= 200 else text[:200] + '...'} is no claim: {fault}")
    claim: Claim = _nested(thing)
    return claim


def find_fault(thing: object) -> str | None:
    """Why something is no claim, or None where it is one."""
    todo: list[tuple[object, int, bool]] = [(thing, 1, True)]
    while todo:
        term, depth, whole = todo.pop()
        if isinstance(term, str) and not whole:
            continue
        if not isinstance(term, (tuple, list)):
            return f"expected {'a claim' if whole else 'text or a tuple'}, but got {printed_form(term)}"
        if depth > MAX_DEPTH:
            return f"it nests more than {MAX_DEPTH} deep"
        if not term:
            return "it holds an empty tuple"
        head = term[0] if isinstance(term[0], str) else None
        if whole and head is None:
            return "a claim must begin with its predicate"
        if head == "implies":
            if len(term) != 3 or not isinstance(term[1], (tuple, list)):
                return "a rule must be (implies (antecedent ...) consequent)"
            todo += [(antecedent, depth + 2, True) for antecedent in antecedents(term[1])]
            todo.append((term[2], depth + 1, True))
        elif head == "exceptWhen":
            if (
                len(term) != 3
                or not isinstance(term[1], (tuple, list))
                or term[1][:1] not in (("implies",), ["implies"])
            ):
                return "an exception must be (exceptWhen (implies (antecedent ...) consequent) exception)"
            todo += [(part, depth + 1, True) for part in term[1:]]
        else:
            todo += [(part, depth + 1, False) for part in term]
    return None


def antecedents(body: Any) -> Any:
    """The antecedents in the second place of a rule: a tuple of them, ``(and ...)``, or a single one."""
    if not body or not isinstance(body[0], str):
        return body
    return body[1:] if body[0] == "and" else (body,)


def printed_form(thing: object) -> str:
    """Text of anything that was given for a claim: reports are sorted by it."""
    pieces: list[str] = []
    todo = [thing]
    while todo:
        term = todo.pop()
        if term is _END:
            pieces.append(")")
            continue
        if pieces and pieces[-1] != "(":
            pieces.append(" ")
        if isinstance(term, (tuple, list)):
            pieces.append("(")
            todo.append(_END)
            todo += reversed(term)
        elif isinstance(term, str):
            pieces.append(term if _SYMBOL.fullmatch(term) else f'"{term.translate(_ESCAPES)}"')
        else:
            pieces.append(_foreign(term))
    return "".join(pieces)


def is_variable(term: Term) -> bool:
    """Whether a term is a variable such as ``?x``."""
    return isinstance(term, str) and len(term) > 1 and term[0] == "?"


def symbols(claim: Claim) -> Iterator[str]:
    """All symbols of a claim, from left to right."""
    for term in claim:
        if isinstance(term, str):
            yield term
        else:
            yield from symbols(term)


def substitute(mapping: Mapping[str, Term], term: Any) -> Any:
    """The term with every symbol that the mapping has replaced, at any depth, at once."""
    if isinstance(term, str):
        return mapping.get(term, term)
    return tuple(substitute(mapping, part) for part in term)


_END = object()


def _read_claim(text: str, start: int) -> tuple[Claim, int]:
    """The claim that begins at ``start``, and where it ends."""
    lists: list[list[Term]] = []
    position = start
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"{_place(text, position)}: the quotation mark is never closed")
        kind = token.lastgroup
        if not lists and kind != "open":
            what = (
                "the closing parenthesis has no opening one" if kind == "close" else "expected an opening parenthesis"
            )
            raise ValueError(f"{_place(text, position)}: {what}, but got {_excerpt(token[0])}")
        if kind == "open":
            if len(lists) == MAX_DEPTH:
                raise ValueError(f"{_place(text, position)}: more than {MAX_DEPTH} parentheses inside each other")
            lists.append([])
        elif kind == "symbol":
            lists[-1].append(token["symbol"])
        elif kind == "quoted":
            lists[-1].append(re.sub(r"\\(.)", _unescape, token["quoted"], flags=re.DOTALL))
        elif kind == "close":
            closed = tuple(lists.pop())
            if not lists:
                fault = find_fault(closed)
                if fault is not None:
                    raise ValueError(
                        f"{_place(text, start)}: {_excerpt(text[start : token.end()])} is no claim: {fault}"
                    )
                return closed, token.end()
            lists[-1].append(closed)
        position = token.end()
    raise ValueError(f"{_place(text, start)}: the parenthesis is never closed ({len(lists)} are open at the end)")


def _place(text: str, position: int) -> str:
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - text.rfind(chr(10), 0, position)}"


def _excerpt(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."


def _unescape(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])


def _nested(term: Any) -> Any:
    return term if isinstance(term, str) else tuple(_nested(part) for part in term)


def _foreign(term: object) -> str:
    try:
        return repr(term)
    except RecursionError:  # nested beyond what Python prints
        return f"<{type(term).__name__}>"
