"""Failures that people report: the local server responds as the real one, and troubleshooting has a row for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tritonstack_local.container.conftest import QUIET, Reply, SageMaker, write_files
from tritonstack.paths import REPOSITORY
from tritonstack_local.container import ContainerFailedError, ContainerSettings, TritonContainer, prepare_model_data

FAILURES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
TROUBLESHOOTING = REPOSITORY / "docs" / "troubleshooting.md"
MODEL = "model"
"""The model of an archive that is called; of several, the ensemble."""
PROGRAM = """
import os
import signal

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        {init}

    def execute(self, requests):
        {execute}
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("y", request.inputs()[0].as_numpy())]) for request in requests
        ]
"""


def tensors(kind: str, *names: str) -> str:
    described = ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 1 ] }}' for name in names)
    return f"{kind} [ {described} ]\n"


def archive_of(row: dict[str, Any]) -> dict[str, str | Path]:
    """The files of an archive: one Python model, or an ensemble and one for each of its steps."""
    config = 'backend: "python"\n' + tensors("input", "x") + tensors("output", "y") + row.get("config", "")
    program = PROGRAM.format(init=row.get("init", "pass"), execute=row.get("execute", "pass"))
    steps = [step.replace(":", " > ").split(" > ") for step in row.get("steps", ())]
    names = [name for name, _, _ in steps] or [MODEL]
    files: dict[str, str | Path] = {}
    for name in names:
        files |= {f"{name}/config.pbtxt": config, f"{name}/1/model.py": program}
    if steps:
        described = ", ".join(
            f'{{ model_name: "{name}" model_version: -1 input_map {{ key: "x" value: "{taken.strip()}" }} '
            f'output_map {{ key: "y" value: "{made}" }} }}'
            for name, taken, made in steps
        )
        ensemble = 'platform: "ensemble"\n' + tensors("input", "x") + tensors("output", *row["outputs"])
        files[f"{MODEL}/config.pbtxt"] = f"{ensemble}ensemble_scheduling {{ step [ {described} ] }}\n"
        files[f"{MODEL}/1/.keep"] = ""
    return files


def invoke(sagemaker: SageMaker, row: dict[str, Any], *, path: str, target: str | None) -> Reply:
    """The request of a case."""
    request: dict[str, Any] = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}
    if "asked" in row:
        request["outputs"] = [{"name": name} for name in row["asked"]]
    body = row.get("body", json.dumps(request))
    return sagemaker._send("POST", path, body.encode(), "application/json", target)


@pytest.mark.parametrize("case", FAILURES)
def test_a_multi_model_server_responds_to_a_reported_failure_with_the_tables_status_and_text(
    case: str, sagemaker: SageMaker
) -> None:
    row = FAILURES[case]
    when, status = row["multi"]
    reply = sagemaker.load(case, archive_of(row))
    if when == "invoke":
        assert reply.status == 200, reply.text
        reply = invoke(sagemaker, row, path=f"/models/{case}/invoke", target=f"{case}.tar.gz")
    assert (reply.status, row["says"] in reply.text) == (status, True), reply.text


@pytest.mark.parametrize("case", FAILURES)
def test_a_single_model_server_ends_or_responds_with_the_status_and_text_of_the_table(
    case: str, tmp_path: Path, make_sagemaker: type[SageMaker]
) -> None:
    row = FAILURES[case]
    write_files(tmp_path / "data", archive_of(row))
    prepare_model_data(tmp_path / "data")
    settings = ContainerSettings(
        environment={**QUIET, "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": MODEL},
        multi_model=False,
        release="24.09",
        model_data=tmp_path / "data",
    )
    with TritonContainer.start(settings, folder=tmp_path / "container") as container:
        if row["single"] == ["start"]:
            with pytest.raises(ContainerFailedError) as failure:
                container.wait_ready(60)
            assert row["says"] in str(failure.value)
            return
        container.wait_ready(60)
        reply = invoke(make_sagemaker(container), row, path="/invocations", target=None)
    assert (reply.status, row["says"] in reply.text) == (row["single"][1], True), reply.text


def test_troubleshooting_has_a_row_for_each_reported_failure() -> None:
    rows = TROUBLESHOOTING.read_text()
    assert [name for name, row in FAILURES.items() if row["says"] not in rows] == []
