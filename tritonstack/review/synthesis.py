"""Runs the app that ``cdk.json`` names, as the CDK's command line does: no credentials, and no Node program of ours."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, WorkFailedError


def synthesise(
    project: Path, outdir: Path, *, validation: bool = True, context: Mapping[str, Any] | None = None
) -> None:
    """Synthesise every environment into ``outdir``.

    Open policy findings are no failure here: the report of them lies in ``outdir``, beside the templates.

    Args:
        project: the folder with ``cdk.json``.
        outdir: the cloud assembly's folder; made where it is not there.
        validation: whether policy findings are looked for, which takes most of the time.
        context: more context values than ``cdk.json`` has.

    Raises:
        InputError: ``project`` has no ``cdk.json`` that names an app, or the app refused its input.
        WorkFailedError: the app failed.
    """
    settings = _settings(project)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    outdir.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        shlex.split(settings["app"]),
        cwd=project,
        env={
            **environment,
            "CDK_OUTDIR": str(outdir.resolve()),
            "CDK_CONTEXT_JSON": json.dumps({**settings.get("context", {}), **(context or {})}),
            "CDK_VALIDATION": "true" if validation else "false",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode == 0 or (validation and (outdir / "validation-report.json").is_file()):
        return
    if ran.returncode == InputError.exit_code:
        raise _RefusedByAppError(ran.stderr.strip())
    raise WorkFailedError(f"{settings['app']} failed with {ran.returncode}:\n{ran.stderr.strip()}")


class _RefusedByAppError(InputError):
    """What the app said of its input, word by word."""

    def __init__(self, message: str) -> None:
        super().__init__([Problem(found=message, allowed="input that the app takes")])
        self.args = (message,)


def _settings(project: Path) -> dict[str, Any]:
    path = project / "cdk.json"
    found = "no such file"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and isinstance(document.get("app"), str):
            return document
        found = "no app"
    except FileNotFoundError:
        pass
    except ValueError as error:
        found = f"no JSON: {error}"
    raise InputError([Problem(file=str(path), field="app", found=found, allowed="the command that starts the CDK app")])
