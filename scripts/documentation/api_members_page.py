"""``docs/reference/api-members.md``: every member of the API requests behind an endpoint, and how it is set here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from scripts.documentation.api_members import (
    DATA,
    OPERATIONS,
    Member,
    Operation,
    Row,
    is_property,
    members,
    missing,
    rows,
)
from scripts.documentation.markdown import code, head, link, table
from tritonstack.cli.docs import heading_anchor

TEXT = """\
Every member of the requests that make, update and invoke an endpoint: the settings of an environment file that decide
it, what the stack sets by itself, the argument of a client, or why it is not offered. `[]` stands for each item of a
list. [Not here](../not-here.md) has the features that are left out, and the way instead. In an app of your own
`TritonModel.model`, `Endpoint.config` and `Endpoint.endpoint` of [`constructs_lib`](constructs.md) are the CDK's
resources: set any other property there.
"""
SHOWN_SETTINGS = 6
"""Settings of one section that are listed; of more the section is."""


def api_members_page() -> str:
    """The whole page. Raises ValueError: botocore has members that neither the settings nor the data file have."""
    parts = [head("API members", source=f"botocore's service model, the settings and `{DATA.name}`"), TEXT]
    shown: dict[tuple[str, Row], str] = {}
    for operation in OPERATIONS:
        if absent := missing(operation):
            raise ValueError(f"{DATA}: {operation.section} lacks {', '.join(absent)}")
        found = rows(operation)
        parts += [f"## {operation.name}\n", _summary(operation, found)]
        repeated = [row for row in found if (operation.section, row) in shown]
        if repeated:
            names = dict.fromkeys(code(re.split(r"\W", row.member.path)[0]) for row in repeated)
            earlier = shown[operation.section, repeated[0]]
            parts.append(f"{', '.join(names)}: as of {link(code(earlier), earlier)}.\n")
        alike = {_names(each): each.path for each in reversed(members(operation.input_shape))}
        cells = [(_member(row.member, alike), _here(row, operation)) for row in found if row not in repeated]
        parts.append(table(["member", "here"], cells))
        shown |= {(operation.section, row): operation.name for row in found}
    return "\n".join(parts)


def _summary(operation: Operation, found: Sequence[Row]) -> str:
    sent = f"CloudFormation sends it for `{operation.resource}`." if operation.resource else "A client sends it."
    declined = sum(len(row.member.values) for row in found if row.is_declined)
    return f"{sent} {sum(len(row.member.values) for row in found) - declined} members are set here, {declined} not.\n"


def _names(member: Member) -> tuple[str, ...]:
    """Names of the values below a member, as they are seen from it."""
    return tuple(each.path.removeprefix(f"{member.path}.") for each in member.values if each is not member)


def _member(member: Member, alike: Mapping[tuple[str, ...], str]) -> str:
    """A member and the names below it; of another member with the same ones (``alike``) that member."""
    name, below = code(member.path) if member.path else "the whole request", _names(member)
    if not below:
        return name
    other = alike.get(below, member.path)
    return f"{name} with {', '.join(map(code, below)) if other == member.path else f'all of {code(other)}'}"


def _here(row: Row, operation: Operation) -> str:
    """How a member is set, or why it is not offered."""
    if row.entry is not None and row.is_declined:
        unknown = operation.resource and row.member.path and not is_property(operation.resource, row.member.path)
        return f"not offered: {row.entry.declined}" + (f"; no property of `{operation.resource}`" if unknown else "")
    parts = [_settings(row)] if row.settings else []
    if row.entry is not None:
        parts += [text for text in (", ".join(map(code, row.entry.argument)), row.entry.made) if text]
    return ": ".join(parts)


def _settings(row: Row) -> str:
    """Links to settings; to a section of which there are many."""
    many = {
        section for section, count in Counter(section for section, _ in row.settings).items() if count > SHOWN_SETTINGS
    }
    names = dict.fromkeys((section, None if section in many else field) for section, field in row.settings)
    links = []
    for section, field in names:
        page = f"settings.md#{heading_anchor(section)}" if section else "settings.md"
        text = section if field is None else ".".join(filter(None, (section, field)))
        links.append(f"[{code(text)}]({page})")
    return ", ".join(links)
