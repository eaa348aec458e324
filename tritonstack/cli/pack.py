"""``tritonstack pack``."""

from __future__ import annotations

from pathlib import Path

import click

from tritonstack.cli.progress import Steps
from tritonstack.models.packing import pack


@click.command("pack")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
def command(*, folder: Path, target: Path) -> None:
    """Pack the content of FOLDER, a model repository, into TARGET (.tar.gz): the same bytes every time."""
    with Steps().step(f"pack {folder}") as step:
        done = 0

        def progress(read: int) -> None:
            nonlocal done
            done += read
            step.detail = f"{done / 1e6:,.0f} MB"

        result = pack(folder, target, progress=progress)
        step.detail = f"{result.tar_bytes:,} → {result.bytes:,} bytes"
    click.echo(f"{result.sha256}  {result.archive}")
