"""A changed environment file, deployed again while callers call; then everything is taken down."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.deployments import aws_fails, faults_left
from tests.e2e.project import Project, environment_yaml
from tritonstack.paths import cdk_program
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NAME = "changing"


@pytest.fixture(scope="module")
def changing(project: Project, local_aws: LocalAws) -> LocalAws:
    """An environment of its own with one endpoint, deployed."""
    write(project, shm=16777216, models=["adds-01"])
    project.run("local", "deploy", NAME)
    return local_aws


def write(project: Project, *, shm: int, models: list[str], retain: bool = False) -> None:
    """The environment file with one setting of the container and one list of models."""
    text = endpoint("moving", models).removesuffix("}") + f", container: {{shm_default_bytes: {shm}}}}}"
    yaml = environment_yaml(name=NAME, endpoints=[text], retain=retain)
    project.write(f"environments/{NAME}.yaml", yaml)


def test_a_changed_environment_is_deployed_while_callers_call_and_no_call_fails(
    project: Project, changing: LocalAws
) -> None:
    client, sagemaker = changing.client("sagemaker-runtime"), changing.client("sagemaker")
    target = target_model(changing, endpoint="moving", model="adds-01", environment=NAME)
    before = sagemaker.describe_endpoint(EndpointName=f"{NAME}-moving")["EndpointConfigName"]
    stop, calls, failures = threading.Event(), [0], []

    def caller() -> None:
        while not stop.is_set():
            try:
                answer = client.invoke_endpoint(
                    EndpointName=f"{NAME}-moving",
                    TargetModel=target,
                    ContentType="application/json",
                    Body=b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[4.0]}]}',
                )
                assert b"5.0" in answer["Body"].read()
                calls[0] += 1
            except Exception as error:  # noqa: BLE001  (every failure counts, and is shown)
                failures.append(error)

    threads = [threading.Thread(target=caller) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        write(project, shm=33554432, models=["adds-01", "adds-02"])
        project.run("local", "deploy", NAME)
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=90)
    assert not failures, f"{len(failures)} of {calls[0]} calls failed: {failures[0]!r}"
    assert calls[0] > 0
    described = sagemaker.describe_endpoint(EndpointName=f"{NAME}-moving")
    assert described["EndpointStatus"] == "InService"
    assert described["EndpointConfigName"] != before
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    assert model["PrimaryContainer"]["Environment"]["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"] == "33554432"


def test_a_model_that_was_added_answers_after_the_deployment(changing: LocalAws) -> None:
    target = target_model(changing, endpoint="moving", model="adds-02", environment=NAME)
    answer = changing.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=f"{NAME}-moving",
        TargetModel=target,
        ContentType="application/json",
        Body=b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[4.0]}]}',
    )
    assert b"6.0" in answer["Body"].read()


def test_a_container_that_cannot_start_fails_the_deployment_with_its_log_and_the_old_one_serves_on(
    project: Project, changing: LocalAws
) -> None:
    target = target_model(changing, endpoint="moving", model="adds-01", environment=NAME)
    text = endpoint("moving", ["adds-01", "adds-02"]).removesuffix("}")
    text += ', container: {additional_args: ["--log-format=none"]}}'
    project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]))
    failed = project.run("local", "deploy", NAME, expect=1)
    assert "invalid argument for --log-format" in failed.stderr
    assert "Traceback" not in failed.stderr
    client = changing.client("sagemaker-runtime")
    answer = client.invoke_endpoint(
        EndpointName=f"{NAME}-moving",
        TargetModel=target,
        ContentType="application/json",
        Body=b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[4.0]}]}',
    )
    assert b"5.0" in answer["Body"].read()


@pytest.mark.parametrize(
    ("short_of", "says"),
    [("capacity", "due to InsufficientInstanceCapacity error"), ("limit", "'ml.g4dn.xlarge for endpoint usage' is")],
)
def test_a_deployment_without_instances_says_so_and_the_old_fleet_serves_on(
    project: Project, changing: LocalAws, short_of: str, says: str
) -> None:
    target = target_model(changing, endpoint="moving", model="adds-01", environment=NAME)
    write(project, shm=67108864, models=["adds-01", "adds-02"])
    with aws_fails(changing, {"instance_type": "ml.g4dn.xlarge", "short_of": short_of, "times": 1}):
        failed = project.run("local", "deploy", NAME, expect=1)
    assert says in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr
    client = changing.client("sagemaker-runtime")
    assert invoke(client, endpoint="moving", target=target, value=4.0, environment=NAME) == 5.0
    stack = changing.client("cloudformation").describe_stacks(StackName=f"{NAME}-serving-moving")["Stacks"][0]
    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


def inventory(aws: LocalAws) -> dict[str, set[str]]:
    """What the local AWS holds of this environment, by kind; names that the environment's stacks gave."""
    ours = (f"{NAME}-", f"/tritonstack/{NAME}/", f"/aws/lambda/{NAME}-")
    found = {
        "stack": [one["StackName"] for one in pages(aws, "cloudformation", "describe_stacks", "Stacks")],
        "endpoint": [one["EndpointName"] for one in pages(aws, "sagemaker", "list_endpoints", "Endpoints")],
        "config": [
            one["EndpointConfigName"] for one in pages(aws, "sagemaker", "list_endpoint_configs", "EndpointConfigs")
        ],
        "model": [one["ModelName"] for one in pages(aws, "sagemaker", "list_models", "Models")],
        "bucket": [one["Name"] for one in aws.client("s3").list_buckets()["Buckets"]],
        "record": [one["Name"] for one in pages(aws, "ssm", "describe_parameters", "Parameters")],
        "role": [one["RoleName"] for one in pages(aws, "iam", "list_roles", "Roles")],
        "function": [one["FunctionName"] for one in pages(aws, "lambda", "list_functions", "Functions")],
        "log group": [one["logGroupName"] for one in pages(aws, "logs", "describe_log_groups", "logGroups")],
        "fleet": [one["name"] for one in aws.runtime_status()["endpoints"]],
    }
    return {kind: {name for name in names if name.startswith(ours)} for kind, names in found.items()}


