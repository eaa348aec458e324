"""Values of a stack as they are compared and shown; resources that stand under another logical id than before."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tritonstack.review.snapshot import Json, Resource, StackSnapshot, readable

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_WHOLE = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
_ARNS = {
    ("AWS::S3::Bucket", ".Arn"): "arn:{partition}:s3:::${{{name}}}",
    ("AWS::Logs::LogGroup", ".Arn"): "arn:{partition}:logs:{region}:{account}:log-group:${{{name}}}:*",
    ("AWS::Lambda::Function", ".Arn"): "arn:{partition}:lambda:{region}:{account}:function:${{{name}}}",
    ("AWS::SQS::Queue", ".Arn"): "arn:{partition}:sqs:{region}:{account}:${{{name}.QueueName}}",
    ("AWS::SNS::Topic", ""): "arn:{partition}:sns:{region}:{account}:${{{name}.TopicName}}",
    ("AWS::KMS::Key", ".Arn"): "arn:{partition}:kms:{region}:{account}:key/${{{name}}}",
}
"""Type and attribute → the ARN that it reads, as the service authorization reference writes it."""


@dataclass(frozen=True)
class Reading:
    """How values of one stack read."""

    stack: StackSnapshot

    @property
    def partition(self) -> str:
        """``aws``, or that of the region."""
        region = self.stack.region or ""
        return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"

    @property
    def account(self) -> str:
        """The stack's account, or the pseudo parameter."""
        return self.stack.account or "${AWS::AccountId}"

    @cached_property
    def replaced(self) -> dict[str, str]:
        """Reference → what it is known to be: pseudo parameters, and parameters by what they read."""
        known = {"${AWS::Partition}": self.partition, "${AWS::StackName}": self.stack.stack_name}
        if self.stack.account is not None:
            known["${AWS::AccountId}"] = self.stack.account
        if self.stack.region is not None:
            known["${AWS::Region}"] = self.stack.region
            china = self.partition == "aws-cn"
            known["${AWS::URLSuffix}"] = "amazonaws.com.cn" if china else "amazonaws.com"
        for name, parameter in self.stack.template.get("Parameters", {}).items():
            if "Default" in parameter:
                default = str(parameter["Default"])
                stored = str(parameter.get("Type", "")).startswith("AWS::SSM::Parameter::Value")
                known[f"${{{name}}}"] = f"${{ssm:{default}}}" if stored else default
        return known

    def shown(self, value: Json) -> str:
        """A value for people: ``${Bucket.Arn}/x``, with known references in place."""
        text = readable(value)
        return _REFERENCE.sub(lambda found: self.replaced.get(found[0], found[0]), text) if "${" in text else text

    def canonical(self, value: Json) -> str:
        """A value to compare: ARNs of the stack's resources are written out as far as they are known."""
        text = self.shown(value)
        return _REFERENCE.sub(self._written_out, text) if "${" in text else text

    def logical_id(self, value: Json) -> str | None:
        """The resource that a value names by ``Ref`` or an attribute; None where it is no reference to one here."""
        found = _WHOLE.fullmatch(readable(value))
        return found[1] if found and found[1] in self.stack.resources else None

    def _written_out(self, found: re.Match[str]) -> str:
        name, dot, attribute = found[1].partition(".")
        resource = self.stack.resources.get(name)
        form = _ARNS.get((resource.type, dot + attribute)) if resource is not None else None
        if form is None:
            return found[0]
        region = self.stack.region or "${AWS::Region}"
        return form.format(partition=self.partition, region=region, account=self.account, name=name)


NAME = "PolicyName"
_IDENTITIES = {
    "AWS::IAM::Policy": ("Roles", "Users", "Groups"),
    "AWS::IAM::RolePolicy": ("RoleName",),
    "AWS::IAM::UserPolicy": ("UserName",),
    "AWS::IAM::GroupPolicy": ("GroupName",),
}
"""Type of an inline policy → the properties that say whose it is."""


def renames(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> dict[str, str]:
    """New logical id → old one, where type and properties are the same and no other pair is possible.

    CloudFormation knows resources by their logical ids: it makes a new one all the same.
    """
    gone, come = defaultdict(list), defaultdict(list)
    for name, resource in before.items():
        if name not in after:
            gone[_content(resource)].append(name)
    for name, resource in after.items():
        if name not in before:
            come[_content(resource)].append(name)
    return {
        names[0]: gone[content][0]
        for content, names in come.items()
        if len(names) == 1 and len(gone.get(content, ())) == 1
    }


def _content(resource: Resource) -> str:
    """Type and properties; a name that the CDK makes of the logical id (an inline policy's) counts as the same."""
    text = json.dumps(resource.properties, sort_keys=True).replace(json.dumps(resource.logical_id), '"(logical id)"')
    return f"{resource.type}\n{text}"


def moved_policies(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> dict[str, str]:
    """New logical id → old one, of inline policies that the same identities have under another name.

    One goes and one comes, of the same construct or, where that is another one too, of the same identities: then the
    second stands for the first, whatever its statements are. One that keeps its name is not among them: the two would
    be one at IAM.
    """
    gone = {name: each for name, each in before.items() if name not in after and each.type in _IDENTITIES}
    come = {name: each for name, each in after.items() if name not in before and each.type in _IDENTITIES}
    found: dict[str, str] = {}
    for key in (_same_construct, _same_identities):
        old, new = defaultdict(list), defaultdict(list)
        for name, each in gone.items():
            if name not in found.values():
                old[key(each)].append(name)
        for name, each in come.items():
            if name not in found:
                new[key(each)].append(name)
        for group, names in new.items():
            if len(names) == len(old.get(group, ())) == 1 and _name(come[names[0]]) != _name(gone[old[group][0]]):
                found[names[0]] = old[group][0]
    return found


def _same_identities(policy: Resource) -> str:
    attached = {name: policy.properties.get(name) for name in _IDENTITIES[policy.type]}
    return f"{policy.type}\n{json.dumps(attached, sort_keys=True)}"


def _same_construct(policy: Resource) -> str:
    return f"{_same_identities(policy)}\n{policy.path.rpartition('/')[0]}"


def _name(policy: Resource) -> str:
    return json.dumps(policy.properties.get(NAME))
