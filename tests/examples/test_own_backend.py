"""The example of a backend of one's own: lints, builds, synthesises, and runs in the local Triton."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import aws_cdk as cdk
import pytest

from tests.e2e.project import Project
from tests.examples.copied import EXAMPLES, copied_project
from tests.tritonstack_local.container.conftest import QUIET, SageMaker
from tritonstack_local.container import ContainerSettings, TritonContainer
from tritonstack_local.container import container as container_module
from tritonstack_local.container.repository import TritonFiles, prepare_backends
from tritonstack_stacks import EnvironmentStage

EXAMPLE = EXAMPLES / "own-backend"
MODEL = EXAMPLE / "model_repos" / "prices"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the example's files."""
    return copied_project(EXAMPLE.name, tmp_path)


def test_it_lints_builds_without_a_proof_and_the_local_aws_refuses_it(project: Project) -> None:
    assert ", errors: 0," in project.run("lint", "-e", "own-backend").stderr
    built = project.run("build", "-e", "own-backend")
    assert "proof skipped: the local Triton has no backend linear" in built.stdout
    refused = project.run("local", "deploy", "-e", "own-backend", expect=2)
    assert "linear" in refused.stderr


def test_without_the_setting_lint_refuses_the_backend(project: Project) -> None:
    file = project.root / "environments/own-backend.yaml"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if "additional_backends" not in line))
    refused = project.run("lint", "-e", "own-backend", expect=1)
    assert "linear" in refused.stdout + refused.stderr


def test_its_image_is_built_from_the_folder_with_the_backend(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    file = EXAMPLE / "environments" / "own-backend.yaml"
    stage = EnvironmentStage.from_file(app, file=file, models=EXAMPLE / "model_repos")
    assembly = stage.synth()
    [serving] = [stack for stack in assembly.stacks if "serving" in stack.stack_name]
    [model] = [each for each in serving.template["Resources"].values() if each["Type"] == "AWS::SageMaker::Model"]
    assert "cdk-hnb659fds-container-assets" in str(model["Properties"])
    [image] = list(tmp_path.rglob("Dockerfile"))
    assert (image.parent / "backends/linear/model.py").is_file()
    assert "COPY backends /opt/tritonserver/backends" in image.read_text()


@pytest.mark.timeout(180)
def test_the_local_triton_runs_the_backend_with_the_models_coefficients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_linear(folder: Path, files: TritonFiles) -> None:
        prepare_backends(folder, files)
        shutil.copytree(EXAMPLE / "images/triton/backends/linear", folder / "linear")

    monkeypatch.setattr(container_module, "prepare_backends", with_linear)
    settings = ContainerSettings(environment=QUIET, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=tmp_path) as container:
        container.wait_ready(60)
        server = SageMaker(container)
        loaded = server.load("prices", {"prices": MODEL / "prices"})
        assert loaded.status == 200, loaded.text
        rows = [3.0, 80.0, 12.0, 0.0, 0.0, 0.0]
        assert server.invoke("prices", X=("FP32", [2, 3], rows)).outputs == {"prediction": [365.0, 40.0]}
    sample = json.loads((MODEL / "sample/answer.json").read_text())
    assert sample["outputs"][0]["data"] == [365.0], "the sample's response is what the backend gave"
