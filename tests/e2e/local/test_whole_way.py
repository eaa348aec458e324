"""From environment files to answers, as a user goes: deployed once, called with clients that nobody here wrote."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import botocore.exceptions
import numpy as np
import pytest

from tests.client.rights import documented
from tests.e2e.calls import body, invoke, target_model
from tests.e2e.project import AWS_CLI, REPOSITORY, Project
from tritonstack.client import ModelClient
from tritonstack_local.aws import LocalAws
from tritonstack_local.commands.iam import role_variables

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(700)]


def test_demo_shows_one_model_evicted_and_loaded_again(project: Project, deployed: LocalAws) -> None:
    printed = project.run("local", "demo", "-e", "local", "--endpoint", "digits").stdout
    for words in ("24.09", "2.51.0", "at most 1 loaded"):
        assert words in printed
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.startswith("digits-")}
    (_, warm, evicted_by, cold_again), (cold, _, evicted_at_last, _) = rows["digits-onnx"], rows["digits-ensemble"]
    assert (evicted_by, evicted_at_last) == ("digits-ensemble", "digits-onnx")
    assert all(float(each) > 0 for each in (cold, warm, cold_again))
    loaded = target_model(deployed, endpoint="digits", model="digits-onnx")
    assert loaded_models(deployed, "local-digits") == {loaded}


def test_the_aws_cli_invokes_a_model(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    request = REPOSITORY / "model_repos" / "digits-onnx" / "sample" / "request.json"
    answer = tmp_path / "answer.json"
    target = target_model(deployed, endpoint="digits", model="digits-onnx")
    project.execute(
        [
            str(AWS_CLI), "sagemaker-runtime", "invoke-endpoint", "--endpoint-name", "local-digits",
            "--target-model", target, "--content-type", "application/json", "--body", f"fileb://{request}", str(answer),
        ],
        variables=deployed.variables(),
    )  # fmt: skip
    answered = json.loads(answer.read_text())
    expected = json.loads((request.parent / "answer.json").read_text())
    labels = {output["name"]: output["data"] for output in expected["outputs"] if output["datatype"] == "INT64"}
    assert labels, "the sample answer holds no label to compare"
    for name, data in labels.items():
        assert next(output["data"] for output in answered["outputs"] if output["name"] == name) == data


def test_the_invoke_command_answers_from_a_png(project: Project, deployed: LocalAws) -> None:
    image = REPOSITORY / "model_repos" / "digits-ensemble" / "sample" / "digit.png"
    printed = project.run("invoke", "digits-ensemble", "--input", str(image), "--environment", "local", "--json").stdout
    expected = json.loads((image.parent / "answer.json").read_text())
    label = next(output["data"][0] for output in expected["outputs"] if output["datatype"] == "INT64")
    assert str(label) in printed


def test_a_name_on_two_endpoints_is_refused_with_both(project: Project, deployed: LocalAws) -> None:
    request = REPOSITORY / "model_repos" / "digits-onnx" / "sample" / "request.json"
    result = project.run("invoke", "digits-onnx", "--input", str(request), "--environment", "local", expect=2)
    assert "digits/digits-onnx" in result.stderr
    assert "single/digits-onnx" in result.stderr


def test_a_single_model_endpoint_answers_without_a_target_model(deployed: LocalAws) -> None:
    request = REPOSITORY / "model_repos" / "digits-onnx" / "sample" / "request.json"
    answer = deployed.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="local-single", ContentType="application/json", Body=request.read_bytes()
    )
    assert json.loads(answer["Body"].read())["outputs"]


@pytest.mark.parametrize(("endpoint", "model"), [("single", "digits-onnx"), ("digits", "digits-onnx")])
def test_the_documented_rights_are_enough_to_call_a_model_by_name(
    deployed: LocalAws, monkeypatch: pytest.MonkeyPatch, endpoint: str, model: str
) -> None:
    iam, name = deployed.client("iam"), f"calls-{endpoint}"
    trust = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    document = json.dumps({"Version": "2012-10-17", "Statement": documented(endpoint=endpoint)})
    iam.put_role_policy(RoleName=name, PolicyName="documented", PolicyDocument=document)
    for variable, value in (deployed.variables() | role_variables(deployed, name)).items():
        monkeypatch.setenv(variable, value)
    client = ModelClient(environment="local", session=boto3.Session())
    answer = client.invoke(f"{endpoint}/{model}", {"pixels": np.zeros((1, 64), dtype=np.float32)})
    assert (answer.target_model is None) is (endpoint == "single")
    [role] = [each for each in deployed.iam()["roles"] if each["arn"].endswith(name)]
    assert [sorted(each["used"]) for each in role["statements"]] == [
        ["sagemaker:InvokeEndpoint"], ["ssm:GetParameter"], []
    ]  # fmt: skip
    # What a client once needed beside, which no page named: every such request is refused.
    with pytest.raises(botocore.exceptions.ClientError, match="not authorized to perform: sagemaker:DescribeEndpoint "):
        boto3.Session().client("sagemaker").describe_endpoint(EndpointName=f"local-{endpoint}")


def test_status_names_loaded_models_and_what_stands_in_for_the_gpu(project: Project, deployed: LocalAws) -> None:
    target = target_model(deployed, endpoint="digits", model="digits-onnx")
    request = REPOSITORY / "model_repos" / "digits-onnx" / "sample" / "request.json"
    deployed.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="local-digits", TargetModel=target, ContentType="application/json", Body=request.read_bytes()
    )
    printed = project.run("local", "status").stdout
    for words in ("local-digits", target, "onnxruntime", "on the CPU"):
        assert words in printed


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("local-memory", {"TargetModel": "nothing.0123456789abcdef.tar.gz"}),
        ("local-memory", {}),
        ("nobody", {}),
    ],
    ids=["an archive that is not in the bucket", "no archive", "no endpoint"],
)
def test_a_call_that_names_nothing_there_raises_sagemakers_validation_error(
    deployed: LocalAws, endpoint: str, target: dict[str, str]
) -> None:
    client = deployed.client("sagemaker-runtime")
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.invoke_endpoint(EndpointName=endpoint, ContentType="application/json", Body=body(1.0), **target)
    assert raised.value.response["Error"]["Code"] == "ValidationError"


def test_a_model_that_runs_out_of_gpu_memory_answers_507_and_another_is_evicted(deployed: LocalAws) -> None:
    client = deployed.client("sagemaker-runtime")
    fits = target_model(deployed, endpoint="memory", model="fits")
    assert invoke(client, endpoint="memory", target=fits, value=1.5) == 3.0
    with pytest.raises(client.exceptions.ModelError) as raised:
        invoke(
            client, endpoint="memory", target=target_model(deployed, endpoint="memory", model="too-large"), value=1.0
        )
    assert raised.value.response["OriginalStatusCode"] == 507
    assert "CUDA out of memory" in raised.value.response["OriginalMessage"]
    assert fits not in loaded_models(deployed, "local-memory"), "nothing was evicted to make room"
    assert invoke(client, endpoint="memory", target=fits, value=2.0) == 4.0


def test_metrics_and_logs_are_where_sagemaker_writes_them(deployed: LocalAws) -> None:
    groups = deployed.client("logs").describe_log_groups(logGroupNamePrefix="/aws/sagemaker/Endpoints/local-")
    names = {group["logGroupName"] for group in groups["logGroups"]}
    assert {"/aws/sagemaker/Endpoints/local-digits", "/aws/sagemaker/Endpoints/local-memory"} <= names
    metrics = deployed.client("cloudwatch").list_metrics(Namespace="AWS/SageMaker")["Metrics"]
    assert {"Invocations", "ModelLatency", "ModelCacheHit"} <= {metric["MetricName"] for metric in metrics}


def test_the_endpoint_is_not_reachable_but_through_loopback(deployed: LocalAws) -> None:
    import psutil

    processes = [psutil.Process(pid) for pid in (deployed.emulator.pid, deployed.runtime.pid)]
    family = [member for process in processes for member in [process, *process.children(recursive=True)]]
    listening = [
        connection.laddr.ip
        for member in family
        for connection in member.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    fleets = [fleet for item in deployed.runtime_status()["endpoints"] for fleet in item["fleets"]]
    if all(fleet["isolation"] == "namespace" for fleet in fleets):
        assert set(listening) <= {"127.0.0.1", "::1"}
    else:
        pytest.skip(f"user namespaces are not permitted on this machine: {fleets[0]['isolation']}")


def loaded_models(aws: LocalAws, endpoint: str) -> set[str]:
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == endpoint)
    return {model["target_model"] for fleet in found["fleets"] for model in fleet["models"]}


def test_describe_endpoint_says_in_service_with_the_deployed_config(deployed: LocalAws) -> None:
    sagemaker = deployed.client("sagemaker")
    described = sagemaker.describe_endpoint(EndpointName="local-digits")
    assert described["EndpointStatus"] == "InService"
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    container = model["PrimaryContainer"]
    assert container["Mode"] == "MultiModel"
    assert container["ModelDataUrl"].endswith("/endpoints/digits/24.09-t4/")
    assert container["Environment"]["SAGEMAKER_TRITON_LOG_VERBOSE"] == "false"
