"""Ensembles that load, as folders, from ``ensemble_requests.yaml``, which also lists the requests that they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.models.folders import write

ENSEMBLES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)

# Gives zeros for every output: one row of a batch, 1 for a free length.
PROGRAM = """\
import json
import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        row = [1] if self.config.get("max_batch_size", 0) else []
        shapes = {each["name"]: [*row, *(max(int(n), 1) for n in each["dims"])] for each in self.config["output"]}
        tensors = [pb_utils.Tensor(name, numpy.zeros(shape, numpy.float32)) for name, shape in shapes.items()]
        return [pb_utils.InferenceResponse(tensors) for _ in requests]
"""


def write_ensemble(folder: Path, case: Mapping[str, Any]) -> None:
    """The repository of a case: the ensemble ``all`` and its models."""
    (folder / "all/1").mkdir(parents=True)
    steps = ", ".join(
        f'{{ model_name: "{model}" model_version: -1 {_map("input_map", given)} {_map("output_map", made)} }}'
        for model, given, made in case["ensemble"]["steps"]
    )
    scheduling = f"ensemble_scheduling {{ step [ {steps} ] }}\n"
    write(folder, {"all/config.pbtxt": f'platform: "ensemble"\n{_tensors(case["ensemble"])}{scheduling}'})
    for name, model in case["models"].items():
        config = f'backend: "python"\n{_tensors(model)}'
        write(folder, {f"{name}/config.pbtxt": config, f"{name}/1/model.py": PROGRAM})


def _map(field: str, names: Mapping[str, str]) -> str:
    return " ".join(f'{field} {{ key: "{key}" value: "{value}" }}' for key, value in names.items())


def _tensors(model: Mapping[str, Any]) -> str:
    fields = [f"max_batch_size: {model['batch']}"]
    for kind in ("input", "output"):
        fields += [f"{kind} [ {_tensor(name, dims)} ]" for name, dims in model[f"{kind}s"].items()]
    return "\n".join(fields) + "\n"


def _tensor(name: str, dims: Sequence[int | str]) -> str:
    lengths = [length for length in dims if isinstance(length, int)]
    optional = " optional: true" if "optional" in dims else ""
    return f'{{ name: "{name}" data_type: TYPE_FP32 dims: {lengths}{optional} }}'
