"""The stack of load tests: what ``tritonstack capacity bench --cloud`` starts. It costs nothing while no test runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucket
from constructs_lib.codebuild_project import BuildLog, BuildMachine, BuildSource, acknowledge_role_path
from constructs_lib.load_test import LoadTestFunction, LoadTestMachine, LoadTestProject, LoadTestRole
from constructs_lib.outputs import write_parameter
from constructs_lib.triton_model import TritonImage
from tritonstack import naming
from tritonstack.config import Endpoint, Environment, LoadTestSettings
from tritonstack.config.builds import QUEUE_MINUTES
from tritonstack.naming import load_test_job_prefix

if TYPE_CHECKING:
    from constructs_lib.network import NetworkReference


class LoadTestStack(cdk.Stack):
    """The load tests of one environment.

    Attributes:
        project: calls multi-model endpoints; None where none is tested.
        machine: tests single-model endpoints; None likewise.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: Environment, settings: LoadTestSettings
    ) -> None:
        """Make the stack for one environment, and the tests of its ``load_test``."""
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-load-test",
            description=f"Load tests of {environment.environment}",
        )
        self._environment = environment
        self._settings = settings
        self._artifacts = ArtifactBucket.from_parameters(self, "Artifacts", environment=environment.environment)
        self._log = BuildLog(
            self,
            "Log",
            environment=environment.environment,
            of="load-tests",
            days=settings.log_days,
            artifacts=self._artifacts,
        )
        tested = environment.tested_endpoints
        self.project = self._project([each for each in tested if each.multi_model])
        self.machine = self._machine([each for each in tested if not each.multi_model])
        self._record("log-group-name", self._log.name)

    def _project(self, endpoints: Sequence[Endpoint]) -> LoadTestProject | None:
        if not endpoints:
            return None
        environment, bench = self._environment, self._settings.bench
        project = LoadTestProject(
            self,
            "Bench",
            environment=environment.environment,
            endpoints=[each.name for each in endpoints],
            artifacts=self._artifacts,
            source=BuildSource(self, "Source", models=None),
            machine=BuildMachine(
                image=bench.image,
                compute_type=bench.compute_type,
                timeout_minutes=bench.timeout_minutes,
                queue_minutes=QUEUE_MINUTES,
                network=self._network("BuildNetwork").of_builds() if environment.benched_in_network else None,
            ),
            log=self._log,
        )
        if environment.role_path is not None:
            acknowledge_role_path(project.project)
        self._record("project-name", project.project.ref)
        return project

    def _machine(self, endpoints: Sequence[Endpoint]) -> LoadTestMachine | None:
        if not endpoints:
            return None
        environment = self._environment
        names = load_test_job_prefix(environment.environment)
        prefixes = [naming.platform_prefix(endpoint=each.name, platform=each.platform) for each in endpoints]
        uris = sorted({each.image_uri(environment.region) for each in endpoints})
        role = LoadTestRole(
            self,
            "Jobs",
            environment=environment.environment,
            names=names,
            artifacts=self._artifacts,
            archive_prefixes=prefixes,
            images=[TritonImage.from_uri(uri) for uri in uris],
            network=None if environment.joined_network is None else self._network("ContainerNetwork").of_containers(),
        )
        steps = LoadTestFunction(
            self,
            "Steps",
            environment=environment.environment,
            names=names,
            artifacts=self._artifacts,
            jobs=role,
            archive_prefixes=prefixes,
        )
        machine = LoadTestMachine(
            self,
            "Recommender",
            environment=environment.environment,
            at_once=self._settings.recommender.at_once,
            steps=steps,
            log=self._log,
        )
        cleaning = steps.clean_up_after(state_machine_arn=machine.machine.attr_arn, environment=environment.environment)
        self._record("state-machine-arn", machine.machine.attr_arn)
        self._record("state-machine-name", machine.machine.attr_name)
        self._record("undelivered-queue-name", cleaning.undelivered.attr_queue_name)
        return machine

    def _network(self, construct_id: str) -> NetworkReference:
        """The environment's network; parameters of the stack are made only for what is asked of it."""
        from constructs_lib.network import NetworkReference  # noqa: PLC0415 - EC2's types, which most need not

        joined = self._environment.joined_network
        if joined is None:
            raise ValueError(f"{self._environment.environment} joins no network")
        return NetworkReference(self, construct_id, environment=self._environment.environment, settings=joined)

    def _record(self, value: str, text: str) -> None:
        name = naming.load_test_parameter(environment=self._environment.environment, value=value)
        write_parameter(self, value, name=name, text=text)
