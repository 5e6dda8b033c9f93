"""Docstrings of public names: every result's field is explained, every error named, every example as users write it."""

import ast
import dataclasses
import doctest
import enum
import functools
import inspect
import re
import typing
from importlib import import_module
from typing import Any

import pytest

ROOMS = [
    f"polyweave_torch{room}" for room in ("", ".functional", ".callbacks", ".evallogs", ".plot", ".ablation", ".claims")
]
# Records, enumerations and protocols come out of a function, or go into one, whose example shows them. Of the rest:
NO_EXAMPLE = {
    "polyweave_torch.evallogs.ChoiceError": "an error, which the page on comparing runs shows",
}

Definition = ast.FunctionDef | ast.ClassDef


@functools.cache
def tree_of(file: str) -> ast.Module:
    with open(file, encoding="utf-8") as source:
        return ast.parse(source.read())


def definition(thing: Any) -> Definition:
    """Where a function or class is defined."""
    thing = inspect.unwrap(thing)
    body = tree_of(inspect.getsourcefile(thing) or "").body
    return next(node for node in body if isinstance(node, Definition) and node.name == thing.__name__)


def public() -> dict[str, Any]:
    """Functions and classes by import path. Modules, constants and aliases have no docstring of their own."""
    found = {}
    for room in ROOMS:
        for name in import_module(room).__all__:
            thing = getattr(import_module(room), name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{room}.{name}"] = thing
    return found


PUBLIC = public()


def is_record(thing: Any) -> bool:
    """Whether it is a NamedTuple or a dataclass."""
    return hasattr(thing, "_fields") or dataclasses.is_dataclass(thing)


def is_shown_by_functions(thing: Any) -> bool:
    """Whether it only holds or names values: a record, an enumeration, a protocol, the type of a dict."""
    enumeration = inspect.isclass(thing) and issubclass(thing, enum.Enum)
    return is_record(thing) or enumeration or typing.is_typeddict(thing) or getattr(thing, "_is_protocol", False)


def is_text(line: ast.stmt | None) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def undocumented_fields(node: ast.ClassDef) -> list[str]:
    """Public fields without a docstring below them."""
    pairs = zip(node.body, [*node.body[1:], None], strict=True)
    fields = [(ast.unparse(line.target), after) for line, after in pairs if isinstance(line, ast.AnnAssign)]
    return [name for name, after in fields if not name.startswith("_") and not is_text(after)]


def raises(node: ast.AST) -> bool:
    """Whether a body raises something itself, functions inside it aside."""
    inside = [child for child in ast.iter_child_nodes(node) if not isinstance(child, Definition | ast.Lambda)]
    return any(isinstance(child, ast.Raise) or raises(child) for child in inside)


def silent_raisers(node: Definition, whole: str = "") -> list[str]:
    """The function, or the public methods, that raise what no docstring names: their own, or that of the class."""
    whole = whole + (ast.get_docstring(node) or "")
    if isinstance(node, ast.FunctionDef):
        return [node.name] if raises(node) and "Raises:" not in whole else []
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    called = ("__init__", "__post_init__", "__new__", "__call__")
    seen = [method for method in methods if method.name in called or not method.name.startswith("_")]
    return [name for method in seen for name in silent_raisers(method, whole)]


def imports(path: str) -> set[tuple[str, str]]:
    """Module and name of everything that the examples of a public name import from the package."""
    module = inspect.getmodule(inspect.unwrap(PUBLIC[path]))
    tests = doctest.DocTestFinder().find(PUBLIC[path], module=module)
    lines = [line for test in tests for example in test.examples for line in example.source.splitlines()]
    matches = [re.match(r"from (polyweave_torch[\w.]*) import (.*)", line) for line in lines]
    return {(found[1], name) for found in matches if found for name in re.findall(r"\w+", found[2])}


@pytest.mark.parametrize("path", [path for path, thing in PUBLIC.items() if is_record(thing)])
def test_every_field_of_a_result_is_explained(path: str) -> None:
    node = definition(PUBLIC[path])
    assert isinstance(node, ast.ClassDef)
    assert undocumented_fields(node) == []


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_has_an_example_or_a_reason_for_none(path: str) -> None:
    text = ast.get_docstring(definition(PUBLIC[path]))
    assert text
    if not is_shown_by_functions(PUBLIC[path]):
        assert ("Example:" in text) != (path in NO_EXAMPLE)


@pytest.mark.parametrize("path", PUBLIC)
def test_what_a_body_raises_is_in_a_docstring(path: str) -> None:
    assert silent_raisers(definition(PUBLIC[path])) == []


@pytest.mark.parametrize("path", PUBLIC)
def test_examples_import_from_where_users_import(path: str) -> None:
    public_names = {name for room in ROOMS for name in import_module(room).__all__}
    assert {(module, name) for module, name in imports(path) if module not in ROOMS and name in public_names} == set()
