"""An account with stacks, in the place of AWS: listings, templates, endpoints, and deletions that take a while."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.preflight.fakes import FakeSession, RefusalError
from tritonstack.deployed.stacks import DeployedStack, stack_of

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
class Account:
    """Stacks, their templates and endpoints; ``slow``: how often a stack is read before its operation has ended.

    ``failing``: stack → reason why its deletion fails.
    """

    rows: list[dict[str, Any]]
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)
    slow: int = 1
    failing: dict[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    deleted: list[str] = field(default_factory=list)
    polls: dict[str, int] = field(default_factory=dict)

    def session(self) -> FakeSession:
        """A session of it."""
        answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "cloudformation.DescribeStacks": self._describe,
            "cloudformation.DeleteStack": self._delete,
            "cloudformation.DescribeStackEvents": self._events,
            "cloudformation.ListStackResources": self._resources,
            "cloudformation.GetTemplate": self._template,
            "sagemaker.DescribeEndpoint": self._endpoint,
            "sagemaker.DescribeEndpointConfig": lambda _: {
                "ProductionVariants": [{"VariantName": "v", "InstanceType": "ml.g4dn.xlarge"}]
            },
        }
        denied = RefusalError("AccessDenied", "not authorized")
        return FakeSession({name: denied if name in self.refused else each for name, each in answers.items()})

    def _named(self, name: str) -> dict[str, Any] | None:
        return next((each for each in self.rows if name in (each["StackName"], each["StackId"])), None)

    def _describe(self, request: dict[str, Any]) -> Any:
        name = request.get("StackName")
        if name is None:
            return {"Stacks": [each for each in self.rows if each["StackStatus"] != "DELETE_COMPLETE"]}
        row = self._named(name)
        if row is None:
            return RefusalError("ValidationError", f"Stack with id {name} does not exist")
        kind, _, running = row["StackStatus"].partition("_")
        if running == "IN_PROGRESS":
            self.polls[row["StackName"]] = self.polls.get(row["StackName"], 0) + 1
            if self.polls[row["StackName"]] > self.slow:
                row["StackStatus"] = f"{kind}_{'FAILED' if row['StackName'] in self.failing else 'COMPLETE'}"
        return {"Stacks": [dict(row)]}

    def _delete(self, request: dict[str, Any]) -> Any:
        row = self._named(request["StackName"])
        assert row is not None
        self.deleted.append(row["StackName"])
        row["StackStatus"] = "DELETE_IN_PROGRESS"
        return {}

    def _events(self, request: dict[str, Any]) -> Any:
        row = self._named(request["StackName"])
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

    def _resources(self, request: dict[str, Any]) -> Any:
        row = self._named(request["StackName"])
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

    def _template(self, request: dict[str, Any]) -> Any:
        row = self._named(request["StackName"])
        assert row is not None
        return {"TemplateBody": json.dumps({"Resources": self.templates.get(row["StackName"], {})})}

    def _endpoint(self, request: dict[str, Any]) -> Any:
        name = request["EndpointName"]
        if name not in self.instances:
            return RefusalError("ValidationException", f'Could not find endpoint "{name}".')
        return {
            "EndpointName": name,
            "EndpointConfigName": "config",
            "EndpointStatus": "InService",
            "ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": self.instances[name]}],
        }
