"""Send a deployed archive the sample request of its manifest, and hold the answer against the expected one."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.project import Project
from tests.e2e.running import local_aws_of
from tritonstack.archives.manifest import Manifest, read_manifest
from tritonstack.archives.sample import compare_answer
from tritonstack.archives.sample_request import Arrays, request_arrays, to_tensors
from tritonstack.client import ModelClient
from tritonstack.naming import artifact_parameter


def manifest_of(project: Project, name: str) -> tuple[Manifest, Path]:
    """The manifest of one archive, and where it lies with the client files beside it.

    An archive that was built here has it here, once; one whose engine the deployment built has it in the bucket.
    """
    found = [*(project.root / ".local" / "archives").rglob(f"{name}.????????????????.json")]
    if not found:
        found = [fetched(project, name)]
    [path] = found
    return read_manifest(path), path


def fetched(project: Project, name: str) -> Path:
    """The manifest and client files of an archive of the deployed environment ``local``, copied from its bucket."""
    aws = local_aws_of(project)
    parameter = artifact_parameter(environment="local", value="bucket-name")
    bucket = aws.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    s3, folder = aws.client("s3"), project.root / ".local" / "fetched"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="manifests/")
    keys = [row["Key"] for page in pages for row in page.get("Contents", [])]
    [manifest] = [key for key in keys if re.fullmatch(rf"manifests/[^/]+/[^/]+/{name}\.[0-9a-f]{{16}}\.json", key)]
    beside = manifest.removesuffix(".json") + "/"
    path = folder / Path(manifest).name
    for key in [manifest, *(key for key in keys if key.startswith(beside))]:
        target = path if key == manifest else path.with_suffix(".files") / key.removeprefix(beside)
        target.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, key, str(target))
    return path


def sample_arrays(project: Project, name: str) -> Arrays:
    """The sample request of a built archive, as a client sends it."""
    manifest, path = manifest_of(project, name)
    files = {file: path.with_suffix(".files") / file for file in manifest.client_files}
    return request_arrays(
        manifest.sample, adapters=manifest.adapters, model=manifest.model, files=files, file=manifest.sample.file
    )


def difference_of_sample(project: Project, client: ModelClient, *, endpoint: str, name: str) -> float:
    """Ask an archive its sample request; the largest difference from the expected answer.

    Raises:
        WorkFailedError: the answer is not the expected one within the recipe's tolerance; with the tensor's name.
    """
    manifest, _ = manifest_of(project, name)
    wanted = [tensor["name"] for tensor in manifest.sample.answer["outputs"]]
    answer = client.invoke(f"{endpoint}/{name}", sample_arrays(project, name), wanted)
    return compare_answer(manifest.sample, to_tensors(answer.outputs), model=name)
