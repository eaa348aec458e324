"""Parameters of Systems Manager in memory, with their versions and tags."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from tests.fake_aws.responding import AwsError, Responding

PAGE = 3
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass
class Ssm(Responding):
    """AWS Systems Manager's Parameter Store.

    Attributes:
        parameters: name → value.
        versions: name → versions that were put, oldest first.
        tags: name → its tags; shared with S3's buckets.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)

    def put_by_hand(self, name: str, value: str) -> None:
        """Write a value as the AWS CLI does: without a description, where a parameter's old one stays as it is."""
        self._PutParameter(Name=name, Value=value, Type="String", Overwrite=True)

    @property
    def parameter_reads(self) -> list[str]:
        """Names and paths of parameters that were read, in order; further pages of a path do not count."""
        reads = [request for name, request in self.calls if name in ("ssm.GetParameter", "ssm.GetParametersByPath")]
        return [request.get("Name") or request["Path"] for request in reads if "NextToken" not in request]

    @property
    def parameter_writes(self) -> list[str]:
        """Names of the parameters that were put or deleted, in order."""
        written: list[str] = []
        for operation, request in self.calls:
            if operation == "ssm.PutParameter":
                written.append(request["Name"])
            if operation == "ssm.DeleteParameters":
                written += request["Names"]
        return written

    def _GetParameter(self, Name: str) -> dict[str, Any]:
        if Name not in self.parameters:
            raise AwsError("ParameterNotFound")
        return {"Parameter": {"Name": Name, "Value": self.parameters[Name]}}

    def _GetParameters(self, Names: list[str]) -> dict[str, Any]:
        found = [name for name in Names if name in self.parameters]
        return {"Parameters": [{"Name": name, "Value": self.parameters[name]} for name in found]}

    def _GetParametersByPath(
        self, Path: str, Recursive: bool = False, NextToken: str = "0", **_: Any
    ) -> dict[str, Any]:
        below = Path.rstrip("/") + "/"
        names = sorted(name for name in self.parameters if name.startswith(below))
        if not Recursive:
            names = [name for name in names if "/" not in name.removeprefix(below)]
        start = int(NextToken)
        page: dict[str, Any] = {
            "Parameters": [{"Name": name, "Value": self.parameters[name]} for name in names[start : start + PAGE]]
        }
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(names) else {})

    def _GetParameterHistory(self, Name: str, NextToken: str = "0", **_: Any) -> dict[str, Any]:
        if Name not in self.parameters:
            raise AwsError("ParameterNotFound")
        versions = self.versions.get(Name) or [{"Name": Name, "Value": self.parameters[Name], "Version": 1}]
        start = int(NextToken)
        page: dict[str, Any] = {"Parameters": versions[start : start + PAGE]}
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(versions) else {})

    def _PutParameter(
        self, Name: str, Value: str, Type: str, Overwrite: bool = False, Description: str | None = None, **_: Any
    ) -> dict[str, Any]:
        if Name in self.parameters and not Overwrite:
            raise AwsError("ParameterAlreadyExists")
        if Type != "String":
            raise AwsError("UnsupportedParameterType")
        self.parameters[Name] = Value
        versions = self.versions.setdefault(Name, [])
        number = len(versions) + 1
        kept = versions[-1]["Description"] if versions else ""
        versions.append(
            {
                "Name": Name,
                "Value": Value,
                "Version": number,
                "Description": kept if Description is None else Description,
                "LastModifiedDate": START + dt.timedelta(minutes=number),
            }
        )
        return {"Version": number}

    def _DeleteParameters(self, Names: list[str]) -> dict[str, Any]:
        deleted = [name for name in Names if self.parameters.pop(name, None) is not None]
        for name in Names:
            self.versions.pop(name, None)
            self.tags.pop(name, None)
        missing = [name for name in Names if name not in deleted]
        members = {"DeletedParameters": deleted, "InvalidParameters": missing}
        return {member: names for member, names in members.items() if names}

    def _AddTagsToResource(self, ResourceType: str, ResourceId: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        self._tags_of(ResourceType, ResourceId).update({each["Key"]: each["Value"] for each in Tags})
        return {}

    def _RemoveTagsFromResource(self, ResourceType: str, ResourceId: str, TagKeys: list[str]) -> dict[str, Any]:
        own = self._tags_of(ResourceType, ResourceId)
        for key in TagKeys:
            own.pop(key, None)
        return {}

    def _tags_of(self, kind: str, name: str) -> dict[str, str]:
        if kind != "Parameter" or name not in self.parameters:
            raise AwsError("InvalidResourceId")
        return self.tags.setdefault(name, {})
