"""CloudWatch Logs, SageMaker and CloudFormation as the function of an endpoint's log group sees them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from tests import fake_aws

# `lambda` is a keyword: an import statement cannot name the folder.
clients: Any = importlib.import_module("lambda.shared.clients")
handler: Any = importlib.import_module("lambda.endpoint_log.handler")
stack_events: Any = importlib.import_module("tests.lambda.stack_events")

ENDPOINT = "dev-digits"
NAME = f"/aws/sagemaker/Endpoints/{ENDPOINT}"
ARN_PREFIX = "arn:aws:logs:us-east-1:123456789012:log-group:"
ARN = f"{ARN_PREFIX}{NAME}"


def stack_arn(number: int = 1, *, name: str = "dev-serving-digits") -> str:
    """A stack's ARN; another ``number`` is a stack of the same name that was created anew."""
    return f"arn:aws:cloudformation:us-east-1:123456789012:stack/{name}/{number}"


def properties(**changes: str) -> dict[str, str]:
    return {
        "LogGroupName": NAME,
        "LogGroupArn": ARN,
        "RetentionInDays": "90",
        "KmsKeyId": "arn:key",
        "Retain": "false",
        "Tags": '{"team": "platform"}',
        **changes,
    }


@dataclass
class Group:
    """A log group; ``lines`` is what would be lost with it."""

    tags: dict[str, str] = field(default_factory=dict)
    days: int | None = None
    key: str | None = None
    lines: list[str] = field(default_factory=list)


@dataclass
class World(fake_aws.FakeAws):
    """CloudWatch Logs with log groups, an endpoint and a stack.

    Attributes:
        groups: name → log group.
        status: of the stack.
        lives: whether the endpoint exists.
        gone_keys: ARNs of KMS keys that are deleted.
        events: of the stack.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    status: str = "CREATE_IN_PROGRESS"
    exists: bool = False
    gone_keys: set[str] = field(default_factory=set)
    events: Any = None
    _clients: Any = None

    def __post_init__(self) -> None:
        self._clients = clients.Aws(self.client)

    def send(self, request: str, *, stack: str = stack_arn(), old: dict[str, str] | None = None, **changes: str) -> str:
        """Send an event as CloudFormation does; returns what the function did."""
        event = {"RequestType": request, "StackId": stack, "ResourceProperties": properties(**changes)}
        if old is not None:
            event["OldResourceProperties"] = old
        return self.deliver(event)

    def deliver(self, event: dict[str, Any]) -> str:
        """An event that CloudFormation sends."""
        event["LogicalResourceId"] = "Group"
        self.begin(event)
        done: str = handler.apply(event, self._clients)
        return done

    def begin(self, event: dict[str, Any]) -> None:
        """CloudFormation begins the operation of an event."""
        self.events = stack_events.StackEvents(event["StackId"])
        self.events.becomes(self.status)
        self.events.begins(event)

    def group(self, name: str = NAME) -> Group:
        """A log group, by name or ARN."""
        if (found := self.groups.get(name.removeprefix(ARN_PREFIX))) is None:
            raise fake_aws.AwsError("ResourceNotFoundException")
        return found

    def _DescribeStackEvents(self, StackName: str, **given: str) -> dict[str, Any]:
        self.events.becomes(self.status)
        if StackName != self.events.stack_id:
            return {"StackEvents": []}
        page: dict[str, Any] = self.events.respond(StackName=StackName, **given)
        return page

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, str]:
        assert EndpointName == ENDPOINT
        if not self.exists:
            raise fake_aws.AwsError("ValidationException", f'Could not find endpoint "{ENDPOINT}".')
        return {"EndpointStatus": "InService"}

    def _CreateLogGroup(self, logGroupName: str, tags: dict[str, str]) -> None:
        if logGroupName in self.groups:
            raise fake_aws.AwsError("ResourceAlreadyExistsException")
        self.groups[logGroupName] = Group(tags=dict(tags))

    def _DeleteLogGroup(self, logGroupName: str) -> None:
        self.group(logGroupName)
        del self.groups[logGroupName]

    def _DescribeLogGroups(self, logGroupNamePrefix: str, nextToken: str = "0", **_: Any) -> dict[str, Any]:
        """In pages of one."""
        names = sorted(name for name in self.groups if name.startswith(logGroupNamePrefix))
        start, more = int(nextToken), {}
        if start + 1 < len(names):
            more = {"nextToken": str(start + 1)}
        rows: list[dict[str, Any]] = []
        for name in names[start : start + 1]:
            given = {"retentionInDays": self.groups[name].days, "kmsKeyId": self.groups[name].key}
            rows.append({"logGroupName": name, **{key: value for key, value in given.items() if value is not None}})
        return {"logGroups": rows, **more}

    def _ListTagsForResource(self, resourceArn: str) -> dict[str, Any]:
        return {"tags": dict(self.group(resourceArn).tags)}

    def _TagResource(self, resourceArn: str, tags: dict[str, str]) -> None:
        self.group(resourceArn).tags.update(tags)

    def _UntagResource(self, resourceArn: str, tagKeys: list[str]) -> None:
        for key in tagKeys:
            del self.group(resourceArn).tags[key]

    def _PutRetentionPolicy(self, logGroupName: str, retentionInDays: int) -> None:
        self.group(logGroupName).days = retentionInDays

    def _DeleteRetentionPolicy(self, logGroupName: str) -> None:
        self.group(logGroupName).days = None

    def _AssociateKmsKey(self, logGroupName: str, kmsKeyId: str) -> None:
        if kmsKeyId in self.gone_keys:
            raise fake_aws.AwsError("InvalidParameterException", "The specified KMS key does not exist")
        self.group(logGroupName).key = kmsKeyId

    def _DisassociateKmsKey(self, logGroupName: str) -> None:
        self.group(logGroupName).key = None
