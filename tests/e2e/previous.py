"""An environment as an earlier version of the product deployed it, kept as data: what an update finds at a user's.

One archive below ``tests/e2e/previous_versions/`` for each version, named ``<version>-<commit>``: the user's own files
(``project/``), the assembly that the version synthesised from them with its functions' code (``assembly/``; a stand-in
takes the place of the source of builds, which is the whole product), and the objects that it published (``bucket/``).
Write a new one with the product at that commit::

    python -m tests.e2e.previous

It deploys the environment to a local AWS of its own. Keep the earlier archives: users update from any of them.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.project import REPOSITORY, Project
from tests.e2e.running import running
from tritonstack.naming import artifact_parameter
from tritonstack.paths import cdk_program
from tritonstack_local.aws import LocalAws

NAME, ENDPOINT, MODEL = "upgraded", "adds", "adds"
PREVIOUS = REPOSITORY / "tests" / "e2e" / "previous_versions"
METADATA = "metadata.json"
SOURCE = "Source/Files"
"""The display name of the asset that builds start from."""
LEFT_OUT = re.compile(r"^tree\.json$|/\.cache/")
"""Files of an assembly that a deployment does not need."""


def write(project: Project, **endpoint: Any) -> None:
    """The environment file: every custom resource that a deployment has stands in its templates."""
    tags, days, model = endpoint.pop("tags", "{team: platform}"), endpoint.pop("days", 14), endpoint.pop("adds", 1)
    project.add_python_model(MODEL, execute=f"x + {model}", answer_to_3=3.0 + model)
    settings = {
        "release": '"24.09"',
        "instance_type": "ml.g4dn.xlarge",
        "scaling": "{minimum: 1, maximum: 4, requests_per_second: 20, safety_factor: 0.6}",
        **endpoint,
    }
    text = f"""
    environment: {NAME}
    account: "123456789012"
    region: us-east-1
    production: false
    tags: {tags}
    artifacts: {{retain: false}}
    builds: {{on_deploy: true}}
    logs: {{endpoint_days: {days}}}
    dashboard: true
    alarms: {{email: [somebody@example.com]}}
    endpoints:
      - {{name: {ENDPOINT}, mode: multi-model, initial_instance_count: 1, models: [{MODEL}], SETTINGS}}
    """
    lines = ", ".join(f"{name}: {value}" for name, value in settings.items())
    project.write(f"environments/{NAME}.yaml", text.replace("SETTINGS", lines))


def unpack(archive: Path, project: Project) -> Path:
    """Leave the user's files in the project; the folder there with all that the archive holds."""
    folder = project.root / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    shutil.copytree(folder / "project", project.root, dirs_exist_ok=True)
    return folder


def deploy(folder: Path, project: Project, aws: LocalAws) -> None:
    """Deploy what an unpacked archive holds as its version deployed it."""
    _cdk(project, aws, "bootstrap", "aws://123456789012/us-east-1", folder=folder)
    _deploy(project, aws, folder / "assembly", "artifacts")
    name = artifact_parameter(environment=NAME, value="bucket-name")
    bucket = aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    for key, metadata in json.loads((folder / METADATA).read_text()).items():
        content = (folder / "bucket" / key).read_bytes()
        aws.client("s3").put_object(Bucket=bucket, Key=key, Body=content, Metadata=metadata)
    for stack in ("builds", "observability"):  # what serves comes with what watches it
        _deploy(project, aws, folder / "assembly", stack)


def destroy(assembly: Path, project: Project, aws: LocalAws) -> None:
    """Destroy every stack of an assembly of the environment."""
    _cdk(project, aws, "destroy", "--app", str(assembly), "--force", f"{NAME}/*", folder=project.root)


def _deploy(project: Project, aws: LocalAws, assembly: Path, stack: str) -> None:
    approval = ("--require-approval", "never")
    _cdk(project, aws, "deploy", "--app", str(assembly), *approval, f"{NAME}/{stack}", folder=project.root)


def _cdk(project: Project, aws: LocalAws, *arguments: str, folder: Path) -> None:
    quiet = ("--no-notices", "--no-color")
    command = [str(cdk_program()), *arguments, *quiet]
    project.execute(["env", "-C", str(folder), *command], variables=aws.variables(), timeout=300)


def freeze(into: Path = PREVIOUS) -> Path:
    """Deploy the environment with this product and keep all that a deployment needs; the new archive."""
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, text=True).strip()
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    target = into / f"{version}-{commit}.tar.xz"
    with tempfile.TemporaryDirectory() as temporary:
        project = Project(Path(temporary))
        shutil.copytree(REPOSITORY / "requirements", project.root / "requirements")
        write(project)
        with running(project) as aws:
            project.run("local", "deploy", "-e", NAME)
            name = artifact_parameter(environment=NAME, value="bucket-name")
            bucket = aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
            published = dict(_objects(aws, bucket))
        files = {f"bucket/{key}": content for key, (content, _) in published.items()}
        files[METADATA] = json.dumps({key: metadata for key, (_, metadata) in published.items()}, indent=1).encode()
        files |= {f"assembly/{name}": content for name, content in _assembly(project).items()}
        for kind in ("environments", "model_repos"):
            files |= {f"project/{kind}/{name}": content for name, content in _below(project.root / kind).items()}
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:xz") as packed:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)  # without owner and time: the same files are the same archive
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return target


def _objects(aws: LocalAws, bucket: str) -> Iterator[tuple[str, tuple[bytes, dict[str, str]]]]:
    s3 = aws.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page["Contents"]:
            found = s3.get_object(Bucket=bucket, Key=entry["Key"])
            yield entry["Key"], (found["Body"].read(), found["Metadata"])


def _assembly(project: Project) -> dict[str, bytes]:
    """The assembly's files, with a stand-in for the source of builds."""
    folder = project.root / ".local" / "cdk.out" / NAME
    assets = [json.loads(path.read_text())["files"] for path in folder.glob("*/*.assets.json")]
    sources = [one["source"]["path"] for each in assets for one in each.values() if one.get("displayName") == SOURCE]
    stand_ins = {
        f"{Path(path).name}/stand-in.txt": b"The product's own source, which no build is started from.\n"
        for path in sources
    }
    kept = {
        name: content
        for name, content in _below(folder).items()
        if not LEFT_OUT.search(name) and not name.startswith(tuple(Path(path).name for path in sources))
    }
    return {**kept, **stand_ins}


def _below(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


if __name__ == "__main__":
    sys.stdout.write(f"{freeze()}\n")
