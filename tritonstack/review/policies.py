"""Principals that an environment's policies grant access to, and what is broad in a permission."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tritonstack.review.grants import ANYTHING, EVERYBODY, Element, Grant, Source, grants_of, principal
from tritonstack.review.iam_patterns import conditions_of, is_wild
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import EnvironmentSnapshot, Findings, Json, Resource, StackSnapshot


class SubjectKind(StrEnum):
    """What a policy is to its subject."""

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
_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
_SINGLE = {
    "AWS::IAM::RolePolicy": "RoleName",
    "AWS::IAM::UserPolicy": "UserName",
    "AWS::IAM::GroupPolicy": "GroupName",
}
_RESOURCE_POLICIES = {
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::S3::AccessPoint": ("Policy", None),
    "AWS::KMS::Key": ("KeyPolicy", None),
    "AWS::KMS::ReplicaKey": ("KeyPolicy", None),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::SNS::TopicInlinePolicy": ("PolicyDocument", "TopicArn"),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::SQS::QueueInlinePolicy": ("PolicyDocument", "Queue"),
    "AWS::EC2::VPCEndpoint": ("PolicyDocument", None),
    "AWS::Logs::ResourcePolicy": ("PolicyDocument", None),
    "AWS::ECR::Repository": ("RepositoryPolicyText", None),
    "AWS::ECR::RegistryPolicy": ("PolicyText", None),
    "AWS::SecretsManager::ResourcePolicy": ("ResourcePolicy", "SecretId"),
    "AWS::Events::EventBusPolicy": ("Statement", "EventBusName"),
}
"""Type → the property that holds the policy, and the one that names the resource; None: the policy is its own."""
_ONE_RESOURCE = ("AWS::KMS::Key", "AWS::KMS::ReplicaKey", "AWS::ECR::Repository", "AWS::SecretsManager::ResourcePolicy")
"""Types of policies in which ``Resource`` is the resource itself, or absent."""
OWN_RESOURCE = (*_ONE_RESOURCE, "AWS::SecretsManager::Secret", "AWS::Lambda::Function", "AWS::Lambda::LayerVersion")
"""Types of subjects in whose policies ``*`` as a resource says nothing."""
_DEFAULTS: dict[str, Json] = {
    "AWS::EC2::VPCEndpoint": {"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}
}
"""What holds where the template says nothing (VPC user guide, "Default endpoint policy")."""
_INVOCATION = {
    "SourceArn": ("ArnLike", "aws:SourceArn"),
    "SourceAccount": ("StringEquals", "aws:SourceAccount"),
    "PrincipalOrgID": ("StringEquals", "aws:PrincipalOrgID"),
    "OrganizationId": ("StringEquals", "aws:PrincipalOrgID"),
    "EventSourceToken": ("StringEquals", "lambda:EventSourceToken"),
    "FunctionUrlAuthType": ("StringEquals", "lambda:FunctionUrlAuthType"),
}
"""Property of a permission of Lambda → the condition that it becomes (Lambda developer guide)."""


@dataclass(kw_only=True)
class Subject:
    """Whom policies are about.

    Attributes:
        key: what it is known by on both sides.
        name: to show: the construct path, or the name of a resource that is not of the app.
        type: the resource's; None where it is not of the app.
        account: of its stack.
        grants: every grant.
        managed: ARN of a managed policy that is not of the app → where it is attached.
        boundary: the permissions boundary, and the role it stands on.
        replaced: what stands for a reference in its texts.
    """

    key: Key
    name: str
    type: str | None
    account: str | None
    grants: list[Grant] = field(default_factory=list)
    managed: dict[str, Source] = field(default_factory=dict)
    boundary: tuple[str, Source] | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)

    @property
    def stack(self) -> str:
        """The stack's name in its environment."""
        return self.key[0]

    @property
    def kind(self) -> SubjectKind:
        """What the policies are to it."""
        return self.key[2]


def subjects_of(environment: EnvironmentSnapshot | None) -> Mapping[Key, Subject]:
    """Every subject of an environment's policies, sorted."""
    found: dict[Key, Subject] = {}
    for stack in environment.stacks.values() if environment is not None else ():
        found |= _Collector(stack).collected()
    return dict(sorted(found.items()))


