"""Every check of the linter. A new one is one line here; what its rules mean stands in ``rules/<id>.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tritonstack.models.lint import (
    backend,
    batch_tensors,
    batching,
    endpoint,
    engine,
    engine_manifest,
    ensemble,
    execution,
    files,
    formats,
    instances,
    layout,
    names,
    newer_fields,
    onnx,
    onnxruntime,
    parameters,
    python_model,
    recipe,
    sequences,
    syntax,
    tensors,
    versions,
    warmup,
)
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView

ArchiveCheck = Callable[[RepositoryView], Iterator[Finding]]
ModelCheck = Callable[[RepositoryView, ModelView], Iterator[Finding]]

ARCHIVE_CHECKS: tuple[ArchiveCheck, ...] = (
    recipe.check,
    layout.check,
    files.check,
    ensemble.check,
    onnxruntime.check_onnxruntime,
    endpoint.check_archive,
)
"""About an archive as a whole."""

MODEL_CHECKS: tuple[ModelCheck, ...] = (
    syntax.check,
    newer_fields.check,
    names.check,
    versions.check,
    backend.check,
    tensors.check,
    batch_tensors.check,
    batching.check,
    sequences.check,
    instances.check,
    warmup.check,
    execution.check,
    python_model.check,
    onnx.check,
    formats.check,
    engine.check,
    engine_manifest.check,
    endpoint.check,
    parameters.check,
)
"""About one model of it; not asked of a model whose configuration cannot be read."""


def findings(view: RepositoryView) -> Iterator[Finding]:
    """Everything that is to be said of an archive, in no order."""
    for check in ARCHIVE_CHECKS:
        yield from check(view)
    for model in view.models.values():
        for model_check in MODEL_CHECKS:
            yield from model_check(view, model)
