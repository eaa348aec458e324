"""A model's tensors and batch size as its backend completes them: from the graph, or by the model's own program.

Of a program's ``auto_complete_config`` the constants, loops over them, conditions and the calls of
``pb_utils.ModelConfig`` are evaluated, which is what NVIDIA's examples consist of; anything else is taken out before,
never run, and makes the result unknown. Source: python_backend src/pb_stub.cc (Stub::AutoCompleteModelConfig),
src/resources/triton_python_backend_utils.py (class ModelConfig).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.models.lint.onnx_graph import GraphTensor, OnnxError, OnnxGraph, read_graph
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import ModelConfig, Tensor

PYTHON_CLASS, FUNCTION = "TritonPythonModel", "auto_complete_config"
_FIELDS = ("name", "data_type", "dims")
_MOST_STEPS = 10_000
"""No program that only fills in tensors takes more statements; one that does is left unknown."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A configuration as its backend completes it."""

    inputs: tuple[Tensor, ...]  # the inputs afterwards; ``outputs`` the outputs
    outputs: tuple[Tensor, ...]
    max_batch_size: int  # the same of that field
    decoupled: bool = False  # whether responses are decoupled afterwards
    is_known: bool = True  # False where reading does not show what is completed: then these are the written ones
    refusal: str = ""  # why completing it fails, and with it the load; empty where it does not
    line: int = 0  # where that stands in the program; 0 elsewhere


def as_written(config: ModelConfig, **more: Any) -> Completion:
    """A configuration that nothing completes, or whose completion is unknown; ``more``: fields of the completion."""
    return Completion(
        inputs=config.inputs,
        outputs=config.outputs,
        max_batch_size=config.max_batch_size,
        decoupled=config.decoupled,
        **more,
    )


def completed_by_program(tree: ast.Module, config: ModelConfig) -> Completion:
    """A configuration as the program's class completes it; as written where the class has no such function."""
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == PYTHON_CLASS]
    functions = [
        node for each in found for node in each.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION
    ]
    if len(found) == 1 and not found[0].bases and not any(FUNCTION in ast.dump(node) for node in tree.body):
        return as_written(config)
    if len(found) != 1 or len(functions) != 1 or len(functions[0].args.args) != 1:
        return as_written(config, is_known=False)
    target = _Model(config)
    try:
        returned = _evaluated(functions[0], target)
    except (_UnknownError, NameError):
        return as_written(config, is_known=False)
    except Exception as error:  # noqa: BLE001  (whatever the function raises)
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == _FILE]
        said = str(error) if isinstance(error, _RefusedError) else f"{FUNCTION} raises: {error!r}"
        return as_written(config, refusal=said, line=lines[-1])
    if returned is not target:
        what = f"{FUNCTION} does not return the configuration that it was given"
        return as_written(config, refusal=what, line=functions[0].lineno)
    return target.completion()


_FILE = "<auto_complete_config>"
_UNKNOWN, _STEP, _REFUSE = "<unknown>", "<step>", "<refuse>"
"""Functions that the reduced program calls, by names that no program can have."""


