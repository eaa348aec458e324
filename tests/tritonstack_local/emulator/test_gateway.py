"""The gateway's own routes, InvokeEndpoint through it, and the process around it."""

from __future__ import annotations

import io
import json
import subprocess
import textwrap
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY, ROLE_ARN, Emulator, free_port


def test_health_reports_what_stands_behind_endpoints(aws: Emulator, fleets: Emulator) -> None:
    assert (aws.get("/_tritonstack/health")["fleets"], aws.get("/_tritonstack/health")["runtime_url"]) == ("none", None)
    assert fleets.get("/_tritonstack/health")["fleets"] == "runtime"


def test_invocation_is_handed_to_the_runtime_and_its_answer_back(fleets: Emulator) -> None:
    for body in (b"", b"\x00\xff" * 500, b"x" * (5 * 1024 * 1024)):
        answer = fleets.client("sagemaker-runtime").invoke_endpoint(
            EndpointName="dev-digits",
            ContentType="application/vnd.sagemaker-triton.binary+json;json-header-size=12",
            TargetModel="digits.0123456789abcdef.tar.gz",
            Body=body,
        )
        assert answer["Body"].read() == body
        assert answer["ContentType"] == "application/vnd.sagemaker-triton.binary+json;json-header-size=12"
        assert answer["InvokedProductionVariant"] == "main"
        assert answer["CustomAttributes"] == "digits.0123456789abcdef.tar.gz"


def test_model_error_of_the_runtime_reaches_the_client_as_one(fleets: Emulator) -> None:
    runtime = fleets.client("sagemaker-runtime")
    with pytest.raises(runtime.exceptions.ModelError) as refused:
        runtime.invoke_endpoint(EndpointName="fail", ContentType="application/json", Body=b"{}")
    assert refused.value.response["OriginalStatusCode"] == 400


def test_invocation_without_a_runtime_is_unavailable(aws: Emulator) -> None:
    runtime = aws.client("sagemaker-runtime")
    with pytest.raises(ClientError, match="started without a runtime") as refused:
        runtime.invoke_endpoint(EndpointName="x", ContentType="application/json", Body=b"{}")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503


def test_invocation_of_a_runtime_that_is_down_is_unavailable(tmp_path: Path) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_RUNTIME_URL=f"http://127.0.0.1:{free_port()}")
    try:
        runtime = emulator.wait_ready().client("sagemaker-runtime")
        with pytest.raises(ClientError, match="does not answer"):
            runtime.invoke_endpoint(EndpointName="x", ContentType="application/json", Body=b"{}")
    finally:
        emulator.stop()


FUNCTION = """
    import os, sys
    import boto3

    def handler(event, context):
        boto3.client("ssm").put_parameter(Name=event["name"], Value="written", Type="String", Overwrite=True)
        found = [path for path in sys.path if os.path.isdir(os.path.join(path, "tritonstack"))]
        return {"python": sys.executable, "pid": os.getpid(), "finds_repository": found}
"""


def _invoke(emulator: Emulator, name: str) -> dict[str, Any]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", textwrap.dedent(FUNCTION))
    functions = emulator.client("lambda")
    functions.create_function(
        FunctionName=name,
        Runtime="python3.12",
        Handler="index.handler",
        Role=ROLE_ARN,
        Code={"ZipFile": archive.getvalue()},
        Timeout=30,
    )
    answer = functions.invoke(FunctionName=name, Payload=json.dumps({"name": "/" + name}))
    result: dict[str, Any] = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, result
    return result


def test_lambda_runs_in_the_emulators_environment_and_reaches_the_gateway(aws: Emulator, name: str) -> None:
    result = _invoke(aws, name)
    assert Path(result["python"]).parent == PYTHON.parent
    assert result["finds_repository"] == []
    assert aws.client("ssm").get_parameter(Name="/" + name)["Parameter"]["Value"] == "written"


def test_sigterm_ends_the_emulator_its_lambdas_and_its_temporary_files(tmp_path: Path, name: str) -> None:
    emulator = Emulator(tmp_path).wait_ready()
    worker = _invoke(emulator, name)["pid"]
    assert psutil.pid_exists(worker)
    assert any(emulator.temporary.iterdir())
    assert emulator.stop() == 0
    assert not psutil.pid_exists(worker)
    assert not any(emulator.temporary.iterdir())


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"BIND_HOST": "0.0.0.0"}, "only a loopback address will do"),  # noqa: S104  what must be refused
        ({"TRITONSTACK_FLEETS": "some"}, "'runtime' or 'none'"),
        ({"MINISTACK_ACCOUNT_ID": "12"}, "twelve digits"),
        ({"GATEWAY_PORT": "http"}, "numbers"),
    ],
)
def test_wrong_setting_ends_the_emulator_with_a_sentence(variables: dict[str, str], sentence: str) -> None:
    ended = subprocess.run(
        [PYTHON, "-m", "tritonstack_local.emulator"],
        env={"PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_taken_port_ends_a_second_emulator(aws: Emulator, tmp_path: Path) -> None:
    second = Emulator(tmp_path, GATEWAY_PORT=str(aws.port))
    assert second.process.wait(timeout=30) == 1
    assert "is already in use" in second.log.read_text()


def test_metrics_of_sagemakers_namespace_read_back_by_dimension_and_percentile(aws: Emulator, name: str) -> None:
    cloudwatch, now = aws.client("cloudwatch"), datetime.now(UTC)
    for variant, values in (("a", [float(n) for n in range(1, 101)]), ("b", [1000.0])):
        dimensions = [{"Name": "EndpointName", "Value": name}, {"Name": "VariantName", "Value": variant}]
        datum = {"MetricName": "ModelLatency", "Dimensions": dimensions, "Timestamp": now, "Unit": "Microseconds"}
        cloudwatch.put_metric_data(Namespace="AWS/SageMaker", MetricData=[{**datum, "Values": values}])
    window = {"StartTime": now - timedelta(minutes=5), "EndTime": now + timedelta(minutes=5), "Period": 600}

    def query(identifier: str, variant: str, stat: str) -> dict[str, Any]:
        dimensions = [{"Name": "VariantName", "Value": variant}, {"Name": "EndpointName", "Value": name}]
        metric = {"Namespace": "AWS/SageMaker", "MetricName": "ModelLatency", "Dimensions": dimensions}
        return {"Id": identifier, "MetricStat": {"Metric": metric, "Period": window["Period"], "Stat": stat}}

    asked = [query("p90", "a", "p90"), query("sum", "a", "Sum"), query("count", "a", "SampleCount")]
    asked.append(query("other", "b", "Maximum"))
    results = cloudwatch.get_metric_data(
        MetricDataQueries=asked, StartTime=window["StartTime"], EndTime=window["EndTime"]
    )["MetricDataResults"]
    read = {result["Id"]: sum(result["Values"]) for result in results}
    assert (read["sum"], read["count"], read["other"]) == (5050, 100, 1000)
    assert 89 <= read["p90"] <= 91
