"""``tritonstack pipeline bootstrap``: what each account is told to do, and what its policy lets CloudFormation do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.e2e.project import REPOSITORY, environment_yaml
from tritonstack.cli.pipeline import pipeline_group as command
from tritonstack.cli.root import root

ENDPOINT = (
    '{name: digits, mode: multi-model, release: "24.09", instance_type: ml.g4dn.xlarge, initial_instance_count: 1, '
    "models: [digits-onnx]}"
)
BOUNDARY = "arn:aws:iam::222222222222:policy/team/bound"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two environments beside the pipeline's own account, the second in another one, bounded and in a network."""
    (tmp_path / "environments").mkdir()
    first = environment_yaml(name="first", endpoints=[ENDPOINT]) + "builds: {on_deploy: false}\n"
    second = environment_yaml(name="second", endpoints=[ENDPOINT]).replace("123456789012", "222222222222")
    second += f"permissions_boundary: {BOUNDARY}\nrole_path: /team/\n"
    (tmp_path / "environments" / "first.yaml").write_text(first)
    (tmp_path / "environments" / "second.yaml").write_text(second)
    document = {
        "name": "line",
        "account": "123456789012",
        "region": "us-east-1",
        "source": {
            "connection": "arn:aws:codeconnections:us-east-1:123456789012:connection/"
            "11111111-2222-3333-4444-555555555555",
            "repository": "a/b",
        },
        "stages": [{"environment": "first"}, {"environment": "second"}],
    }
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["bootstrap", *arguments])


def statements(file: Path) -> dict[str, dict[str, Any]]:
    return {each["Sid"]: each for each in json.loads(file.read_text())["Statement"]}


def test_each_account_is_bootstrapped_once_and_others_trust_the_pipelines(project: Path) -> None:
    printed = run("--policies", str(project / "policies")).output
    lines = [shlex.split(line) for line in printed.splitlines() if "cdk bootstrap" in line]
    assert [line[3] for line in lines] == ["aws://123456789012/us-east-1", "aws://222222222222/us-east-1"]
    own, other = lines
    assert "--trust" not in own
    assert other[other.index("--trust") + 1] == "123456789012"
    assert own[own.index("--cloudformation-execution-policies") + 1].split(",") == [
        "arn:aws:iam::123456789012:policy/line-pipeline-execution",
        "arn:aws:iam::123456789012:policy/first-execution",
    ]
    assert other[other.index("--custom-permissions-boundary") + 1] == "team/bound"
    assert printed.rstrip().endswith("npx cdk deploy -c pipeline=true pipeline")
    named = [line.rpartition("file://")[2] for line in printed.splitlines() if "create-policy" in line]
    assert sorted(named) == sorted(map(str, (project / "policies").iterdir()))
    assert all(len(Path(name).read_text()) < 6144 for name in named), "IAM's limit of a managed policy"


def test_a_policy_covers_roles_of_the_environment_alone_and_with_a_boundary_none_without_it(project: Path) -> None:
    run("--policies", str(project / "policies"))
    first, second = (statements(project / f"policies/{name}-execution.json") for name in ("first", "second"))
    assert first["Roles"]["Resource"] == [
        "arn:aws:iam::123456789012:role/first-*",
        "arn:aws:iam::123456789012:role/line-first-*",
    ]
    assert second["BoundedRoles"]["Resource"][0] == "arn:aws:iam::222222222222:role/team/second-*"
    assert second["BoundedRoles"]["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}}
    assert not set(second["BoundedRoles"]["Action"]) & set(second["Roles"]["Action"])
    assert "iam:DeleteRolePermissionsBoundary" not in second["Roles"]["Action"]
    assert "codebuild:*" not in first["Services"]["Action"], "it builds nothing when it is deployed"
    assert "codebuild:*" in second["Services"]["Action"]


def test_load_tests_add_what_their_stack_is_made_of(project: Path) -> None:
    file = project / "environments" / "first.yaml"
    run("--policies", str(project / "policies"))
    before = statements(project / "policies/first-execution.json")["Services"]["Action"]
    file.write_text(file.read_text() + "load_test: {}\n")
    run("--policies", str(project / "policies"))
    policy = statements(project / "policies/first-execution.json")
    assert set(policy["Services"]["Action"]) - set(before) == {"codebuild:*", "events:*", "sqs:*", "states:*"}
    assert "states.amazonaws.com" in policy["PassRoles"]["Condition"]["StringEquals"]["iam:PassedToService"]


def test_the_documented_line_writes_the_policies(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "pipeline.md").read_text()
    [line] = [line for line in page.splitlines() if line.startswith("$ tritonstack ")]
    monkeypatch.chdir(project)
    result = CliRunner().invoke(root, shlex.split(line)[2:])
    assert result.exit_code == 0, result.output
    assert "--policy-document file://policies/first-execution.json" in result.output
    assert (project / "policies" / "first-execution.json").is_file()


def test_wrong_settings_are_told_without_a_traceback(project: Path) -> None:
    (project / "pipeline.yaml").write_text("account: 1\n")
    result = run()
    assert type(result.exception).__name__ == "InputError"
    assert "stages" in str(result.exception)
