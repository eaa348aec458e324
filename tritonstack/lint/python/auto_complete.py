"""The configuration that ``auto_complete_config`` of a Python model's program makes, where its literals show it.

Constants, loops over them, conditions and the calls of ``pb_utils.ModelConfig`` are evaluated, which is what NVIDIA's
examples consist of; anything else is taken out before, never run, and makes the result unknown. Source: python_backend
src/pb_stub.cc (Stub::AutoCompleteModelConfig), src/resources/triton_python_backend_utils.py (class ModelConfig).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tritonstack.models.model_config import ModelConfig, Tensor
from tritonstack.untrusted.foreign_text import code_of

PYTHON_CLASS, FUNCTION = "TritonPythonModel", "auto_complete_config"
_FIELDS = ("name", "data_type", "dims")
_MOST_STEPS = 1_000
"""No program that only fills in tensors goes through more items; one that does is left unknown."""
_LARGEST = 1_000
"""Constants in one list or dictionary: one that holds another several times doubles with each step."""


@dataclass(frozen=True, kw_only=True)
class ProgramCompletion:
    """A configuration as a program completes it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    refusal: str = ""  # why the backend refuses what it does; empty where it does not
    line: int = 0  # where that is in the program


def completed_by_program(tree: ast.Module, config: ModelConfig) -> ProgramCompletion | None:
    """A configuration as the program's class completes it, as written where it completes nothing; None for unknown."""
    written = ProgramCompletion(inputs=config.inputs, outputs=config.outputs, max_batch_size=config.max_batch_size)
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == PYTHON_CLASS]
    functions = [
        node for each in found for node in each.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION
    ]
    if len(found) == 1 and not found[0].bases and not any(FUNCTION in text for text in _texts(tree)):
        return written
    parameter = _parameter(functions[0]) if len(functions) == 1 else None
    if len(found) != 1 or parameter is None:
        return None
    target = _Model(config)
    try:
        returned = _evaluated(functions[0], parameter, target, _constants(tree))
    except (_UnknownError, NameError):
        return None
    except Exception as error:  # noqa: BLE001  (whatever the function raises)
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == _FILE]
        said = str(error) if isinstance(error, _RefusedError) else f"{FUNCTION} raises: {error!r}"
        return dataclasses.replace(written, refusal=said[:200], line=lines[-1])
    if returned is not target:
        what = f"{FUNCTION} does not return the configuration that it was given"
        return dataclasses.replace(written, refusal=what, line=functions[0].lineno)
    return target.completion()


def _texts(tree: ast.Module) -> Iterator[str]:
    """Names and texts in a program."""
    for node in ast.walk(tree):
        yield from (value for _, value in ast.iter_fields(node) if isinstance(value, str))


def _parameter(function: ast.FunctionDef) -> str | None:
    """The parameter that takes the configuration; None where the function is called otherwise, or decorated."""
    decorators = [each.id if isinstance(each, ast.Name) else "" for each in function.decorator_list]
    wanted = 2 if decorators == ["classmethod"] else 1
    if decorators not in ([], ["staticmethod"], ["classmethod"]) or len(function.args.args) != wanted:
        return None
    return function.args.args[-1].arg


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Names of the module that are bound to a literal, each assigned once."""
    found: dict[str, Any] = {}
    given = [
        node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1:
            try:
                value = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
            if given.count(node.targets[0].id) == 1:
                found[node.targets[0].id] = value
    return found


_FILE = "<auto_complete_config>"
_UNKNOWN, _STEP, _REFUSE, _BOUND = "<unknown>", "<step>", "<refuse>", "<bound>"
"""Functions that the reduced program calls, by names that no program can have."""


def _evaluated(function: ast.FunctionDef, parameter: str, target: _Model, constants: dict[str, Any]) -> object:
    """The function's result for ``target``, reduced to code without other effects.

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
    reduced.args = ast.arguments(posonlyargs=[], args=[ast.arg(parameter)], kwonlyargs=[], kw_defaults=[], defaults=[])
    own = {_UNKNOWN: unknown, _STEP: step, _REFUSE: refuse, _BOUND: _bounded}
    names: dict[str, Any] = constants | {"__builtins__": {}, "dict": dict} | own
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
                return ast.copy_location(ast.Expr(_call(_REFUSE, ast.Constant(code_of(node)))), node)
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
        reduced = self.generic_visit(node)
        if isinstance(reduced, ast.List | ast.Tuple | ast.Dict):
            return ast.copy_location(_call(_BOUND, reduced), node)
        if isinstance(reduced, ast.Call):
            reduced.args = [_call(_BOUND, each) for each in reduced.args]
        return reduced


def _bounded(value: object) -> object:
    """The value itself. Raises :class:`_UnknownError` where it holds too much."""
    waiting = [value]
    for _ in range(_LARGEST):
        if not waiting:
            return value
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    raise _UnknownError


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

    def completion(self) -> ProgramCompletion:
        """The configuration after the calls."""
        return ProgramCompletion(
            inputs=tuple(_tensor(values, self.written.inputs) for values in self.values["input"]),
            outputs=tuple(_tensor(values, self.written.outputs) for values in self.values["output"]),
            max_batch_size=self.values["max_batch_size"],
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
            raise _RefusedError("set_dynamic_batching() together with sequence_batching")
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
