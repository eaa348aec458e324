"""Rules about the archives of one endpoint together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonstack.models.lint.instances import archive_bytes, shown
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.response_cache import enabled
from tritonstack.models.lint.view import RepositoryView, Target

UNLIKE = 10
"""Times another archive's size: a load of the large one takes that much longer, and takes the place of so many."""
LARGE = 0.05
"""Share of the GPU's memory: of a smaller one twenty fit, and its load neither evicts many nor takes long."""


def lint_endpoint(
    archives: Mapping[str, RepositoryView], *, target: Target, file: Path, line: int = 0
) -> Iterator[Finding]:
    """Findings about an endpoint that serves ``archives``, by their names; at ``line`` of its environment's file."""
    models = [model for view in archives.values() for model in view.models.values()]
    if target.response_cache and not any(enabled(model) for model in models):
        found = f"a response cache in {target.name}, which none of its models uses"
        yield Finding(file=file, line=line, rule="response-cache-unused", found=found)
    if not target.multi_model or target.instance is None:
        return
    # Of an archive that is not built only a part of the files may be there.
    sizes = {name: archive_bytes(view) for name, view in archives.items() if view.target.unpacked_bytes is not None}
    if not sizes:
        return
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[large] > max(UNLIKE * sizes[small], LARGE * target.instance.gpu_memory_mib * 2**20):
        found = f"{large} with {shown(sizes[large])} beside {small} with {shown(sizes[small])} on {target.name}"
        allowed = f"models less than {UNLIKE} times each other's size on one multi-model endpoint"
        advice = f"Give {large} an endpoint of its own, or one with models like it."
        yield Finding(file=file, line=line, rule="mixed-sizes", found=found, allowed=allowed, advice=advice)