def _evaluated(function: ast.FunctionDef, target: _Model) -> object:
    """What the function returns for ``target``, reduced to what cannot do anything else.

    Raises :class:`_UnknownError` or NameError where only running the whole program would show it.
    """
    steps = itertools.count()

    def unknown() -> None:
        raise _UnknownError

    def step() -> None:
        if next(steps) > _MOST_STEPS:
            raise _UnknownError

    def refuse(statement: str) -> None:
        raise _RefusedError(f"{FUNCTION} raises: {statement}")

    reduced = copy.deepcopy(function)
    reduced.body = [_Reduced().visit(statement) for statement in reduced.body]
    reduced.decorator_list, reduced.returns = [], None
    parameter = ast.arg(function.args.args[0].arg)
    reduced.args = ast.arguments(posonlyargs=[], args=[parameter], kwonlyargs=[], kw_defaults=[], defaults=[])
    names: dict[str, Any] = {"__builtins__": {}, "dict": dict, _UNKNOWN: unknown, _STEP: step, _REFUSE: refuse}
    code = compile(ast.fix_missing_locations(ast.Module([reduced], [])), _FILE, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102  (defines the reduced function)
    return names[FUNCTION](target)


class _Reduced(ast.NodeTransformer):
    """Replaces every statement and expression but plain ones by a call that gives up.

    Plain are constants, names, lists, dictionaries, their items, comparisons, conditions, loops, and calls of the
    methods of ``_CALLS``: no attribute, import, operator or other function is left.
    """

    def visit(self, node: ast.AST) -> Any:
        match node:
            case ast.Raise():
                return ast.copy_location(ast.Expr(_call(_REFUSE, ast.Constant(ast.unparse(node)))), node)
            case ast.For(target=ast.Name(), orelse=[]):
                node.body.insert(0, ast.Pass())  # which becomes the step below
            case (
                ast.Return() | ast.Expr() | ast.If() | ast.Assign(targets=[ast.Name()])
                | ast.Constant() | ast.Name() | ast.List() | ast.Tuple() | ast.Dict() | ast.Subscript()
                | ast.UnaryOp(op=ast.USub() | ast.Not())
                | ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Eq() | ast.NotEq()])
                | ast.Call(func=ast.Attribute()) | ast.Call(func=ast.Name(id="dict"), args=[])
            ):  # fmt: skip
                pass
            case ast.Attribute(attr=attr) if attr in _CALLS:
                pass
            case ast.expr():
                return ast.copy_location(_call(_UNKNOWN), node)
            case ast.stmt():
                what = _STEP if isinstance(node, ast.Pass) else _UNKNOWN
                return ast.copy_location(ast.Expr(_call(what)), node)
        return self.generic_visit(node)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _UnknownError(Exception):
    """Only running it would show."""


class _RefusedError(Exception):
    """The program raises an error, or the backend does over one of its calls."""


class _Backends(dict[str, Any]):
    """A dictionary that the backend makes: it has more fields than the ones that are kept here."""

    def __missing__(self, key: str) -> None:
        raise _UnknownError

    def __contains__(self, key: object) -> bool:
        if key not in self.keys() and "batching" not in str(key):
            raise _UnknownError
        return key in self.keys()


_CALLS = (
    "append", "as_dict", "set_dynamic_batching", "set_max_batch_size", "set_model_transaction_policy", "add_input",
    "add_output",
)  # fmt: skip
"""Methods that are evaluated: of lists, and of :class:`_Model`, whose parameters are called as the backend's."""


