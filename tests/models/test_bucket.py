"""What S3's refusals mean where a permission to list is bound to a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import ArtifactBucket

KEY = "manifests/vision/24.09-t4/bert.0123456789abcdef.json"


class Session:
    """Makes one stubbed S3 client, and an SSM client that knows the bucket's name."""

    def __init__(self) -> None:
        region: Any = {"region_name": "us-east-1", "aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        self.s3, self.ssm = boto3.client("s3", **region), boto3.client("ssm", **region)
        self.s3_stub, ssm_stub = Stubber(self.s3), Stubber(self.ssm)
        ssm_stub.add_response("get_parameter", {"Parameter": {"Value": "archives"}})
        ssm_stub.activate()
        self.s3_stub.activate()

    def client(self, service_name: str, *, config: Any = None) -> Any:
        return self.s3 if service_name == "s3" else self.ssm


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.s3_stub.assert_no_pending_responses()


def listed(session: Session, *keys: str) -> None:
    asked = {"Bucket": "archives", "Prefix": KEY, "MaxKeys": 1}
    session.s3_stub.add_response("list_objects_v2", {"Contents": [{"Key": key} for key in keys]} if keys else {}, asked)


@pytest.mark.parametrize("code", ["403", "AccessDenied"])
def test_an_object_that_s3_refuses_and_the_list_lacks_is_absent(session: Session, tmp_path: Path, code: str) -> None:
    bucket = ArtifactBucket(environment="dev", session=session)
    session.s3_stub.add_client_error("head_object", code, http_status_code=403)
    listed(session)
    assert bucket.look(KEY) is None
    session.s3_stub.add_client_error("get_object", code, http_status_code=403)
    listed(session, f"{KEY}.bak")
    assert bucket.read(KEY) is None
    session.s3_stub.add_client_error("get_object", code, http_status_code=403)
    listed(session)
    assert not bucket.fetch(KEY, tmp_path / "object", most_bytes=1)


def test_an_object_that_s3_refuses_and_the_list_has_is_a_refusal(session: Session) -> None:
    bucket = ArtifactBucket(environment="dev", session=session)
    session.s3_stub.add_client_error("head_object", "403", http_status_code=403)
    listed(session, KEY)
    with pytest.raises(WorkFailedError, match="could not look for s3://archives/manifests"):
        bucket.look(KEY)
