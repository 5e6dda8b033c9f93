"""No update path reads a value of a tensor: seen in the source, and on a GPU by torch itself."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor

from polyweave_torch.functional import _checks
from tests.contract.broken import Bincount, bincount_core
from tests.contract.cases import fed
from tests.contract.entries import ENTRIES, Entry, same

READS = {
    "item",
    "tolist",
    "unique",
    "unique_consecutive",
    "bincount",
    "nonzero",
    "cpu",
    "numpy",
    "argwhere",
    "masked_select",
}
# What a call of these does is behind validate_args, or reads no tensor.
GUARDED = {"check_binary", "check_range"}
_PACKAGE = "polyweave_torch"


def reads(function: Any) -> list[str]:
    """Host synchronisations in a function of ours and everything of ours that it calls, each with its place."""
    found, seen, todo = [], set(), [function]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        tree = ast.parse(textwrap.dedent(inspect.getsource(current)))
        names = {**current.__globals__, **_closure(current)}
        for node in _unguarded(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in READS or (
                    name in ("bool", "int", "float") and isinstance(node.func, ast.Name) and _tensor(node)
                ):
                    found.append(f"{current.__qualname__}: {ast.unparse(node)}")
                todo += [called for called in _called(node, names) if called.__name__ not in GUARDED]
    return found


def _unguarded(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if ... validate_args``."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "validate_args" in ast.unparse(child.test):
            yield from (node for other in child.orelse for node in _unguarded(other))
            continue
        yield child
        yield from _unguarded(child)


def _tensor(node: ast.Call) -> bool:
    """Whether the argument of bool(), int() or float() looks like a tensor's reduction."""
    return any(isinstance(part, ast.Call) for argument in node.args for part in ast.walk(argument))


def _called(node: ast.Call, names: dict[str, Any]) -> Iterator[FunctionType]:
    thing: Any = None
    if isinstance(node.func, ast.Name):
        thing = names.get(node.func.id)
    elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        owner = names.get("self" if node.func.value.id == "self" else node.func.value.id)
        thing = getattr(owner, node.func.attr, None)
    thing = inspect.unwrap(thing) if callable(thing) else None
    if isinstance(thing, FunctionType) and thing.__module__.startswith(_PACKAGE):
        yield thing


def _closure(function: FunctionType) -> dict[str, Any]:
    return {"self": _owner.get(function)} if function in _owner else {}


_owner: dict[FunctionType, type] = {}


def update_of(metric_class: type) -> FunctionType:
    """The class's update, with its class known, so that calls of its other methods can be followed."""
    for cls in metric_class.__mro__:
        for member in vars(cls).values():
            if isinstance(member, FunctionType):
                _owner[member] = metric_class
    update: FunctionType = metric_class.update  # type: ignore[attr-defined]
    return update


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_update_reads_a_value(entry: Entry) -> None:
    assert reads(update_of(type(entry.build()))) == []


def test_the_check_sees_reads() -> None:
    assert any("bincount" in place for place in reads(update_of(Bincount)))
    assert any("item" in place for place in reads(bincount_core))
    assert any("bool" in place for place in reads(_checks.check_binary)), "the guarded checks themselves do read"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_updates_do_not_synchronise_a_gpu(entry: Entry) -> None:
    stream = {k: v.cuda() if isinstance(v, Tensor) else v for k, v in entry.stream(0).items()}
    metric = entry.build(validate_args=False).cuda()
    metric.update(**stream)
    torch.cuda.set_sync_debug_mode("error")
    try:
        metric.update(**stream)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert same(metric.cpu().compute(), fed(entry, entry.stream(0), metric=fed(entry, entry.stream(0))).compute())
