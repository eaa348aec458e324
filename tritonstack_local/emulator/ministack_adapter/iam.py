"""``ministack.services.iam`` and ``sts``, and what MiniStack's own access control has of policies, errors and tags."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.services import iam, sts, tagging

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Value

# --- Identities and policies ---

roles = Value(iam, "_roles", "AccountScopedDict")
users = Value(iam, "_users", "AccountScopedDict")
groups = Value(iam, "_groups", "AccountScopedDict")
access_keys = Value(iam, "_access_keys", "AccountScopedDict")
user_inline_policies = Value(iam, "_user_inline_policies", "AccountScopedDict")
group_inline_policies = Value(iam, "_group_inline_policies", "AccountScopedDict")
lookup_policy = Function(iam, "_lookup_policy", "arn")
policy_exists = Function(iam, "_policy_exists", "arn")
create_service_linked_role = Function(iam, "_create_service_linked_role", "p")

# --- Requests ---

operations = Value(
    iam,
    "_IAM_HANDLERS",
    "dict",
    keys="PutRolePolicy PutUserPolicy PutGroupPolicy CreatePolicy CreatePolicyVersion CreateRole"
    " UpdateAssumeRolePolicy",
)
parameter = Function(iam, "_p", "params key")
error_response = Function(iam, "_error", "status code message * ns")


def replace_operation(operation: str, ours: Callable[[Mapping[str, Any]], Any]) -> None:
    """Put ``ours`` in an operation's place, for the API and for MiniStack's provisioners, which call its function."""
    theirs = operations()[operation]
    operations()[operation] = ours
    setattr(iam, theirs.__name__, ours)


# --- Sessions ---

sessions = Value(sts, "_sessions", "dict")
"""Access key → session."""
session_expired = Function(sts, "_session_expired", "session")
register_session = Function(sts, "register_session", "access_key session")
gen_session_access_key = Function(iam, "_gen_session_access_key")
gen_secret = Function(iam, "_gen_secret")
gen_session_token = Function(iam, "_gen_session_token")

# --- Errors in the form of each service ---

access_denied_response = Function(
    iam_actions,
    "access_denied_response",
    "service action principal_arn request_id * error_code message headers",
)
auth_failures = Value(iam_actions, "_AUTH_FAILURES", "dict")
denied_codes = Value(iam_actions, "_DENIED_CODES", "dict")

# --- Policies and tags of resources ---

resource_policy_lookups = Value(iam_evaluator, "_RESOURCE_POLICY_LOOKUPS", "dict")
"""Service → a module and its function that finds the policy of an ARN."""
resource_tags = Function(tagging, "resource_tags", "arn")


def resource_policy_document(service: str, resource: str) -> Any:
    """The policy of a resource, as its service keeps it: a text or a mapping; None where it has none."""
    lookup = resource_policy_lookups().get(service)
    if lookup is None:
        return None
    found = getattr(importlib.import_module(f"ministack.services.{lookup[0]}"), lookup[1])(resource)
    return found[0] or None if found is not None else None
