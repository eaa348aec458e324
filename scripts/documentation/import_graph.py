"""The packages of the code and their imports, read from the import statements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonstack.paths import repository_path

OUTBUILDINGS = ("tritonstack_capacity", "tritonstack_local")
ROOTS = ("stacks", "constructs_lib", "tritonstack", *OUTBUILDINGS)
SINGLE = "tritonstack.*.py"
"""The modules of tritonstack that are in none of its packages."""

CENTRE = ("served", "served_checks")
"""Modules of no package that have a box of their own: what settings and model folders meet in."""
Graph = Mapping[str, frozenset[str]]


@functools.cache
def import_graph() -> Graph:
    """Package → the packages that it imports; ``app.py`` is one, and each package of tritonstack is."""
    graph: dict[str, set[str]] = {"app.py": set()}
    for path in [repository_path("app.py"), *(each for root in ROOTS for each in repository_path(root).rglob("*.py"))]:
        relative = path.relative_to(repository_path("."))
        package = owner(".".join(relative.with_suffix("").parts)) or "app.py"
        targets = {target for name in imported(path, relative) if (target := owner(name)) is not None}
        graph.setdefault(package, set()).update(targets - {package})
    return {name: frozenset(targets) for name, targets in sorted(graph.items())}


def single_modules() -> list[str]:
    """The names of the modules that are in none of tritonstack's packages, and import none of them but catalogue."""
    return sorted(path.stem for path in repository_path("tritonstack").glob("[!_]*.py") if path.stem not in CENTRE)


def imported(path: Path, relative: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, relative ones resolved, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(relative.parts[: -node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module or "")))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def owner(name: str) -> str | None:
    """The box of a module's full name, or None where it is none of ours."""
    parts = name.split(".")
    if parts[0] not in ROOTS:
        return None
    if parts[0] != "tritonstack":
        return parts[0]
    if parts[1:] == ["__main__"]:
        return "tritonstack.cli"  # which it starts
    if len(parts) > 1 and parts[1] in CENTRE:
        return "tritonstack.served"
    is_package = len(parts) > 1 and repository_path(f"tritonstack/{parts[1]}").is_dir()
    return f"tritonstack.{parts[1]}" if is_package else SINGLE


def reachable(graph: Graph, start: str) -> set[str]:
    """Everything that a package imports, directly or not."""
    found, ahead = set[str](), [start]
    while ahead:
        new = graph.get(ahead.pop(), frozenset()) - found
        found |= new
        ahead += new
    return found


def direct(graph: Graph) -> Iterator[tuple[str, str]]:
    """Imports that do not follow from others: a → b without a → c → b. The graph has no circles."""
    reach = {name: reachable(graph, name) for name in graph}
    for a, targets in graph.items():
        yield from ((a, b) for b in sorted(targets) if not any(b in reach[c] for c in targets - {b}))
