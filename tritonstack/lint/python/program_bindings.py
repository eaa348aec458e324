"""Values that the names of a function, class or module are given, with their places in it."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Position = tuple[float, float]

EVERYWHERE: Position = (float("inf"), 0)
"""A position after all values of a scope: of names that an inner scope looks up."""

_MOST_VALUES = 20
"""Values that one name may have in different branches."""


@dataclass(frozen=True, eq=False)
class Binding:
    """A value that a name is given at a place; no value where reading does not show it."""

    value: ast.AST | None
    end: Position
    is_certain: bool  # False inside of a branch or loop: an earlier value may be in force


def own_nodes(owner: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, class or module without those inside of its functions and classes."""
    waiting = list(getattr(owner, "body", ()))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def bindings_of(owner: ast.AST) -> Mapping[str, Sequence[Binding]]:
    """Every value that names, and attributes of ``self``, are given in a function, class or module, in their order."""
    found: dict[str, list[Binding]] = {}
    top = set(map(id, getattr(owner, "body", ())))
    own = self_name(owner) if isinstance(owner, Function) else None
    for node in own_nodes(owner):
        for target, value in _given(node):
            name = target if isinstance(target, str) else _target_name(target, own)
            if name:
                end: Position = (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
                is_early = isinstance(node, ast.comprehension | ast.For | ast.AsyncFor | ast.withitem | ast.NamedExpr)
                found.setdefault(name, []).append(Binding(value, (0, 0) if is_early else end, id(node) in top))
    return {name: sorted(each, key=lambda binding: binding.end) for name, each in found.items()}


def _given(node: ast.AST) -> Iterator[tuple[ast.AST | str, ast.AST | None]]:
    """The targets of one statement with their values; None for a value that it does not show."""
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _unpacked(target, node.value)
        case ast.AnnAssign() if node.value is not None:
            yield node.target, node.value
        case ast.NamedExpr():
            yield node.target, node.value
        case ast.AugAssign():
            yield node.target, None
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, node
        case ast.withitem() if node.optional_vars is not None:
            yield node.optional_vars, node.context_expr
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            if isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
                for value in node.iter.elts:
                    yield from _unpacked(node.target, value)
            else:
                yield node.target, None


def _unpacked(target: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """One target, or those of a tuple with the values of a literal one."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    is_alike = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
    for index, each in enumerate(target.elts):
        yield each, value.elts[index] if is_alike and isinstance(value, ast.Tuple | ast.List) else None


def _target_name(target: ast.AST, own: str | None) -> str:
    """``name``, or ``self.name`` whatever the method calls its first parameter; empty for anything else."""
    if isinstance(target, ast.Name):
        return target.id
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own
    return f"self.{target.attr}" if is_own and isinstance(target, ast.Attribute) else ""


def latest(bindings: Sequence[Binding], position: Position) -> tuple[list[Binding], bool]:
    """The values that may be in force at a position, and whether one of them is for certain, so that none is older."""
    found: list[Binding] = []
    count = bisect.bisect_right(bindings, position, key=lambda binding: binding.end)
    for binding in reversed(bindings[:count][-_MOST_VALUES:]):
        found.append(binding)
        if binding.is_certain:
            return found, True
    return found, False


def parameters_of(function: Function) -> set[str]:
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {each.arg for each in (*every, function.args.vararg, function.args.kwarg) if each is not None}


def self_name(function: Function) -> str | None:
    is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
    first = [*function.args.posonlyargs, *function.args.args][:1]
    return first[0].arg if first and not is_static else None
