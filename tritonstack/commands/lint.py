"""``tritonstack lint``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tritonstack.archives.lint import Finding, lint_folder
from tritonstack.archives.recipe import RECIPE
from tritonstack.catalogue import load_catalogue
from tritonstack.errors import InputError, Problem
from tritonstack.local.paths import project_folder


@click.command("lint")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option("--release", help='Check backends against this Triton release ("24.09").')
def command(*, folders: tuple[Path, ...], release: str | None) -> None:
    """Check FOLDERS (model folders, or model repositories; all of model_repos/ without any) offline.

    Exit code 2 where a finding is an error.
    """
    backends = _backends(release)
    chosen = folders or tuple(sorted(path.parent for path in (project_folder() / "model_repos").glob(f"*/{RECIPE}")))
    findings: list[Finding] = []
    for folder in chosen:
        findings += lint_folder(folder, backends=backends)
    for finding in findings:
        click.echo(str(finding))
    errors = sum(finding.level == "error" for finding in findings)
    click.echo(f"{len(chosen)} folders, {errors} errors, {len(findings) - errors} warnings", err=True)
    if errors:
        sys.exit(2)


def _backends(release: str | None) -> frozenset[str] | None:
    if release is None:
        return None
    catalogue = load_catalogue()
    found = catalogue.release(release)
    if found is None:
        raise InputError(
            [Problem(field="--release", found=release, allowed="a release of the catalogue, such as 24.09")]
        )
    return found.backends
