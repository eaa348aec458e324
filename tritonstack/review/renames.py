"""Resources that stand under another logical id than before."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

from tritonstack.review.snapshot import Resource

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
