"""Data capture against the endpoint's mode, and against what else lies in the bucket."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding
from tritonstack.config.yaml_source import Location

TAKEN = ("endpoints", "inputs", "manifests", "staging", "timing-caches")
"""Folders of the artifact bucket with a meaning of their own."""


def check_data_capture(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """What is wrong with an endpoint's data capture; ``location`` is the endpoint's."""
    capture = endpoint.data_capture
    if capture is None:
        return
    place = (*location, "data_capture")
    if endpoint.multi_model:
        yield Finding(
            location=place,
            found="data capture on a multi-model endpoint",
            allowed="null: SageMaker captures no data there (developer guide: Model Deployment Feature Matrix)",
            advice="Serve the model from a single-model endpoint, or have the caller keep what it sends.",
        )
    if capture.folder in TAKEN:
        yield Finding(
            location=(*place, "folder"),
            found=capture.folder,
            allowed=f"none of {', '.join(TAKEN)}, which hold archives and builds",
        )
    if len(set(capture.capture)) < len(capture.capture):
        yield Finding(location=(*place, "capture"), found="one of them twice", allowed="input, output or both")
