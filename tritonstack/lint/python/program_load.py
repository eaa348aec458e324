"""Calls that a Python model's program makes while Triton loads the model, found by reading it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonstack.lint.python.program_bindings import Function
from tritonstack.lint.python.program_values import Module, OwnClass, Placed, Program, Scope, called_scope

# Source: python_backend src/pb_stub.cc (Stub::StubSetup imports the program, Stub::Initialize makes an object of its
# class and calls initialize, Stub::AutoCompleteModelConfig calls auto_complete_config).


AT_LOAD = ("__init__", "auto_complete_config", "initialize")
"""Methods of the model's class that Triton calls before it takes requests."""

_RUNS_ARGUMENT = frozenset(
    {"Thread", "Process", "Timer", "submit", "map", "run_in_executor", "to_thread", "create_task", "run"}
)
"""Functions that call a function that they are given, by the last part of their names."""

_SET_VARIABLE = frozenset({"os.environ.setdefault", "os.environ.update", "os.putenv"})

_DEEPEST = 40
"""Blocks and calls inside of each other that are followed."""
_MOST_CALLS = 2_000
"""Calls of functions that are followed in one program."""


@dataclass(frozen=True, eq=False)
class LoadCall:
    """A call of something that is not the program's own."""

    node: ast.Call
    scope: Scope
    names: tuple[str, ...]  # the full names that its function may have
    is_fallback: bool  # whether it is made only where a file of the archive is missing


@dataclass(frozen=True, eq=False)
class Load:
    """The actions of a program while it is loaded."""

    calls: tuple[LoadCall, ...]
    variables: frozenset[str]  # environment variables that it sets


def run_at_load(program: Program, class_name: str) -> Load:
    """Calls that run at load: reached from module level, or from what Triton calls of the model's class.

    Followed are functions, methods, objects, properties and threads; a call that several reach is there several
    times, with the arguments of each. Not followed: what is only passed on, and ``if __name__ == "__main__"``.
    """
    run = _Run(program)
    if program.main is not None:
        run.module(program.main)
        for owner in program.symbol(class_name, program.main):
            if isinstance(owner.node, ast.ClassDef):
                run.methods(OwnClass(owner.node, owner.scope.module), AT_LOAD)
    return Load(tuple(run.found), frozenset(run.variables))


