"""The observability stack: an environment's dashboard, its alarms, and the SNS topic that they notify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_lib.monitoring import Alarms, AtMaximumEvents, alarm_topic
from constructs_lib.outputs import outputs_fit, publish_outputs, read_parameter
from tritonstack import naming
from tritonstack.config import AlarmSettings, Environment
from tritonstack.monitoring.alarms import SEVERITIES, Alarm, Severity, build_alarms, endpoint_alarms, load_test_alarm
from tritonstack.monitoring.dashboard import dashboard_body, dashboards_of
from tritonstack.monitoring.graphs import BuildProjects, Dashboard, variants_of
from tritonstack.monitoring.log_lines import LOG_METRICS, QUERY, counts_log_lines, log_metrics_namespace
from tritonstack.monitoring.parts import observed_parts

if TYPE_CHECKING:
    from tritonstack.outputs.contract import ObservabilityFields

OTHER_OUTPUTS_BYTES = 1500
"""Outputs of the stack besides the alarms' names: ARNs and names, of at most a few hundred characters each."""


def add_dashboard(stack: cdk.Stack, definition: Dashboard) -> None:
    """Add a dashboard to a stack, with its name, which is fixed for people's bookmarks, as an output."""
    cloudwatch.CfnDashboard(
        Construct(stack, "Dashboard"),
        "Dashboard",
        dashboard_name=definition.name,
        dashboard_body=dashboard_body(definition),
    )
    cdk.CfnOutput(stack, "DashboardName", value=definition.name, description="CloudWatch dashboard")


def add_log_queries(stack: cdk.Stack, *, environment: Environment, part: int) -> None:
    """Model loads and unloads from the containers' logs: a saved Logs Insights query, and metrics that count them.

    ``part``: the stack's number. The serving stacks, deployed before, make the log groups before the endpoints.
    """
    endpoints = [each for each in observed_parts(environment)[part - 1] if each.multi_model]
    if not endpoints:
        return
    scope = Construct(stack, "ModelLoads")
    groups = [naming.endpoint_log_group(each.sagemaker_name(environment.environment)) for each in endpoints]
    logs.CfnQueryDefinition(
        scope,
        "Query",
        name=naming.log_query(environment.environment, part=part),
        query_string=QUERY,
        log_group_names=groups,
    )
    for endpoint, group in zip(endpoints, groups, strict=True):
        if not counts_log_lines(environment, endpoint):
            continue
        for metric in LOG_METRICS:
            logs.CfnMetricFilter(
                scope,
                f"{metric.name}-{endpoint.name}",
                log_group_name=group,
                filter_pattern=metric.pattern,
                metric_transformations=[
                    logs.CfnMetricFilter.MetricTransformationProperty(
                        metric_namespace=log_metrics_namespace(environment, endpoint),
                        metric_name=metric.name,
                        metric_value="1",
                        unit="Count",
                    )
                ],
            )


def add_endpoint_alarms(
    stack: cdk.Stack, *, environment: Environment, settings: AlarmSettings, part: int
) -> dict[str, list[Alarm]]:
    """The alarms of the endpoints that a stack monitors: endpoint's name in the environment → alarms.

    The rules that some of them count are added to the stack. ``part``: the stack's number.
    """
    every = [variants_of(environment, each) for each in observed_parts(environment)[part - 1]]
    scaled = [each for variants in every for each in variants if each.settings.scaling is not None]
    rules = AtMaximumEvents(stack, "AtMaximum", variants=scaled).names if scaled else {}
    found = {}
    for variants in every:
        endpoint = variants[0].settings
        thresholds, own = endpoint.alarms or settings.thresholds, rules.get(variants[0].endpoint_name, {})
        found[endpoint.name] = list(endpoint_alarms(variants, thresholds, at_maximum_rules=own, part=part))
    return found


