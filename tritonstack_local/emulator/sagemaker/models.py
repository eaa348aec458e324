"""CreateModel, DescribeModel, DeleteModel."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker import tags
from tritonstack_local.emulator.sagemaker.execution_role import check_execution_role
from tritonstack_local.emulator.sagemaker.records import API, MODEL, Record
from tritonstack_local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]


class Models:
    """The operations on models."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state

    def create(self, request: Request) -> dict[str, Any]:
        """CreateModel: one way of naming containers, each with an image or a package, and a role to assume."""
        containers = _containers(request)
        for container in containers:
            if not ("Image" in container or "ModelPackageName" in container):
                raise _refused("A container must have an Image or a ModelPackageName.")
            if "ModelDataUrl" in container and "ModelDataSource" in container:
                raise _refused("ModelDataUrl and ModelDataSource cannot be specified together.")
            if container.get("MultiModelConfig") and container.get("Mode") != "MultiModel":
                raise _refused("MultiModelConfig can only be specified for a container in MultiModel mode.")
        check_execution_role(request["ExecutionRoleArn"])
        record = Record(name=request["ModelName"], arn=MODEL.arn(request["ModelName"]), request=request)
        with self._state.changed:
            self._state.models.add(record)
            tags.store(self._state, record.arn, request.get("Tags", []))
        return {"ModelArn": record.arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeModel."""
        record = self._state.models.get(request["ModelName"])
        kept = {name: value for name, value in record.request.items() if name != "Tags"}
        return {
            "EnableNetworkIsolation": False,
            **kept,
            "ModelArn": record.arn,
            "CreationTime": record.created,
        }

    def delete(self, request: Request) -> None:
        """DeleteModel: "deletes only the model entry"; an endpoint that uses it goes on (API reference)."""
        with self._state.changed:
            record = self._state.models.remove(request["ModelName"])
            self._state.tags.pop(record.arn, None)


def _containers(request: Request) -> list[dict[str, Any]]:
    primary, several = request.get("PrimaryContainer"), request.get("Containers")
    if bool(primary) == bool(several):
        raise _refused("Exactly one of PrimaryContainer and Containers must be specified.")
    if "ExecutionRoleArn" not in request:
        raise _refused("ExecutionRoleArn must be specified.")
    return [primary] if primary else list(several or [])


def _refused(sentence: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, CreateModel")
