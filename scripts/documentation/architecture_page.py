"""``docs/architecture.md``: people write its text; the tables between its marks are made from the code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.documentation.import_graph import SINGLE, import_graph
from scripts.documentation.markdown import code, filled, table
from scripts.documentation.stack_graph import shown_environment, stack_graph
from tritonstack.paths import repository_path

PATH = "docs/architecture.md"


def architecture_page() -> str:
    """The page as it is, with its tables made anew."""
    return filled(PATH, TABLES)


def _stacks() -> str:
    graph = stack_graph(shown_environment())
    rows = []
    for name, constructs in graph.types.items():
        reads = sorted(
            f"{', '.join(sorted(values))} of {written}"
            for (reader, written), values in graph.outer.items()
            if reader == name
        )
        resources = sum(sum(types.values()) for types in constructs.values())
        rows.append([code(name), ", ".join(sorted(constructs)), str(resources), "; ".join(reads) or "nothing"])
    return table(["stack", "constructs", "resources", "reads by SSM parameter"], rows)


def _packages() -> str:
    graph = import_graph()
    rows = [[code(name.removesuffix(".*.py")), _purpose(name)] for name in graph]
    return table(["package", "what it is"], rows)


def _purpose(name: str) -> str:
    """The first sentence of a package's docstring."""
    path = "tritonstack" if name == SINGLE else name.removesuffix(".py").replace(".", "/")
    candidates: Iterator[Path] = (repository_path(each) for each in (f"{path}/__init__.py", f"{path}.py"))
    source = next(each for each in candidates if each.is_file())
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].replace("``", "`").split())


TABLES: dict[str, Callable[[], str]] = {"stacks": _stacks, "packages": _packages}
