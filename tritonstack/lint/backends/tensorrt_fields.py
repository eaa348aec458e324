"""Rules about fields that Triton takes of TensorRT models alone: shape tensors, non-linear formats, profiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.lint.completion import complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (ValidateModelInput, ValidateModelOutput, ValidateNonLinearFormatIO,
# ValidateInstanceGroup, GetProfileIndex).


_PLATFORM = "tensorrt_plan"
_AXES = 3
_INTEGER = re.compile(r"\s*([+-]?[0-9]+)")
"""What C++'s ``stoi`` reads of a text: it stops at the first other character (GetProfileIndex)."""
_LARGEST = 2**31 - 1


def check_tensorrt_fields(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Fields that only TensorRT models may have, where others have them, or with a value that TensorRT has not."""
    if not model.is_readable:
        return
    # Triton looks at the platform, which it completes from the backend.
    platform = model.config.node.text("platform") or (_PLATFORM if model.backend == "tensorrt" else "")
    is_plan = platform == _PLATFORM
    done = complete(view, model)
    for kind, completed in (("input", done.inputs), ("output", done.outputs)):
        for tensor in model.config.node.nodes(kind):
            what = f"{kind} {tensor.text('name') or '?'}"
            if tensor.flag("is_shape_tensor") and not is_plan:
                found, allowed = f"{what} with is_shape_tensor", "with backend tensorrt only"
                yield at_field(model, "is_shape_tensor", "shape-tensor", found, allowed, tensor)
            if not tensor.flag("is_non_linear_format_io"):
                continue
            dims = next((each.dims for each in completed if each.name == tensor.text("name")), ())
            if not is_plan or (dims and len(dims) != _AXES):
                found = f"{what} with is_non_linear_format_io" + (f" and {len(dims)} dims" if is_plan else "")
                allowed = "with backend tensorrt and three dims only"
                yield at_field(model, "is_non_linear_format_io", "non-linear-format", found, allowed, tensor)
    if not model.config.node.has("ensemble_scheduling"):
        yield from _profiles(model, is_plan=is_plan)


def _profiles(model: ModelView, *, is_plan: bool) -> Iterator[Finding]:
    """Optimisation profiles of instance groups."""
    for group in model.config.node.nodes("instance_group"):
        profiles, line = group.texts("profile"), group.line_of("profile")
        if profiles and not is_plan:
            yield at_line(model, line, "instance-profile", "profile", "with backend tensorrt only")
        for profile in profiles if is_plan else ():
            number = _INTEGER.match(profile)
            if number is None or not 0 <= int(number[1]) <= _LARGEST:
                allowed = 'the number of a profile of the engine, as "0"'
                yield at_line(model, line, "instance-profile", f'profile: "{profile}"', allowed)
