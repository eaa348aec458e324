"""Make the files that a model folder does not hold: run its export, once for each digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.archives.export_recipe import Export
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.programs import Report, run_script
from tritonstack.errors import WorkFailedError

REPORT = "report.json"
FILES = "files"


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A finished export: the folder of its files, its figures and the versions of its tools."""

    files: Path
    figures: dict[str, float]
    tools: dict[str, str]


def export_folder(
    folder: Path, export: Export, *, told: Mapping[str, Any], digest: str, work: Path, report: Report
) -> Exported:
    """The export of a model folder, made now or by an earlier build of the same digest.

    ``work`` keeps finished exports as ``<folder>.<digest>``; an export that is interrupted leaves none.
    Raises :class:`WorkFailedError` where the script fails or does not make what the recipe promises.
    """
    finished = work / f"{folder.name}.{digest}"
    if not finished.is_dir():
        with partial_folder(work, name=folder.name) as partial:
            _run(folder, export, told, partial, report)
            _keep(partial, finished)
    content = _read_report(finished / REPORT)
    return Exported(files=finished / FILES, figures=content["figures"], tools=content["tools"])


def _run(folder: Path, export: Export, told: Mapping[str, Any], partial: Path, report: Report) -> None:
    (partial / FILES).mkdir()
    arguments = [
        str((folder / export.script).resolve()),
        *("--target", str((partial / FILES).resolve())),
        *("--options", json.dumps({**told, "options": export.options})),
        *("--report", str((partial / REPORT).resolve())),
    ]
    what = f"export of {folder.name}"
    run_script(environment=export.environment, arguments=arguments, folder=partial, what=what, report=report)
    missing = [name for name in export.produces if not (partial / FILES / name).is_file()]
    if missing:
        raise WorkFailedError(f"{what}: {folder / export.script} did not write {', '.join(missing)}")
    _read_report(partial / REPORT)


def _keep(partial: Path, finished: Path) -> None:
    """Move a finished export to its place; where another build was first, its export is as good."""
    try:
        partial.rename(finished)
    except OSError:
        if not finished.is_dir():
            raise


def _read_report(path: Path) -> dict[str, Any]:
    """``{"figures": {name: number}, "tools": {name: version}}``."""
    try:
        content = json.loads(path.read_text())
        figures = {str(name): float(value) for name, value in content["figures"].items()}
        return {"figures": figures, "tools": {str(name): str(value) for name, value in content["tools"].items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkFailedError(f"the export's report is not as agreed, figures and tools: {error!r}") from error
