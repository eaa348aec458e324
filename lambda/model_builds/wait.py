"""Names of the environment's resources, and waits: the URL of a wait condition's handle, stored for a build."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..shared import custom_resource
from ..shared.clients import MISSING_OBJECT, ignoring

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

WAIT_VARIABLE = "TRITONSTACK_WAIT"
"""The variable of a build that names the key of its wait."""
WAIT_KEY = re.compile(r"staging/waits/[0-9a-f]{32}\.json")
SIGNAL_REASON_LENGTH = 1000


@dataclass(frozen=True)
class Place:
    """Names of the environment's resources."""

    bucket: str  # of archives, orders and waits
    project: str  # the CodeBuild project that builds orders
    records: str  # prefix of the names of all release records
    engine_project: str = ""  # the CodeBuild project of engines; empty where there is none
    engine_jobs: str = ""  # prefix of the names of engines' processing jobs; empty where there are none

    @classmethod
    def of_environment(cls) -> Place:
        """From the function's variables."""
        needed = [os.environ[name] for name in ("ARTIFACT_BUCKET", "PROJECT", "RECORDS")]
        return cls(*needed, *(os.environ.get(name, "") for name in ("ENGINE_PROJECT", "ENGINE_JOBS")))


def variables_of(build: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a build was started with."""
    return {each["name"]: each["value"] for each in build["environment"].get("environmentVariables", [])}


def handle_of(key: str, *, s3: S3Client, bucket: str) -> str | None:
    """The URL in a wait; None where there is no such wait."""
    if not WAIT_KEY.fullmatch(key):
        return None
    with ignoring(MISSING_OBJECT):
        return str(json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())["handle"])
    return None


def signal(handle: str, *, status: str, unique: str, reason: str) -> None:
    """Signal a wait condition; a handle that has expired is no error.

    The same ``unique`` counts once, so that a repeated signal changes nothing.
    """
    body = {"Status": status, "UniqueId": unique, "Data": unique, "Reason": reason[:SIGNAL_REASON_LENGTH]}
    delivered = custom_resource.put_document(handle, json.dumps(body).encode())
    print(json.dumps({"signal": status, "reason": reason, "delivered": delivered}))
