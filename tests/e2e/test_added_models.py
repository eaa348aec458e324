"""From a file to a response on the local endpoint: `add`, `local deploy`, `invoke`, for each kind of file."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.adding.test_repository import FOLDERS, written
from tests.e2e.conftest import endpoint
from tests.e2e.project import REPOSITORY, Project, environment_yaml
from tests.e2e.running import running

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]
FIXTURES = REPOSITORY / "tests/adding/fixtures"


def test_every_kind_of_file_answers_after_three_commands(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.add_python_model("first", execute="x", answer_to_3=3.0)
    project.write("environments/local.yaml", environment_yaml(name="local", endpoints=[endpoint("all", ["first"])]))
    for name in ("classifier.onnx", "lightgbm.onnx", "image.onnx", "pair.pt"):
        shutil.copy(FIXTURES / name, tmp_path / name)
    written(tmp_path / "folder", FOLDERS["texts"]["files"])
    written(tmp_path / "repository", FOLDERS["ensemble"]["files"])
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "repository", ".")
    files = {
        "iris": ["classifier.onnx", "--name", "iris"],
        "lightgbm": ["lightgbm.onnx"],
        "image": ["image.onnx", "--image", "pixels"],
        "simple-string": ["folder/simple_string"],
        "pipeline": ["model.tar.gz"],
        "pair": ["pair.pt", "--input", "ids:INT64:N,length", "--input", "mask:INT64:N,length"],
    }
    with running(project):
        for arguments in files.values():
            project.run("add", *arguments)
        project.run("local", "deploy")
        project.run("verify")
        for model in files:
            (request,) = (tmp_path / "model_repos" / model / "sample").glob("[!a]*")
            answer = json.loads(project.run("invoke", model, "--input", str(request), "--raw", "--json").stdout)
            expected = json.loads((tmp_path / "model_repos" / model / "sample/answer.json").read_text())["outputs"]
            assert {each["name"] for each in expected} == {each["name"] for each in answer["outputs"]}, model
