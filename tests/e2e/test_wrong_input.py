"""What a person sees who made a mistake: every mistake at once, exit code 2, nothing synthesised."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.project import REPOSITORY, Project, environment_yaml

pytestmark = pytest.mark.e2e


@pytest.fixture
def wrong(tmp_path: Path) -> Project:
    """A project whose environment file has three mistakes in two endpoints."""
    project = Project(tmp_path)
    (project.root / "model_repos").symlink_to(REPOSITORY / "model_repos")
    text = environment_yaml(
        name="local",
        endpoints=[
            endpoint("first", ["digits-onnx"]).replace("ml.g4dn.xlarge", "ml.g4dn.12xlarge"),
            endpoint("second", ["digits-onnx"])
            .replace("24.09", "24.10")
            .replace("initial_instance_count: 1", "initial_instance_count: 0"),
        ],
    )
    project.write("environments/local.yaml", text)
    return project


def test_every_mistake_is_named_with_file_field_found_and_allowed(wrong: Project) -> None:
    said = wrong.run("build", "--environment", "local", expect=2).stderr
    for words in ("local.yaml", "endpoints[0].instance_type", "ml.g4dn.12xlarge", "endpoints[1].release", "24.10",
                  "endpoints[1].initial_instance_count", "24.09", "found", "allowed"):  # fmt: skip
        assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["local", "deploy", "-e", "nowhere"], "nowhere.yaml"),
        (["local", "env"], "tritonstack local up"),
        (["local", "logs", "nothing"], "nothing"),
        (["lint", "model_repos/nothing"], "nothing"),
    ],
)
def test_a_mistaken_command_ends_with_2_and_a_message(wrong: Project, arguments: list[str], words: str) -> None:
    result = wrong.run(*arguments, expect=2)
    assert words in result.stderr
    assert "Traceback" not in result.stderr