class _Model:
    """The configuration inside of the program: the object that the backend passes."""

    def __init__(self, config: ModelConfig) -> None:
        policy = config.node.node("model_transaction_policy")
        self.written = config
        self.values = _Backends(
            max_batch_size=config.max_batch_size,
            input=[_plain(tensor) for tensor in config.inputs],
            output=[_plain(tensor) for tensor in config.outputs],
        )
        for scheduler in ("dynamic_batching", "sequence_batching"):
            if config.node.has(scheduler):
                self.values[scheduler] = {}
        self.policy = None if policy is None else policy.flag("decoupled")

    def completion(self) -> Completion:
        """What the calls have made of the configuration."""
        return Completion(
            inputs=tuple(_tensor(values, self.written.inputs) for values in self.values["input"]),
            outputs=tuple(_tensor(values, self.written.outputs) for values in self.values["output"]),
            max_batch_size=self.values["max_batch_size"],
            decoupled=bool(self.policy),
        )

    def as_dict(self) -> _Backends:
        return self.values

    def set_max_batch_size(self, max_batch_size: object) -> None:
        if isinstance(max_batch_size, bool) or not isinstance(max_batch_size, int):
            raise _UnknownError
        before = self.values["max_batch_size"]
        if before > max_batch_size:
            raise _RefusedError(f"set_max_batch_size({max_batch_size}): max_batch_size is {before}")
        self.values["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        other = self.values.keys() & {"sequence_batching"}
        if other:
            raise _RefusedError("set_dynamic_batching() beside sequence_batching")
        self.values["dynamic_batching"] = {}

    def set_model_transaction_policy(self, transaction_policy_dict: object) -> None:
        given = transaction_policy_dict
        if not isinstance(given, dict):
            raise _UnknownError
        if given.keys() - {"decoupled"}:
            raise _RefusedError(f"set_model_transaction_policy: {sorted(given)}, and decoupled alone is allowed")
        wanted = given.get("decoupled", self.policy)
        if self.policy is not None and self.policy != wanted:
            raise _RefusedError(f"set_model_transaction_policy: decoupled is {str(self.policy).lower()} already")
        self.policy = wanted

    def add_input(self, input: object) -> None:  # noqa: A002  (the backend's own name)
        self._add("input", input, (*_FIELDS, "optional"))

    def add_output(self, output: object) -> None:
        self._add("output", output, _FIELDS)

    def _add(self, kind: str, tensor: object, allowed: Sequence[str]) -> None:
        if not isinstance(tensor, dict):
            raise _UnknownError
        extra = sorted(map(str, tensor.keys() - set(allowed)))
        if extra:
            raise _RefusedError(f"add_{kind}: {extra[0]}, and {', '.join(allowed)} are allowed")
        missing = [field for field in _FIELDS if field not in tensor]
        if missing:
            raise _RefusedError(f"add_{kind}: no {missing[0]}")
        lengths = tensor["dims"] if isinstance(tensor["dims"], list | tuple) else [None]
        if not all(isinstance(length, int) and (length > 0 or length == -1) for length in lengths):
            raise _RefusedError(f"add_{kind}: dims {tensor['dims']} of {tensor['name']}, allowed: 1 or more, or -1")
        for known in self.values[kind]:
            if known["name"] == tensor["name"]:
                self._merge(kind, known, tensor)
                return
        self.values[kind].append(dict(tensor))

    @staticmethod
    def _merge(kind: str, known: dict[str, Any], tensor: dict[str, Any]) -> None:
        for field, unset in (("data_type", "TYPE_INVALID"), ("dims", [])):
            if known[field] not in (unset, tensor[field]):
                what = f"{field} {tensor[field]} of {tensor['name']}, which the configuration has as {known[field]}"
                raise _RefusedError(f"add_{kind}: {what}")
        if "optional" in tensor and known.get("optional", False) != tensor["optional"]:
            raise _RefusedError(f"add_{kind}: optional of {tensor['name']} is not the configuration's")
        known.update(tensor)


def _plain(tensor: Tensor) -> dict[str, Any]:
    """A tensor as the program sees it."""
    kind = {"BYTES": "TYPE_STRING", "": "TYPE_INVALID"}.get(tensor.data_type, f"TYPE_{tensor.data_type}")
    return _Backends(name=tensor.name, data_type=kind, dims=list(tensor.dims), optional=tensor.optional)


def _tensor(values: dict[str, Any], written: Sequence[Tensor]) -> Tensor:
    kind = str(values["data_type"]).removeprefix("TYPE_")
    before = {tensor.name: tensor for tensor in written}
    return dataclasses.replace(
        before.get(values["name"], Tensor(name="", data_type="", dims=())),
        name=str(values["name"]),
        data_type={"STRING": "BYTES", "INVALID": ""}.get(kind, kind),
        dims=tuple(values["dims"]),
        optional=bool(values.get("optional", False)),
    )


DEFAULT_MAX_BATCH_SIZE = 4
"""The backends' ``default-max-batch-size``: core src/backend_manager.cc, kDefaultMaxBatchSize of server src."""

_NEVER = ("ensemble", "pytorch")
"""Backends that complete no tensors. What any other does beside the two below cannot be read from its files here."""


def complete(view: RepositoryView, model: ModelView) -> Completion:
    """The configuration as the backend completes it before Triton checks its tensors."""
    if model.is_ensemble or model.backend in _NEVER:
        return as_written(model.config)
    if model.backend == "python":
        return _by_program(model)
    if model.backend == "onnxruntime":
        return _from_graph(view, model)
    return as_written(model.config, is_known=False)


def python_program(model: ModelView, version: str) -> Path | None:
    """The program of one version of a Python model; a package goes before a module of its name."""
    file = model.model_file
    package = f"{version}/{file.removesuffix('.py')}/__init__.py"
    return model.on_disk(package if package in model.files else f"{version}/{file}")


def graph_path(model: ModelView) -> Path | None:
    """The graph that the onnxruntime backend loads, or that an engine is built from; None where it is not there."""
    name = model.model_file if model.backend == "onnxruntime" else "model.onnx"
    for version in model.served_versions:
        for place in (f"{version}/{name}", f"{version}/{name}/model.onnx"):  # a folder holds external weights too
            if path := model.on_disk(place):
                return path
    return None


def promised_graph(view: RepositoryView, model: ModelView) -> OnnxGraph | None:
    """The graph that the export of the model's file gives according to the recipe."""
    for export in view.recipe.exports if view.recipe else ():
        makes_it = any(Path(name).suffix == ".onnx" and name.startswith(f"{model.name}/") for name in export.produces)
        if export.graph is not None and makes_it:
            inputs, outputs = (
                tuple(
                    GraphTensor(
                        name=each.name,
                        datatype=each.dtype,
                        shape=tuple(axis if isinstance(axis, int) else None for axis in each.shape),
                    )
                    for each in tensors
                )
                for tensors in (export.graph.inputs, export.graph.outputs)
            )
            return OnnxGraph(inputs=inputs, outputs=outputs, opset=export.graph.opset)
    return None


def completed_from_graph(model: ModelView, graph: OnnxGraph) -> Completion:
    """A configuration that lacks its inputs or its outputs, with the graph's.

    Source: onnxruntime_backend src/onnxruntime.cc (ModelState::AutoCompleteConfig, AutoCompleteMaxBatch,
    AutoCompleteIO).
    """
    written = as_written(model.config)
    given = written.inputs or model.config.node.has("batch_input")
    if given and written.outputs:
        return written
    batches = all(each.shape and each.shape[0] is None for each in (*graph.inputs, *graph.outputs))
    limit = written.max_batch_size
    if limit and not batches:
        return dataclasses.replace(
            written, refusal="the graph cannot batch: an axis of it is no free first one, and max_batch_size is not 0"
        )
    limit = limit or (DEFAULT_MAX_BATCH_SIZE if batches else 0)
    return dataclasses.replace(
        written,
        max_batch_size=limit,
        inputs=written.inputs if given else tuple(completed_tensor(each, limit) for each in graph.inputs),
        outputs=written.outputs or tuple(completed_tensor(each, limit) for each in graph.outputs),
    )


def completed_tensor(tensor: GraphTensor, limit: int) -> Tensor:
    """A graph's tensor in a configuration whose max_batch_size is ``limit``."""
    axes = tensor.shape or ()
    dims = tuple(-1 if axis is None else axis for axis in (axes[1:] if limit else axes))
    return Tensor(
        name=tensor.name, data_type=tensor.datatype, dims=dims or (1,), reshape=() if limit and not dims else None
    )


def _by_program(model: ModelView) -> Completion:
    versions = model.served_versions
    path = python_program(model, versions[-1]) if versions else None
    if path is None:
        return as_written(model.config, is_known=False)
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return as_written(model.config, is_known=False)  # another rule's matter
    return completed_by_program(tree, model.config)


def _from_graph(view: RepositoryView, model: ModelView) -> Completion:
    path = graph_path(model)
    try:
        graph = read_graph(path) if path else promised_graph(view, model)
    except OnnxError:
        return as_written(model.config, is_known=False)  # another rule's matter
    return completed_from_graph(model, graph) if graph else as_written(model.config, is_known=False)
