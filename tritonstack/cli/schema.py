"""``tritonstack schema``: writes the JSON Schemas that editors complete and check YAML files with."""

from __future__ import annotations

import json
from pathlib import Path
from pkgutil import resolve_name

import click
from pydantic import BaseModel

from tritonstack.cli.conventions import echo
from tritonstack.errors import Problem, nearest, refuse
from tritonstack.extensions import extensions
from tritonstack.paths import write_text

SCHEMAS = {
    "environment": "tritonstack.config.environment:Environment",
    "recipe": "tritonstack.models.recipe:Recipe",
    "lint-report": "tritonstack.lint.registry:LintReport",
    "releases": "tritonstack.releases.report:ReleasesReport",
    "outputs": "tritonstack.outputs.contract:OutputsDocument",
    "outputs-parameter": "tritonstack.outputs.contract:StackParameter",
    "preflight": "tritonstack.preflight.subject:PreflightReport",
    "review": "tritonstack.review.document:ReviewDocument",
    "prices": "tritonstack.catalogue.price_file:PriceFile",
    "pipeline": "tritonstack.config.pipeline:Pipeline",
}
"""Schema → ``module:name`` of its pydantic model; ``<schema>.schema.json`` is its file."""
GROUP = "tritonstack.schemas"
"""Entry points of packages beside this one: schema → pydantic model."""


def schema_text(name: str) -> str:
    """The schema called ``name`` as JSON Schema draft 2020-12; the same text for the same models."""
    model: type[BaseModel] = resolve_name(SCHEMAS[name]) if name in SCHEMAS else extensions(GROUP)[name]
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def schema_names() -> list[str]:
    """The names of all schemas, those of installed packages next to this one included."""
    return [*SCHEMAS, *extensions(GROUP)]


@click.command("schema", epilog="example: tritonstack schema environment recipe --folder schemas")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("schemas"),
    show_default=True,
    help="Folder of the schemas.",
)
def command(*, names: tuple[str, ...], folder: Path) -> None:
    """Write the JSON Schemas of environments, recipes and reports; with NAME these alone: environment, recipe."""
    known = schema_names()
    refuse(
        [
            Problem(field="NAME", found=name, allowed=", ".join(known), advice=nearest(name, known))
            for name in names
            if name not in known
        ]
    )
    for name in names or known:
        path, text = folder / f"{name}.schema.json", schema_text(name)
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        if not current:
            write_text(path, text)
        echo(f"{path}: {'unchanged' if current else 'written'}")
