"""Stacks of environments on the local AWS: states that are refused, what left a file, what destroy leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.local_keys import KEYS
from tests.tritonstack_local.emulator.running import Emulator
from tests.tritonstack_local.fake_parts import GONE
from tritonstack.cli.progress import Steps
from tritonstack.errors import WorkFailedError
from tritonstack_local.aws import LocalAws
from tritonstack_local.commands import destroy, stacks
from tritonstack_local.commands.deploy import LocalDeployment

TOPIC = {"Topic": {"Type": "AWS::SNS::Topic"}}
BUCKET = {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}}}
ENDPOINT = '{name: new, mode: multi-model, release: "24.09", instance_type: ml.g4dn.xlarge, models: [double]}'


class World:
    """An environment of its own on a running emulator."""

    def __init__(self, emulator: Emulator, name: str, project: Path) -> None:
        self.emulator, self.name, self.project = emulator, name, project
        self.aws = LocalAws(emulator_port=emulator.port, runtime_port=1, keys=KEYS, emulator=GONE, runtime=GONE)

    def stack(self, part: str, resources: dict[str, Any] = TOPIC, *, environment: str = "", **more: Any) -> str:
        """Deploy a stack of the environment; its name."""
        owner = environment or self.name
        tags = {"tritonstack:environment": owner}
        if part.startswith("serving-"):
            tags["tritonstack:endpoint"] = part.removeprefix("serving-")
        client = self.emulator.client("cloudformation")
        client.create_stack(
            StackName=f"{owner}-{part}",
            TemplateBody=json.dumps({"Resources": resources, **more}),
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        self.emulator.settled(f"{owner}-{part}")
        return f"{owner}-{part}"

    def fill_bucket(self, stack: str) -> None:
        """Keep a stack's bucket from being deleted."""
        bucket = self.emulator.physical(stack, "Bucket")
        self.emulator.client("s3").put_object(Bucket=bucket, Key="a", Body=b"")

    def empty_bucket(self, stack: str) -> None:
        self.emulator.client("s3").delete_object(Bucket=self.emulator.physical(stack, "Bucket"), Key="a")

    def left(self) -> list[str]:
        return [each.name for each in stacks.own_stacks(self.aws, self.name)]

    def synthesised(self, *parts: str) -> LocalDeployment:
        """A deployment whose assembly has these stacks."""
        deployment = LocalDeployment(aws=self.aws, environment=self.name)
        folder = deployment.assembly / f"assembly-{self.name}"
        folder.mkdir(parents=True)
        kind = "aws:cloudformation:stack"
        found = {each: {"type": kind, "properties": {"stackName": f"{self.name}-{each}"}} for each in parts}
        (folder / "manifest.json").write_text(json.dumps({"artifacts": found}))
        (deployment.assembly / "manifest.json").write_text("{}")
        return deployment

    def write_file(self) -> None:
        file = self.project / "environments" / f"{self.name}.yaml"
        file.parent.mkdir()
        head = f'environment: {self.name}\naccount: "123456789012"\nregion: us-east-1\nproduction: false\n'
        file.write_text(f"{head}endpoints:\n  - {ENDPOINT}\n")


@pytest.fixture
def world(aws: Emulator, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / ".local"))
    return World(aws, name, tmp_path)


