"""Rules about warm-up requests of Python models that send requests to others (BLS): the others do not serve yet.

Source: core src/server.cc (InferenceServer::InferAsync: "Server not ready" until every model of the start is loaded),
src/backend_model.cc (warm-up is part of loading); seen with Triton 24.10 in both modes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tritonstack.lint.completion import python_program
from tritonstack.lint.python.auto_complete import PYTHON_CLASS
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView
from tritonstack.models.model_view import ModelView
from tritonstack.models.python_calls import INFERS, LOADS, calls_of
from tritonstack.untrusted.foreign_text import code_of, parse_program

_SENDS = ("exec", "async_exec")
"""Methods of ``InferenceRequest`` that send it: python_backend README.md (Business Logic Scripting)."""

_READS = {"has_error", "error", "output_tensors", "get_output_tensor_by_name"}
"""What looks at a response: a program that never does may go on without one."""


def check_warmup_calls(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Warmed-up programs whose ``execute`` sends requests to others, whatever the input."""
    warmups = [each for each in model.config.node.nodes("model_warmup") if each.integer("batch_size") > 0]
    if model.backend != "python" or not warmups:
        return
    for version in model.served_versions:
        path = python_program(model, version)
        if path is None or INFERS not in calls_of([path]):
            continue
        if view.target.multi_model is not False and (view.ensembles or LOADS in calls_of([path])):
            continue  # the other model may be loaded before this one
        try:
            tree = parse_program(path.read_bytes())
        except SyntaxError:
            continue  # another rule's matter
        sent = next(_sent(tree), None)
        if sent is not None and _READS & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}:
            found = f"{code_of(sent)[:80]}, which model_warmup runs (line {warmups[0].line} of config.pbtxt)"
            yield Finding(file=path, line=sent.lineno, rule="warmup-calls-others", found=found)


def _sent(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls that send a request each time ``execute`` is called, in the order of the program."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == PYTHON_CLASS]
    bodies = [*tree.body, *(node for each in classes for node in each.body)]
    functions = {node.name: node for node in bodies if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    waiting, seen = ["execute"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for call in (node for node in _always_run(functions[name].body) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _SENDS:
                yield call
            elif isinstance(call.func, ast.Name):
                waiting.append(call.func.id)
            elif isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "self":
                waiting.append(call.func.attr)


_MAY_NOT_RUN = (
    *(ast.If, ast.Try, ast.TryStar, ast.While, ast.Match, ast.IfExp, ast.BoolOp, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_BLOCKS = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)


def _always_run(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes that are run each time statements are: up to the first that may leave them, without what may not be run.

    A loop over requests counts as run: a warm-up has one.
    """
    for node in body:
        is_filtered = any(each.ifs for each in getattr(node, "generators", ()))
        if not is_filtered and not isinstance(node, _MAY_NOT_RUN):
            yield node
            yield from _always_run(ast.iter_child_nodes(node))
        leaving = (ast.Return, ast.Raise) if isinstance(node, _BLOCKS) else _LEAVES
        if isinstance(node, ast.stmt) and any(isinstance(each, leaving) for each in ast.walk(node)):
            return
