"""Generated blocks of ``docs/architecture.md``: Mermaid pictures and tables, from snapshots and import statements."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.documentation.import_graph import SINGLE, direct, import_graph, single_modules
from scripts.documentation.markdown import code, filled, table
from scripts.documentation.stack_graph import SHOWN_SERVING, construct_of, shown_environment, stack_graph
from tritonstack.aws.iam_policies import listed
from tritonstack.paths import repository_path
from tritonstack.review.intrinsics import readable
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot

PATH = "docs/architecture.md"
SERVICES = ("s3", "ssm", "sagemaker", "ecr")
"""Whose permissions move models, records and requests. Logs, keys, alarms and network interfaces are left out."""
Access = dict[str, dict[str, list[str]]]
"""Resource → role → actions."""


def architecture_page() -> str:
    """The page with its generated blocks made anew."""
    return filled(PATH, BLOCKS)


def mermaid(direction: str, nodes: Mapping[str, str], edges: Iterator[tuple[str, str, str]]) -> str:
    """A flowchart in Mermaid, which GitHub draws. ``nodes``: name → label; ``edges``: from, to, text or empty."""
    ids = {name: f"n{number}" for number, name in enumerate(nodes)}
    lines = [f'    {ids[name]}["{label}"]' for name, label in nodes.items()]
    lines += [f"    {ids[a]} -->{f'|{text}|' if text else ''} {ids[b]}" for a, b, text in edges]
    return "\n".join(["```mermaid", f"flowchart {direction}", *lines, "```", ""])


def stacks_picture() -> str:
    """Stacks, and the SSM parameters that one reads of another."""
    graph = stack_graph(shown_environment())
    nodes = {name: f"<b>{name}</b><br/>{_resources(types)} resources" for name, types in graph.types.items()}
    edges = ((reader, writer, "<br/>".join(sorted(names))) for (reader, writer), names in sorted(graph.outer.items()))
    return mermaid("RL", nodes, edges)


def serving_picture() -> str:
    """Constructs of a serving stack with their resource types, and which refers to which."""
    graph = stack_graph(shown_environment())
    nodes = {}
    for name, types in sorted(graph.types[SHOWN_SERVING].items()):
        lines = [f"{number} x {kind}" if number > 1 else kind for kind, number in sorted(types.items())]
        nodes[name] = "<br/>".join([f"<b>{name}</b>", *lines])
    return mermaid("LR", nodes, ((a, b, "") for a, b in sorted(graph.inner[SHOWN_SERVING])))


def packages_picture() -> str:
    """Packages, and which imports which; imports that follow from others are left out."""
    graph = import_graph()
    nodes = {
        name: "<br/>".join(single_modules()) if name == SINGLE else name.removeprefix("tritonstack.") for name in graph
    }
    return mermaid("TD", nodes, ((a, b, "") for a, b in direct(graph)))


def _resources(constructs: Mapping[str, Counter[str]]) -> int:
    return sum(types.total() for types in constructs.values())


def stacks_table() -> str:
    """Stacks with their constructs, resources and what they read."""
    graph = stack_graph(shown_environment())
    rows = []
    for name, constructs in graph.types.items():
        read = ((writer, sorted(values)) for (reader, writer), values in graph.outer.items() if reader == name)
        reading = "; ".join(sorted(f"{', '.join(values)} of {writer}" for writer, values in read)) or "nothing"
        rows.append([code(name), ", ".join(sorted(constructs)), str(_resources(constructs)), reading])
    return table(["stack", "constructs", "resources", "reads by SSM parameter"], rows)


def access_table() -> str:
    """Roles of the environment and their actions on archives, records and endpoints."""
    rows = [
        [code(resource), who, ", ".join(code(action.partition(":")[2]) for action in actions)]
        for resource, allowed in access(shown_environment()).items()
        for who, actions in allowed.items()
    ]
    return table(["resource", "role of", "may"], rows)


def access(environment: EnvironmentSnapshot) -> Access:
    """Every permission of a role of the environment on a resource of one of ``SERVICES``."""
    found: Access = {}
    for stack in environment.stacks.values():
        for who, statement in _statements(stack):
            actions = [each for each in listed(statement["Action"]) if str(each).partition(":")[0] in SERVICES]
            for resource in listed(statement["Resource"]) if actions else ():
                allowed = found.setdefault(_shown(stack, resource), {}).setdefault(f"{stack.name}/{who}", [])
                allowed += [str(each) for each in actions if each not in allowed]
    return {resource: dict(sorted(who.items())) for resource, who in sorted(found.items()) if resource != "*"}


def _statements(stack: StackSnapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in stack.of_type("AWS::IAM::Policy", "AWS::IAM::Role"):
        documents = [resource.properties.get("PolicyDocument")]
        documents += [each["PolicyDocument"] for each in resource.properties.get("Policies", [])]
        for document in filter(None, documents):
            for statement in listed(document["Statement"]):
                if statement["Effect"] == "Allow" and "Action" in statement:
                    yield construct_of(stack, resource.path), statement


def _shown(stack: StackSnapshot, resource: Any) -> str:
    """An ARN without partition, region and account; a stack's parameter by the last part of its name."""
    text = readable(resource)
    for name, parameter in stack.template.get("Parameters", {}).items():
        text = text.replace(f"${{{name}}}", f"<{str(parameter.get('Default', name)).rpartition('/')[2]}>")
    text = re.sub(r"^arn:[^:]*:([^:]*):[^:]*:[0-9]*:", r"\1: ", text)
    return f"{text.removesuffix('/*')}/*" if text.startswith("ssm:") else text


def packages_table() -> str:
    """Packages with the first sentence of their docstrings."""
    return table(
        ["package", "content"], [[code(name.removesuffix(".*.py")), _purpose(name)] for name in import_graph()]
    )


def _purpose(name: str) -> str:
    path = "tritonstack" if name == SINGLE else name.removesuffix(".py").replace(".", "/")
    candidates: Iterator[Path] = (repository_path(each) for each in (f"{path}/__init__.py", f"{path}.py"))
    source = next(each for each in candidates if each.is_file())
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].replace("``", "`").split())


BLOCKS: dict[str, Callable[[], str]] = {
    "stacks_picture": stacks_picture,
    "stacks": stacks_table,
    "serving_picture": serving_picture,
    "access": access_table,
    "packages_picture": packages_picture,
    "packages": packages_table,
}
