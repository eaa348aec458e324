"""Policies of an environment, split into grants of one principal, action and resource each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any

from tritonstack.arns import iam_arn
from tritonstack.aws.iam_policies import EVERYBODY, Conditions, conditions_of, covers, listed, stricter
from tritonstack.catalogue.data_file import read_data
from tritonstack.review.intrinsics import JSON_TEXT, StackValues, readable
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot


@dataclass(frozen=True, kw_only=True, order=True)
class Element:
    """One part of a grant.

    ``negated``: all but this, of a ``NotAction``, ``NotResource`` or ``NotPrincipal``; only the same covers it.
    """

    text: str  # a pattern
    negated: bool = False
    shown: str = field(compare=False)  # as the template writes it

    def covers(self, other: Element) -> bool:
        """Whether everything that the other matches is matched by this one. No false positives."""
        if self.negated or other.negated:
            return self == other or (self.text == "*" and not self.negated)
        return covers(self.text, other.text)

    @property
    def words(self) -> str:
        """``s3:GetObject``, or ``all but s3:GetObject``."""
        return f"all but {self.shown}" if self.negated else self.shown


ANYTHING = Element(text="*", shown="*")


@dataclass(frozen=True, kw_only=True, order=True)
class Source:
    """Location of a grant: logical id and construct path of the resource, and ``PolicyDocument.Statement[Read]``."""

    logical_id: str
    path: str
    property: str


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The smallest part of a statement."""

    allows: bool  # False for a Deny
    principal: Element | None  # ``AWS:arn:…``, ``Service:logs.amazonaws.com``, ``*``; None in an identity's policy
    action: Element  # in lower case
    resource: Element  # what the action is allowed on
    conditions: Conditions  # tests that a request must pass
    source: Source = field(compare=False)  # where it is; not compared

    @property
    def same_but_conditions(self) -> tuple[object, ...]:
        """Everything but the conditions."""
        return (self.allows, self.principal, self.action, self.resource)

    @property
    def order(self) -> tuple[object, ...]:
        """A sort key."""
        principal = self.principal or Element(text="", shown="")
        return (not self.allows, principal, self.action, self.resource, sorted(self.conditions))

    def covers(self, other: Grant) -> bool:
        """Whether it allows, or denies, all that the other does. No false positives."""
        return self.allows == other.allows and self._reaches(other)

    def denies(self, other: Grant) -> bool:
        """Whether it is a Deny that covers everything that the other allows."""
        return not self.allows and other.allows and self._reaches(other)

    def _reaches(self, other: Grant) -> bool:
        return (
            self.action.covers(other.action)
            and self.resource.covers(other.resource)
            and _principal_covers(self.principal, other.principal)
            and stricter(narrow=other.conditions, wide=self.conditions)
        )


def _principal_covers(wide: Element | None, narrow: Element | None) -> bool:
    """Whether every principal of the one is among those of the other. ``*``, the only wildcard, is no service."""
    if wide is None or narrow is None or wide == narrow:
        return wide == narrow
    if wide.text == EVERYBODY and not wide.negated:
        return not narrow.text.startswith("Service:") or narrow.negated
    return False


