"""A recipe's sample: read, turned into tensors, and compared with what a built repository answers."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.manifest import SampleEntry
from tritonstack.models.recipe import RECIPE, Recipe

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
_ARRAYS = ".npz"
_ZIP = b"PK"


def sample_file(folder: Path, recipe: Recipe, name: str, exported: Path | None) -> Path:
    """Where a file of the recipe lies that the folder holds or an export makes."""
    made = name in {made for export in recipe.exports for made in export.produces}
    return exported / name if made and exported is not None else folder / name


def read_sample(folder: Path, recipe: Recipe, exported: Path | None = None) -> SampleEntry:
    """The sample as the manifest holds it; ``exported``: the files of the exports, where they were made.

    Raises :class:`InputError` with everything that is wrong with its files.
    """
    problems: list[Problem] = []
    answer = sample_file(folder, recipe, recipe.sample.answer, exported)
    expected = _tensors(answer, "outputs", problems)
    given = _read_request(folder, recipe, exported, problems)
    if problems:
        raise InputError(problems)
    return SampleEntry(
        file=Path(recipe.sample.request).name, answer=expected, tolerance=recipe.sample.tolerance, **given
    )


def read_request(folder: Path, recipe: Recipe, exported: Path | None = None) -> SampleEntry:
    """The sample without its answer, which an export may have yet to make. Raises as :func:`read_sample`."""
    problems: list[Problem] = []
    given = _read_request(folder, recipe, exported, problems)
    if problems:
        raise InputError(problems)
    return SampleEntry(file=Path(recipe.sample.request).name, answer={}, tolerance=recipe.sample.tolerance, **given)


def _read_request(folder: Path, recipe: Recipe, exported: Path | None, problems: list[Problem]) -> dict[str, Any]:
    """The fields of a :class:`SampleEntry` that hold the request."""
    request = sample_file(folder, recipe, recipe.sample.request, exported)
    suffix = request.suffix.lower()
    if suffix == ".json":
        return {"body": _tensors(request, "inputs", problems)}
    content = _read(request, problems)
    encoded = base64.b64encode(content or b"").decode()
    if suffix == _ARRAYS:
        if content is not None and not content.startswith(_ZIP):
            problems.append(Problem(file=str(request), found="no file of arrays", allowed="what numpy.savez writes"))
        return {"content": encoded}
    kind: Literal["image", "text"] = "image" if suffix in _IMAGES else "text"
    adapter = recipe.adapters.of(kind)
    if adapter is None:
        recipe_file = str(folder / RECIPE)
        found = f"{kind} file {request.name}, but no adapter for it"
        problems.append(Problem(file=recipe_file, field="sample.request", found=found, allowed=f"adapters.{kind}"))
    elif content is not None and kind == "image":
        problems += _wrong_image(content, request)
    return {"content": encoded, "adapter": kind}


def _wrong_image(content: bytes, file: Path) -> Sequence[Problem]:
    from tritonstack.client.preprocessing import check_image  # noqa: PLC0415  Pillow, which synthesis need not load

    try:
        check_image(content, file=str(file))
    except InputError as error:
        return error.problems
    return ()


def compare_answer(sample: SampleEntry, outputs: Sequence[Mapping[str, Any]], *, model: str) -> float:
    """The largest difference of a floating-point value between the expected and the given answer.

    Outputs that the sample does not name are free. Raises :class:`WorkFailedError`, naming the tensor, where shape or
    type differ, a value that is no floating-point number differs, the difference is above the sample's tolerance, or
    a value of any output is not a number.
    """
    given = {tensor["name"]: tensor for tensor in outputs}
    _refuse_nan(outputs, model)
    largest = 0.0
    for expected in sample.answer["outputs"]:
        name = expected["name"]
        if name not in given:
            raise WorkFailedError(f"{model}: the answer to the sample request has no tensor {name}")
        largest = max(
            largest, _difference(_encoded(expected), given[name], sample.tolerance, f"{model}: tensor {name}")
        )
    return largest


def _refuse_nan(outputs: Sequence[Mapping[str, Any]], model: str) -> None:
    for tensor in outputs:
        floating = tensor["datatype"].startswith(("FP", "BF"))
        if floating and any(math.isnan(value) for value in tensor["data"]):
            what = f"{model}: tensor {tensor['name']}"
            raise WorkFailedError(f"{what}: the answer holds values that are not numbers (NaN)")


def _difference(expected: Mapping[str, Any], given: Mapping[str, Any], tolerance: float, what: str) -> float:
    for key in ("datatype", "shape"):
        if expected[key] != given[key]:
            raise WorkFailedError(f"{what}: {key} {given[key]} in the answer, {expected[key]} expected")
    if not expected["datatype"].startswith(("FP", "BF")):
        if expected["data"] != given["data"]:
            raise WorkFailedError(f"{what}: {given['data'][:10]} in the answer, {expected['data'][:10]} expected")
        return 0.0
    pairs = list(zip(expected["data"], given["data"], strict=True))
    differences = [0.0 if a == b else abs(a - b) for a, b in pairs]  # an infinity is equal to itself
    wrong = [index for index, difference in enumerate(differences) if not difference <= tolerance]  # so NaN is, too
    if wrong:
        worst = max(wrong, key=lambda index: differences[index])
        place = _place(worst, expected["shape"])
        raise WorkFailedError(
            f"{what}: differs by {differences[worst]:.3g} from the expected answer, {tolerance:g} allowed; "
            f"at {place}, where {pairs[worst][0]:.7g} is expected and {pairs[worst][1]:.7g} found"
        )
    return max(differences, default=0.0)


def _place(index: int, shape: Sequence[int]) -> list[int]:
    """A value's place from its index in row-major order."""
    places: list[int] = []
    for length in reversed(shape):
        index, at = divmod(index, length)
        places.insert(0, at)
    return places


