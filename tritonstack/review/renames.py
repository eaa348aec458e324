"""Resources of which nothing but the logical id changed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

from tritonstack.review.snapshot import Resource


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
