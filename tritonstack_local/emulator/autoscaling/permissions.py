"""The caller's rights that Application Auto Scaling tries before it changes anything, and its service-linked role.

Sources: user guide, "Permissions validation for API calls on target resources", "Identity-based policy examples" (the
six actions) and "Service-linked roles". PutMetricAlarm and DeleteAlarms are called without parameters, DescribeAlarms
with a maximum of 1: CloudWatch takes them for ``alarm:`` and ``alarm:*``. DescribeEndpointConfig is called with a UUID
(aws-controllers-k8s/community, issue 2110). That UpdateEndpointWeightsAndCapacities is too, that deregistration and
deletion are validated like the rest, and the error's text, are UNVERIFIED.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable

from ministack.core.responses import get_account_id
from ministack.services import iam

from tritonstack_local.emulator.iam.authorization import current_principal, enforced
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import arn_of, refusal_of
from tritonstack_local.emulator.request_validation import RefusedError

_SOURCE = "Application Auto Scaling user guide, Permissions validation for API calls on target resources"
_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
_PATH = f"/aws-service-role/{_SERVICE}/"
ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
_OWN_CALL = {"aws:ViaAWSService": "true"}


def check_caller(resource_id: str, operation: str, *, alarms: Iterable[str] = ()) -> None:
    """Raise RefusedError for the first right that the request's caller lacks.

    ``alarms``: names of a policy's alarms, which are made and deleted with the caller's rights.
    """
    any_name, changed = uuid.uuid4(), "DeleteAlarms" if operation.startswith("De") else "PutMetricAlarm"
    tried = [
        ("sagemaker:DescribeEndpoint", f"endpoint/{resource_id.split('/')[1].lower()}"),
        ("sagemaker:DescribeEndpointConfig", f"endpoint-config/{any_name}"),
        ("sagemaker:UpdateEndpointWeightsAndCapacities", f"endpoint/{any_name}"),
        ("cloudwatch:PutMetricAlarm", "alarm:"),
        ("cloudwatch:DescribeAlarms", "alarm:*"),
        ("cloudwatch:DeleteAlarms", "alarm:"),
        *((f"cloudwatch:{changed}", f"alarm:{name}") for name in alarms),
    ]
    needs = [Need(action=each, resource=arn_of(each.split(":")[0], of), context=_OWN_CALL) for each, of in tried]
    denied = refusal_of(current_principal(), needs, by=f"application-autoscaling: {operation}")
    if denied is not None:
        raise RefusedError("ValidationException", denied.sentence, source=_SOURCE)


def role_arn() -> str:
    """The ARN of the service-linked role."""
    return f"arn:aws:iam::{get_account_id()}:role{_PATH}{ROLE}"


def ensure_service_linked_role() -> None:
    """Create the service-linked role with the caller's rights, unless the account has it."""
    if not enforced() or any(role["Path"] == _PATH for role in iam._roles.values()):
        return
    need = Need(
        action="iam:CreateServiceLinkedRole", resource=role_arn(), context={"iam:AWSServiceName": _SERVICE} | _OWN_CALL
    )
    denied = refusal_of(current_principal(), [need], by="application-autoscaling: first scalable target")
    if denied is not None:
        raise RefusedError("AccessDeniedException", denied.sentence, source="Service-linked roles", status=403)
    trust = {"Effect": "Allow", "Principal": {"Service": _SERVICE}, "Action": "sts:AssumeRole"}
    iam._roles[ROLE] = {
        "RoleName": ROLE,
        "Arn": role_arn(),
        "RoleId": iam._gen_id("AROA"),
        "CreateDate": iam._now(),
        "Path": _PATH,
        "AssumeRolePolicyDocument": json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        "Description": "",
        "MaxSessionDuration": 3600,
        "AttachedPolicies": [],
        "InlinePolicies": {},
        "Tags": [],
    }