def least(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """The grants that no other one covers, sorted."""
    kept: list[Grant] = []
    for grant in sorted(grants, key=lambda each: (each.order, each.source)):
        if not any(each.covers(grant) for each in kept):
            kept = [each for each in kept if not grant.covers(each)]
            kept.append(grant)
    return tuple(kept)


class SubjectKind(StrEnum):
    """Relation of a policy to its subject."""

    IDENTITY = "identity"
    """What a role, user or group may do."""
    TRUST = "trust"
    """Who may assume a role."""
    RESOURCE = "resource"
    """Who may do what with a resource."""


Key = tuple[str, str, SubjectKind]
"""Stack, the subject's logical id or name, kind."""
PRINCIPALS = {"AWS::IAM::Role": "Roles", "AWS::IAM::User": "Users", "AWS::IAM::Group": "Groups"}
"""Type of an identity → the property of a policy that attaches it there."""
_NAMES = {"AWS::IAM::Role": "RoleName", "AWS::IAM::User": "UserName", "AWS::IAM::Group": "GroupName"}
_TYPES = read_data("resource_types.json")
_RESOURCE_POLICIES: Mapping[str, Mapping[str, Any]] = _TYPES["resource_policies"]
_ONE_RESOURCE = [name for name, row in _RESOURCE_POLICIES.items() if row["one_resource"]]
OWN_RESOURCE = (*_ONE_RESOURCE, "AWS::SecretsManager::Secret", "AWS::Lambda::Function", "AWS::Lambda::LayerVersion")
"""Types of subjects in whose policies ``*`` as a resource is the subject."""
_PERMISSIONS = {"AWS::Lambda::Permission": "FunctionName", "AWS::Lambda::LayerVersionPermission": "LayerVersionArn"}


@dataclass(kw_only=True)
class Subject:
    """A principal or a resource with its policies."""

    key: Key  # identifies it on both sides
    name: str  # to show: the construct path, or the name of a resource outside the app
    type: str | None  # the resource's; None outside the app
    values: StackValues  # of its stack
    grants: list[Grant] = field(default_factory=list)  # every grant
    # ARN of a managed policy outside the app → where it is attached
    managed: dict[str, Source] = field(default_factory=dict)
    boundary: tuple[str, Source] | None = None  # the permissions boundary, and where it is set

    @property
    def stack(self) -> str:
        """The stack's name in its environment."""
        return self.key[0]

    @property
    def kind(self) -> SubjectKind:
        """Relation of the policies to the subject."""
        return self.key[2]


def subjects_of(environment: EnvironmentSnapshot) -> Mapping[Key, Subject]:
    """Every subject of an environment's policies, sorted."""
    found: dict[Key, Subject] = {}
    for stack in environment.stacks.values():
        found |= _Collector(stack).collected()
    return dict(sorted(found.items()))


class _Collector:
    """Collects the subjects of one stack."""

    def __init__(self, stack: StackSnapshot) -> None:
        self._stack = stack
        self._values = StackValues(stack)
        self._subjects: dict[Key, Subject] = {}
        self._named = {
            (each.type, self._values.shown(each.properties[_NAMES[each.type]])): each.logical_id
            for each in stack.of_type(*_NAMES)
            if _NAMES[each.type] in each.properties
        }

    def collected(self) -> Mapping[Key, Subject]:
        for resource in self._stack.resources.values():
            if resource.type in PRINCIPALS:
                self._identity(resource)
            elif resource.type in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"}:
                self._policy(resource)
            elif resource.type in _PERMISSIONS:
                self._permission(resource, resource.properties.get(_PERMISSIONS[resource.type]))
            elif resource.type in _RESOURCE_POLICIES:
                self._resource_policy(resource)
        return self._subjects

    def _subject(self, name: str, kind: SubjectKind) -> Subject:
        key = (self._stack.name, name, kind)
        if key not in self._subjects:
            resource = self._stack.resources.get(name)
            self._subjects[key] = Subject(
                key=key,
                name=name if resource is None else resource.path,
                type=None if resource is None else resource.type,
                values=self._values,
            )
        return self._subjects[key]

    def _named_by(self, value: Json, type_: str = "") -> str:
        """The logical id of the resource that a value names, or the value."""
        text = self._values.shown(value)
        return self._values.logical_id(value) or self._named.get((type_, text)) or text

    def _identity(self, resource: Resource) -> None:
        subject = self._subject(resource.logical_id, SubjectKind.IDENTITY)
        properties = resource.properties
        for number, policy in enumerate(listed(properties.get("Policies"))):
            if isinstance(policy, dict):
                place = _source(resource, f"Policies[{policy.get('PolicyName', number)}].PolicyDocument")
                subject.grants += grants_of(policy.get("PolicyDocument"), values=self._values, source=place)
        for value in listed(properties.get("ManagedPolicyArns")):
            own = self._values.logical_id(value)
            if own is None:
                subject.managed[self._values.shown(value)] = _source(resource, "ManagedPolicyArns")
            else:
                subject.grants += self._document(self._stack.resources[own])
        if "PermissionsBoundary" in properties:
            place = _source(resource, "PermissionsBoundary")
            subject.boundary = (self._values.shown(properties["PermissionsBoundary"]), place)
        if "AssumeRolePolicyDocument" in properties:
            self._subject(resource.logical_id, SubjectKind.TRUST).grants += grants_of(
                properties["AssumeRolePolicyDocument"],
                values=self._values,
                source=_source(resource, "AssumeRolePolicyDocument"),
                has_principal=True,
                has_resource=False,
            )

    def _document(self, policy: Resource) -> list[Grant]:
        place = _source(policy, "PolicyDocument")
        return list(grants_of(policy.properties.get("PolicyDocument"), values=self._values, source=place))

    def _policy(self, policy: Resource) -> None:
        """A policy at the identities that it names; an unattached one by itself."""
        attached = [
            self._named_by(value, type_)
            for type_, name in PRINCIPALS.items()
            for value in listed(policy.properties.get(name))
        ]
        elsewhere = any(
            self._values.logical_id(value) == policy.logical_id
            for each in self._stack.of_type(*PRINCIPALS)
            for value in listed(each.properties.get("ManagedPolicyArns"))
        )
        for name in attached or ([] if elsewhere else [policy.logical_id]):
            self._subject(name, SubjectKind.IDENTITY).grants += self._document(policy)

    def _resource_policy(self, resource: Resource) -> None:
        row = _RESOURCE_POLICIES[resource.type]
        name, names = row["policy"], row["of"]
        values = [{"Ref": resource.logical_id}] if names is None else listed(resource.properties.get(names))
        for value in values:
            self._subject(self._named_by(value), SubjectKind.RESOURCE).grants += grants_of(
                resource.properties.get(name, row.get("default")),
                values=self._values,
                source=_source(resource, name),
                has_principal=True,
                has_resource=not row["one_resource"],
            )

    def _permission(self, resource: Resource, on: Json) -> None:
        """A permission to invoke, which is a statement in the policy of the function."""
        properties = resource.properties
        principal = properties.get("Principal", EVERYBODY)
        service = self._values.shown(principal).endswith((".amazonaws.com", ".amazonaws.com.cn", ".alexa.com"))
        condition: dict[str, dict[str, Json]] = {}
        for name, (operator, key) in _TYPES["lambda_permission_conditions"].items():
            if name in properties:
                condition.setdefault(operator, {})[key] = properties[name]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service" if service else "AWS": principal},
            "Action": properties.get("Action", "lambda:InvokeFunction"),
            "Condition": condition,
        }
        place = _source(resource, "Principal")
        self._subject(self._named_by(on), SubjectKind.RESOURCE).grants += _of_statement(
            statement, values=self._values, source=place, has_principal=True, has_resource=False
        )


