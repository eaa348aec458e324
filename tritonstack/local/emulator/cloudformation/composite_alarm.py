"""AWS::CloudWatch::CompositeAlarm."""

from __future__ import annotations

from ministack.core.responses import get_account_id, get_region

from tritonstack.local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack.local.emulator.ministack_call import call

_LONGEST_NAME = 255


def _put(name: str, properties: Properties) -> Provisioned:
    call("cloudwatch", "PutCompositeAlarm", {**properties, "AlarmName": name})
    return name, {"Arn": f"arn:aws:cloudwatch:{get_region()}:{get_account_id()}:alarm:{name}"}


def _create(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    name = properties.get("AlarmName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
    return _put(name, properties)


def _update(name: str, _old: Properties, new: Properties, _stack_name: str) -> Provisioned:
    return _put(name, new)


def _delete(name: str, _properties: Properties) -> None:
    call("cloudwatch", "DeleteAlarms", {"AlarmNames": [name]})


def install() -> None:
    """Register the type."""
    register("AWS::CloudWatch::CompositeAlarm", create=_create, update=_update, delete=_delete)
