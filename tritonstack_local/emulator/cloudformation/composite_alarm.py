"""AWS::CloudWatch::CompositeAlarm."""

from __future__ import annotations

from ministack.core.responses import get_account_id, get_region

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.ministack_call import call

_LONGEST_NAME = 255


def _arn(name: str) -> str:
    return f"arn:aws:cloudwatch:{get_region()}:{get_account_id()}:alarm:{name}"


def _put(name: str, properties: Properties) -> Provisioned:
    """PutCompositeAlarm, which ignores the tags of an alarm that exists (API reference)."""
    call("cloudwatch", "PutCompositeAlarm", {**properties, "Tags": _own_tags(properties), "AlarmName": name})
    return name, {"Arn": _arn(name)}


def _own_tags(properties: Properties) -> list[dict[str, str]]:
    """Without CloudFormation's own ``aws:`` tags, which MiniStack takes from nobody here."""
    return [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")]


def _create(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    name = properties.get("AlarmName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
    return _put(name, properties)


def _update(name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
    kept = _own_tags(new)
    dropped = {tag["Key"] for tag in _own_tags(old)} - {tag["Key"] for tag in kept}
    if dropped:
        call("cloudwatch", "UntagResource", {"ResourceARN": _arn(name), "TagKeys": sorted(dropped)})
    if kept:
        call("cloudwatch", "TagResource", {"ResourceARN": _arn(name), "Tags": kept})
    return _put(name, new)


def _delete(name: str, _properties: Properties) -> None:
    call("cloudwatch", "DeleteAlarms", {"AlarmNames": [name]})


def install() -> None:
    """Register the type."""
    register("AWS::CloudWatch::CompositeAlarm", create=_create, update=_update, delete=_delete)
