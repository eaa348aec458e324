"""A model's tensors and batch size as its backend completes them: from the graph, or by the model's own program.

Of a program's ``auto_complete_config`` the constants, loops over them, conditions and the calls of
``pb_utils.ModelConfig`` are evaluated, which is what NVIDIA's examples consist of; anything else makes the result
unknown, and nothing is run. Source: python_backend src/pb_stub.cc (Stub::AutoCompleteModelConfig),
src/resources/triton_python_backend_utils.py (class ModelConfig).
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

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
    function = functions[0]
    run = _Run(config, function.args.args[0].arg)
    try:
        returned = run.block(function.body)
    except _UnknownError:
        return as_written(config, is_known=False)
    except _RefusedError as error:
        return as_written(config, refusal=str(error), line=error.line or function.lineno)
    if returned is not run.target:
        what = f"{FUNCTION} does not return the configuration that it was given"
        return as_written(config, refusal=what, line=function.lineno)
    return run.target.completion()


class _UnknownError(Exception):
    """Only running it would show."""


class _RefusedError(Exception):
    """The program raises an error, or the backend does over one of its calls."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


class _Backends(dict[str, Any]):
    """A dictionary that the backend makes: it has more fields than the ones that are kept here."""


class _Model:
    """The configuration inside of the program: the object that the backend passes."""

    CALLS: ClassVar = {
        "as_dict": 0,
        "set_dynamic_batching": 0,
        "set_max_batch_size": 1,
        "set_model_transaction_policy": 1,
        "add_input": 1,
        "add_output": 1,
    }
    """Its methods that are evaluated, and how many arguments each takes."""

    def __init__(self, config: ModelConfig) -> None:
        policy = config.node.node("model_transaction_policy")
        self.written = config
        self.values = _Backends(
            max_batch_size=config.max_batch_size,
            input=[_plain(tensor) for tensor in config.inputs],
            output=[_plain(tensor) for tensor in config.outputs],
        )
        for scheduler in ("dynamic_batching", "sequence_batching", "ensemble_scheduling"):
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

    def set_max_batch_size(self, size: object) -> None:
        if isinstance(size, bool) or not isinstance(size, int):
            raise _UnknownError
        if self.values["max_batch_size"] > size:
            raise _RefusedError(f"set_max_batch_size({size}): max_batch_size is {self.values['max_batch_size']}")
        self.values["max_batch_size"] = size

    def set_dynamic_batching(self) -> None:
        other = [name for name in ("sequence_batching", "ensemble_scheduling") if name in self.values]
        if other:
            raise _RefusedError(f"set_dynamic_batching() beside {other[0]}")
        self.values["dynamic_batching"] = {}

    def set_model_transaction_policy(self, policy: object) -> None:
        if not isinstance(policy, dict):
            raise _UnknownError
        if policy.keys() - {"decoupled"}:
            raise _RefusedError(f"set_model_transaction_policy: {sorted(policy)}, and decoupled alone is allowed")
        wanted = policy.get("decoupled", self.policy)
        if self.policy is not None and self.policy != wanted:
            raise _RefusedError(f"set_model_transaction_policy: decoupled is {str(self.policy).lower()} already")
        self.policy = wanted

    def add_input(self, tensor: object) -> None:
        self._add("input", tensor, (*_FIELDS, "optional"))

    def add_output(self, tensor: object) -> None:
        self._add("output", tensor, _FIELDS)

    def _add(self, kind: str, tensor: object, allowed: Sequence[str]) -> None:
        if not isinstance(tensor, dict):
            raise _UnknownError
        extra = sorted(map(str, tensor.keys() - set(allowed)))
        if extra:
            raise _RefusedError(f"add_{kind}: {extra[0]}, and {', '.join(allowed)} are allowed")
        missing = [field for field in _FIELDS if field not in tensor]
        if missing:
            raise _RefusedError(f"add_{kind}: no {missing[0]}")
        lengths = tensor["dims"] if isinstance(tensor["dims"], list) else [None]
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