class FurtherObservabilityStack(cdk.Stack):
    """Dashboard and alarms of further endpoints, where there are many: one template would be too large.

    Attributes:
        composites: severity → name of the composite alarm of this stack's alarms; that of the first stack notifies.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment, part: int) -> None:
        """Make the stack. ``part``: its number, from 2."""
        name = environment.environment
        super().__init__(
            scope,
            construct_id,
            stack_name=naming.stack_name(environment=name, part=construct_id),
            description=f"Dashboard and alarms of further endpoints of {name}",
        )
        self.composites: dict[Severity, str] = {}
        if environment.dashboard:
            add_dashboard(self, dashboards_of(environment, projects=None)[part - 1])
            add_log_queries(self, environment=environment, part=part)
        if environment.alarms is not None:
            settings = environment.alarms
            of_endpoints = add_endpoint_alarms(self, environment=environment, settings=settings, part=part)
            alarms = [each for of_one in of_endpoints.values() for each in of_one]
            made = Alarms(
                self,
                "Alarms",
                environment=name,
                alarms=alarms,
                runbooks=settings.runbooks,
                topic=None,
                part=part,
            )
            self.composites = {
                severity: naming.composite_alarm(name, severity=severity, part=part) for severity in made.composites
            }


class ObservabilityStack(cdk.Stack):
    """Deployed after what it monitors, which it refers to by name: nothing is exported, and it can be deleted alone."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        builds: bool,
        engines: bool,
        load_tests: bool = False,
        further: Sequence[FurtherObservabilityStack] = (),
    ) -> None:
        """Make the stack.

        ``builds``, ``engines``: whether there is a builds stack, and in it a project for engines. ``load_tests``:
        whether a load-test stack tests single models. ``further``: the stacks that monitor the other endpoints,
        deployed before this one.
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
        self._further = further
        for each in further:
            self.add_stack_dependency(each)  # so that it is deployed with this one, by this one's name alone
        outputs: ObservabilityFields = {
            "dashboard": None,
            "alarm_topic_arn": None,
            "composite_alarms": None,
            "endpoint_alarms": None,
            "build_alarms": None,
        }
        if environment.dashboard:
            definition, *_others = dashboards_of(environment, projects=self._projects)
            add_dashboard(self, definition)
            add_log_queries(self, environment=environment, part=1)
            outputs["dashboard"] = definition.name
        if environment.alarms is not None:
            self._alarms(environment.alarms, outputs)
        publish_outputs(self, environment=environment, kind="observability", outputs=outputs)

    def _alarms(self, settings: AlarmSettings, outputs: ObservabilityFields) -> None:
        name = self._environment.environment
        key_arn = self._read("ArtifactsKeyArn", naming.artifact_parameter(environment=name, value="key-arn"))
        scope = Construct(self, "Topic")
        topic = alarm_topic(scope, environment=name, key_arn=key_arn, email=settings.email)
        cdk.CfnOutput(self, "AlarmTopicArn", value=topic.ref, description="SNS topic that alarms notify")
        of_endpoints = add_endpoint_alarms(self, environment=self._environment, settings=settings, part=1)
        of_builds = self._build_alarms()
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
            further={
                severity: [each.composites[severity] for each in self._further if severity in each.composites]
                for severity in SEVERITIES
            },
        )
        for composite in alarms.composites.values():
            composite.node.add_dependency(scope)  # its first message would be refused before the topic has its policy
        outputs["alarm_topic_arn"] = topic.ref
        outputs["composite_alarms"] = {severity: f"{name}-{severity}" for severity in alarms.composites}
        names = {endpoint: [each.name for each in of_one] for endpoint, of_one in of_endpoints.items()}
        # With further stacks the map would lack their endpoints, which would be reported as endpoints without alarms.
        if not self._further and outputs_fit(names, spare=OTHER_OUTPUTS_BYTES):
            outputs["endpoint_alarms"], outputs["build_alarms"] = names, [each.name for each in of_builds]

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
