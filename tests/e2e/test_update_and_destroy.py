"""A changed environment file, deployed again while callers call; then everything is taken down."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tritonstack.local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NAME = "changing"


@pytest.fixture(scope="module")
def changing(project: Project, local_aws: LocalAws) -> Iterator[LocalAws]:
    """An environment of its own with one endpoint, deployed."""
    write(project, shm=16777216, models=["adds-01"])
    project.run("deploy-local", NAME)
    yield local_aws
    (project.root / "environments" / f"{NAME}.yaml").unlink(missing_ok=True)


def write(project: Project, *, shm: int, models: list[str]) -> None:
    """The environment file with one setting of the container and one list of models."""
    text = endpoint("moving", models).removesuffix("}") + f", container: {{shm_default_bytes: {shm}}}}}"
    project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]))


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
        project.run("deploy-local", NAME)
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
    text += ', container: {additional_args: ["--no-such-flag=1"]}}'
    project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]))
    failed = project.run("deploy-local", NAME, expect=1)
    assert "no-such-flag" in failed.stderr
    assert "Traceback" not in failed.stderr
    client = changing.client("sagemaker-runtime")
    answer = client.invoke_endpoint(
        EndpointName=f"{NAME}-moving",
        TargetModel=target,
        ContentType="application/json",
        Body=b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[4.0]}]}',
    )
    assert b"5.0" in answer["Body"].read()


def test_destroy_leaves_nothing_but_what_is_retained(project: Project, changing: LocalAws) -> None:
    project.run("destroy-local", NAME)
    stacks = changing.client("cloudformation").describe_stacks()["Stacks"]
    assert not [stack for stack in stacks if stack["StackName"].startswith(f"{NAME}-")]
    sagemaker = changing.client("sagemaker")
    endpoints = sagemaker.list_endpoints(NameContains=NAME)["Endpoints"]
    assert not endpoints
    assert not [bucket["Name"] for bucket in changing.client("s3").list_buckets()["Buckets"] if NAME in bucket["Name"]]
    parameters = changing.client("ssm").describe_parameters(MaxResults=50)["Parameters"]
    assert not [item["Name"] for item in parameters if item["Name"].startswith(f"/tritonstack/{NAME}/")]
    roles = changing.client("iam").list_roles()["Roles"]
    assert not [role["RoleName"] for role in roles if role["RoleName"].startswith(f"{NAME}-")]
    assert not [item for item in changing.runtime_status()["endpoints"] if item["name"].startswith(NAME)]
    with pytest.raises(changing.client("sagemaker-runtime").exceptions.ClientError):
        invoke(
            changing.client("sagemaker-runtime"), endpoint=f"{NAME}-moving", target="adds-01.0123456789abcdef.tar.gz",
            value=1.0,
        )  # fmt: skip