class _Run:
    """An evaluation of the function's statements."""

    def __init__(self, config: ModelConfig, parameter: str) -> None:
        self.target = _Model(config)
        self.names: dict[str, Any] = {parameter: self.target}
        self.steps = 0

    def block(self, statements: Sequence[ast.stmt]) -> object:
        """Run statements; the value of the first ``return`` that is reached, ``_GOES_ON`` without one."""
        for statement in statements:
            returned = self._statement(statement)
            if returned is not _GOES_ON:
                return returned
        return _GOES_ON

    def _statement(self, node: ast.stmt) -> object:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _UnknownError
        match node:
            case ast.Return(value=value):
                return None if value is None else self._value(value)
            case ast.Raise():
                raise _RefusedError(f"{FUNCTION} raises: {ast.unparse(node)}", node.lineno)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self._placed(value)
            case ast.Expr(value=value):
                self._placed(value)
            case ast.For(target=ast.Name(id=name), iter=iterated, body=body, orelse=[]):
                values = self._value(iterated)
                if not isinstance(values, list):
                    raise _UnknownError
                for self.names[name] in values:
                    if (returned := self.block(body)) is not _GOES_ON:
                        return returned
            case ast.If(test=test, body=body, orelse=other):
                return self.block(body if self._placed(test) else other)
            case ast.Pass():
                pass
            case _:
                raise _UnknownError
        return _GOES_ON

    def _placed(self, node: ast.expr) -> Any:
        """The value; a refusal gets the line of the expression."""
        try:
            return self._value(node)
        except _RefusedError as error:
            raise _RefusedError(str(error), error.line or node.lineno) from error

    def _value(self, node: ast.expr) -> Any:  # noqa: PLR0911  (one for each kind of expression)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.List(elts=each) | ast.Tuple(elts=each):
                return [self._value(one) for one in each]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self._value(key): self._value(value) for key, value in zip(keys, values, strict=True) if key}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._value(operand)
                if not isinstance(value, int):
                    raise _UnknownError
                return -value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand)
            case ast.Subscript(value=value, slice=key):
                return self._item(self._value(value), self._value(key))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self._compared(operator, self._value(left), self._value(right))
            case ast.Call():
                return self._call(node)
            case _:
                raise _UnknownError

    @staticmethod
    def _item(value: Any, key: Any) -> Any:
        if not isinstance(value, dict | list):
            raise _UnknownError
        try:
            return value[key]
        except (KeyError, IndexError, TypeError) as error:
            if isinstance(value, _Backends):
                raise _UnknownError from None
            raise _RefusedError(f"{FUNCTION} raises: {error!r}") from error

    def _compared(self, operator: ast.cmpop, left: Any, right: Any) -> bool:
        if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, dict | list):
            if isinstance(right, _Backends) and left not in right and "batching" not in str(left):
                raise _UnknownError
            return (left in right) is isinstance(operator, ast.In)
        if isinstance(operator, ast.Eq | ast.NotEq):
            return (left == right) is isinstance(operator, ast.Eq)
        raise _UnknownError

    def _call(self, node: ast.Call) -> Any:
        arguments = [*map(self._value, node.args), *(self._value(one.value) for one in node.keywords)]
        if any(one.arg is None for one in node.keywords):
            raise _UnknownError
        match node.func:
            case ast.Name(id="dict") if not node.args:
                return dict(zip((one.arg for one in node.keywords), arguments, strict=True))
            case ast.Attribute(value=value, attr=method):
                called = self._value(value)
                if isinstance(called, _Model) and _Model.CALLS.get(method) == len(arguments):
                    return called.values if method == "as_dict" else getattr(called, method)(*arguments)
                if isinstance(called, list) and method == "append" and len(arguments) == 1:
                    return called.append(arguments[0])
        raise _UnknownError


_GOES_ON = object()
"""What a statement gives that is no ``return``."""


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
