"""A renamed endpoint on the local AWS: named by every command, deleted by docs/removing.md's, or by a destroy."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "renamed"
COMMANDS = (
    ("verify", "-e", NAME, "--local"),
    ("releases", "-e", NAME, "--local"),
    ("outputs", "-e", NAME, "--local"),
    ("preflight", "-e", NAME, "--local"),
    ("local", "status"),
    ("leftovers", "-e", NAME, "--local"),
)


def write(project: Project, *names: str, more: str = "") -> None:
    """The environment with these endpoints of the same model."""
    text = environment_yaml(name=NAME, endpoints=[endpoint(name, ["adds-01"]) for name in names])
    project.write(f"environments/{NAME}.yaml", f"{text}{more}")


def printed(project: Project, *arguments: str, expect: int = 0) -> str:
    result = project.run(*arguments, expect=expect)
    return result.stdout + result.stderr


def stacks(aws: LocalAws) -> set[str]:
    found = aws.client("cloudformation").describe_stacks()["Stacks"]
    return {each["StackName"] for each in found if each["StackName"].startswith(f"{NAME}-")}


def exists(aws: LocalAws, name: str) -> bool:
    try:
        aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-{name}")
    except ClientError:
        return False
    return True


def test_a_renamed_endpoint_is_named_by_every_command_and_deleted(project: Project, local_aws: LocalAws) -> None:
    write(project, "old", more="dashboard: true\n")
    project.run("local", "deploy", "-e", NAME)
    assert not [each for each in COMMANDS if f"{NAME}-serving-old is still" in printed(project, *each)]
    write(project, "new")
    project.run("local", "deploy", "-e", NAME)
    assert exists(local_aws, "old"), "no deployment removes it"
    for command in COMMANDS:
        said = printed(project, *command)
        for left in ("serving-old (endpoint renamed-old, 1 of ml.g4dn.xlarge)", "observability"):
            assert f"{NAME}-{left} is still deployed in us-east-1" in " ".join(said.split()), f"{command}: {said}"
        assert f"tritonstack leftovers -e {NAME}" in said, f"{command}: {said}"
        assert f"{NAME}-serving-new is still" not in said
    delete = ("leftovers", "-e", NAME, "--local", "--delete")
    assert "--yes" in printed(project, *delete, expect=2), "without a terminal nobody can answer"
    assert exists(local_aws, "old")
    said = printed(project, *delete, "--yes")
    assert said.index(f"✓ delete {NAME}-observability") < said.index(f"✓ delete {NAME}-serving-old")
    assert stacks(local_aws) == {f"{NAME}-artifacts", f"{NAME}-serving-new"}
    assert not exists(local_aws, "old")
    records = local_aws.client("ssm").get_parameters_by_path(Path=f"/tritonstack/{NAME}/old", Recursive=True)
    assert records["Parameters"] == []
    assert not [each for each in COMMANDS if "is still deployed" in printed(project, *each)]
    target = target_model(local_aws, endpoint="new", model="adds-01", environment=NAME)
    client = local_aws.client("sagemaker-runtime")
    assert invoke(client, endpoint="new", target=target, value=4.0, environment=NAME) == 5.0


def test_a_destroy_takes_along_an_endpoint_that_left_the_file(project: Project, local_aws: LocalAws) -> None:
    write(project, "new", "third")
    project.run("local", "deploy", "-e", NAME)
    write(project, "new")
    project.run("local", "deploy", "-e", NAME)
    assert exists(local_aws, "third")
    found = json.loads(printed(project, "local", "status", "--json"))["left"]
    assert [each["stack"] for each in found] == [f"{NAME}-serving-third"]
    said = printed(project, "local", "destroy", "-e", NAME)
    assert said.index(f"✓ delete {NAME}-serving-third") < said.index(f"✓ destroy {NAME}")
    assert stacks(local_aws) == set()
    assert not exists(local_aws, "third")
    assert not exists(local_aws, "new")
