"""docs/updates.md, "Change the key": archives stay loadable at every step, and the earlier key goes at the last one."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.e2e.calls import Callers, invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.project import AWS_CLI, REPOSITORY, Project, environment_yaml
from tritonstack_local import ACCOUNT
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "rekeyed"
MODELS = ["adds-01", "adds-02"]
ROOT = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}


def write(project: Project, artifacts: str) -> None:
    """An endpoint that holds one model at a time, so that each call of the other loads an archive."""
    serving = endpoint("turns", MODELS, limit=1, verified=0)
    text = environment_yaml(name=NAME, endpoints=[serving]).replace("{retain: false}", artifacts)
    assert artifacts in text
    project.write(f"environments/{NAME}.yaml", text)


def documented_command(bucket: str, arn: str) -> list[str]:
    """The page's command that writes every object anew."""
    page = (REPOSITORY / "docs/updates.md").read_text()
    [command] = re.findall(r"`aws (s3 cp [^`]*--sse-kms-key-id [^`]*)`", page)
    return [str(AWS_CLI), *shlex.split(command.replace("BUCKET", bucket).replace("NEW_ARN", arn))]


def test_a_key_is_changed_as_documented_while_callers_load_archives_and_no_call_fails(
    project: Project, local_aws: LocalAws
) -> None:
    kms, s3, ssm = (local_aws.client(service) for service in ("kms", "s3", "ssm"))
    client = local_aws.client("sagemaker-runtime")

    def parameter(name: str) -> str:
        value: str = ssm.get_parameter(Name=f"/tritonstack/{NAME}/_artifacts/{name}")["Parameter"]["Value"]
        return value

    def invoke_each() -> None:
        for number, model in enumerate(MODELS, start=1):
            target = target_model(local_aws, endpoint="turns", model=model, environment=NAME)
            assert invoke(client, endpoint="turns", target=target, value=4.0, environment=NAME) == 4.0 + number

    def keys() -> set[str]:
        listed = s3.list_objects_v2(Bucket=parameter("bucket-name"))["Contents"]
        return {s3.head_object(Bucket=parameter("bucket-name"), Key=each["Key"])["SSEKMSKeyId"] for each in listed}

    write(project, "{retain: false}")
    project.run("local", "deploy", "-e", NAME)
    created = parameter("key-arn")
    assert keys() == {created}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [ROOT]})
    own = kms.create_key(Policy=policy)["KeyMetadata"]["Arn"]
    write(project, f"{{retain: false, key_arn: '{own}'}}")
    refused = project.run("preflight", "-e", NAME, "--local", expect=1)
    assert "earlier_key: created" in " ".join((refused.stdout + refused.stderr).split())
    with Callers([invoke_each]).calling() as callers:
        write(project, f"{{retain: false, key_arn: '{own}', earlier_key: created}}")
        project.run("local", "deploy", "-e", NAME)
        assert (parameter("key-arn"), parameter("earlier-key-arn")) == (own, created)
        callers.check(more=4)
        project.execute(documented_command(parameter("bucket-name"), own), variables=local_aws.variables())
        assert keys() == {own}
        write(project, f"{{retain: false, key_arn: '{own}'}}")
        project.run("local", "deploy", "-e", NAME)
        assert kms.describe_key(KeyId=created)["KeyMetadata"]["KeyState"] == "PendingDeletion"
        callers.check(more=4)
