"""SageMaker's endpoints and Application Auto Scaling as the local AWS has them, in the process of a test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fake_aws import FakeAws
from tests.fake_aws.responding import AwsError
from tritonstack.paths import REPOSITORY

PACKAGES = REPOSITORY / ".envs/emulator/lib"
"""Where MiniStack is installed, which the emulator's modules import."""
sys.path.extend(str(path) for path in PACKAGES.glob("python3.*/site-packages") if str(path) not in sys.path)


@dataclass
class EmulatedAws(FakeAws):
    """An account whose endpoints, scalable targets, policies and scheduled actions are the emulator's.

    Operations that the fake, or a test's ``responses``, has itself come before the emulator's.
    """

    _services: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from tritonstack_local.emulator.autoscaling.api import ScalableTargets, autoscaling_service
        from tritonstack_local.emulator.autoscaling.scalable import scalables
        from tritonstack_local.emulator.iam.authorization import switch
        from tritonstack_local.emulator.processing.jobs import ProcessingJobs
        from tritonstack_local.emulator.sagemaker.api import sagemaker_service
        from tritonstack_local.emulator.sagemaker.components import Components
        from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
        from tritonstack_local.emulator.sagemaker.state import SageMakerState

        switch.on = False  # what functions and roles may do is tested on the whole emulator
        self._state = SageMakerState(fleets=False)
        endpoints = Endpoints(self._state)
        components, jobs = Components(self._state, endpoints.instances), ProcessingJobs(self._state)
        self._services["sagemaker"] = sagemaker_service(self._state, endpoints, components, jobs)
        kinds = scalables(self._state, endpoints, components)
        self._services["application-autoscaling"] = autoscaling_service(ScalableTargets(self._state, kinds))

    def emulated(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """An operation of the emulator. Raises :class:`AwsError` for its refusal."""
        from tritonstack_local.emulator.ministack_adapter.core import request_scope
        from tritonstack_local.emulator.request_validation import RefusedError

        with request_scope(self.account, self.region):
            try:
                response: dict[str, Any] = self._services[service].call(operation, request)
            except RefusedError as refused:
                raise AwsError(refused.code, str(refused), status=refused.status) from refused
        return response

    def add_model(self, name: str) -> None:
        """Add a model, whose role and container nothing looks at."""
        from tritonstack_local.emulator.ministack_adapter.core import request_scope
        from tritonstack_local.emulator.sagemaker.records import MODEL, Record

        with request_scope(self.account, self.region):
            container = {"Image": f"{self.account}.dkr.ecr.{self.region}.amazonaws.com/triton:24.09"}
            request = {"ExecutionRoleArn": f"arn:aws:iam::{self.account}:role/r", "PrimaryContainer": container}
            self._state.models.add(Record(name=name, arn=MODEL.arn(name), request=request))

    def endpoint_record(self, name: str) -> Any:
        """The emulator's record of an endpoint; None without one."""
        from tritonstack_local.emulator.ministack_adapter.core import request_scope

        with request_scope(self.account, self.region):
            return self._state.endpoints.find(name)

    def respond(self, operation: str, request: dict[str, Any], *, service: str) -> Mapping[str, Any]:
        """As the fake does, and from the emulator."""
        own = operation in self.refused or f"{service}.{operation}" in self.responses or hasattr(self, f"_{operation}")
        if own or service not in self._services:
            return super().respond(operation, request, service=service)
        return self.emulated(service, operation, **request)