def cdk_destroys(world: World, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let ``cdk destroy`` delete the app's stacks; returns what was deployed before each."""
    before: list[list[str]] = []

    def delete(deployment: LocalDeployment) -> None:
        before.append(world.left())
        for each in destroy.stack_names(deployment.assembly):
            world.emulator.delete_stack(each)

    monkeypatch.setattr(LocalDeployment, "destroy", delete)
    return before


def test_destroy_takes_along_what_left_the_app_and_no_other_environments_stack(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = world.name
    for part in ("artifacts", "serving-new", "serving-old", "observability"):
        world.stack(part)
    other = world.stack("network", environment=f"{name}-b")
    before = cdk_destroys(world, monkeypatch)
    destroy.destroy(world.synthesised("artifacts", "serving-new"), Steps())
    assert before == [[f"{name}-serving-new", f"{name}-artifacts"]]
    assert world.left() == []
    assert stacks.own_stacks(world.aws, f"{name}-b")[0].name == other
    world.emulator.delete_stack(other)


def test_a_network_that_left_and_that_an_endpoint_is_in_goes_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/tritonstack/{world.name}/_network/vpc-id"
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": path, "Type": "String", "Value": "vpc-1"}}
    world.stack("network", {"Parameter": parameter})
    reads = {"Vpc": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": path}}
    world.stack("serving-new", Parameters=reads)
    before = cdk_destroys(world, monkeypatch)
    destroy.destroy(world.synthesised("serving-new"), Steps())
    assert before == [[f"{world.name}-serving-new", f"{world.name}-network"]]
    assert world.left() == []


def test_without_templates_the_stacks_are_deleted_all_the_same(world: World) -> None:
    for part in ("artifacts", "serving-new", "network"):
        world.stack(part)
    destroy.destroy(LocalDeployment(aws=world.aws, environment=world.name), Steps())
    assert world.left() == []


def test_a_stack_that_stays_is_no_success(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = world.stack("artifacts", BUCKET)
    world.fill_bucket(kept)
    deployment = world.synthesised("artifacts")
    cdk_destroys(world, monkeypatch)
    with pytest.raises(WorkFailedError) as caught:
        destroy.destroy(deployment, Steps())
    assert f"{kept} is still deployed: DELETE_FAILED" in str(caught.value)
    left = world.stack("serving-old", BUCKET)
    world.fill_bucket(left)
    with pytest.raises(WorkFailedError, match=f"{left}: .*\n.*AWS::S3::Bucket"):
        destroy.destroy(deployment, Steps())
    assert f"✗ delete {left}" in capsys.readouterr().err
    with pytest.raises(WorkFailedError) as caught:
        stacks.refuse_stuck(world.aws, world.name)
    assert f"{kept} is DELETE_FAILED" in str(caught.value)
    assert "aws cloudformation delete-stack --stack-name" in str(caught.value)
    for each in (kept, left):
        world.empty_bucket(each)
    destroy.destroy(deployment, Steps())
    assert world.left() == []
    stacks.refuse_stuck(world.aws, world.name)


def test_status_names_what_left_the_file_and_an_environment_without_one(world: World) -> None:
    world.write_file()
    for part in ("artifacts", "serving-new", "serving-old"):
        world.stack(part)
    world.stack("serving-x", environment=f"{world.name}-b")

    def found() -> dict[str, tuple[str, ...]]:
        return {each.environment: each.lines for each in stacks.left_on(world.aws)}

    lines = found()
    [left, do] = lines[world.name]
    assert left.startswith(f"{world.name}-serving-old (endpoint {world.name}-old")
    assert f"tritonstack leftovers -e {world.name} --local --delete" in do
    assert f"tritonstack local destroy -e {world.name}-b" in lines[f"{world.name}-b"][-1]
    for name in (world.name, f"{world.name}-b"):
        destroy.destroy(LocalDeployment(aws=world.aws, environment=name), Steps())
    assert not {world.name, f"{world.name}-b"} & found().keys()


def test_an_account_is_bootstrapped_while_stack_and_bucket_exist(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "BOOTSTRAP_STACK", f"{world.name}-toolkit")
    assert not stacks.bootstrap_stands(world.aws)
    stack = world.stack("toolkit", BUCKET, Outputs={"BucketName": {"Value": {"Ref": "Bucket"}}})
    assert stacks.bootstrap_stands(world.aws)
    bucket = world.emulator.physical(stack, "Bucket")
    world.emulator.client("s3").delete_bucket(Bucket=bucket)
    with pytest.raises(WorkFailedError) as caught:
        stacks.bootstrap_stands(world.aws)
    assert bucket in str(caught.value)
    assert f"aws cloudformation delete-stack --stack-name {stack}" in str(caught.value)
    assert world.emulator.delete_stack(stack) == "DELETE_COMPLETE", "the way out that the message names"
    assert not stacks.bootstrap_stands(world.aws)


def test_what_goes_on_is_named_with_how_to_roll_it_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stacks.goes_on_with(world.aws, world.name) == ""
    name = world.stack("serving-new")
    read: Callable[..., Any] = stacks.own_stacks
    [stack] = read(world.aws, world.name)
    running = stack.__class__(**{**vars(stack), "status": "UPDATE_IN_PROGRESS"})
    monkeypatch.setattr(stacks, "own_stacks", lambda *_: (running,))
    message = stacks.goes_on_with(world.aws, world.name)
    assert f"CloudFormation goes on with {name} (UPDATE_IN_PROGRESS)" in message
    assert f"aws cloudformation cancel-update-stack --stack-name {name}" in message
    world.emulator.delete_stack(name)
