"""The backends' modules as they are imported inside Triton, with a stand-in for Triton's own Python module."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonstack.model_files import marked_plan
from tritonstack_local.container.repository import BACKENDS


class Tensor:
    """A tensor as the Python backend has it."""

    def __init__(self, name: str, array: np.ndarray) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> np.ndarray:
        return self._array


class Request:
    """A request as the Python backend has it."""

    def __init__(self, inputs: dict[str, np.ndarray], outputs: list[str]) -> None:
        self._inputs, self._outputs = inputs, outputs

    def inputs(self) -> list[Tensor]:
        return [Tensor(name, array) for name, array in self._inputs.items()]

    def requested_output_names(self) -> list[str]:
        return self._outputs


class Response:
    """A response: the outputs' arrays by name, or the error's message."""

    def __init__(self, output_tensors: list[Tensor] | None = None, error: str | None = None) -> None:
        self.outputs = {one.name(): one.as_numpy() for one in output_tensors or []}
        self.error = error


@pytest.fixture
def pb_utils(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Replacement for Triton's module ``triton_python_backend_utils``."""
    module = types.ModuleType("triton_python_backend_utils")
    module.Tensor, module.InferenceResponse = Tensor, Response  # type: ignore[attr-defined]
    module.TRITON_STRING_TO_NUMPY = {"TYPE_FP32": np.float32, "TYPE_STRING": np.object_}  # type: ignore[attr-defined]
    module.TritonError, module.TritonModelException = str, type("TritonModelException", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "tritonstack_marked_plan", marked_plan)
    monkeypatch.syspath_prepend(str(BACKENDS / "common"))
    yield module
    for file in (BACKENDS / "common").glob("*.py"):
        sys.modules.pop(file.stem, None)


@pytest.fixture
def backend(pb_utils: types.ModuleType) -> Callable[[str], Any]:
    """Import a module of the backends: ``backend("common/tritonstack_model.py")``."""

    def load(path: str) -> Any:
        if path.startswith("common/"):
            return importlib.import_module(Path(path).stem)
        spec = importlib.util.spec_from_file_location("tritonstack_" + path.replace("/", "_")[:-3], BACKENDS / path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def request_of() -> type[Request]:
    """Makes requests: ``request_of({"x": array}, ["y"])``."""
    return Request
