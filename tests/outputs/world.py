"""An environment's parameters as its stacks would have written them, and an account that has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fake_aws import AwsError, FakeAws
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


def outputs_document(kind: str, **fields: Any) -> dict[str, Any]:
    """The outputs document of a stack of ``dev``."""
    head = {"contract": 1, "minor": 0, "kind": kind, "environment": "dev", "account": ACCOUNT, "region": REGION}
    return {**head, "stack": f"dev-{kind}", **_FIELDS[kind], **fields}


def serving(endpoint: str, **changes: Any) -> dict[str, Any]:
    """The outputs document of the stack of an endpoint of that name."""
    return outputs_document(
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
        f"{PATH}artifacts": outputs_document("artifacts"),
        f"{PATH}serving-digits": serving("digits"),
        "/tritonstack/dev/digits/double": DIGEST,
    }


def whole() -> dict[str, Any]:
    """Parameters of an environment with every stack."""
    return {
        **smallest(),
        **{f"{PATH}{kind}": outputs_document(kind) for kind in ("network", "builds", "observability")},
        f"{PATH}serving-digits": serving("digits", builds_on_deploy=True),
    }


@dataclass
class StackParameters(FakeAws):
    """An account with parameters.

    Attributes:
        denied_paths: paths that may not be listed.
    """

    denied_paths: tuple[str, ...] = ()

    def _GetParametersByPath(
        self, Path: str, Recursive: bool = False, NextToken: str = "0", **_: Any
    ) -> dict[str, Any]:
        if Path in self.denied_paths:
            raise AwsError("AccessDeniedException", f"not authorized to perform it on parameter{Path}")
        return super()._GetParametersByPath(Path, Recursive, NextToken)


def account_with(parameters: Mapping[str, Any], *, denied: tuple[str, ...] = ()) -> StackParameters:
    """An account with parameters by name; what is no string is written as JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    return StackParameters(parameters=texts, denied_paths=denied)
