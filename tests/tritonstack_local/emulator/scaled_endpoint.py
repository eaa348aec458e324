"""A scaled endpoint as the constructs make it, deployed to an emulator whose runtime the tests play."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from botocore.exceptions import ClientError

from constructs_lib.endpoint import Endpoint, ProductionVariant, VariantInstances
from tests.constructs_lib.templates import ACCOUNT, REGION, new_app, new_model
from tests.tritonstack_local.emulator.running import Emulator, wait_until
from tritonstack.config import Scaling, Timeouts

ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"


class ScaledEndpoint:
    """One stack with a model and a scaled endpoint, both of the stack's name."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self.emulator, self.name = emulator, name
        self.sagemaker = emulator.client("sagemaker")
        self.scaling = emulator.client("application-autoscaling")
        self.stacks = emulator.client("cloudformation")
        parameters = {"/cdk-bootstrap/hnb659fds/version": "30"}
        parameters |= {f"/tritonstack/local/_artifacts/{value}": f"any-{value}" for value in ("bucket-name", "key-arn")}
        for parameter, value in parameters.items():
            emulator.client("ssm").put_parameter(Name=parameter, Value=value, Type="String", Overwrite=True)
        emulator.client("s3").create_bucket(Bucket=ASSETS)

    def template(
        self,
        *,
        instance_type: str = "ml.g4dn.xlarge",
        scaling: dict[str, Any] | None = None,
        startup: int = 600,
        scaled: bool = True,
        broken_later: bool = False,
    ) -> str:
        """The template; its assets are published. ``broken_later``: something after the endpoint cannot be made."""
        app = new_app()
        stack = cdk.Stack(app, self.name, env=cdk.Environment(account=ACCOUNT, region=REGION))
        settings = {"minimum": 1, "maximum": 6, "gpu_utilization": 60, "requests_per_second": 20, **(scaling or {})}
        endpoint = Endpoint(
            stack,
            "Endpoint",
            endpoint_name=self.name,
            variants=[
                ProductionVariant(
                    model=new_model(stack),
                    instances=VariantInstances(instance_type=instance_type, initial_instance_count=1),
                    scaling=Scaling.model_validate(settings) if scaled else None,
                )
            ],
            timeouts=Timeouts(model_download_seconds=600, container_startup_seconds=startup),
        )
        if broken_later:
            variant = sagemaker.CfnEndpointConfig.ProductionVariantProperty(
                variant_name="v", model_name="gone", instance_type=instance_type, initial_instance_count=1
            )
            later = sagemaker.CfnEndpointConfig(stack, "Later", production_variants=[variant])
            later.node.add_dependency(endpoint)
        made = app.synth().get_stack_by_name(self.name)
        self._publish(Path(app.outdir), self.name)
        return json.dumps(made.template)

    def _publish(self, assembly: Path, stack: str) -> None:
        manifest = json.loads((assembly / f"{stack}.assets.json").read_text())
        for asset in manifest["files"].values():
            if asset["source"]["packaging"] == "zip":
                for place in asset["destinations"].values():
                    body = zipped(assembly / asset["source"]["path"])
                    self.emulator.client("s3").put_object(Bucket=ASSETS, Key=place["objectKey"], Body=body)

    def start(self, **changes: Any) -> None:
        """Create or update the stack and come back at once."""
        request = {
            "StackName": self.name,
            "TemplateBody": self.template(**changes),
            "Capabilities": ["CAPABILITY_NAMED_IAM"],
        }
        try:
            self.stacks.create_stack(**request)
        except self.stacks.exceptions.AlreadyExistsException:
            self.stacks.update_stack(**request)

    def deploy(self, *outcomes: str, **changes: Any) -> str:
        """Deploy, the endpoint's deployments ending with the given outcomes in turn; the stack's status."""
        self.start(**changes)
        return self.finish(*outcomes)

    def finish(self, *outcomes: str) -> str:
        """End the endpoint's deployments with the given outcomes in turn; the stack's status then."""
        for outcome in outcomes:
            self.emulator.report(self.name, self.pending(), outcome, "the container did not start")
        return str(self.emulator.settled(self.name)["StackStatus"])

    def pending(self) -> str:
        """The config that the endpoint is being moved to, as soon as it is; the stack must not end before."""

        def look() -> str:
            stack = self.stacks.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"]
            assert stack.endswith("IN_PROGRESS"), f"{stack}: {self.emulator.failures(self.name)}"
            return str(self.described().get("PendingDeploymentSummary", {}).get("EndpointConfigName", ""))

        return str(wait_until(look, bool))

    def described(self) -> dict[str, Any]:
        """DescribeEndpoint; empty where there is none."""
        try:
            found: dict[str, Any] = self.sagemaker.describe_endpoint(EndpointName=self.name)
        except ClientError:
            return {}
        return found

    def scale(self, count: int) -> None:
        """Scale by hand."""
        variant = self.described()["ProductionVariants"][0]["VariantName"]
        wanted = [{"VariantName": variant, "DesiredInstanceCount": count}]
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=self.name, DesiredWeightsAndCapacities=wanted
        )

    @property
    def live(self) -> tuple[str, int]:
        """The live variant and its number of instances."""
        [variant] = self.described()["ProductionVariants"]
        return variant["VariantName"], variant["DesiredInstanceCount"]

    @property
    def targets(self) -> dict[str, tuple[int, int]]:
        """Variant → limits, of this endpoint."""
        found = self.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        ours = [each for each in found if each["ResourceId"].startswith(f"endpoint/{self.name}/")]
        return {each["ResourceId"].split("/")[3]: (each["MinCapacity"], each["MaxCapacity"]) for each in ours}

    @property
    def policies(self) -> dict[str, dict[str, float]]:
        """Variant → metric → target value."""
        found = self.scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
        made: dict[str, dict[str, float]] = {}
        for policy in found:
            if policy["ResourceId"].startswith(f"endpoint/{self.name}/"):
                metric = policy["PolicyName"].removeprefix("tritonstack-").rpartition("-")[0]
                of = made.setdefault(policy["ResourceId"].split("/")[3], {})
                assert metric not in of, f"two policies of {metric}"
                of[metric] = policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        return made

    @property
    def schedules(self) -> set[str]:
        """Names of the scheduled actions."""
        found = self.scaling.describe_scheduled_actions(ServiceNamespace="sagemaker")["ScheduledActions"]
        return {
            each["ScheduledActionName"] for each in found if each["ResourceId"].startswith(f"endpoint/{self.name}/")
        }

    def config_names(self) -> set[str]:
        """The configs of this endpoint's stack."""
        found = self.sagemaker.list_endpoint_configs(NameContains=self.name, MaxResults=50)["EndpointConfigs"]
        return {each["EndpointConfigName"] for each in found}


def zipped(folder: Path) -> bytes:
    """A folder's files as a ZIP archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return target.getvalue()
