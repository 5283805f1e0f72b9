"""State in, state out: no function of the core both changes an argument and returns something.

Objects that fold what they see, such as `trimtab.auditing.auditor.Audit`, may change themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGING = re.compile(
    "add|append|appendleft|clear|difference_update|discard|extend|fill|insert|intersection_update|"
    "pop|popitem|popleft|remove|reverse|setdefault|sort|symmetric_difference_update|update"
)
"""Methods of lists, dicts, sets, deques and arrays."""


def root_of(node: ast.expr) -> str:
    """The name at the left of ``a.b[c].d``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """All nodes of a function but those of functions within it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def changed_names(node: ast.AST) -> Iterator[str]:
    """The names whose value a statement or a call changes in place."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    for each in targets:
        for part in each.elts if isinstance(each, ast.Tuple) else [each]:
            if isinstance(part, ast.Attribute | ast.Subscript):
                yield root_of(part)
    method = node.func if isinstance(node, ast.Call) else None
    if isinstance(method, ast.Attribute) and CHANGING.fullmatch(method.attr):
        yield root_of(method.value)


def offenders(source: str) -> list[str]:
    """``line name: arguments`` of each function that changes arguments and returns something."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = list(own_nodes(function))
        taken = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
        rebound = {
            each.id
            for node in nodes
            if isinstance(node, ast.Assign)
            for each in node.targets
            if isinstance(each, ast.Name)
        }
        changed = {name for node in nodes for name in changed_names(node)} & (taken - rebound)
        returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
        if changed and (returns or yields):
            found.append(f"{function.lineno} {function.name}: {', '.join(sorted(changed))}")
    return found


def test_no_function_of_the_core_changes_an_argument_and_returns_something() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{each}"
        for file in sorted((ROOT / "trimtab").rglob("*.py"))
        for each in offenders(file.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "body",
    ["rows.append(1); return rows", "rows[0] += 1; return 1", "del rows.x; yield 1"],
)
def test_such_a_function_is_found(body: str) -> None:
    assert offenders(f"def take(rows): {body}") == ["1 take: rows"]
