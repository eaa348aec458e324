"""The observability stack: an environment's dashboard, its alarms, and the SNS topic that they notify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_lib.monitoring import Alarms, AtMaximumEvents, alarm_topic
from constructs_lib.outputs import outputs_fit, publish_outputs, read_parameter
from tritonstack import naming
from tritonstack.config import AlarmSettings, Environment
from tritonstack.monitoring.alarms import Alarm, build_alarms, endpoint_alarms, load_test_alarm
from tritonstack.monitoring.dashboard import dashboard_body, dashboard_of, split
from tritonstack.monitoring.graphs import BuildProjects, Dashboard, variants_of

if TYPE_CHECKING:
    from tritonstack.outputs.contract import ObservabilityFields

OTHER_OUTPUTS_BYTES = 1500
"""Outputs of the stack besides the alarms' names: ARNs and names, of at most a few hundred characters each."""


def add_dashboard(stack: cdk.Stack, definition: Dashboard) -> None:
    """Add a dashboard to a stack, with its name as an output."""
    cloudwatch.CfnDashboard(
        Construct(stack, "Dashboard"),
        "Dashboard",
        dashboard_name=definition.name,
        dashboard_body=dashboard_body(definition),
    )
    cdk.CfnOutput(stack, "DashboardName", value=definition.name, description="CloudWatch dashboard")


class DashboardStack(cdk.Stack):
    """A further dashboard of an environment with many endpoints: with the first, a template would be too large."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment, definition: Dashboard) -> None:
        """Make the stack, whose id ends in the dashboard's number."""
        name = environment.environment
        super().__init__(
            scope,
            construct_id,
            stack_name=naming.stack_name(environment=name, part=construct_id),
            description=f"Further dashboard of {name}",
        )
        add_dashboard(self, definition)


class ObservabilityStack(cdk.Stack):
    """Deployed after what it watches, which it knows by name: nothing is exported, and it can be deleted alone."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        builds: bool,
        engines: bool,
        load_tests: bool = False,
    ) -> None:
        """Make the stack.

        ``builds``, ``engines``: whether there is a builds stack, and in it a project for engines. ``load_tests``:
        whether a load-test stack tests single models.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-observability",
            description=f"Dashboard and alarms of {environment.environment}",
        )
        self._environment = environment
        self._projects = self._read_projects(engines=engines) if builds else None
        self._load_tests = load_tests
        outputs: ObservabilityFields = {
            "dashboard": None,
            "alarm_topic_arn": None,
            "composite_alarms": None,
            "endpoint_alarms": None,
            "build_alarms": None,
        }
        if environment.dashboard:
            outputs["dashboard"] = self._dashboard(environment)
        if environment.alarms is not None:
            self._alarms(environment.alarms, outputs)
        publish_outputs(self, environment=environment, kind="observability", outputs=outputs)

    def _dashboard(self, environment: Environment) -> str:
        """A dashboard with a fixed name, which people bookmark; its name."""
        definition, *_others = split(dashboard_of(environment, projects=self._projects))
        add_dashboard(self, definition)
        return definition.name

    def _alarms(self, settings: AlarmSettings, outputs: ObservabilityFields) -> None:
        name = self._environment.environment
        key_arn = self._read("ArtifactsKeyArn", naming.artifact_parameter(environment=name, value="key-arn"))
        scope = Construct(self, "Topic")
        topic = alarm_topic(scope, environment=name, key_arn=key_arn, email=settings.email)
        cdk.CfnOutput(self, "AlarmTopicArn", value=topic.ref, description="SNS topic that alarms notify")
        of_endpoints, of_builds = self._endpoint_alarms(settings), self._build_alarms()
        alarms = Alarms(
            self,
            "Alarms",
            environment=name,
            alarms=(
                *(each for of_one in of_endpoints.values() for each in of_one),
                *of_builds,
                *self._load_test_alarms(),
            ),
            runbooks=settings.runbooks,
            topic=topic.ref,
        )
        for composite in alarms.composites.values():
            composite.node.add_dependency(scope)  # its first message would be refused before the topic has its policy
        outputs["alarm_topic_arn"] = topic.ref
        outputs["composite_alarms"] = {severity: f"{name}-{severity}" for severity in alarms.composites}
        names = {endpoint: [each.name for each in of_one] for endpoint, of_one in of_endpoints.items()}
        if outputs_fit(names, spare=OTHER_OUTPUTS_BYTES):
            outputs["endpoint_alarms"], outputs["build_alarms"] = names, [each.name for each in of_builds]

    def _endpoint_alarms(self, settings: AlarmSettings) -> dict[str, list[Alarm]]:
        """Endpoint's name in the environment → its alarms."""
        every = [variants_of(self._environment, each) for each in self._environment.endpoints]
        scaled = [each for variants in every for each in variants if each.settings.scaling is not None]
        rules = AtMaximumEvents(self, "AtMaximum", variants=scaled).names if scaled else {}
        found = {}
        for variants in every:
            endpoint = variants[0].settings
            thresholds, own = endpoint.alarms or settings.thresholds, rules.get(variants[0].endpoint_name, {})
            found[endpoint.name] = list(endpoint_alarms(variants, thresholds, at_maximum_rules=own))
        return found

    def _build_alarms(self) -> list[Alarm]:
        if self._projects is None:
            return []
        name = self._environment.environment
        queue = naming.builds_parameter(environment=name, value="undelivered-queue-name")
        return list(build_alarms(name, self._projects, undelivered_queue=self._read("UndeliveredQueueName", queue)))

    def _load_test_alarms(self) -> list[Alarm]:
        if not self._load_tests:
            return []
        name = self._environment.environment
        queue = naming.load_test_parameter(environment=name, value="undelivered-queue-name")
        return [load_test_alarm(name, undelivered_queue=self._read("LoadTestsUndeliveredQueueName", queue))]

    def _read_projects(self, *, engines: bool) -> BuildProjects:
        environment = self._environment.environment
        build, engine = (
            naming.builds_parameter(environment=environment, value=value)
            for value in ("project-name", "engine-project-name")
        )
        return BuildProjects(
            build=self._read("ProjectName", build), engines=self._read("EngineProjectName", engine) if engines else None
        )

    def _read(self, construct_id: str, name: str) -> str:
        return read_parameter(self, construct_id, name=name)