class _Run:
    """The statements that loading the program runs, in order, with both branches of every condition."""

    def __init__(self, program: Program) -> None:
        self.found: list[LoadCall] = []
        self.variables: set[str] = set()
        self._program = program
        self._modules: set[Module] = set()
        self._entered: set[tuple[object, ...]] = set()
        self._depth = 0

    def module(self, module: Module) -> None:
        if module not in self._modules:
            self._modules.add(module)
            self._block(module.tree.body, Scope(module), is_fallback=False)

    def methods(self, owner: OwnClass, names: Sequence[str], made_by: Placed | None = None) -> None:
        """Methods of the class, or those that it inherits."""
        for name in names:
            for method in self._program.members(owner, name, made_by=made_by):
                if isinstance(method.node, Function):
                    place = method.scope
                    at = OwnClass(place.owner or owner.node, place.module)
                    self._function(method.node, self._program.method_scope(method.node, at, made_by), is_fallback=False)

    def _block(self, body: Sequence[ast.stmt], scope: Scope, *, is_fallback: bool) -> None:
        self._depth += 1
        for statement in body if self._depth < _DEEPEST else ():
            if isinstance(statement, ast.If):
                is_fallback = self._branches(statement, scope, is_fallback=is_fallback)
            elif isinstance(statement, Function):
                for part in (*statement.decorator_list, *statement.args.defaults):
                    self._expression(part, scope, is_fallback=is_fallback)
            elif isinstance(statement, ast.ClassDef):
                for part in (*statement.decorator_list, *statement.bases):
                    self._expression(part, scope, is_fallback=is_fallback)
                inside = Scope(scope.module, owner=statement)
                self._block(statement.body, inside, is_fallback=is_fallback)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                self._imports(statement, scope.module)
            else:
                if isinstance(statement, ast.Assign):
                    self._variables(statement, scope)
                self._parts(statement, scope, is_fallback=is_fallback)
        self._depth -= 1

    def _variables(self, statement: ast.Assign, scope: Scope) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and "os.environ" in self._program.names(target.value, scope):
                self.variables |= {text.value for text in self._program.texts(target.slice, scope)}

    def _branches(self, statement: ast.If, scope: Scope, *, is_fallback: bool) -> bool:
        """Run both branches; True where the code after them runs only if a file of the archive is missing."""
        if _is_never(statement.test):
            self._block(statement.orelse, scope, is_fallback=is_fallback)
            return is_fallback
        asks = self._program.asks_for_files_of_archive(statement.test, scope)
        self._expression(statement.test, scope, is_fallback=is_fallback)
        for branch in (statement.body, statement.orelse):
            self._block(branch, scope, is_fallback=is_fallback or asks)
        return is_fallback or (asks and isinstance(statement.body[-1], ast.Return | ast.Continue))

    def _parts(self, node: ast.AST, scope: Scope, *, is_fallback: bool) -> None:
        """The expressions and the blocks of any other statement."""
        for _, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            if parts and isinstance(parts[0], ast.stmt):
                self._block(parts, scope, is_fallback=is_fallback)
                continue
            for part in parts:
                if isinstance(part, ast.ExceptHandler | ast.match_case | ast.withitem):
                    self._parts(part, scope, is_fallback=is_fallback)
                elif isinstance(part, ast.expr):
                    self._expression(part, scope, is_fallback=is_fallback)

    def _imports(self, statement: ast.Import | ast.ImportFrom, module: Module) -> None:
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.ImportFrom):
            above = statement.module or ""
            names = [above, *(f"{above}.{name}".lstrip(".") for name in names)]
        for name in names:
            beside = self._program.beside(name, module)
            if beside is not None:
                self.module(beside)

    def _expression(self, node: ast.expr, scope: Scope, *, is_fallback: bool) -> None:
        for each in _without_lambdas(node):
            if isinstance(each, ast.Call):
                self._call(each, scope, is_fallback=is_fallback)
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
                for found in self._program.follow(each, scope):
                    if isinstance(found.node, Function) and _is_property(found.node):
                        call = ast.copy_location(ast.Call(each, [], []), each)
                        self._function(
                            found.node, called_scope(found.node, found.scope, call, scope), is_fallback=is_fallback
                        )

    def _call(self, call: ast.Call, scope: Scope, *, is_fallback: bool) -> None:
        is_own = False
        for found in self._program.follow(call.func, scope):
            if isinstance(found.node, Function):
                is_own = True
                inner = called_scope(found.node, found.scope, call, scope)
                self._function(found.node, inner, is_fallback=is_fallback or found.is_fallback)
            elif isinstance(found.node, ast.ClassDef):
                is_own = True
                made = OwnClass(found.node, found.scope.module)
                self.methods(made, ("__new__", "__init__", "__post_init__"), Placed(call, scope))
            elif isinstance(found.node, ast.Lambda):
                is_own = True
                self._expression(found.node.body, found.scope, is_fallback=is_fallback)
        names = self._program.names(call.func, scope)
        if not is_own:
            self.found.append(LoadCall(call, scope, names, is_fallback))
        if _SET_VARIABLE.intersection(names) and call.args:
            variables = call.args[0].keys if isinstance(call.args[0], ast.Dict) else call.args[:1]
            self.variables |= {text.value for key in variables if key for text in self._program.texts(key, scope)}
        if any(name.rsplit(".", 1)[-1] in _RUNS_ARGUMENT for name in names):
            for given in (*call.args, *(each.value for each in call.keywords)):
                for found in self._program.follow(given, scope):
                    if isinstance(found.node, Function):
                        bare = ast.copy_location(ast.Call(given, [], []), given)
                        self._function(
                            found.node, called_scope(found.node, found.scope, bare, scope), is_fallback=is_fallback
                        )

    def _function(self, function: Function, scope: Scope, *, is_fallback: bool) -> None:
        texts = ((name, self._program.texts(each.node, each.scope)) for name, each in sorted(scope.arguments.items()))
        key = (function, tuple(texts), is_fallback)
        if key not in self._entered and len(self._entered) < _MOST_CALLS:
            self._entered.add(key)
            self._block(function.body, scope, is_fallback=is_fallback)


def _without_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, ast.Lambda):
            waiting += ast.iter_child_nodes(each)


def _is_property(function: Function) -> bool:
    return any(
        (isinstance(each, ast.Name) and each.id.endswith("property"))
        or (isinstance(each, ast.Attribute) and each.attr.endswith("property"))
        for each in function.decorator_list
    )


def _is_never(test: ast.expr) -> bool:
    """Conditions that are false whenever Triton imports the program."""
    if isinstance(test, ast.Constant):
        return not test.value
    if isinstance(test, ast.Name | ast.Attribute):
        return (test.id if isinstance(test, ast.Name) else test.attr) == "TYPE_CHECKING"
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or test.left.id != "__name__":
        return False
    return any(isinstance(each, ast.Constant) and each.value == "__main__" for each in test.comparators)
