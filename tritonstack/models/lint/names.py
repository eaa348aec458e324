"""Rules about names: of models, tensors and what an error message would quote of them."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView

OUT_OF_MEMORY_WORDS = (
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "Dst tensor is not initialized",
    "Src tensor is not initialized",
    "CNMEM_STATUS_OUT_OF_MEMORY",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Failed to allocate memory",
    "failed to allocate memory",
    "No space left on device",
)
"""Texts in an error that the front end takes for a full GPU (507), case-sensitive.

Source: server src/sagemaker_server.cc (SageMakerMMECheckOOMError).
"""


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What the names of a model and its tensors do wrong."""
    yield from _directory(view, model)
    tensors = [(tensor.name, tensor.line) for tensor in (*model.config.inputs, *model.config.outputs)]
    for text, line in ((model.name, model.config.node.line_of("name")), *tensors):
        word = next((word for word in OUT_OF_MEMORY_WORDS if word in text), None)
        if word:
            found = f"{word!r} in the name {text}"
            advice = "each error that quotes it would make SageMaker unload other models (507)"
            yield at_line(model, line, "out-of-memory-in-name", found, "any other name", advice)


def _directory(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """The directory's name against the configuration's. The addressed model's is hidden in multi-model mode."""
    name = model.config.name
    if not name or name == model.name:
        return
    multi_model = view.target.multi_model
    is_hidden = multi_model or (multi_model is None and not view.is_built)  # what is built may be served in either mode
    rule = "name-differs-hidden" if is_hidden and model.name == view.served else "name-differs"
    yield at_field(model, "name", rule, f'name: "{name}"', f'name: "{model.name}", the directory\'s name, or none')