class _Collector:
    """Goes over one stack."""

    def __init__(self, stack: StackSnapshot) -> None:
        self._stack = stack
        self._reading = Reading(stack)
        self._subjects: dict[Key, Subject] = {}
        self._named = {
            (each.type, self._reading.shown(each.properties[_NAMES[each.type]])): each.logical_id
            for each in stack.of_type(*_NAMES)
            if _NAMES[each.type] in each.properties
        }

    def collected(self) -> Mapping[Key, Subject]:
        for resource in self._stack.resources.values():
            if resource.type in PRINCIPALS:
                self._identity(resource)
            elif resource.type in _POLICIES:
                self._policy(resource)
            elif resource.type in _SINGLE:
                self._single(resource)
            elif resource.type == "AWS::Lambda::Permission":
                self._permission(resource, resource.properties.get("FunctionName"))
            elif resource.type == "AWS::Lambda::LayerVersionPermission":
                self._permission(resource, resource.properties.get("LayerVersionArn"))
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
                account=self._stack.account,
                replaced=self._reading.replaced,
            )
        return self._subjects[key]

    def _named_by(self, value: Json, type_: str | None = None) -> str:
        """The logical id of the resource that a value names, or the value."""
        logical_id = self._reading.logical_id(value)
        text = self._reading.shown(value)
        return logical_id or (self._named.get((type_, text)) if type_ is not None else None) or text

    def _identity(self, resource: Resource) -> None:
        subject = self._subject(resource.logical_id, SubjectKind.IDENTITY)
        properties = resource.properties
        for number, policy in enumerate(_listed(properties.get("Policies"))):
            if isinstance(policy, dict):
                place = _source(resource, f"Policies[{policy.get('PolicyName', number)}].PolicyDocument")
                subject.grants += self._grants(policy.get("PolicyDocument"), place, has_principal=False)
        for value in _listed(properties.get("ManagedPolicyArns")):
            own = self._reading.logical_id(value)
            if own is None:
                subject.managed[self._reading.shown(value)] = _source(resource, "ManagedPolicyArns")
            else:
                policy = self._stack.resources[own]
                place = _source(policy, "PolicyDocument")
                subject.grants += self._grants(policy.properties.get("PolicyDocument"), place, has_principal=False)
        if "PermissionsBoundary" in properties:
            place = _source(resource, "PermissionsBoundary")
            subject.boundary = (self._reading.shown(properties["PermissionsBoundary"]), place)
        if "AssumeRolePolicyDocument" in properties:
            place = _source(resource, "AssumeRolePolicyDocument")
            document = properties["AssumeRolePolicyDocument"]
            trust = self._subject(resource.logical_id, SubjectKind.TRUST)
            trust.grants += self._grants(document, place, has_principal=True, has_resource=False)

    def _policy(self, resource: Resource) -> None:
        grants = self._grants(
            resource.properties.get("PolicyDocument"), _source(resource, "PolicyDocument"), has_principal=False
        )
        attached = [
            self._named_by(value, type_)
            for type_, name in PRINCIPALS.items()
            for value in _listed(resource.properties.get(name))
        ]
        if not attached and not self._attached_elsewhere(resource):
            attached = [resource.logical_id]
        for name in attached:
            self._subject(name, SubjectKind.IDENTITY).grants += grants

    def _attached_elsewhere(self, policy: Resource) -> bool:
        """Whether an identity of the stack names the policy, which then speaks there."""
        return any(
            self._reading.logical_id(value) == policy.logical_id
            for each in self._stack.of_type(*PRINCIPALS)
            for value in _listed(each.properties.get("ManagedPolicyArns"))
        )

    def _single(self, resource: Resource) -> None:
        name = _SINGLE[resource.type]
        type_ = next(key for key, value in _NAMES.items() if value == name)
        subject = self._subject(self._named_by(resource.properties.get(name), type_), SubjectKind.IDENTITY)
        place = _source(resource, "PolicyDocument")
        subject.grants += self._grants(resource.properties.get("PolicyDocument"), place, has_principal=False)

    def _resource_policy(self, resource: Resource) -> None:
        name, names = _RESOURCE_POLICIES[resource.type]
        document = resource.properties.get(name, _DEFAULTS.get(resource.type))
        if resource.type == "AWS::Events::EventBusPolicy":
            document = {"Statement": document}
        has_resource = resource.type not in _ONE_RESOURCE
        values = [None] if names is None else _listed(resource.properties.get(names, "default"))
        place = _source(resource, name)
        for value in values:
            subject = self._subject(
                resource.logical_id if value is None else self._named_by(value), SubjectKind.RESOURCE
            )
            subject.grants += self._grants(document, place, has_principal=True, has_resource=has_resource)

    def _permission(self, resource: Resource, on: Json) -> None:
        """A permission to invoke, which is a statement in the policy of the function."""
        properties = resource.properties
        who = properties.get("Principal", "*")
        text = self._reading.shown(who)
        service = text.endswith((".amazonaws.com", ".amazonaws.com.cn", ".alexa.com"))
        canonical, shown = principal("Service" if service else "AWS", who, self._reading)
        condition: dict[str, dict[str, Json]] = {}
        for name, (operator, key) in _INVOCATION.items():
            if name in properties:
                condition.setdefault(operator, {})[key] = properties[name]
        action = self._reading.shown(properties.get("Action", "lambda:InvokeFunction"))
        self._subject(self._named_by(on), SubjectKind.RESOURCE).grants.append(
            Grant(
                allows=True,
                principal=Element(texts=(canonical,), shown=(shown,)),
                action=Element(texts=(action.lower(),), shown=(action,)),
                resource=ANYTHING,
                conditions=conditions_of(condition, self._reading.replaced),
                source=_source(resource, "Principal"),
            )
        )

    def _grants(self, document: Json, source: Source, *, has_principal: bool, has_resource: bool = True) -> list[Grant]:
        return list(
            grants_of(
                document,
                reading=self._reading,
                source=source,
                has_principal=has_principal,
                has_resource=has_resource,
            )
        )


