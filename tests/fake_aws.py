"""AWS services in memory, behind real boto3 clients: S3 and SSM, and any operation that a test gives a response for.

The clients check each request's parameters against the service's model and page through responses as they would in the
cloud; only the sending is replaced. Other operations: an entry of ``responses``, or a method ``_<Operation>`` of a
subclass, which takes the request's members.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

PAGE = 3
"""Entries in a page of a response, so that paging is exercised by small sets."""


@dataclass
class HttpResponse:
    """The part of an HTTP response that botocore reads."""

    status_code: int


class AwsError(Exception):
    """An error response of a service: its code, and its message."""


@dataclass
class FakeAws:
    """Objects, parameters, and a journal of every request.

    Attributes:
        objects: (bucket, key) → content.
        markers: (bucket, key) of delete markers.
        uploads: (bucket, key, upload id) of uploads that were never completed.
        undeletable: keys that S3 refuses to delete.
        busy: key → how often S3 has no time to delete it.
        parameters: name → value.
        calls: (operation, parameters) in order.
        responses: operation → its response, or a function of the request's parameters that makes it.
        refused: operation → error code to respond with.
        missing_object: the error code for an object that is not there.
        tags: bucket → its tags.
        late_logs: access logs that still arrive, one just before each deletion of a bucket.
    """

    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    markers: list[tuple[str, str]] = field(default_factory=list)
    uploads: list[tuple[str, str, str]] = field(default_factory=list)
    undeletable: frozenset[str] = frozenset()
    busy: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    responses: dict[str, Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]] = field(
        default_factory=dict
    )
    refused: dict[str, str] = field(default_factory=dict)
    missing_object: str = "NoSuchKey"
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    late_logs: int = 0

    def client(self, service: str, **_: Any) -> Any:
        """A boto3 client of a service."""
        client: Any = boto3.client(
            service,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        name = client.meta.service_model.service_id.hyphenize()
        client.meta.events.register(f"before-parameter-build.{name}", self._remember)
        client.meta.events.register(f"before-call.{name}", self._respond)
        return client

    @property
    def operations(self) -> list[str]:
        """The operations that were requested, in order."""
        return [operation for operation, _ in self.calls]

    def requests(self, operation: str) -> list[dict[str, Any]]:
        """The parameters of every request for an operation, in order."""
        return [given for requested, given in self.calls if requested == operation]

    def writes(self) -> list[str]:
        """The names of the parameters that were put or deleted, in order."""
        written: list[str] = []
        for operation, given in self.calls:
            if operation == "PutParameter":
                written.append(given["Name"])
            if operation == "DeleteParameters":
                written += given["Names"]
        return written

    def respond(self, operation: str, given: dict[str, Any]) -> tuple[HttpResponse, dict[str, Any]]:
        """The response to a request; subclasses put theirs before it."""
        if operation in self.refused:
            raise AwsError(self.refused[operation])
        if operation in self.responses:
            made = self.responses[operation]
            response = made(given) if callable(made) else made
        else:
            response = getattr(self, f"_{operation}")(**given)
        return HttpResponse(200), {**(response or {}), "ResponseMetadata": {}}

    def _remember(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context["given"] = dict(params)
        self.calls.append((model.name, dict(params)))

    def _respond(self, model: Any, context: dict[str, Any], **_: Any) -> tuple[HttpResponse, dict[str, Any]]:
        try:
            return self.respond(model.name, context["given"])
        except AwsError as error:
            return refusal(*error.args)

    def _GetObject(self, Bucket: str, Key: str) -> dict[str, Any]:
        if (Bucket, Key) not in self.objects:
            raise AwsError(self.missing_object)
        return {"Body": io.BytesIO(self.objects[Bucket, Key])}

    def _ListObjectsV2(self, Bucket: str, Prefix: str, ContinuationToken: str = "0", **_: Any) -> dict[str, Any]:
        keys = sorted(key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix))
        start = int(ContinuationToken)
        page: dict[str, Any] = {"Contents": [{"Key": key} for key in keys[start : start + PAGE]]}
        more = start + PAGE < len(keys)
        return page | ({"NextContinuationToken": str(start + PAGE), "IsTruncated": True} if more else {})

    def _ListObjectVersions(self, Bucket: str, KeyMarker: str = "", **_: Any) -> dict[str, Any]:
        objects = [(key, "Versions") for bucket, key in self.objects if bucket == Bucket]
        markers = [(key, "DeleteMarkers") for bucket, key in self.markers if bucket == Bucket]
        left = sorted(entry for entry in objects + markers if entry[0] > KeyMarker)
        page: dict[str, Any] = {"Versions": [], "DeleteMarkers": [], "IsTruncated": len(left) > PAGE}
        for key, kind in left[:PAGE]:
            page[kind].append({"Key": key, "VersionId": f"version-of-{key}"})
            page["NextKeyMarker"] = key
        return page

    def _DeleteObjects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:
        errors = []
        for each in Delete["Objects"]:
            if each["VersionId"] != f"version-of-{each['Key']}":
                raise AwsError("NoSuchVersion")
            if each["Key"] in self.undeletable:
                errors.append({"Key": each["Key"], "Code": "AccessDenied"})
                continue
            if self.busy.get(each["Key"]):
                self.busy[each["Key"]] -= 1
                errors.append({"Key": each["Key"], "VersionId": each["VersionId"], "Code": "SlowDown"})
                continue
            self.objects.pop((Bucket, each["Key"]), None)
            self.markers = [entry for entry in self.markers if entry != (Bucket, each["Key"])]
        return {"Errors": errors}

    def _ListMultipartUploads(self, Bucket: str, **_: Any) -> dict[str, Any]:
        return {"Uploads": [{"Key": key, "UploadId": id_} for bucket, key, id_ in self.uploads if bucket == Bucket]}

    def _GetBucketTagging(self, Bucket: str) -> dict[str, Any]:
        if not self.tags.get(Bucket):
            raise AwsError("NoSuchTagSet" if Bucket in self.tags else "NoSuchBucket")
        return {"TagSet": [{"Key": key, "Value": value} for key, value in self.tags[Bucket].items()]}

    def _DeleteBucket(self, Bucket: str) -> dict[str, Any]:
        if self.late_logs:
            self.late_logs -= 1
            self.objects[Bucket, f"archives/log-{self.late_logs}"] = b""
        if any(bucket == Bucket for bucket, *_ in [*self.objects, *self.markers]):
            raise AwsError("BucketNotEmpty")
        if self.tags.pop(Bucket, None) is None:
            raise AwsError("NoSuchBucket")
        return {}

    def _AbortMultipartUpload(self, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        self.uploads.remove((Bucket, Key, UploadId))
        return {}

    def _GetParameters(self, Names: list[str]) -> dict[str, Any]:
        if len(Names) > 10:
            raise AwsError("ValidationException")
        found = [name for name in Names if name in self.parameters]
        return {"Parameters": [{"Name": name, "Value": self.parameters[name]} for name in found]}

    def _GetParametersByPath(self, Path: str, NextToken: str = "0", **_: Any) -> dict[str, Any]:
        names = sorted(name for name in self.parameters if name.startswith(Path.rstrip("/") + "/"))
        start = int(NextToken)
        page: dict[str, Any] = {
            "Parameters": [{"Name": name, "Value": self.parameters[name]} for name in names[start : start + PAGE]]
        }
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(names) else {})

    def _PutParameter(self, Name: str, Value: str, Type: str, Overwrite: bool = False, **_: Any) -> dict[str, Any]:
        if Name in self.parameters and not Overwrite:
            raise AwsError("ParameterAlreadyExists")
        if Type != "String":
            raise AwsError("UnsupportedParameterType")
        self.parameters[Name] = Value
        return {"Version": 1}

    def _DeleteParameters(self, Names: list[str]) -> dict[str, Any]:
        if len(Names) > 10:
            raise AwsError("ValidationException")
        return {"DeletedParameters": [name for name in Names if self.parameters.pop(name, None) is not None]}


def refusal(
    code: str, message: str = "refused", *, status: int = 400, **members: Any
) -> tuple[HttpResponse, dict[str, Any]]:
    """An error response."""
    error = {"Code": code, "Message": message}
    return HttpResponse(status), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}, **members}


def release_set(models: dict[str, str]) -> bytes:
    """A release set as the construct writes it."""
    return json.dumps({"schema": 1, "models": models}).encode()
