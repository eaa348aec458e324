"""CreateEndpointConfig, DescribeEndpointConfig, DeleteEndpointConfig."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tritonstack.local.emulator.refusal import RefusedError
from tritonstack.local.emulator.sagemaker import tags
from tritonstack.local.emulator.sagemaker.records import API, ENDPOINT_CONFIG, Record
from tritonstack.local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]


class EndpointConfigs:
    """The operations on endpoint configs."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state

    def create(self, request: Request) -> dict[str, Any]:
        """CreateEndpointConfig: variants have names of their own, instances, and models that exist."""
        variants = [*request["ProductionVariants"], *request.get("ShadowProductionVariants", [])]
        for name, count in Counter(variant["VariantName"] for variant in variants).items():
            if count > 1:
                raise _refused(f"The production variant name {name} is used {count} times.", "CreateEndpointConfig")
        name = request["EndpointConfigName"]
        record = Record(name=name, arn=ENDPOINT_CONFIG.arn(name), request=request)
        with self._state.changed:
            for variant in variants:
                self._check_variant(variant)
            self._state.endpoint_configs.add(record)
            tags.store(self._state, record.arn, request.get("Tags", []))
        return {"EndpointConfigArn": record.arn}

    def _check_variant(self, variant: dict[str, Any]) -> None:
        if "ModelName" in variant:
            self._state.models.get(variant["ModelName"])
        elif "ServerlessConfig" in variant:
            raise _refused(f"Variant {variant['VariantName']} names no model.", "CreateEndpointConfig")
        instances = {"InstanceType", "InitialInstanceCount"} <= variant.keys() or "InstancePools" in variant
        if instances == ("ServerlessConfig" in variant):
            raise _refused(
                f"Variant {variant['VariantName']} must have InstanceType and InitialInstanceCount,"
                " or ServerlessConfig.",
                "CreateEndpointConfig",
            )

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeEndpointConfig."""
        record = self._state.endpoint_configs.get(request["EndpointConfigName"])
        kept = {name: value for name, value in record.request.items() if name != "Tags"}
        return {**kept, "EndpointConfigArn": record.arn, "CreationTime": record.created}

    def delete(self, request: Request) -> None:
        """DeleteEndpointConfig: refused while an endpoint uses it or is being moved to it."""
        with self._state.changed:
            record = self._state.endpoint_configs.get(request["EndpointConfigName"])
            users = [e.name for e in self._state.endpoints if record.name.lower() in e.configs_in_use]
            if users:
                raise _refused(
                    f'Cannot delete endpoint configuration "{record.arn}": it is in use by {", ".join(sorted(users))}.'
                    " You must not delete an EndpointConfig in use by an endpoint that is live or while the"
                    " UpdateEndpoint or CreateEndpoint operations are being performed on the endpoint.",
                    "DeleteEndpointConfig",
                )
            self._state.endpoint_configs.remove(record.name)
            self._state.tags.pop(record.arn, None)


def _refused(sentence: str, operation: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, {operation}")
