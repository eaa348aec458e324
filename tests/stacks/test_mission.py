"""What the project is for is in the committed templates: each clause of its mission, and each published system."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.stacks.app_process import ROOT
from tritonstack.models.source import archives_of
from tritonstack.review.snapshot import StackSnapshot
from tritonstack.review.stored import read_snapshots

PLACES = {name: each for name, each in read_snapshots(ROOT / "snapshots").environments.items() if name != "local"}
STACKS = {f"{name}/{stack.name}": stack for name, each in PLACES.items() for stack in each.stacks.values()}
SYSTEMS = sorted(path.parent.name for path in (ROOT / "model_repos").glob("*/recipe.yaml"))


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A serving stack of an account."""

    place: str  # its environment and its name
    stack: StackSnapshot
    archives: Mapping[str, str]  # what is served → what each archive depends on (none, python, engine)
    model: Mapping[str, Any]  # properties of the Model's container
    variant: Mapping[str, Any]  # properties of the production variant

    @property
    def multi_model(self) -> bool:
        return bool(self.model.get("Mode") == "MultiModel")

    @property
    def scaled_on(self) -> set[str]:
        policies = self.stack.of_type("AWS::ApplicationAutoScaling::ScalingPolicy")
        text = json.dumps([each.properties for each in policies])
        return {name for name in ("SageMakerVariantInvocationsPerInstance", "GPUUtilization") if f'"{name}"' in text}


def served() -> Iterator[Serving]:
    for place, stack in STACKS.items():
        if not stack.name.startswith("serving-"):
            continue
        model = stack.of_type("AWS::SageMaker::Model")[0]  # of two variants the first: they have one image and GPU
        [config] = stack.of_type("AWS::SageMaker::EndpointConfig")
        variant = config.properties["ProductionVariants"][0]
        archives: Any = stack.documents["Wait/BuildSet"]
        yield Serving(
            place=place,
            stack=stack,
            archives={each["model"]: each["dependency"] for each in archives["archives"]},
            model=model.properties["PrimaryContainer"],
            variant=variant,
        )


SERVED = tuple(served())


def serving(archive: str, **wanted: Any) -> list[str]:
    """The places that serve an archive with these properties of mode, instance type and GPU's builder."""
    return [
        each.place
        for each in SERVED
        if archive in each.archives
        and wanted.get("multi_model", each.multi_model) == each.multi_model
        and wanted.get("instance_type", each.variant["InstanceType"]) == each.variant["InstanceType"]
    ]


def projects(kind: str) -> list[str]:
    """The environments with a CodeBuild project of an environment type."""
    return [
        place
        for place, stack in STACKS.items()
        for project in stack.of_type("AWS::CodeBuild::Project")
        if project.properties["Environment"]["Type"] == kind
    ]


def having(kind: str, *words: str) -> list[str]:
    """The stacks with a resource of a type whose properties have these words."""
    return [
        place
        for place, stack in STACKS.items()
        for each in stack.of_type(kind)
        if all(word in json.dumps(each.properties) for word in words)
    ]


