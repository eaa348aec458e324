"""A cloud assembly (``cdk.out``): synthesised in a process of its own, and read as snapshots in normal form."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.review.intrinsics import assets_in
from tritonstack.review.normal_form import normal, normal_resources, normal_sections
from tritonstack.review.snapshot import (
    TOP_LEVEL,
    Asset,
    AssetKind,
    EnvironmentSnapshot,
    Finding,
    Json,
    Resource,
    Snapshots,
    StackSnapshot,
)


def synthesise(
    project: Path, outdir: Path, *, validation: bool = True, context: Mapping[str, Any] | None = None
) -> None:
    """Synthesise every environment into ``outdir``.

    Open policy findings are no failure here: the report of them is in ``outdir``, next to the templates.
    ``validation``: whether policy findings are looked for, which takes most of the time. ``context``: values besides
    those of ``cdk.json``.

    Raises:
        InputError: ``project`` has no ``cdk.json`` that names an app, or the app rejected its input.
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
            # `python3 app.py` gets the packages of this process, whether its environment is active or not.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]),
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
        message = ran.stderr.strip()
        rejected = InputError([Problem(found=message, allowed="input that the app accepts")])
        rejected.args = (message,)  # the app's own, word for word
        raise rejected
    raise WorkFailedError(f"{settings['app']} failed with {ran.returncode}:\n{ran.stderr.strip()}")


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


_LARGEST_DOCUMENT = 256 * 1024
_DIGITS = 16
_IGNORED = ("commits",)
"""Members of documents that decide nothing and change with every commit."""


@dataclass(frozen=True, kw_only=True)
class _AssetFile:
    path: str
    source: Path
    packaging: str


def read_assembly(folder: Path, *, accepted: bool = False) -> Snapshots:
    """The snapshots of a synthesised app: an environment for each stage, ``_app`` for stacks outside stages.

    ``accepted``: whether accepted findings are read where validation was off, too; open ones are then none. Raises
    InputError: ``folder`` holds no cloud assembly.
    """
    if not (folder / "manifest.json").is_file():
        allowed = "the folder of a cloud assembly, as `cdk synth` writes it"
        raise InputError([Problem(file=str(folder), found="no manifest.json", allowed=allowed)])
    report_file = folder / "validation-report.json"
    report = _json(report_file) if report_file.is_file() else None
    environments = {}
    for stage, assembly, artifacts in _assemblies(folder, ""):
        name = stage.replace("/", "-") or TOP_LEVEL
        stacks: dict[str, StackSnapshot] = {}
        reasoned: list[Finding] = []
        roots: dict[str, str] = {}
        for artifact in artifacts:
            root = _root(artifact)
            stack, of_stack = _stack(assembly, artifact, name=root.removeprefix(f"{stage}/").replace("/", "-"))
            stacks[stack.name] = stack
            roots[f"{root}/"] = stack.name
            reasoned += of_stack
        findings = None
        if report is not None or accepted:
            findings = tuple(sorted({*_open(report or {}, roots), *reasoned}))
        environments[name] = EnvironmentSnapshot(name=name, stacks=dict(sorted(stacks.items())), findings=findings)
    return Snapshots(environments=dict(sorted(environments.items())))


def _assemblies(folder: Path, stage: str) -> Iterator[tuple[str, Path, list[dict[str, Any]]]]:
    """Construct path of the stage, folder and stacks, of this assembly and of those inside it that have stacks."""
    artifacts = _json(folder / "manifest.json").get("artifacts", {})
    stacks = [each for _, each in sorted(artifacts.items()) if each["type"] == "aws:cloudformation:stack"]
    if stacks:
        yield stage, folder, stacks
    for each in artifacts.values():
        if each["type"] == "cdk:cloud-assembly":
            properties = each["properties"]
            inner = properties.get("displayName") or properties["directoryName"].removeprefix("assembly-")
            yield from _assemblies(folder / properties["directoryName"], inner)


def _root(artifact: Mapping[str, Any]) -> str:
    """The construct path of a stack."""
    return str(artifact.get("displayName") or artifact["properties"]["stackName"])


def _stack(assembly: Path, artifact: Mapping[str, Any], *, name: str) -> tuple[StackSnapshot, list[Finding]]:
    properties = artifact["properties"]
    template = _json(assembly / properties["templateFile"])
    metadata = dict(artifact.get("metadata", {}))
    if "additionalMetadataFile" in artifact:
        metadata |= _json(assembly / artifact["additionalMetadataFile"])
    root = f"/{_root(artifact)}/"
    files = dict(_asset_files(assembly, artifact))
    hashes = {digest: file.path for digest, file in files.items()}
    resources = normal_resources(template, paths=dict(_paths(metadata, root)), assets=hashes)
    documents, assets = _contents(files.values(), resources, hashes)
    account, _, region = artifact.get("environment", "").removeprefix("aws://").partition("/")
    stack = StackSnapshot(
        name=name,
        stack_name=properties.get("stackName", name),
        account=None if account.startswith("unknown") else account or None,
        region=None if region.startswith("unknown") else region or None,
        tags=dict(sorted(properties.get("tags", {}).items())),
        template=normal_sections(template, hashes),
        resources=resources,
        documents=documents,
        assets=assets,
    )
    return stack, list(_accepted(metadata, root, name))


