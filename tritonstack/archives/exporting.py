"""Make the files that a model folder does not hold: run its exports, once for each digest of what they depend on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.archives.export_options import export_digest, script_options
from tritonstack.archives.export_recipe import Export
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.programs import Report, Spent, run_script
from tritonstack.archives.s3_source import fetch_source
from tritonstack.archives.source import ArchiveSource
from tritonstack.errors import WorkFailedError

REPORT = "report.json"
FILES = "files"
SAMPLE = "sample.npz"
UNPACKED = "weights"

WriteSample = Callable[[Path], bool]
"""Writes the sample request's arrays into a file; False where the scripts have to make the sample themselves."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """The finished exports of a folder.

    Attributes:
        files: the folder of their files.
        figures: what they measured.
        tools: name → version.
        inputs: file that they read → its SHA-256.
        spent: what those took that were made now; empty where an earlier build made them.
    """

    files: Path
    figures: dict[str, float]
    tools: dict[str, str]
    inputs: dict[str, str]
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What a script gets beside the recipe: the sample's arrays and the weights that were downloaded, or None."""

    sample: Path | None
    weights: Path | None


def export_source(
    source: ArchiveSource, *, work: Path, sources: Path, write_sample: WriteSample, report: Report
) -> Exported | None:
    """The files of an archive's exports, made now or by an earlier build; None where it has no exports.

    The exports run one after the other. Each finds what those before it made in its target folder, and is kept when it
    ends: an interrupted build goes on after the last that ended, and archives whose exports are the same share them.

    ``work`` keeps finished exports as ``<folder>.<digest>``; one that is interrupted leaves nothing. ``sources`` keeps
    what had to be downloaded for them. Raises :class:`InputError` where that is not there, or another than named;
    :class:`WorkFailedError` where a script fails or does not make what the recipe promises.
    """
    exports = source.recipe.exports
    if not exports:
        return None
    folder = source.folder.resolve().name
    kept = [work / f"{folder}.{export_digest(source, count=count)}" for count in range(1, len(exports) + 1)]
    done = next((count for count in range(len(kept), 0, -1) if kept[count - 1].is_dir()), 0)
    weights = fetch_source(source, sources, report=report) if done < len(exports) else None
    spent: list[Spent] = []
    for count in range(done, len(exports)):
        before = kept[count - 1] if count else None
        with partial_folder(work, name=folder) as partial:
            _link_tree(before / FILES if before else None, partial / FILES)
            sample = partial / SAMPLE
            given = _Given(sample=sample if write_sample(sample) else None, weights=weights)
            spent.append(_run(source, exports[count], partial, given, report))
            _add_report(partial / REPORT, before / REPORT if before else None)
            sample.unlink(missing_ok=True)
            shutil.rmtree(partial / UNPACKED, ignore_errors=True)
            _keep(partial, kept[count])
    content = _read_report(kept[-1] / REPORT)
    return Exported(files=kept[-1] / FILES, spent=tuple(spent), **content)


def exported_files(source: ArchiveSource, work: Path) -> Path:
    """Where the files of an archive's finished exports lie, or would."""
    digest = export_digest(source, count=len(source.recipe.exports))
    return work / f"{source.folder.resolve().name}.{digest}" / FILES


def _run(source: ArchiveSource, export: Export, partial: Path, given: _Given, report: Report) -> Spent:
    options = script_options(source, export)
    if given.weights is not None:  # not of the script's options proper: where files lie is in no digest
        options["source"] |= {"file": str(given.weights.resolve()), "folder": str((partial / UNPACKED).resolve())}
    arguments = [
        str((source.folder / export.script).resolve()),
        *("--target", str((partial / FILES).resolve())),
        *("--options", json.dumps(options)),
        *("--report", str((partial / REPORT).resolve())),
        *(("--sample", str(given.sample.resolve())) if given.sample else ()),
    ]
    what = f"export of {source.folder.resolve().name}"
    spent = run_script(
        environment=export.environment,
        arguments=arguments,
        folder=partial,
        what=what,
        report=report,
        with_library=True,
        library_root=source.library_root,
    )
    missing = [name for name in export.produces if not (partial / FILES / name).is_file()]
    if missing:
        raise WorkFailedError(f"{what}: {source.folder / export.script} did not write {', '.join(missing)}")
    return spent


def _link_tree(source: Path | None, target: Path) -> None:
    if source is None:
        target.mkdir()
        return
    shutil.copytree(source, target, copy_function=link_or_copy)


def link_or_copy(source: str, target: str) -> None:
    """A hard link, or a copy where the file system has none: a ``copy_function`` of :func:`shutil.copytree`."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _keep(partial: Path, finished: Path) -> None:
    """Move a finished export to its place; where another build was first, its export is as good."""
    try:
        partial.rename(finished)
    except OSError:
        if not finished.is_dir():
            raise


def _add_report(path: Path, before: Path | None) -> None:
    """Check what the script reported, and put what the exports before it reported beside it."""
    own = _read_report(path)
    earlier = _read_report(before) if before else {}
    content = {name: earlier.get(name, {}) | part for name, part in own.items()}
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def _read_report(path: Path) -> dict[str, dict[str, Any]]:
    """``{"figures": {name: number}, "tools": {name: version}, "inputs": {file: SHA-256}}``; inputs may be left out."""
    try:
        content = json.loads(path.read_text())
        figures = {str(name): float(value) for name, value in content["figures"].items()}
        tools = {str(name): str(value) for name, value in content["tools"].items()}
        inputs = {str(name): str(value) for name, value in content.get("inputs", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkFailedError(f"the export's report is not as agreed, figures and tools: {error!r}") from error
    return {"figures": figures, "tools": tools, "inputs": inputs}
