"""``docs/pictures/access.svg``: who may do what with which data, from the roles' policies in the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scripts.documentation.drawing import LINE, PADDING, Box, Drawing, box_height, text_width
from scripts.documentation.stack_graph import SHOWN, construct_of, shown_environment
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot, readable

SERVICES = ("s3", "ssm", "sagemaker", "ecr")
"""Whose permissions move models, records and calls. Logs, keys, alarms and network interfaces are left out."""
LEFT, RIGHT, GAP, TOP = 20, 560, 18, 60
Access = dict[str, dict[str, list[str]]]
"""Data → who may → the actions."""


def access_picture() -> str:
    """The picture of the committed snapshot."""
    return draw(access(shown_environment()))


def access(environment: EnvironmentSnapshot) -> Access:
    """Every permission of a role of the environment on data that one of ``SERVICES`` keeps."""
    found: Access = {}
    for stack in environment.stacks.values():
        for who, statement in _statements(stack):
            actions = [each for each in _listed(statement["Action"]) if str(each).partition(":")[0] in SERVICES]
            for resource in _listed(statement["Resource"]) if actions else ():
                listed = found.setdefault(_data(stack, resource), {}).setdefault(f"{stack.name}/{who}", [])
                listed += [str(each) for each in actions if each not in listed]
    return {data: dict(sorted(who.items())) for data, who in sorted(found.items()) if data != "*"}


def draw(found: Access) -> str:
    """Roles at the left, data at the right, what may be done in the box of the data."""
    drawing = Drawing(
        title=f"Who may do what with which data, in {SHOWN}",
        description="At the left roles of the stacks, at the right data with what is allowed.",
    )
    drawing.text(LEFT, 24, "roles that the stacks make", style="small")
    drawing.text(RIGHT, 24, "data, and what each may do with it", style="small")
    right: dict[str, Box] = {}
    texts = {data: [_said(who, actions) for who, actions in allowed.items()] for data, allowed in found.items()}
    width = 2 * PADDING + max(text_width(each) for data, lines in texts.items() for each in (data, *lines))
    y = float(TOP)
    for data, lines in texts.items():
        right[data] = Box(x=RIGHT, y=y, width=width, title=data, lines=lines)
        drawing.box(right[data])
        y += right[data].height + GAP
    names = sorted({who for allowed in found.values() for who in allowed})
    step = max(box_height(()) + GAP, (y - TOP) / max(1, len(names)))
    for number, who in enumerate(names):
        box = Box(x=LEFT, y=TOP + step * number + (step - box_height(())) / 2, width=280, title=who)
        drawing.box(box)
        for data, allowed in found.items():
            if who in allowed:
                target = right[data].y + PADDING + 4 + LINE * (1 + list(allowed).index(who))
                start, end = LEFT + box.width, RIGHT - 1
                drawing.arrow(
                    f"M{start:g} {box.middle:g}C{start + 110:g} {box.middle:g} "
                    f"{end - 110:g} {target:g} {end:g} {target:g}"
                )
    return drawing.svg()


def _statements(stack: StackSnapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in stack.of_type("AWS::IAM::Policy", "AWS::IAM::Role"):
        documents = [resource.properties.get("PolicyDocument")]
        documents += [each["PolicyDocument"] for each in resource.properties.get("Policies", [])]
        for document in filter(None, documents):
            for statement in _listed(document["Statement"]):
                if statement["Effect"] == "Allow" and "Action" in statement:
                    yield construct_of(stack, resource.path), statement


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _data(stack: StackSnapshot, resource: Any) -> str:
    """An ARN without what is the same in all of them; a parameter by the last part of its name.

    What lies under a path of parameters, and the path, is one.
    """
    text = readable(resource)
    for name, parameter in stack.template.get("Parameters", {}).items():
        text = text.replace(f"${{{name}}}", f"<{str(parameter.get('Default', name)).rpartition('/')[2]}>")
    text = re.sub(r"^arn:[^:]*:([^:]*):[^:]*:[0-9]*:", r"\1: ", text)
    return f"{text.removesuffix('/*')}/*" if text.startswith("ssm:") else text


def _said(who: str, actions: list[str]) -> str:
    return f"{who.rpartition('/')[2]}: {', '.join(each.partition(':')[2] for each in actions)}"
