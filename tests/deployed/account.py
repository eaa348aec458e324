"""An account with stacks, in the place of AWS: listings, templates, endpoints, and deletions that take a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fake_aws import AwsError, FakeAws
from tritonstack.deployed.stacks import DeployedStack, stack_of

NOT_AUTHORIZED = AwsError("AccessDenied", "not authorized")
BUCKET = {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"}
EMPTIED = {
    "Bucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"},
    "Emptied": {"Type": "Custom::EmptiedBucket", "Properties": {"Bucket": {"Ref": "Bucket"}}},
}


def stack_row(name: str, *, environment: str = "", endpoint: str = "", **more: Any) -> dict[str, Any]:
    """A stack as DescribeStacks has it; ``reads``: SSM parameters that it reads."""
    tags = {"tritonstack:environment": environment, "tritonstack:endpoint": endpoint}
    reads = more.pop("reads", ())
    return {
        "StackName": name,
        "StackId": f"arn:{name}",
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": 0,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items() if value],
        "Parameters": [{"ParameterKey": f"P{i}", "ParameterValue": each} for i, each in enumerate(reads)],
        **more,
    }


def part(environment: str, name: str, **more: Any) -> dict[str, Any]:
    """A stack of this project; one that serves has its endpoint's tag."""
    endpoint = name.removeprefix("serving-") if name.startswith("serving-") else ""
    return stack_row(f"{environment}-{name}", environment=environment, endpoint=endpoint, **more)


def deployed(*rows: Mapping[str, Any]) -> tuple[DeployedStack, ...]:
    """Stacks of rows."""
    return tuple(map(stack_of, rows))


@dataclass
class Account(FakeAws):
    """An account with stacks, their templates and endpoints.

    Attributes:
        rows: stacks as DescribeStacks has them.
        templates: stack → resources of its template.
        instances: endpoint → instances of its one variant.
        slow: how often a stack is described before its operation has ended.
        failing: stack → reason why its deletion fails.
        deleted: stacks that were deleted, in order.
        polls: stack → how often it was described while its operation was in progress.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)
    slow: int = 1
    failing: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    polls: dict[str, int] = field(default_factory=dict)

    def _named(self, name: str) -> dict[str, Any] | None:
        return next((each for each in self.rows if name in (each["StackName"], each["StackId"])), None)

    def _DescribeStacks(self, StackName: str | None = None) -> dict[str, Any]:
        name = StackName
        if name is None:
            return {"Stacks": [each for each in self.rows if each["StackStatus"] != "DELETE_COMPLETE"]}
        row = self._named(name)
        if row is None:
            raise AwsError("ValidationError", f"Stack with id {name} does not exist")
        kind, _, running = row["StackStatus"].partition("_")
        if running == "IN_PROGRESS":
            self.polls[row["StackName"]] = self.polls.get(row["StackName"], 0) + 1
            if self.polls[row["StackName"]] > self.slow:
                row["StackStatus"] = f"{kind}_{'FAILED' if row['StackName'] in self.failing else 'COMPLETE'}"
        return {"Stacks": [dict(row)]}

    def _DeleteStack(self, StackName: str) -> dict[str, Any]:
        row = self._named(StackName)
        assert row is not None
        self.deleted.append(row["StackName"])
        row["StackStatus"] = "DELETE_IN_PROGRESS"
        return {}

    def _DescribeStackEvents(self, StackName: str) -> dict[str, Any]:
        row = self._named(StackName)
        assert row is not None
        name, failed = row["StackName"], row["StackStatus"] == "DELETE_FAILED"
        head = {"StackId": row["StackId"], "StackName": name, "Timestamp": 0}
        bucket = {"LogicalResourceId": "Subnet", "PhysicalResourceId": "subnet-1", "ResourceType": "AWS::EC2::Subnet"}
        begun = {"LogicalResourceId": name, "ResourceType": "AWS::CloudFormation::Stack"}
        rows = [
            {**head, **begun, "EventId": "2", "ResourceStatus": "DELETE_IN_PROGRESS"},
            {**head, **bucket, "EventId": "1", "ResourceStatus": "DELETE_FAILED", "ResourceStatusReason": "of old"},
        ]
        if failed:
            reason = self.failing[name]
            rows.insert(
                0, {**head, **bucket, "EventId": "3", "ResourceStatus": "DELETE_FAILED", "ResourceStatusReason": reason}
            )
        return {"StackEvents": rows}

    def _ListStackResources(self, StackName: str) -> dict[str, Any]:
        row = self._named(StackName)
        assert row is not None
        template = self.templates.get(row["StackName"], {})
        return {
            "StackResourceSummaries": [
                {
                    "LogicalResourceId": name,
                    "PhysicalResourceId": f"{row['StackName']}-{name}".lower(),
                    "ResourceType": each["Type"],
                    "ResourceStatus": each.get("Status", "CREATE_COMPLETE"),
                    "LastUpdatedTimestamp": 0,
                }
                for name, each in template.items()
            ]
        }

    def _GetTemplate(self, StackName: str, **_: str) -> dict[str, Any]:
        row = self._named(StackName)
        assert row is not None
        return {"TemplateBody": json.dumps({"Resources": self.templates.get(row["StackName"], {})})}

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        name = EndpointName
        if name not in self.instances:
            raise AwsError("ValidationException", f'Could not find endpoint "{name}".')
        return {
            "EndpointName": name,
            "EndpointConfigName": "config",
            "EndpointStatus": "InService",
            "ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": self.instances[name]}],
        }

    def _DescribeEndpointConfig(self, EndpointConfigName: str) -> dict[str, Any]:
        assert EndpointConfigName == "config"
        return {"ProductionVariants": [{"VariantName": "v", "InstanceType": "ml.g4dn.xlarge"}]}
