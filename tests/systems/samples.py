"""Send a deployed archive the sample request of its manifest, and hold the answer against the expected one."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.project import Project
from tritonstack.archives.manifest import Manifest, read_manifest
from tritonstack.archives.sample import compare_answer
from tritonstack.archives.sample_request import Arrays, request_arrays, to_tensors
from tritonstack.client import ModelClient


def manifest_of(project: Project, name: str) -> tuple[Manifest, Path]:
    """The manifest of one built archive, and where it lies. There must be exactly one archive of that name."""
    [path] = (project.root / ".local" / "archives").rglob(f"{name}.????????????????.json")
    return read_manifest(path), path


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
