"""Denied requests, and the granted actions that each role used."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonstack.aws.iam_evaluation import Decision, Policy, PolicyKind, Request, matching_patterns
from tritonstack.aws.iam_policies import listed
from tritonstack_local import IAM_RECORDS
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.principals import Principal, named_policies
from tritonstack_local.emulator.ministack_adapter import cloudformation, iam

_KEPT_DENIALS = 200


@dataclass
class _Use:
    """How often a statement allowed an action, alone allowed a request, and for which pattern alone it applied then."""

    used: Counter[str] = field(default_factory=Counter)
    alone: int = 0
    needed: Counter[str] = field(default_factory=Counter)


class Records:
    """Thread-safe records of one emulator."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._denials: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._uses: dict[tuple[str, str, int], _Use] = {}  # by role, policy and number of the statement
        self._roles: dict[str, dict[str, Any]] = {}
        self._origins: dict[str, dict[str, str]] = {}

    def used(self, principal: Principal, request: Request, decision: Decision) -> None:
        """Count an action at the statements that allowed it; where one alone did, it and its patterns are needed."""
        if principal.kind != "role" or decision.kind is not PolicyKind.IDENTITY:
            return
        self.know(principal)
        with self._lock:
            for name, policy in named_policies(principal):
                for number, statement in enumerate(policy):
                    if any(statement is each for each in decision.statements):
                        use = self._uses.setdefault((principal.arn, name, number), _Use())
                        use.used[request.action] += 1
                        if len(decision.statements) == 1:
                            use.alone += 1
                            for patterns in matching_patterns(statement, request):
                                use.needed.update(patterns if len(patterns) == 1 else ())

    def denied(self, principal: Principal, need: Need, decision: Decision, *, sentence: str, by: str) -> None:
        """Keep a denial with the statement that would allow it; repeated ones of a principal are one, counted."""
        if need.action.startswith("logs:") and principal.kind == "role" and not any(named_policies(principal)):
            return  # the role goes with its stack, and what writes its last lines has no right any more: as on AWS
        key = (principal.shown, need.action, need.resource)
        with self._lock:
            before = self._denials.pop(key, {"times": 0})
            self._denials[key] = {
                "times": before["times"] + 1,
                "principal": principal.shown,
                "action": need.action,
                "resource": need.resource,
                "by": by,
                "message": sentence,
                # An explicit deny is not lifted by another statement.
                "would_allow": None
                if decision.explicit_deny
                else {"Effect": "Allow", "Action": need.action, "Resource": need.resource},
            }
            while len(self._denials) > _KEPT_DENIALS:
                del self._denials[next(iter(self._denials))]

    def know(self, principal: Principal) -> None:
        """Keep a role's statements for the report: the role may be deleted before it."""
        policies = {
            name: _shown(policy)
            for name, policy in named_policies(principal)
            if not name.startswith("arn:aws:iam::aws:")  # whose actions are AWS's to choose
        }
        if policies:
            role = {"arn": principal.arn, **self._origin(principal.name), "policies": policies}
            with self._lock:
                self._roles[principal.arn] = role

    def document(self) -> dict[str, Any]:
        """Denials, the oldest first, and every role with its statements and their uses."""
        for record in list(iam.roles().values()):
            self.know(Principal(arn=record["Arn"], kind="role"))
        with self._lock:
            roles = [
                {
                    **{key: value for key, value in role.items() if key != "policies"},
                    "statements": [
                        {
                            **statement,
                            "policy": name,
                            **vars(self._uses.get((arn, name, number), _Use())),
                        }
                        for name, statements in sorted(role["policies"].items())
                        for number, statement in enumerate(statements)
                    ],
                }
                for arn, role in sorted(self._roles.items())
            ]
            return {"denials": list(self._denials.values()), "roles": roles}

    def _origin(self, role: str) -> dict[str, str]:
        """The stack and the logical id that a role comes from; empty for one that was made otherwise."""
        if role in self._origins:
            return self._origins[role]
        for stack in list(cloudformation.stacks_by_name().values()):
            for logical_id, each in list(stack.get("_resources", {}).items()):
                if each.get("ResourceType") == "AWS::IAM::Role" and each.get("PhysicalResourceId") == role:
                    self._origins[role] = {"stack": stack["StackName"], "logical_id": logical_id}
                    return self._origins[role]
        return {"stack": "", "logical_id": ""}

    def write(self) -> None:
        """Write the document into the folder that ``IAM_RECORDS`` names, if it names one."""
        folder = os.environ.get(IAM_RECORDS)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            target = Path(folder, f"{os.getpid()}-{int(clock.now())}.json")
            temporary = target.with_suffix(".new")
            temporary.write_text(json.dumps(self.document(), default=list), encoding="utf-8")
            temporary.replace(target)


def _shown(policy: Policy) -> list[dict[str, Any]]:
    return [
        {
            "sid": each.get("Sid", ""),
            "effect": each["Effect"],
            "actions": listed(each.get("Action", each.get("NotAction"))),
            "resources": listed(each.get("Resource", each.get("NotResource"))),
        }
        for each in policy
    ]


records = Records()
