"""What a TorchScript file states: the arguments of its ``forward``, and the inputs that it was traced with.

Nothing of the file is run. Source: pytorch torch/csrc/jit/serialization/export_module.cpp (ScriptModuleSerializer:
data.pkl, code/, traced_inputs.pkl) and torch/csrc/jit/serialization/pickler.cpp (tensors, type tags).
"""

from __future__ import annotations

import ast
import io
import pickletools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.model_files.pickle_outline import Persistent, PickledObject, PickleError, read_pickle
from tritonstack.untrusted.foreign_text import LARGEST_PROGRAM, parse_program
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP, open_zip, read_member

_PICKLE_BYTES = 64 << 20
"""Of the record data.pkl, which has the module's structure: its weights are records of their own."""
_TRACED_BYTES = 1 << 20

STORAGES: Mapping[str, str] = {
    "FloatStorage": "FP32", "DoubleStorage": "FP64", "HalfStorage": "FP16", "LongStorage": "INT64",
    "IntStorage": "INT32", "ShortStorage": "INT16", "CharStorage": "INT8", "ByteStorage": "UINT8",
    "BoolStorage": "BOOL",
}  # fmt: skip
"""PyTorch's kind of storage → KServe's name of the type."""


class TorchScriptError(ValueError):
    """The file is no TorchScript."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    name: str
    type: str  # as the code states it: ``Tensor``, ``Optional[Tensor]``, ``int``
    optional: bool  # whether it has a default


def forward_arguments(path: Path) -> tuple[Argument, ...]:
    """The arguments of the module's ``forward``, without ``self``. Nothing of the file is run.

    The record ``data.pkl`` begins with the module's class, whose code is below ``code/`` in a part of Python. Raises
    :class:`TorchScriptError` where the file is none.
    """
    try:
        with open_zip(path) as archive:
            pickle = next(each for each in archive.namelist() if each.count("/") == 1 and each.endswith("/data.pkl"))
            codes = pickletools.genops(read_member(archive, pickle, most=_PICKLE_BYTES))
            module, _, cls = next(str(name) for code, name, _ in codes if code.name == "GLOBAL").rpartition(" ")
            code = f"{pickle.split('/')[0]}/code/{module.replace('.', '/')}.py"
            text = read_member(archive, code, most=LARGEST_PROGRAM)
        classes = [node for node in parse_program(text).body if isinstance(node, ast.ClassDef) and node.name == cls]
        methods = [node for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
        found = methods[0].args
        given = [*found.posonlyargs, *found.args][1:]
        types = [ast.unparse(each.annotation) if each.annotation else "Tensor" for each in given]
    except (*DAMAGED_ZIP, SyntaxError, StopIteration) as error:
        raise TorchScriptError(f"a file without TorchScript's code ({type(error).__name__}: {error})") from error
    without_default = len(given) - len(found.defaults)
    return tuple(
        Argument(name=each.arg, type=kind, optional=index >= without_default)
        for index, (each, kind) in enumerate(zip(given, types, strict=True))
    )


def traced_inputs(path: Path, arguments: tuple[Argument, ...]) -> tuple[GraphTensor, ...]:
    """Type and shape of each argument in the trace that made the file, as PyTorch keeps them there.

    Empty where the file was not traced, an older PyTorch wrote it, or an argument is something else than one tensor.
    """
    try:
        with open_zip(path) as archive:
            name = next(
                each for each in archive.namelist() if each.count("/") == 1 and each.endswith("/traced_inputs.pkl")
            )
            outline = read_pickle(io.BytesIO(read_member(archive, name, most=_TRACED_BYTES)))
    except (*DAMAGED_ZIP, StopIteration, PickleError):
        return ()
    methods = _untagged(outline.root)
    given = _untagged(methods.get("forward")) if isinstance(methods, dict) else None
    tensors = [tensor_form(each) for each in given] if isinstance(given, list) else []
    known = [each for each in tensors if each is not None]
    if not known or len(known) != len(arguments) or len(known) != len(tensors):
        return ()
    return tuple(
        GraphTensor(name=argument.name, datatype=datatype, shape=shape)
        for argument, (datatype, shape) in zip(arguments, known, strict=True)
    )


def _untagged(value: Any) -> Any:
    """A list or mapping without the type that TorchScript's pickles give it (``restore_type_tag``)."""
    if isinstance(value, PickledObject) and value.name.endswith(".restore_type_tag") and value.arguments:
        return value.arguments[0]
    return value


def tensor_form(value: Any) -> tuple[str, tuple[int, ...]] | None:
    """Type and shape of a pickled tensor; None for anything else, and for types without a name in KServe.

    ``_rebuild_tensor_v2(storage, offset, shape, stride, …)``, whose storage is
    ``("storage", torch.FloatStorage, key, location, length)``. Source: torch/_utils.py.
    """
    if not isinstance(value, PickledObject) or not isinstance(value.arguments, tuple) or len(value.arguments) < 3:
        return None
    if value.name == "torch._utils._rebuild_parameter":
        return tensor_form(value.arguments[0])
    storage, shape = value.arguments[0], value.arguments[2]
    if not isinstance(storage, Persistent) or not isinstance(storage.key, tuple) or len(storage.key) < 2:
        return None
    datatype = STORAGES.get(str(getattr(storage.key[1], "name", "")))
    if datatype is None or not isinstance(shape, tuple) or not all(isinstance(each, int) for each in shape):
        return None
    return datatype, shape
