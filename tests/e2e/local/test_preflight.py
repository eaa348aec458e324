"""`tritonstack preflight` by the real command line, on the local AWS: before and after a deployment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.project import REPOSITORY, Project
from tritonstack_local.aws import LocalAws

pytestmark = pytest.mark.e2e

KEY = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
WRONG = f"""
    environment: wrong
    account: "123456789012"
    region: us-east-1
    production: false
    artifacts: {{key_arn: "{KEY}"}}
    network:
      s3_prefix_list_id: pl-00000000
      imported: {{vpc_id: vpc-00000001, subnets: {{us-east-1a: subnet-0000000a, us-east-1b: subnet-0000000b}}}}
    endpoints:
      - name: large
        mode: multi-model
        release: "24.09"
        instance_type: ml.g4dn.xlarge
        initial_instance_count: 12
        models: [digits-onnx]
"""


def looked(project: Project, aws: LocalAws, environment: str, *, expect: int) -> dict[tuple[str, str], dict[str, Any]]:
    """What preflight says as JSON, by check and subject."""
    result = project.run("preflight", "-e", environment, "--local", "--json", expect=expect)
    document = json.loads(result.stdout)
    assert document["constructed"], "the local AWS's quotas are stand-ins, and the document says so"
    assert "Traceback" not in result.stderr
    return {(row["check"], row["subject"]): row for row in document["results"]}


def test_what_is_deployed_passes_and_nothing_is_changed(project: Project, deployed: LocalAws) -> None:
    before = state(deployed)
    found = looked(project, deployed, "local", expect=0)
    assert {row["outcome"] for row in found.values()} == {"passes"}
    assert "123456789012 in us-east-1" in found["account", "local"]["found"]
    assert int(found["bootstrap", "version"]["found"]) >= 6
    assert state(deployed) == before


def test_what_will_fail_is_said_before_anything_is_deployed(project: Project, deployed: LocalAws) -> None:
    project.write("environments/wrong.yaml", WRONG)
    try:
        found = looked(project, deployed, "wrong", expect=1)
    finally:
        (project.root / "environments/wrong.yaml").unlink()
    fails = {key for key, row in found.items() if row["outcome"] == "fails"}
    assert fails == {
        ("endpoint-quota", "ml.g4dn.xlarge"),
        ("key", KEY),
        ("subnet", "subnet-0000000a"),
        ("subnet", "subnet-0000000b"),
    }
    assert {row["outcome"] for key, row in found.items() if key not in fails} == {"passes"}
    others = instances(deployed, "ml.g4dn.xlarge")
    assert others >= 3, "three endpoints of the other environment are of that type"
    quota = found["endpoint-quota", "ml.g4dn.xlarge"]
    assert quota["needed"] == (
        f"{24 + others} instances: 12 at maximum + 12 of a new fleet during an update + {others} of other endpoints now"
    )
    assert "request-service-quota-increase" in quota["advice"]
    assert f"--desired-value {24 + others}" in quota["advice"]


def instances(aws: LocalAws, instance_type: str) -> int:
    """The instances of a type that run: other tests have endpoints on the same local AWS."""
    sagemaker = aws.client("sagemaker")
    found = 0
    for row in sagemaker.list_endpoints()["Endpoints"]:
        endpoint = sagemaker.describe_endpoint(EndpointName=row["EndpointName"])
        config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
        if config["ProductionVariants"][0]["InstanceType"] == instance_type:
            found += endpoint["ProductionVariants"][0]["CurrentInstanceCount"]
    return found


def test_an_environment_of_another_account_is_told_so_alone(project: Project, deployed: LocalAws) -> None:
    project.write("environments/dev.yaml", (REPOSITORY / "tests/digits_environments/dev.yaml").read_text())
    try:
        said = project.run("preflight", "-e", "dev", "--local", expect=1)
    finally:
        (project.root / "environments/dev.yaml").unlink()
    assert "0 pass, 1 will fail" in said.stdout
    assert "not looked at: these credentials are of another account" in said.stdout
    assert "are constructed" in said.stdout, "a stand-in is named one"
    assert "preflight dev" in said.stderr, "progress goes to standard error"


def state(aws: LocalAws) -> dict[str, Any]:
    """What a call that changes something would change: stacks, endpoints, parameters, objects, keys."""
    s3 = aws.client("s3")
    buckets = [row["Name"] for row in s3.list_buckets()["Buckets"]]
    return {
        "stacks": [
            (row["StackName"], row["StackStatus"]) for row in aws.client("cloudformation").describe_stacks()["Stacks"]
        ],
        "endpoints": [row["EndpointName"] for row in aws.client("sagemaker").list_endpoints()["Endpoints"]],
        "parameters": [(row["Name"], row["Version"]) for row in aws.client("ssm").describe_parameters()["Parameters"]],
        "objects": {name: s3.list_objects_v2(Bucket=name).get("KeyCount") for name in buckets},
        "keys": [row["KeyId"] for row in aws.client("kms").list_keys()["Keys"]],
    }
