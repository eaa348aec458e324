"""SSM parameters with their history, and one stack of CloudFormation: what the activation function talks to."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from tests import fake_aws as fakes

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass
class FakeRecords(fakes.FakeAws):
    """The fake of S3 and SSM, with the versions of every parameter.

    Attributes:
        versions: name → versions, oldest first.
        status: of the one stack.
        puts_left: how many more values Systems Manager takes before it fails; None: it does not.
    """

    versions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    status: str = "UPDATE_IN_PROGRESS"
    puts_left: int | None = None

    def move_by_hand(self, name: str, value: str) -> None:
        """Write a value as the AWS CLI does: without a description, where a parameter's old one stays as it is."""
        self._PutParameter(Name=name, Value=value, Type="String", Overwrite=True)

    def _PutParameter(
        self, Name: str, Value: str, Type: str, Overwrite: bool = False, Description: str | None = None, **_: Any
    ) -> dict[str, Any]:
        if self.puts_left is not None:
            if self.puts_left == 0:
                raise fakes.AwsError("InternalServerError")
            self.puts_left -= 1
        super()._PutParameter(Name=Name, Value=Value, Type=Type, Overwrite=Overwrite)
        if Description is not None and len(Description) > 1024:
            raise fakes.AwsError("ValidationException")
        versions = self.versions.setdefault(Name, [])
        kept = versions[-1]["Description"] if versions else ""
        number = len(versions) + 1
        version = {"Name": Name, "Value": Value, "Version": number, "Description": kept}
        version["LastModifiedDate"] = START + dt.timedelta(minutes=number)
        versions.append(version if Description is None else version | {"Description": Description})
        return {"Version": number}

    def _DeleteParameters(self, Names: list[str]) -> dict[str, Any]:
        for name in Names:
            self.versions.pop(name, None)
            self.tags.pop(name, None)
        answer: dict[str, Any] = super()._DeleteParameters(Names=Names)
        return answer

    def _AddTagsToResource(self, ResourceType: str, ResourceId: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        own = self._tags_of(ResourceType, ResourceId)
        own.update({each["Key"]: each["Value"] for each in Tags})
        return {}

    def _RemoveTagsFromResource(self, ResourceType: str, ResourceId: str, TagKeys: list[str]) -> dict[str, Any]:
        own = self._tags_of(ResourceType, ResourceId)
        for key in TagKeys:
            own.pop(key, None)
        return {}

    def _tags_of(self, kind: str, name: str) -> dict[str, str]:
        if kind != "Parameter" or name not in self.parameters:
            raise fakes.AwsError("InvalidResourceId")
        return self.tags.setdefault(name, {})

    def _GetParameterHistory(self, Name: str, NextToken: str = "0", **_: Any) -> dict[str, Any]:
        if Name not in self.versions:
            raise fakes.AwsError("ParameterNotFound")
        start = int(NextToken)
        page: dict[str, Any] = {"Parameters": self.versions[Name][start : start + fakes.PAGE]}
        more = start + fakes.PAGE < len(self.versions[Name])
        return page | ({"NextToken": str(start + fakes.PAGE)} if more else {})

    def _DescribeStacks(self, StackName: str) -> dict[str, Any]:
        if StackName != STACK:
            raise fakes.AwsError("AccessDenied")
        return {"Stacks": [{"StackName": "local-serving-digits", "StackStatus": self.status}]}
