"""An environment's parameters as its stacks would have written them, and a Systems Manager that answers with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tritonstack.config import Environment

ACCOUNT, REGION = "123456789012", "us-east-1"
DIGEST, OTHER_DIGEST = "0123456789abcdef", "fedcba9876543210"
PATH = "/tritonstack/dev/_outputs/"
ENDPOINT: dict[str, Any] = {
    "name": "digits",
    "mode": "multi-model",
    "release": "24.09",
    "instance_type": "ml.g4dn.xlarge",
    "initial_instance_count": 1,
    "models": ["double"],
}


def settings(**changes: Any) -> Environment:
    """Environment ``dev`` with one endpoint."""
    given = {"environment": "dev", "account": ACCOUNT, "region": REGION, "production": False, "endpoints": [ENDPOINT]}
    return Environment.model_validate({**given, **changes})


def told(kind: str, **fields: Any) -> dict[str, Any]:
    """What a stack of ``dev`` tells."""
    head = {"contract": 1, "minor": 0, "kind": kind, "environment": "dev", "account": ACCOUNT, "region": REGION}
    return {**head, "stack": f"dev-{kind}", **_FIELDS[kind], **fields}


def serving(endpoint: str, **changes: Any) -> dict[str, Any]:
    """What the stack of an endpoint of that name tells."""
    return told(
        "serving",
        **{
            "stack": f"dev-serving-{endpoint}",
            "endpoint": endpoint,
            "endpoint_name": f"dev-{endpoint}",
            "endpoint_arn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:endpoint/dev-{endpoint}",
            "release_records": f"/tritonstack/dev/{endpoint}/",
            **changes,
        },
    )


_FIELDS: dict[str, dict[str, Any]] = {
    "artifacts": {"bucket": "archives", "key_arn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"},
    "network": {"vpc_id": "vpc-1", "subnets": {"us-east-1a": "subnet-1"}, "security_groups": ["sg-1", "sg-2"]},
    "builds": {
        "project": "builder",
        "engine_project": None,
        "processing_role_arn": f"arn:aws:iam::{ACCOUNT}:role/processing",
        "function_arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:signals",
        "log_group": "/tritonstack/dev/builds",
    },
    "serving": {
        "variant": "g4dn-xlarge",
        "instance_type": "ml.g4dn.xlarge",
        "mode": "multi-model",
        "release": "24.09",
        "gpu": "t4",
        "platform": "24.09-t4",
        "bucket": "archives",
        "archive_prefix": "endpoints/digits/24.09-t4/",
        "manifest_prefix": "manifests/digits/24.09-t4/",
        "model_data_url": "s3://archives/endpoints/digits/24.09-t4/",
        "execution_role_arn": f"arn:aws:iam::{ACCOUNT}:role/execution",
        "log_group": "/aws/sagemaker/Endpoints/dev-digits",
        "builds_on_deploy": False,
    },
    "observability": {
        "dashboard": "tritonstack-dev",
        "alarm_topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:dev-alarms",
        "composite_alarms": {"critical": "dev-critical"},
        "endpoint_alarms": {"digits": ["dev-digits-latency"]},
        "build_alarms": ["dev-builds-build-failed"],
    },
}


def smallest() -> dict[str, Any]:
    """Parameters of an environment with one endpoint and nothing that it can do without."""
    return {
        f"{PATH}artifacts": told("artifacts"),
        f"{PATH}serving-digits": serving("digits"),
        "/tritonstack/dev/digits/double": DIGEST,
    }


def whole() -> dict[str, Any]:
    """Parameters of an environment with every stack."""
    return {
        **smallest(),
        **{f"{PATH}{kind}": told(kind) for kind in ("network", "builds", "observability")},
        f"{PATH}serving-digits": serving("digits", builds_on_deploy=True),
    }


@dataclass
class SystemsManager:
    """A stand-in of SSM, for what is read from it.

    Attributes:
        parameters: name → value; what is no string is told as JSON.
        denied: paths that may not be listed.
        asked: every path that was listed.
    """

    parameters: Mapping[str, Any]
    denied: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def client(self, service_name: str, *, config: Any = None) -> SystemsManager:
        """Itself, as a session's client."""
        assert service_name == "ssm"
        return self

    def get_paginator(self, operation: str) -> SystemsManager:
        """Itself, as a paginator."""
        assert operation == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str) -> Iterator[dict[str, Any]]:  # noqa: N803 (SSM's own name)
        """Pages of one parameter each, right under the path, as without ``Recursive``."""
        self.asked.append(Path)
        if Path in self.denied:
            message = f"not authorized to perform it on parameter{Path}"
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, "GetParametersByPath")
        for name, value in self.parameters.items():
            if name.rpartition("/")[0] == Path.rstrip("/"):
                yield {"Parameters": [{"Name": name, "Value": value if isinstance(value, str) else json.dumps(value)}]}