def _source(resource: Resource, name: str) -> Source:
    return Source(logical_id=resource.logical_id, path=resource.path, property=name)


def _listed(value: Json) -> list[Json]:
    return [] if value is None else value if isinstance(value, list) else [value]


_RULE = "AwsSolutions-IAM5"
_REFERENCE = re.compile(r"<([^<>]*)>")
_ACCOUNT = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")


def wildcards(grants: Iterable[Grant], *, subject: Subject, findings: Findings | None) -> tuple[str, ...]:
    """Every wildcard of grants that allow, in words, sorted.

    Args:
        grants: of one subject.
        subject: whom they are about.
        findings: of the environment, with the reasons for what is accepted; None where they are not known.
    """
    found: set[str] = set()
    for grant in grants:
        if grant.allows:
            found.update(_of(grant, subject, findings))
    return tuple(sorted(found))


def _of(grant: Grant, subject: Subject, findings: Findings | None) -> Iterator[str]:
    for kind, element, word in (("action", grant.action, _action_word), ("resource", grant.resource, _resource_word)):
        if kind == "resource" and element == ANYTHING and _is_own_resource(subject):
            continue
        if element.negated:
            yield f"{kind}: {element.words}"
        elif is_wild(element.shown[0]):
            text = f"{kind} {element.shown[0]}{word(element.shown[0])}"
            if subject.kind is SubjectKind.IDENTITY:
                text += _reason(grant, subject, f"{kind.capitalize()}::{element.shown[0]}", findings)
            yield text
    if grant.principal is not None and (grant.principal.negated or grant.principal.texts == (EVERYBODY,)):
        yield f"principal: {grant.principal.words}"


def _is_own_resource(subject: Subject) -> bool:
    """Whether ``*`` as a resource is the subject itself, or nothing that a statement says."""
    return subject.kind is SubjectKind.TRUST or subject.type in OWN_RESOURCE


def _action_word(action: str) -> str:
    if action == "*":
        return " (every action of every service)"
    return f" (every action of {action[:-2]})" if action.endswith(":*") else ""


def _resource_word(resource: str) -> str:
    if resource == "*":
        return " (everything)"
    parts = resource.split(":", 5)
    return f" (every resource of {parts[2]})" if len(parts) == 6 and parts[5] == "*" else ""


def foreign_accounts(grants: Iterable[Grant], account: str | None) -> tuple[str, ...]:
    """Accounts among the principals that are not the stack's own, sorted."""
    named = {
        each
        for grant in grants
        if grant.principal is not None
        for text in grant.principal.texts
        if text.startswith(("AWS:", "CanonicalUser:"))
        for each in _ACCOUNT.findall(text)
    }
    return tuple(sorted(named - {account}))


def _reason(grant: Grant, subject: Subject, what: str, findings: Findings | None) -> str:
    """The acknowledgement of cdk-nag's finding on the same text, if there is one."""
    if findings is None:
        return ""
    rule = f"{_RULE}[{what}]"
    for finding in findings.accepted:
        same_place = grant.source.path == finding.path or grant.source.path.startswith(f"{finding.path}/")
        if finding.stack == subject.stack and same_place and _as_shown(finding.rule, subject) == rule:
            return f" — accepted: {finding.accepted}"
    return " — no reason is written"


def _as_shown(rule: str, subject: Subject) -> str:
    """cdk-nag's ``<Bucket.Arn>`` as a permission shows it."""
    return _REFERENCE.sub(lambda found: subject.replaced.get(f"${{{found[1]}}}", f"${{{found[1]}}}"), rule)
