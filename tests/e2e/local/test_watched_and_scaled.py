"""What the session's deployment left at AWS's APIs: scaling as the file says, models verified, a page to look at."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.project import Project
from tritonstack.config import load_environment
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ENDPOINT, VARIANT, GPUS = "local-single", "g4dn-12xlarge", 4
RESOURCE = f"endpoint/{ENDPOINT}/variant/{VARIANT}"
OF = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}


def test_the_target_and_its_schedules_are_registered_as_the_file_says(deployed: LocalAws) -> None:
    scaling = deployed.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(**OF)["ScalableTargets"]
    [target] = [each for each in targets if each["ResourceId"].startswith("endpoint/local-")]
    assert (target["ResourceId"], target["MinCapacity"], target["MaxCapacity"]) == (RESOURCE, 1, 6)
    actions = scaling.describe_scheduled_actions(**OF, ResourceId=RESOURCE)["ScheduledActions"]
    told = {
        each["ScheduledActionName"]: (each["Schedule"], each["Timezone"], each["ScalableTargetAction"])
        for each in actions
    }
    assert told == {
        "morning": ("cron(0 7 ? * MON-FRI *)", "Europe/Berlin", {"MinCapacity": 2}),
        "night": ("cron(0 20 * * ? *)", "Asia/Tokyo", {"MinCapacity": 1, "MaxCapacity": 2}),
    }


def of_gpus(name: str) -> dict[str, Any]:
    """A metric that an instance writes of its GPUs, as a policy names it."""
    dimensions = [{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": VARIANT}]
    return {
        "CustomizedMetricSpecification": {
            "Namespace": "/aws/sagemaker/Endpoints",
            "MetricName": name,
            "Dimensions": dimensions,
            "Statistic": "Average",
            "Unit": "Percent",
        }
    }


def predefined(name: str) -> dict[str, Any]:
    return {"PredefinedMetricSpecification": {"PredefinedMetricType": name}}


def test_the_policies_read_back_have_the_documented_metrics_and_the_file_s_targets(deployed: LocalAws) -> None:
    scaling = deployed.client("application-autoscaling")
    found = scaling.describe_scaling_policies(**OF, ResourceId=RESOURCE)["ScalingPolicies"]
    assert {each["PolicyType"] for each in found} == {"TargetTrackingScaling"}
    configurations = [each["TargetTrackingScalingPolicyConfiguration"] for each in found]
    # The file sets the waits; Application Auto Scaling adds that it scales in, which no policy here says.
    same = {"ScaleOutCooldown": 45, "ScaleInCooldown": 720, "DisableScaleIn": False}
    wanted = [
        # A minute's calls: 20 a second were measured, 0.6 of that is aimed at.
        {"TargetValue": 20 * 60 * 0.6, **predefined("SageMakerVariantInvocationsPerInstance"), **same},
        {"TargetValue": 64, **predefined("SageMakerVariantConcurrentRequestsPerModelHighResolution"), **same},
        # SageMaker adds the GPUs of an instance up.
        {"TargetValue": 60 * GPUS, **of_gpus("GPUUtilization"), **same},
        {"TargetValue": 80 * GPUS, **of_gpus("GPUMemoryUtilization"), **same},
    ]
    assert len(configurations) == len(wanted)
    assert all(each in configurations for each in wanted), json.dumps(configurations, indent=1)


def test_the_alarms_of_the_policies_look_at_those_metrics(deployed: LocalAws) -> None:
    found = deployed.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"TargetTracking-{RESOURCE}-AlarmHigh")
    assert {each["MetricName"]: each["Threshold"] for each in found["MetricAlarms"]} == {
        "InvocationsPerInstance": 720,
        "ConcurrentRequestsPerModel": 64,
        "GPUUtilization": 240,
        "GPUMemoryUtilization": 320,
    }


def test_another_type_of_a_registered_variant_is_refused(deployed: LocalAws) -> None:
    sagemaker = deployed.client("sagemaker")
    config = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["EndpointConfigName"]
    [variant] = sagemaker.describe_endpoint_config(EndpointConfigName=config)["ProductionVariants"]
    other: Any = [{**variant, "InstanceType": "ml.g4dn.xlarge"}]
    sagemaker.create_endpoint_config(EndpointConfigName="another-type", ProductionVariants=other)
    try:
        with pytest.raises(ClientError, match="must be deregistered as scalable targets"):
            sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="another-type")
    finally:
        sagemaker.delete_endpoint_config(EndpointConfigName="another-type")
    assert sagemaker.describe_endpoint(EndpointName=ENDPOINT)["EndpointConfigName"] == config


def test_the_deployment_asked_its_models_and_a_picture_whose_request_lies_ready_was_sent(deployed: LocalAws) -> None:
    logs = deployed.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix="/aws/cloudformation/local-serving-digits/")["logGroups"]
    [name] = [group["logGroupName"] for group in groups if "Verification" in group["logGroupName"]]
    lines = [event["message"] for event in logs.filter_log_events(logGroupName=name)["events"]]
    [told] = [json.loads(line) for line in lines if line.startswith('{"began"')]
    assert [archive.partition(".")[0] for archive in told["verified"]] == ["digits-ensemble", "digits-onnx"]
    assert told["left"] == []


def test_the_page_has_each_graph_of_the_definition_once(project: Project, deployed: LocalAws) -> None:
    dashboard = dashboard_of(load_environment(project.root / "environments" / "local.yaml"), projects=None)
    page = Path(project.run("dashboard", "-e", "local", "--hours", "1").stdout.strip()).read_text()
    drawn = re.findall(r'<figure id="([^"]*)-([a-z_]+)" data-points="\d+"', page)
    assert drawn == [(section.key, graph.key) for section, graph in dashboard.graphs()]
