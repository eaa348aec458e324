"""A small project in a git repository of its own, whose app copies an assembly: what `tritonstack review` is run in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.review.reports import after, before
from tests.review.small import Template, write_assembly
from tests.stacks.app_process import NO_NETWORK_IN_PYTHON, ROOT
from tritonstack.review.assembly import read_assembly
from tritonstack.review.stored import write_snapshots

APP = """
import os, pathlib, shutil
shutil.copytree(pathlib.Path(__file__).parent / "assembly", os.environ["CDK_OUTDIR"], dirs_exist_ok=True)
"""
SETTINGS = """environment: dev
account: "111111111111"
region: us-east-1
artifacts: {retain: false}
endpoints:
  - name: digits
    instance_type: ml.g4dn.xlarge
"""
NO_FINDINGS = {"version": "1.0", "pluginReports": []}


def git(folder: Path, *arguments: str) -> str:
    """Run git in ``folder`` with a placeholder author and without the user's variables."""
    names = {
        f"GIT_{role}_{what}": "nobody@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ran = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=folder,
        env={**kept, **names, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def commit(folder: Path, message: str) -> str:
    """Commit all that is there. Returns the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()


def synthesised(folder: Path, template: Template) -> None:
    """Make this template what the project's app synthesises."""
    shutil.rmtree(folder / "assembly", ignore_errors=True)
    write_assembly(folder / "assembly", template=template)


def make_project(folder: Path, *, change: Template | None = None) -> Path:
    """A branch ``change`` off ``main``: the instance type in the settings and what the app synthesises are others."""
    folder.mkdir()
    (folder / "environments").mkdir()
    (folder / "environments" / "dev.yaml").write_text(SETTINGS)
    (folder / "app.py").write_text(APP)
    (folder / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    (folder / ".gitignore").write_text("/assembly/\n/.local/\n__pycache__/\n")
    synthesised(folder, {"Resources": before()})
    write_snapshots(read_assembly(folder / "assembly"), folder / "snapshots")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "checkout", "-q", "-b", "change")
    (folder / "environments" / "dev.yaml").write_text(SETTINGS.replace("ml.g4dn.xlarge", "ml.g5.2xlarge"))
    git(folder, "commit", "-q", "-a", "-m", "a larger machine")
    synthesised(folder, {"Resources": after() if change is None else change})
    return folder


def variables(project: Path, **more: str) -> dict[str, str]:
    """Of a process with no AWS variable and no home, which fails wherever it connects to."""
    guard = project.parent / "guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(NO_NETWORK_IN_PYTHON)
    dropped = ("AWS_", "CDK_", "GITHUB_", "TRITONSTACK_", "HOME", "PULL_REQUEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {
        **kept,
        "HOME": str(guard),
        "PYTHONPATH": f"{guard}{os.pathsep}{ROOT}",
        "TRITONSTACK_PROJECT": str(project),
        "TRITONSTACK_HOME": str(project / ".local"),
        **more,
    }
