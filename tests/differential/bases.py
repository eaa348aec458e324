"""Sound repositories of Python models and of ensembles of them; nothing else of Triton is in the local server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from tests.cases import table

MODEL = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.factor = 2

    def execute(self, requests):
        inputs = [request.inputs()[0].as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", self.factor * x)]) for x in inputs]
"""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A sound repository; requests reach ``model``, and its configuration is what changes are made to."""

    model: str
    files: Mapping[str, str]


def python_config(name: str) -> str:
    """A configuration with one input x and one output y."""
    return f"""\
name: "{name}"
backend: "python"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }} ]
instance_group [ {{ kind: KIND_CPU }} ]
"""


class _Written(BaseModel, extra="forbid"):
    """A repository as ``bases.yaml`` has it."""

    models: list[str] = []  # Python models with the usual configuration
    files: dict[str, str] = {}  # all other files


def _base(name: str, written: _Written) -> Base:
    models = {f"{each}/config.pbtxt": python_config(each) for each in written.models}
    models |= {f"{each}/1/model.py": MODEL for each in written.models}
    return Base(
        model=name, files=models | {path: text.replace("$MODEL", MODEL) for path, text in written.files.items()}
    )


BASES = {name: _base(name, each) for name, each in table(__file__, "bases", dict[str, _Written]).items()}
