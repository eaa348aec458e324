"""Python models of many forms that Triton serves are added, built, and called as they are deployed."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.models.folders import places_in, write
from tests.tritonstack_local.container.conftest import SageMaker
from tritonstack.adding.additions import AddOptions
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.sources import read_source
from tritonstack.archives.build import build_models
from tritonstack.untrusted.unpacking import unpack

PROGRAMS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
QUICK = {"argument-model-repository", "output-configuration", "from-dlpack", "strings", "calls-another"}
HEAD = """\
import asyncio
import concurrent.futures
import json
import os
import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils


def x_of(request):
    return pb_utils.get_input_tensor_by_name(request, "x").as_numpy()


def answer(values):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", values)])


"""
DOUBLES = "def execute(self, requests):\n    return [answer(x_of(request) * 2) for request in requests]\n"


def files_of(name: str, row: dict[str, Any]) -> dict[str, str]:
    """The files of one model of a repository."""
    x, y = row.get("types", ("TYPE_FP32", "TYPE_FP32"))
    config = f"""
        name: "{name}"
        backend: "python"
        max_batch_size: 8
        input [ {{ name: "x" data_type: {x} dims: [ 4 ] }} ]
        output [ {{ name: "y" data_type: {y} dims: [ 4 ] }} ]
        {row.get("config", "")}
    """
    program = row.get("program") or f"class TritonPythonModel:\n{textwrap.indent(row['model'], '    ')}"
    modules = {f"{name}/1/{file}": content for file, content in row.get("files", {}).items()}
    return {f"{name}/config.pbtxt": config, f"{name}/1/{row.get('file', 'model.py')}": HEAD + program, **modules}


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.long) for case in PROGRAMS]
)
def test_a_python_model_is_added_built_and_called_as_triton_serves_it(
    case: str, tmp_path: Path, sagemaker: SageMaker
) -> None:
    row = PROGRAMS[case]
    files = files_of(case, row)
    for other in row.get("others", ()):
        files |= files_of(other, {"model": DOUBLES})
    write(tmp_path / "given", files)
    places = places_in(tmp_path)
    with read_source(tmp_path / "given", AddOptions(), places=places, report=lambda _: None) as found:
        [addition] = [each for each in found if each.name == case]
        added = write_folder(addition, places=places, target=None, report=lambda _: None)
    assert added.failure is None, str(added.failure)
    (built,) = build_models([case], places=places, report=lambda _: None).built
    assert built.manifest.figures["sample_difference"] < 1e-6
    assert all(each.endswith("instances on the CPU, since there is no GPU") for each in built.manifest.stand_ins)
    assert "tritonserver" in built.manifest.tools
    unpack(places.archive(built.name), tmp_path / "unpacked")
    if row.get("others"):
        return  # an archive of several models without an ensemble is for single-model endpoints: the proof was one
    loaded = sagemaker.load(case, {each.name: each for each in (tmp_path / "unpacked").iterdir()})
    assert loaded.status == 200, loaded.text
    values = row.get("ask", [1.0, 2.0, 3.0, 4.0])
    kind = "BYTES" if "types" in row else "FP32"
    replied = sagemaker.invoke(case, x=(kind, [1, 4], values))
    assert replied.outputs == {"y": row.get("answer") or [2 * value for value in values]}
    sagemaker.unload(case)