def _encoded(tensor: Mapping[str, Any]) -> dict[str, Any]:
    """A KServe JSON tensor with flat data; BYTES as base64, which JSON bodies give as text."""
    flat = list(_flatten(tensor["data"]))
    if tensor["datatype"] == "BYTES":
        flat = [base64.b64encode(str(item).encode()).decode() for item in flat]
    return {"name": tensor["name"], "datatype": tensor["datatype"], "shape": list(tensor["shape"]), "data": flat}


def _flatten(data: Any) -> list[Any]:
    if not isinstance(data, list):
        return [data]
    return [item for part in data for item in _flatten(part)]


def _tensors(path: Path, key: str, problems: list[Problem]) -> dict[str, Any]:
    """A KServe body's ``inputs`` or ``outputs``, checked field by field."""
    content = _read(path, problems)
    if content is None:
        return {}
    allowed = f'{{"{key}": [{{"name", "datatype", "shape", "data"}}, …]}}'
    try:
        body = json.loads(content)
    except ValueError as error:
        problems.append(Problem(file=str(path), found=str(error), allowed=allowed))
        return {}
    tensors = body.get(key) if isinstance(body, dict) else None
    if not isinstance(tensors, list) or not tensors:
        problems.append(Problem(file=str(path), field=key, found="no list of tensors", allowed=allowed))
        return {}
    for index, tensor in enumerate(tensors):
        found = _wrong_tensor(tensor)
        if found:
            problems.append(Problem(file=str(path), field=f"{key}[{index}]", found=found, allowed=allowed))
    return {key: tensors}


def _wrong_tensor(tensor: Any) -> str:
    if not isinstance(tensor, dict) or not {"name", "datatype", "shape", "data"} <= tensor.keys():
        return "a tensor without name, datatype, shape or data"
    shape = tensor["shape"]
    if not isinstance(shape, list) or not all(isinstance(length, int) and length >= 0 for length in shape):
        return f"shape {shape}"
    count = len(_flatten(tensor["data"]))
    return "" if count == math.prod(shape) else f"{count} values for shape {shape}"


def _read(path: Path, problems: list[Problem]) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError as error:
        problems.append(Problem(file=str(path), found=error.strerror or str(error), allowed="a file that can be read"))
        return None
