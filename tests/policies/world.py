"""An environment's roles and resource policies, with every reference of the templates in place of what it will be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stacks.stage import EnvironmentStage
from tests.arns import ACCOUNT, REGION, arn
from tests.constructs_lib.templates import of_type, template_of
from tests.stacks.everything import stacks_of
from tritonstack.aws.iam_evaluation import Decision, Policies, Request, Statement, evaluate

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/of-archives"
BUCKETS = {"ArtifactsArchives": "archives", "ArtifactsAccessLogs": "access-logs"}
VALUES = {"/tritonstack/local/_artifacts/bucket-name": "archives", "/tritonstack/local/_artifacts/key-arn": KEY}
FORMS = {
    "AWS::CloudWatch::Alarm": "alarm:",
    "AWS::Logs::LogGroup": "log-group:",
    "AWS::CodeBuild::Project": "project/",
    "AWS::Lambda::Function": "function:",
}
"""Type → what stands before a name in its ARN."""
PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}
BOUNDARY: list[Statement] = [
    {"Effect": "Allow", "Action": "*", "Resource": "*"},
    {"Effect": "Deny", "Action": ["iam:Create*", "iam:Put*", "organizations:*"], "Resource": "*"},
]
"""What an account's permissions boundary might say; the templates name it, and its document is the account's."""
SENT = {"aws:SecureTransport": "true", "aws:PrincipalAccount": ACCOUNT}
ROLE_PREFIX = f"arn:aws:iam::{ACCOUNT}:role/team/triton/"


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role with its statements."""

    stack: str  # without the environment's name
    name: str  # its logical id without the hash at its end
    statements: tuple[Statement, ...]  # of all its policies
    trust: tuple[Statement, ...]
    bounded: bool  # whether it has a permissions boundary

    @property
    def key(self) -> str:
        """``serving-e0/ExecutionRole``."""
        return f"{self.stack}/{self.name}"

    @property
    def arn(self) -> str:
        """Its ARN."""
        return f"{ROLE_PREFIX}{self.name}"


@dataclass(frozen=True, kw_only=True)
class World:
    """Roles, policies and requests."""

    roles: Mapping[str, Role]
    bucket_policy: tuple[Statement, ...]  # of the archives' bucket
    key_policy: tuple[Statement, ...]
    endpoints: Mapping[str, tuple[Statement, ...]]  # service → the policy of its VPC endpoint
    source: str  # the ARN of the object that builds start from, as their project names it
    test_source: str  # likewise of load tests

    def decision(self, role: Role, request: Request) -> Decision:
        """What comes of a request by a role, whose statements may be others than those of the world."""
        sent = replace(request, principal=role.arn, context={**SENT, **request.context})
        of_bucket = re.match(r"arn:aws:s3:::archives($|/)", request.resource) is not None
        of_key = request.resource == KEY
        policies = Policies(
            identity=role.statements,
            boundary=BOUNDARY if role.bounded else None,
            resource=self.key_policy if of_key else self.bucket_policy if of_bucket else None,
            resource_must_allow=of_key,
        )
        return evaluate(sent, policies)


def world_of(stage: EnvironmentStage) -> World:
    """The world of a synthesised environment called ``local``."""
    roles: dict[str, Role] = {}
    buckets: list[Statement] = []
    keys: list[Statement] = []
    endpoints: dict[str, tuple[Statement, ...]] = {}
    sources: dict[str, str] = {}
    for stack in stacks_of(stage):
        template = _resolved(template_of(stack), stack.stack_name)
        roles |= {role.key: role for role in _roles(template, stack.stack_name.removeprefix("local-"))}
        for each in of_type(template, "AWS::S3::BucketPolicy").values():
            if each["Properties"]["Bucket"] == "archives":
                buckets += each["Properties"]["PolicyDocument"]["Statement"]
        for each in of_type(template, "AWS::KMS::Key").values():
            keys += each["Properties"]["KeyPolicy"]["Statement"]
        for each in of_type(template, "AWS::EC2::VPCEndpoint").values():
            service = each["Properties"]["ServiceName"].removeprefix(f"com.amazonaws.{REGION}.")
            endpoints[service] = tuple(each["Properties"]["PolicyDocument"]["Statement"])
        for name, each in of_type(template, "AWS::CodeBuild::Project").items():
            if "Location" in each["Properties"]["Source"]:
                sources[name] = f"arn:aws:s3:::{each['Properties']['Source']['Location']}"
    return World(
        roles=roles,
        source=next(where for name, where in sources.items() if name.startswith("ModelBuild")),
        test_source=next(where for name, where in sources.items() if name.startswith("Bench")),
        bucket_policy=tuple(buckets),
        key_policy=tuple(keys),
        endpoints=endpoints,
    )


def _roles(template: dict[str, Any], stack: str) -> Iterator[Role]:
    policies = of_type(template, "AWS::IAM::Policy").values()
    for logical_id, role in of_type(template, "AWS::IAM::Role").items():
        assert "Policies" not in role["Properties"], logical_id
        assert "ManagedPolicyArns" not in role["Properties"], logical_id
        found = [
            statement
            for policy in policies
            if _short(logical_id) in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        yield Role(
            stack=stack,
            name=_short(logical_id),
            statements=tuple(found),
            trust=tuple(role["Properties"]["AssumeRolePolicyDocument"]["Statement"]),
            bounded="PermissionsBoundary" in role["Properties"],
        )


def _short(logical_id: str) -> str:
    return re.sub(r"[0-9A-F]{8}$", "", logical_id)


def _resolved(template: dict[str, Any], stack_name: str) -> dict[str, Any]:
    """The template's resources without a reference."""
    parameters = template.get("Parameters", {})

    def reference(name: str) -> str:
        if name == "AWS::StackId":
            return arn("cloudformation", f"stack/{stack_name}/0")
        if name in PSEUDO:
            return PSEUDO[name]
        if name in parameters:
            default = parameters[name].get("Default", name)
            return VALUES.get(default, str(default).rpartition("/")[2])
        return BUCKETS.get(_short(name), _short(name))

    def attribute(name: str, which: str) -> str:
        return _attribute(template["Resources"][name], _short(name), which)

    def walk(value: Any) -> Any:
        match value:
            case {"Ref": str(name)}:
                return reference(name)
            case {"Fn::GetAtt": [str(name), str(which)]}:
                return attribute(name, which)
            case {"Fn::Join": [str(separator), [*parts]]}:
                return separator.join(str(walk(part)) for part in parts)
            case dict():
                return {key: walk(part) for key, part in value.items()}
            case list():
                return [walk(part) for part in value]
        return value

    return {"Resources": {name: walk(each) for name, each in template["Resources"].items()}}


def _attribute(resource: dict[str, Any], name: str, which: str) -> str:
    """An attribute as the service would give it; of those that no policy names, any text."""
    kind = resource["Type"]
    if which != "Arn":
        return f"{name}-{which}"
    if kind == "AWS::S3::Bucket":
        return f"arn:aws:s3:::{BUCKETS[name]}"
    if kind == "AWS::KMS::Key":
        return KEY
    if kind == "AWS::IAM::Role":
        return f"{ROLE_PREFIX}{name}"
    if kind == "AWS::Logs::LogGroup":
        name = f"{resource['Properties'].get('LogGroupName', name)}:*"
    service = kind.split("::")[1].lower()
    return arn(service, f"{FORMS.get(kind, '')}{name}")
