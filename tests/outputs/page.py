"""The blocks of docs/outputs.md, and how a shell runs them on the local AWS."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.client.examples import Block
from tests.client.examples import blocks as blocks_of
from tests.e2e.project import AWS_CLI, PROGRAM, Project
from tritonstack_local.aws import LocalAws

PAGE = Path(__file__).parents[2] / "docs" / "outputs.md"
__all__ = ["PAGE", "Block", "blocks", "jq_is_there", "run_sh"]
PROGRAMS = {"aws": AWS_CLI, "tritonstack": PROGRAM}


def blocks() -> tuple[Block, ...]:
    """Every fenced block of the page."""
    return blocks_of(PAGE)


def run_sh(text: str, *, project: Project, aws: LocalAws, folder: Path, variables: dict[str, str] | None = None) -> str:
    """Run shell lines unchanged in ``folder``; returns their output."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, program in PROGRAMS.items():
        if not (programs / name).exists():
            (programs / name).symlink_to(program)
    result = subprocess.run(
        ["sh", "-euc", text],
        cwd=folder,
        env={
            **project.variables,
            **aws.variables(),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            **(variables or {}),
        },
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def jq_is_there() -> bool:
    """Whether this machine has jq, which most of the page's shell blocks call."""
    return shutil.which("jq") is not None