CLAUSES = {
    "S3 artifact bucket": lambda: having("AWS::S3::Bucket"),
    "IAM execution role": lambda: having("AWS::IAM::Role", "sagemaker.amazonaws.com"),
    "SageMaker model in multi-model mode": lambda: [each.place for each in SERVED if each.multi_model],
    "single-model endpoint": lambda: [each.place for each in SERVED if not each.multi_model],
    "two production variants with weights": lambda: [
        place
        for place, stack in STACKS.items()
        for config in stack.of_type("AWS::SageMaker::EndpointConfig")
        if [each["InitialVariantWeight"] for each in config.properties["ProductionVariants"]] == [90, 10]
    ],
    "regional Triton image": lambda: [
        each.place
        for each in SERVED
        if f".dkr.ecr.{each.stack.region}.amazonaws.com/sagemaker-tritonserver:" in each.model["Image"]
    ],
    "large shared memory": lambda: [
        each.place
        for each in SERVED
        if int(each.model["Environment"]["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"]) >= 2**33
    ],
    "endpoint on g4dn": lambda: [each.place for each in SERVED if each.variant["InstanceType"].startswith("ml.g4dn.")],
    "endpoint on g5": lambda: [each.place for each in SERVED if each.variant["InstanceType"].startswith("ml.g5.")],
    "scaling on invocations and GPU utilisation": lambda: [each.place for each in SERVED if len(each.scaled_on) == 2],
    "dashboard": lambda: having("AWS::CloudWatch::Dashboard"),
    "alarms that notify a person": lambda: having("AWS::SNS::Subscription", "email"),
    "trtexec on CodeBuild's GPU": lambda: projects("LINUX_GPU_CONTAINER"),
    "trtexec on a T4 by SageMaker Processing": lambda: having("AWS::IAM::Policy", "sagemaker:CreateProcessingJob"),
    "archives built before the endpoint is touched": lambda: having("AWS::CloudFormation::WaitCondition"),
    # A scaled endpoint's rollout steps come from a custom resource: they need the current instance count.
    "canary that alarms roll back": lambda: sorted(
        set(having("AWS::SageMaker::Endpoint", "BlueGreenUpdatePolicy", "AutoRollbackConfiguration"))
        & set(having("Custom::ScalingBefore", "CANARY"))
    ),
    "load test with Inference Recommender": lambda: having("AWS::StepFunctions::StateMachine"),
    "ResNet-50's formats side by side on g4dn": lambda: [
        each.place
        for each in SERVED
        if {"resnet50-onnx", "resnet50-tensorrt", "resnet50-torchscript"} <= set(each.archives) and each.multi_model
    ],
    "copies of BERT and a ResNet as engines on g5": lambda: sorted(
        set(serving("bert-tensorrt-4", multi_model=True))
        & set(serving("resnet50-tensorrt", instance_type="ml.g5.xlarge"))
    ),
    "T5 in Python on g5.2xlarge": lambda: serving("t5-python", multi_model=True, instance_type="ml.g5.2xlarge"),
    "DALI ensemble alone, with its thread counts": lambda: [
        each.place
        for each in SERVED
        if not each.multi_model
        and "inception-ensemble" in each.archives
        and "SAGEMAKER_TRITON_THREAD_COUNT" in each.model["Environment"]
    ],
    "BERT large as an engine on g4dn.12xlarge": lambda: serving(
        "bert-large-tensorrt-db", multi_model=False, instance_type="ml.g4dn.12xlarge"
    ),
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_of_the_mission_is_in_a_committed_template(clause: str) -> None:
    assert CLAUSES[clause]()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_model_folder_is_served_by_an_environment_of_an_account(system: str) -> None:
    archives = {each.name for each in archives_of(ROOT / "model_repos" / system)}
    assert archives & {name for each in SERVED for name in each.archives}


def test_every_single_model_endpoint_rolls_back_on_errors() -> None:
    guarded = having("AWS::SageMaker::Endpoint", "AutoRollbackConfiguration")
    assert guarded == [each.place for each in SERVED if not each.multi_model]


def test_two_regions_are_served() -> None:
    assert {each.stack.region for each in SERVED} == {"us-east-1", "eu-central-1"}


def test_every_engine_is_built_by_a_service_that_its_environment_has() -> None:
    for each in SERVED:
        if "engine" in each.archives.values():
            builds = f"{each.place.partition('/')[0]}/builds"
            gpu = "LINUX_GPU_CONTAINER" if each.variant["InstanceType"].startswith("ml.g5.") else None
            assert builds in (projects(gpu) if gpu else having("AWS::IAM::Policy", "sagemaker:CreateProcessingJob"))


def test_every_endpoint_is_watched_and_scaled_on_both_metrics_but_before_a_load_tests_gate() -> None:
    for each in SERVED:
        environment = each.place.partition("/")[0]
        assert len(each.scaled_on) == (0 if environment == "staging" else 2), each.place
        alarms = having("AWS::CloudWatch::Alarm", f"{environment}-{each.stack.name.removeprefix('serving-')}")
        assert f"{environment}/observability" in alarms, each.place
