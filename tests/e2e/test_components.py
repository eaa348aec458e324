"""An inference component on the local AWS: served by the real Triton, put to sleep, woken by a refused request."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.deployments import advance, eventually
from tests.e2e.project import REPOSITORY, Project, environment_yaml
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

ENDPOINT = "of-components"
COPIES = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "inference-component/digits",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
ACTIONS = ("s3:GetObject", "kms:Decrypt", "ecr:*", "logs:*", "cloudwatch:*")
IDLE_MINUTES, COOLDOWN_MINUTES = 18, 22
"""More than the fifteen that put a component to sleep, and the twenty after which an idle instance ends."""


@dataclass
class Digits:
    """A component of the model that endpoint ``single`` serves."""

    aws: LocalAws

    def __post_init__(self) -> None:
        self.sagemaker = self.aws.client("sagemaker")
        self.runtime = self.aws.client("sagemaker-runtime")
        self.scaling = self.aws.client("application-autoscaling")

    def create(self) -> None:
        """A fleet of 0 to 2 instances of one GPU, and the component on it."""
        single = self.sagemaker.describe_endpoint(EndpointName="asleep-single")["EndpointConfigName"]
        variant = self.sagemaker.describe_endpoint_config(EndpointConfigName=single)["ProductionVariants"][0]
        container = self.sagemaker.describe_model(ModelName=variant["ModelName"])["PrimaryContainer"]
        role = self._role()
        self.sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=role, PrimaryContainer=container)
        fleet = {
            "VariantName": "fleet",
            "InstanceType": "ml.g4dn.xlarge",
            "InitialInstanceCount": 1,
            "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2},
        }
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=ENDPOINT, ExecutionRoleArn=role, ProductionVariants=[fleet]
        )
        self.sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
        self.sagemaker.create_inference_component(
            InferenceComponentName="digits",
            EndpointName=ENDPOINT,
            VariantName="fleet",
            Specification={
                "ModelName": ENDPOINT,
                "ComputeResourceRequirements": {
                    "NumberOfAcceleratorDevicesRequired": 1,
                    "MinMemoryRequiredInMb": 1024,
                },
            },
            RuntimeConfig={"CopyCount": 1},
        )
        eventually(lambda: self.status == ("InService", 1), seconds=120)

    def _role(self) -> str:
        """An execution role: the stacks' own have no rights to a component's log."""
        roles = self.aws.client("iam")
        trusted = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
        allowed = {"Effect": "Allow", "Action": list(ACTIONS), "Resource": "*"}
        made = roles.create_role(RoleName=ENDPOINT, AssumeRolePolicyDocument=json.dumps(policy(trusted)))
        roles.put_role_policy(RoleName=ENDPOINT, PolicyName="all", PolicyDocument=json.dumps(policy(allowed)))
        return str(made["Role"]["Arn"])

    @property
    def status(self) -> tuple[str, int]:
        """The component's status and current copies."""
        found = self.sagemaker.describe_inference_component(InferenceComponentName="digits")
        return found["InferenceComponentStatus"], found["RuntimeConfig"]["CurrentCopyCount"]

    @property
    def instances(self) -> int:
        return int(
            self.sagemaker.describe_endpoint(EndpointName=ENDPOINT)["ProductionVariants"][0]["CurrentInstanceCount"]
        )

    def minutes(self, count: int) -> None:
        """Move the clock on, minute by minute."""
        for _ in range(count):
            advance(self.aws, 60)

    def call(self, **names: str) -> Any:
        """One request; the response's document."""
        body = (REPOSITORY / "model_repos/digits-onnx/sample/request.json").read_bytes()
        response = self.runtime.invoke_endpoint(
            EndpointName=ENDPOINT, ContentType="application/json", Body=body, **names
        )
        return json.loads(response["Body"].read())

    def sleep_and_wake(self) -> None:
        """What scales its copies from 0 to 2 and wakes it."""
        self.scaling.register_scalable_target(**COPIES, MinCapacity=0, MaxCapacity=2)
        predefined = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
        self.scaling.put_scaling_policy(
            **COPIES,
            PolicyName="concurrency",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 4.0,
                "PredefinedMetricSpecification": {"PredefinedMetricType": predefined},
            },
        )
        wake = self.scaling.put_scaling_policy(
            **COPIES,
            PolicyName="wake",
            PolicyType="StepScaling",
            StepScalingPolicyConfiguration={
                "AdjustmentType": "ChangeInCapacity",
                "Cooldown": 900,
                "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
            },
        )
        self.aws.client("cloudwatch").put_metric_alarm(
            AlarmName="digits-wake",
            AlarmActions=[wake["PolicyARN"]],
            Namespace="AWS/SageMaker",
            MetricName="NoCapacityInvocationFailures",
            Dimensions=[{"Name": "InferenceComponentName", "Value": "digits"}],
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1.0,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )

    def remove(self) -> None:
        """Everything, in the order that SageMaker wants."""
        self.aws.client("cloudwatch").delete_alarms(AlarmNames=["digits-wake"])
        self.scaling.deregister_scalable_target(**COPIES)
        self.sagemaker.delete_inference_component(InferenceComponentName="digits")
        self.sagemaker.delete_endpoint(EndpointName=ENDPOINT)
        self.sagemaker.delete_endpoint_config(EndpointConfigName=ENDPOINT)
        self.sagemaker.delete_model(ModelName=ENDPOINT)


def policy(statement: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [statement]}


@pytest.fixture
def digits(project: Project, local_aws: LocalAws) -> Iterator[Digits]:
    single = endpoint("single", ["digits-onnx"], mode="single-model")
    project.write("environments/asleep.yaml", environment_yaml(name="asleep", endpoints=[single]))
    project.run("local", "deploy", "-e", "asleep", timeout=600)
    made = Digits(local_aws)
    made.create()
    made.sleep_and_wake()
    yield made
    made.remove()


def test_a_component_sleeps_without_requests_and_wakes_at_one(digits: Digits) -> None:
    assert digits.call(InferenceComponentName="digits")["outputs"]
    refused = digits.runtime.exceptions.ValidationError
    with pytest.raises(refused, match="Inference Component Name header is required"):
        digits.call()

    digits.minutes(IDLE_MINUTES)
    eventually(lambda: digits.status == ("InService", 0), seconds=60)
    digits.minutes(COOLDOWN_MINUTES)
    eventually(lambda: digits.instances == 0, seconds=60)

    with pytest.raises(refused, match="has no capacity to process this request"):
        digits.call(InferenceComponentName="digits")
    for _ in range(10):  # fewer than the idle minutes that would put it to sleep again
        digits.minutes(1)
        if digits.status == ("InService", 1):
            break
        time.sleep(5)  # until the runtime has sent its metrics, and the container is up
    assert (digits.status, digits.instances) == (("InService", 1), 1)
    assert digits.call(InferenceComponentName="digits")["outputs"]
