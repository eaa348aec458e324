"""What a role's policy allows: IAM's evaluation, as far as the policies made here go."""

from __future__ import annotations

import fnmatch
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tests.constructs_lib.templates import flat, listed, of_type

_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": operator.eq,
    "StringLike": fnmatch.fnmatchcase,
    "ArnEquals": fnmatch.fnmatchcase,
    "Bool": operator.eq,
}


class Policy:
    """The one policy of a role in a template; a reference in an ARN reads ``${LogicalId}``."""

    def __init__(self, template: dict[str, Any], *, begins: str) -> None:
        """The policy whose logical id begins so."""
        [found] = [each for name, each in of_type(template, "AWS::IAM::Policy").items() if name.startswith(begins)]
        self.statements: list[dict[str, Any]] = found["Properties"]["PolicyDocument"]["Statement"]
        assert {each["Effect"] for each in self.statements} == {"Allow"}

    def allows(self, action: str, resource: str, **context: str) -> bool:
        """Whether a statement allows it. ``context``: condition keys, ``_`` for ``:`` (``s3_prefix``)."""
        keys = {name.replace("_", ":", 1): value for name, value in context.items()}
        return any(
            action in listed(each["Action"])
            and any(fnmatch.fnmatchcase(resource, flat(arn)) for arn in listed(each["Resource"]))
            and _holds(each.get("Condition", {}), keys)
            for each in self.statements
        )

    def actions(self, service: str) -> set[str]:
        """Every action of a service in it."""
        return {name for each in self.statements for name in listed(each["Action"]) if name.startswith(f"{service}:")}

    def resources(self, action: str) -> set[str]:
        """Every resource that an action is allowed on."""
        return {
            flat(arn)
            for each in self.statements
            if action in listed(each["Action"])
            for arn in listed(each["Resource"])
        }


def _holds(condition: Mapping[str, Mapping[str, Any]], keys: Mapping[str, str]) -> bool:
    return all(
        name in keys and any(_OPERATORS[condition_operator](keys[name], flat(wanted)) for wanted in listed(values))
        for condition_operator, entries in condition.items()
        for name, values in entries.items()
    )
