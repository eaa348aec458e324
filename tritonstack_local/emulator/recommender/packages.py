"""Model package groups and their versioned packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ministack.core.responses import get_account_id, get_region

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.records import API, Kind, Record, Records
from tritonstack_local.emulator.sagemaker.state import SageMakerState, store

Request = dict[str, Any]
GROUP = Kind(noun="ModelPackageGroup", label="model package group", arn_part="model-package-group")
_PAGE = 10


@dataclass(kw_only=True)
class Group(Record):
    """A group: its packages by version, and how many there have been."""

    packages: dict[int, Record]
    last: int = 0


class ModelPackages:
    """The operations on groups and on versioned packages; packages without a group are refused."""

    def __init__(self, state: SageMakerState) -> None:
        """Works under the lock of ``state``."""
        self._state = state
        self._groups: Records[Group] = Records(GROUP)

    def create_group(self, request: Request) -> dict[str, Any]:
        """CreateModelPackageGroup."""
        name = request["ModelPackageGroupName"]
        group = Group(name=name, arn=GROUP.arn(name), request=request, packages={})
        with self._state.changed:
            self._groups.add(group)
            store(self._state, group.arn, request.get("Tags", []))
        return {"ModelPackageGroupArn": group.arn}

    def describe_group(self, request: Request) -> dict[str, Any]:
        """DescribeModelPackageGroup."""
        group = self._groups.get(request["ModelPackageGroupName"])
        return {
            "ModelPackageGroupName": group.name,
            "ModelPackageGroupArn": group.arn,
            "CreationTime": group.created,
            "CreatedBy": {},
            "ModelPackageGroupStatus": "Completed",
            **_kept(group.request, "ModelPackageGroupDescription"),
        }

    def delete_group(self, request: Request) -> None:
        """DeleteModelPackageGroup: refused while it has packages."""
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            if group.packages:
                raise RefusedError(
                    "ConflictException",
                    f"Model Package Group ({group.arn}) cannot be deleted as it still contains Model Packages.",
                    source=f"{API}, DeleteModelPackageGroup",
                )
            self._groups.remove(group.name)
            self._state.tags.pop(group.arn, None)

    def create(self, request: Request) -> dict[str, Any]:
        """CreateModelPackage, of a version: one more than the last of its group."""
        if "ModelPackageGroupName" not in request:
            raise RefusedError(
                "ValidationException",
                "The local AWS keeps versioned packages alone: ModelPackageGroupName is missing.",
                source="tritonstack_local.emulator.recommender",
            )
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            group.last += 1
            arn = f"arn:aws:sagemaker:{get_region()}:{get_account_id()}:model-package/{group.name.lower()}/{group.last}"
            group.packages[group.last] = Record(name=group.name, arn=arn, request=request, created=clock.now())
        return {"ModelPackageArn": arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeModelPackage, by ARN."""
        version, package = self._find(request["ModelPackageName"])
        members = (
            "ModelPackageDescription",
            "InferenceSpecification",
            "CustomerMetadataProperties",
            "Domain",
            "Task",
            "SamplePayloadUrl",
        )
        return {
            "ModelPackageName": package.name,
            **_summary(version, package),
            **_kept(package.request, *members),
            "ModelPackageStatusDetails": {"ValidationStatuses": []},
        }

    def delete(self, request: Request) -> None:
        """DeleteModelPackage, by ARN."""
        with self._state.changed:
            version, package = self._find(request["ModelPackageName"])
            self._groups.get(package.name).packages.pop(version)

    def list(self, request: Request) -> dict[str, Any]:
        """ListModelPackages of a group: newest first, in pages."""
        with self._state.changed:
            found = sorted(self._groups.get(request["ModelPackageGroupName"]).packages.items(), reverse=True)
        begin = int(request.get("NextToken", "0"))
        end = begin + int(request.get("MaxResults", _PAGE))
        page = [_summary(version, package) for version, package in found[begin:end]]
        answer: dict[str, Any] = {"ModelPackageSummaryList": page}
        return {**answer, "NextToken": str(end)} if len(found) > end else answer

    def find(self, arn: str) -> Record:
        """The package with this ARN; raises ``RefusedError`` where there is none."""
        return self._find(arn)[1]

    def clear(self) -> None:
        """Forget everything."""
        self._groups.clear()

    def _find(self, arn: str) -> tuple[int, Record]:
        for group in self._groups:
            for version, package in group.packages.items():
                if package.arn == arn.lower():
                    return version, package
        raise RefusedError("ValidationException", f"ModelPackage {arn} does not exist.", source=API)


def _summary(version: int, package: Record) -> dict[str, Any]:
    return {
        "ModelPackageGroupName": package.name,
        "ModelPackageVersion": version,
        "ModelPackageArn": package.arn,
        "CreationTime": package.created,
        "ModelPackageStatus": "Completed",
    }


def _kept(request: Request, *names: str) -> dict[str, Any]:
    return {name: request[name] for name in names if name in request}
