"""Permissions that an endpoint's execution role needs, from the statements of ``execution_role.yaml``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tritonstack import aws_names, naming
from tritonstack.catalogue import partition

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings, Environment

COLON_SERVICES = frozenset({"cloudwatch", "lambda", "logs", "states"})
"""Services whose ARNs separate resource type and name by a colon; the others by a slash."""
Values = Mapping[str, str | Sequence[str] | None]
"""What stands for the names in braces: ARNs, key prefixes, names; they may be tokens of a template."""


@dataclass(frozen=True, kw_only=True)
class Permission:
    """One statement of a policy."""

    sid: str  # its purpose, in CamelCase
    actions: tuple[str, ...]  # each spelled out
    resources: tuple[str, ...]  # ARNs
    conditions: Mapping[str, Mapping[str, Any]] | None  # operator → condition key → value or values
    wildcard: str | None  # why resources with a wildcard are no wider than needed

    @property
    def statement(self) -> dict[str, Any]:
        """As IAM writes it."""
        found = {"Sid": self.sid, "Effect": "Allow", "Action": [*self.actions], "Resource": [*self.resources]}
        return found if self.conditions is None else {**found, "Condition": self.conditions}


@cache
def _statements() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    )
    return found


def permissions(group: str, **values: str | Sequence[str] | None) -> Iterator[Permission]:
    """The statements of a group with these values, in the order of the file.

    A shared subnet's ARN carries the account of its owner; interfaces and security groups in it are the participant's
    (VPC user guide, "Responsibilities and permissions for owners and participants").
    """
    prefix = values.get("prefix")
    if isinstance(prefix, str):
        values["folder"] = prefix.removesuffix("/")
    values["namespaces"] = [aws_names.SAGEMAKER, aws_names.INSTANCES]
    for each in _statements()[group]:
        if any(values.get(text.strip("{}"), "") is None for text in each["resources"]):
            continue
        conditions = each.get("conditions")
        yield Permission(
            sid=each["sid"],
            actions=tuple(each["actions"]),
            resources=tuple(_filled(each["resources"], values)),
            conditions=conditions
            and {
                operator: {
                    key: given if isinstance(given, str) else list(_filled(given, values))
                    for key, given in tests.items()
                }
                for operator, tests in conditions.items()
            },
            wildcard=each["wildcard"].format_map(values) if "wildcard" in each else None,
        )


def _filled(texts: Sequence[str], values: Values) -> Iterator[str]:
    for text in texts:
        value = values.get(text.strip("{}"))
        if value is None or isinstance(value, str):
            yield text.format_map(values)
        else:
            yield from value


def required_permissions(
    environment: Environment, endpoint: EndpointSettings, *, repository_arn: str, parameter: Callable[[str], str]
) -> Iterator[Permission]:
    """Everything that a role of your own needs for an endpoint.

    ``repository_arn``: of the endpoint's image. ``parameter``: value of an SSM parameter of the environment, by its
    name. An alarm has no name before it is made: of alarms all of account and region may be read.
    """
    name, region = environment.environment, environment.region

    def arn(service: str, resource: str, name: str, *, account: str | None = None) -> str:
        sign = ":" if service in COLON_SERVICES else "/"
        return f"arn:{partition(region)}:{service}:{region}:{account or environment.account}:{resource}{sign}{name}"

    named = ["key-arn", *([] if environment.artifacts.earlier_key is None else ["earlier-key-arn"])]
    key = [parameter(naming.artifact_parameter(environment=name, value=each)) for each in named]
    bucket_name = parameter(naming.artifact_parameter(environment=name, value="bucket-name"))
    bucket, at_sagemaker = f"arn:{partition(region)}:s3:::{bucket_name}", endpoint.sagemaker_name(name)
    yield from permissions(
        "serving",
        bucket=bucket,
        prefix=naming.platform_prefix(endpoint=endpoint.name, platform=endpoint.platform),
        key=key,
        repositories=[repository_arn],
        log_group=arn("logs", "log-group", naming.endpoint_log_group(at_sagemaker)),
        endpoint=at_sagemaker,
    )
    network = environment.joined_network
    if network is not None:

        def of_network(kind: str, each: str | int, *, account: str | None = None) -> str:
            value = parameter(naming.network_parameter(environment=name, value=f"{kind}-{each}"))
            return arn("ec2", kind, value, account=account)

        yield from permissions(
            "model-network",
            interfaces=arn("ec2", "network-interface", "*"),
            subnets=[of_network("subnet", zone, account=network.subnet_owner) for zone in network.zones],
            security_groups=[of_network("security-group", each) for each in range(network.security_groups)],
        )
    if endpoint.rollout is not None and endpoint.rollout.own_alarms is not None:
        yield from permissions("alarms", alarms=[arn("cloudwatch", "alarm", "*")])
    if endpoint.data_capture is not None:
        captured = naming.captured_prefix(endpoint=endpoint.name)
        yield from permissions("capture", bucket=bucket, prefix=captured, key=key)