def _source(resource: Resource, name: str) -> Source:
    return Source(logical_id=resource.logical_id, path=resource.path, property=name)


def grants_of(
    document: Json, *, values: StackValues, source: Source, has_principal: bool = False, has_resource: bool = True
) -> Iterator[Grant]:
    """Every grant of a policy document in a snapshot's normal form (text that is JSON: ``{"$json": …}``).

    ``source``: the resource, with the property that holds the document. ``has_principal``: False for an identity's
    policy. ``has_resource``: whether ``Resource`` restricts anything; False for a trust policy, which has none, and for
    the policy of a key, where ``*`` is the key.
    """
    if isinstance(document, dict) and document.keys() == {JSON_TEXT}:
        document = document[JSON_TEXT]
    is_document = isinstance(document, dict) and "Statement" in document
    for number, given in enumerate(listed(document["Statement"] if is_document else document)):
        statement = given
        if not isinstance(given, dict) or not isinstance(given.get("Effect"), str):
            # Another one is reported as another permission.
            text = f"what is known only when deployed: {readable(given)}"
            principal = {"AWS": "a principal that is named there"}
            statement = {"Effect": "Allow", "Principal": principal, "Action": text, "Resource": "*"}
        place = f"{source.property}.Statement[{statement.get('Sid', number)}]"
        made = Source(logical_id=source.logical_id, path=source.path, property=place)
        yield from _of_statement(
            statement, values=values, source=made, has_principal=has_principal, has_resource=has_resource
        )


def _of_statement(
    statement: Mapping[str, Json],
    *,
    values: StackValues,
    source: Source,
    has_principal: bool,
    has_resource: bool,
) -> Iterator[Grant]:
    def written(value: Json) -> tuple[str, str]:
        return values.canonical(value), values.shown(value)

    def action(value: Json) -> tuple[str, str]:
        return values.canonical(value).lower(), values.shown(value)

    actions = _elements(statement, "Action", action)
    resources = (_elements(statement, "Resource", written) if has_resource else []) or [ANYTHING]
    principals: list[Element] | list[None] = _principals(statement, values) if has_principal else [None]
    conditions = conditions_of(statement.get("Condition"), values.shown)
    for principal, one, on in product(principals, actions, resources):
        yield Grant(
            allows=statement["Effect"] != "Deny",
            principal=principal,
            action=one,
            resource=on,
            conditions=conditions,
            source=source,
        )


def _principals(statement: Mapping[str, Json], values: StackValues) -> list[Element]:
    """The principals. An account's number is its root; ``AWS: *`` is anybody."""

    def written(named: tuple[str, Json]) -> tuple[str, str]:
        kind, value = named
        text, shown = values.canonical(value), values.shown(value)
        if text == EVERYBODY and kind == "AWS":
            return EVERYBODY, "anybody"
        if kind == "AWS" and text.isdigit():
            text = shown = iam_arn("root", partition=values.partition, account=text)
        return f"{kind}:{text}", shown

    name = "NotPrincipal" if "NotPrincipal" in statement else "Principal"
    given = statement.get(name, EVERYBODY)
    if not isinstance(given, dict) or any(each.startswith(("Fn::", "Ref")) for each in given):
        given = {"AWS": given}
    named = [(kind, value) for kind in sorted(given) for value in listed(given[kind])]
    return _elements({name: named}, "Principal", written)


def _elements(statement: Mapping[str, Json], name: str, written: Callable[[Json], tuple[str, str]]) -> list[Element]:
    """``written``: a value as it is compared, and as it is shown."""
    negated = f"Not{name}" in statement
    texts: dict[str, str] = {}
    for value in listed(statement.get(f"Not{name}" if negated else name)):
        text, shown = written(value)
        texts[text] = min(shown, texts.get(text, shown))
    if negated:
        return [
            Element(text=", ".join(sorted(texts)), negated=True, shown=", ".join(texts[each] for each in sorted(texts)))
        ]
    return [Element(text=text, shown=shown) for text, shown in sorted(texts.items())]
