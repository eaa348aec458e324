"""The archives that an endpoint needs, and those of them that its platform lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import NotDoneError
from .services import Clients, Place

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

SCHEMA = 1
DIGEST = re.compile(r"[0-9a-f]{16}")


def read_build_set(s3: S3Client, *, bucket: str, key: str) -> dict[str, Any]:
    """The build set of an endpoint. Raises NotDoneError where the object is none."""
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    try:
        document = json.loads(body)
        names = [(archive["model"], archive["digest"]) for archive in document["archives"]]
        where = document["endpoint"], document["platform"]["release"], document["platform"]["gpu"]
        sound = document["schema"] == SCHEMA and all(map(str, [*where, *sum(names, ())]))
    except (ValueError, KeyError, TypeError) as error:
        raise NotDoneError(f"s3://{bucket}/{key} is no build set: {error!r}") from error
    if not sound:
        raise NotDoneError(f"s3://{bucket}/{key} is no build set of schema {SCHEMA}: {str(document)[:200]}")
    return dict(document)


def missing_archives(build_set: Mapping[str, Any], *, clients: Clients, place: Place) -> list[dict[str, Any]]:
    """The archives of the set, and those that release records name, which the set's platform lacks; sorted.

    What is recorded but not in the set is still served to callers until the records move; what its bytes depend on,
    its manifest tells.
    """
    endpoint, platform = build_set["endpoint"], build_set["platform"]
    prefix = f"endpoints/{endpoint}/{platform['release']}-{platform['gpu'].lower()}/"
    pages = clients.s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
    there = {entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", [])}
    path = f"{place.records}{endpoint}/"
    recorded = clients.ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    wanted = {
        (entry["Name"].removeprefix(path), entry["Value"]): None
        for page in recorded
        for entry in page["Parameters"]
        if DIGEST.fullmatch(entry["Value"])  # what somebody else wrote there names no archive
    }
    wanted |= {(archive["model"], archive["digest"]): archive["dependency"] for archive in build_set["archives"]}
    return [
        {"model": model, "digest": digest, "dependency": wanted[model, digest]}
        for model, digest in sorted(wanted)
        if f"{model}.{digest}.tar.gz" not in there
    ]