def pages(aws: LocalAws, service: str, operation: str, key: str) -> list[dict[str, Any]]:
    """Every entry of a listing."""
    return [entry for page in aws.client(service).get_paginator(operation).paginate() for entry in page[key]]


def usable_keys(aws: LocalAws) -> set[str]:
    """The customer keys that are not on their way out."""
    kms = aws.client("kms")
    keys = [kms.describe_key(KeyId=one["KeyId"])["KeyMetadata"] for one in pages(aws, "kms", "list_keys", "Keys")]
    return {key["KeyId"] for key in keys if NAME in key.get("Description", "") and key["KeyState"] == "Enabled"}


def destroy_by_hand(project: Project, aws: LocalAws) -> None:
    """``cdk destroy`` as a person types it, with the variables of ``tritonstack local env``."""
    assembly = project.root / ".local" / "cdk.out" / NAME
    project.execute(
        [str(cdk_program()), "destroy", "--app", str(assembly), "--force", "--no-notices", f"{NAME}/*"],
        variables=aws.variables(),
        timeout=300,
    )


def test_destroy_leaves_nothing_where_nothing_is_retained(project: Project, changing: LocalAws) -> None:
    before = inventory(changing)
    for kind in ("stack", "endpoint", "config", "model", "bucket", "record", "role", "function", "fleet"):
        assert before[kind], f"no {kind} was there to be removed"
    assert usable_keys(changing)
    # As with an access log that arrives between emptying and deletion.
    full = {"method": "DELETE", "path": f"/{NAME}-artifacts-", "status": 409, "code": "BucketNotEmpty", "times": 2}
    with aws_fails(changing, full):
        destroy_by_hand(project, changing)
        assert faults_left(changing) == 0
    assert {kind: names for kind, names in inventory(changing).items() if names} == {}
    assert not usable_keys(changing)
    client = changing.client("sagemaker-runtime")
    with pytest.raises(client.exceptions.ClientError):
        client.invoke_endpoint(EndpointName=f"{NAME}-moving", ContentType="application/json", Body=b"{}")


def test_destroy_leaves_what_is_retained_and_nothing_else(project: Project, changing: LocalAws) -> None:
    write(project, shm=16777216, models=["adds-01"], retain=True)
    project.run("local", "deploy", NAME)
    buckets = inventory(changing)["bucket"]
    destroy_by_hand(project, changing)
    assert {kind: names for kind, names in inventory(changing).items() if names} == {"bucket": buckets}
    assert len(buckets) == 2, "archives and access logs"
    assert usable_keys(changing)
    [archives] = [name for name in buckets if "archives" in name]
    assert changing.client("s3").list_objects_v2(Bucket=archives, Prefix="endpoints/moving/")["KeyCount"] == 1
