"""Rules about the archives of one endpoint together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.response_cache import enabled
from tritonstack.models.lint.view import RepositoryView, Target


def lint_endpoint(
    archives: Mapping[str, RepositoryView], *, target: Target, file: Path, line: int = 0
) -> Iterator[Finding]:
    """Findings about an endpoint that serves ``archives``, by their names; at ``line`` of its environment's file."""
    models = [model for view in archives.values() for model in view.models.values()]
    if target.response_cache and not any(enabled(model) for model in models):
        found = f"a response cache in {target.name}, which none of its models uses"
        yield Finding(file=file, line=line, rule="response-cache-unused", found=found)