def _paths(metadata: Mapping[str, Any], root: str) -> Iterator[tuple[str, str]]:
    """Logical id → the construct's path in its stack."""
    for path, entries in metadata.items():
        for entry in entries:
            if entry["type"] == "aws:cdk:logicalId":
                yield entry["data"], _construct(path, root)


def _asset_files(assembly: Path, artifact: Mapping[str, Any]) -> Iterator[tuple[str, _AssetFile]]:
    """An asset's hash → its file or folder; the template itself is left out."""
    template = artifact["properties"]["templateFile"]
    for manifest in artifact.get("dependencies", []):
        path = assembly / f"{manifest}.json"
        if not manifest.endswith(".assets") or not path.is_file():
            continue
        given = _json(path)
        for digest, each in (*given.get("files", {}).items(), *given.get("dockerImages", {}).items()):
            source = each["source"]
            place = source.get("path", source.get("directory"))  # a file or folder; an image's folder
            if place not in {None, template}:
                packaging = source.get("packaging", "image")
                inside = each.get("displayName", digest)
                yield digest, _AssetFile(path=inside, source=assembly / place, packaging=packaging)


def _contents(
    files: Iterable[_AssetFile], resources: Mapping[str, Resource], hashes: Mapping[str, str]
) -> tuple[dict[str, Json], dict[str, Asset]]:
    """Small JSON files as documents, and everything else as assets."""
    documents: dict[str, Json] = {}
    assets: dict[str, Asset] = {}
    sources = _build_sources(resources)
    for file in sorted(files, key=lambda each: each.path):
        document = _document(file)
        if document is not None:
            documents[file.path] = normal(document, hashes)
        elif file.path in sources:
            assets[file.path] = Asset(path=file.path, kind=AssetKind.SOURCE, files={})
        else:
            kind = AssetKind.IMAGE if file.packaging == "image" else AssetKind.CODE
            assets[file.path] = Asset(path=file.path, kind=kind, files=_digests(file.source))
    return documents, assets


def _build_sources(resources: Mapping[str, Resource]) -> set[str]:
    """Assets that builds alone start from."""
    users: dict[str, set[str]] = {}
    for resource in resources.values():
        if resource.type != "AWS::IAM::Policy":  # it only allows to read the asset
            for path in assets_in(resource.properties):
                users.setdefault(path, set()).add(resource.type)
    return {path for path, types in users.items() if types == {"AWS::CodeBuild::Project"}}


def _document(file: _AssetFile) -> Json | None:
    if file.packaging != "file" or not file.source.is_file() or file.source.stat().st_size > _LARGEST_DOCUMENT:
        return None
    try:
        document = json.loads(file.source.read_bytes())
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    return {key: each for key, each in document.items() if key not in _IGNORED}


def _digests(source: Path) -> dict[str, str]:
    """File's name → 16 digits of its SHA-256."""
    if source.is_file():
        return {"(one file)": _digest(source)}
    files = sorted(path for path in source.rglob("*") if path.is_file())
    return {path.relative_to(source).as_posix(): _digest(path) for path in files}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]


def _accepted(metadata: Mapping[str, Any], root: str, stack: str) -> Iterator[Finding]:
    for path, entries in metadata.items():
        for entry in entries:
            if entry["type"] == "aws:cdk:acknowledged-rules":
                for rule, reason in entry["data"].items():
                    yield Finding(stack=stack, path=_construct(path, root), rule=_rule(rule), accepted=str(reason))


def _open(report: Mapping[str, Any], roots: Mapping[str, str]) -> Iterator[Finding]:
    """The report's findings in some stacks; ``roots``: a stack's construct path with a slash → its name."""
    for plugin in report.get("pluginReports", []):
        for violation in plugin.get("violations", []):
            for construct in violation.get("violatingConstructs", []):
                path = construct.get("constructPath", "")
                for root, stack in roots.items():
                    if path.startswith(root):
                        yield Finding(
                            stack=stack,
                            path=_construct(path, root),
                            rule=_rule(violation["ruleName"]),
                            severity=violation.get("severity", ""),
                            description=violation.get("description", ""),
                        )


def _construct(path: str, root: str) -> str:
    """A construct's path in its stack, without a last ``Default`` or ``Resource``."""
    inside = path.removeprefix(root)
    for last in ("/Default", "/Resource"):
        inside = inside.removesuffix(last)
    return inside


def _rule(name: str) -> str:
    """A rule without the plug-in that it is acknowledged under: ``Annotation::AwsSolutions-SNS3``."""
    rule, bracket, detail = name.partition("[")
    return f"{rule.rpartition('::')[2]}{bracket}{detail}"


def _json(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document
