"""A recipe's sample: the request as arrays and as it is sent, and the expected response, compared with another."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tritonstack.adapters import Adapters
from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack.errors import InputError, Problem, WorkFailedError, collecting, refuse
from tritonstack.models.comparison import base64_outputs, flatten, json_outputs, output_differences
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.recipe import RECIPE, Recipe
from tritonstack.untrusted.folder_files import read_inside
from tritonstack.untrusted.foreign_text import parse_json
from tritonstack.untrusted.gzip_reading import is_compressed, suffix_of, uncompressed

if TYPE_CHECKING:
    import numpy as np

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def sample_file(folder: Path, recipe: Recipe, name: str, exported: Path | None) -> Path:
    """The path of a recipe's file, in the folder or among an export's files."""
    made = name in {made for export in recipe.exports for made in export.produces}
    return exported / name if made and exported is not None else folder / name


def read_sample(folder: Path, recipe: Recipe, exported: Path | None = None, *, with_answer: bool = True) -> SampleEntry:
    """The sample as the manifest holds it; ``exported``: the files of the exports, where they were made.

    Without its response where an export is still to make it. Raises :class:`InputError` with everything that is
    wrong with its files.
    """
    problems: list[Problem] = []
    answer = sample_file(folder, recipe, recipe.sample.answer, exported)
    root = folder if answer.is_relative_to(folder) else exported or folder
    expected = _tensors(answer, root, "outputs", problems) if with_answer else {}
    given = _read_request(folder, recipe, exported, problems)
    refuse(problems)
    return SampleEntry(
        file=Path(recipe.sample.request).name, answer=expected, tolerance=recipe.sample.tolerance, **given
    )


def _read_request(folder: Path, recipe: Recipe, exported: Path | None, problems: list[Problem]) -> dict[str, Any]:
    """The fields of a :class:`SampleEntry` that hold the request."""
    request = sample_file(folder, recipe, recipe.sample.request, exported)
    root = folder if request.is_relative_to(folder) else exported or folder
    suffix = suffix_of(request)
    if suffix == ".json":
        return {"body": _tensors(request, root, "inputs", problems)}
    content = _read(request, root, problems)
    kind: Literal["image", "text"] = "image" if suffix in _IMAGES else "text"
    adapter = recipe.adapters.of(kind)
    if adapter is None:
        recipe_file = str(folder / RECIPE)
        found = f"{kind} file {request.name}, but no adapter for it"
        problems.append(Problem(file=recipe_file, field="sample.request", found=found, allowed=f"adapters.{kind}"))
    elif content is not None and kind == "image":
        from tritonstack.client.images import check_image  # noqa: PLC0415  Pillow, which synthesis need not load

        with collecting(problems):
            check_image(content, file=str(request))
    return {"content": base64.b64encode(content or b"").decode(), "adapter": kind}


class ResponseDiffersError(WorkFailedError):
    """A response that is not the expected one."""


def compare_answer(sample: SampleEntry, outputs: Sequence[Mapping[str, Any]], *, model: str) -> float:
    """The largest difference of a floating-point value between the expected and the given response.

    ``outputs``: elements of BYTES in base64; those that the sample does not name are free. Raises
    :class:`ResponseDiffersError` with every tensor that is missing or differs: in shape or type, in a value that is no
    floating-point number, by more than the sample's tolerance; or that holds what is not a number.
    """
    given = base64_outputs(outputs)
    for name, output in given.items():
        if output.datatype.startswith(("FP", "BF")) and any(map(math.isnan, output.values)):
            what = f"{model}: tensor {name}"
            raise ResponseDiffersError(f"{what}: the response holds values that are not numbers (NaN)")
    expected = json_outputs(sample.answer["outputs"])
    largest, differences = output_differences(expected, given, tolerance=sample.tolerance)
    if differences:
        raise ResponseDiffersError(f"{model}: " + "\n  ".join(map(str, differences)))
    return largest


def _tensors(path: Path, root: Path, key: str, problems: list[Problem]) -> dict[str, Any]:
    """A KServe body's ``inputs`` or ``outputs``, checked field by field."""
    content = _read(path, root, problems)
    if content is None:
        return {}
    allowed = f'{{"{key}": [{{"name", "datatype", "shape", "data"}}, …]}}'
    try:
        body = parse_json(content)
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
    name, datatype = tensor["name"], tensor["datatype"]
    if not (isinstance(name, str) and isinstance(datatype, str)):
        return f"name {name!r:.40} and datatype {datatype!r:.40}, which are no texts"
    shape = tensor["shape"]
    if not isinstance(shape, list) or not all(isinstance(length, int) and length >= 0 for length in shape):
        return f"shape {shape!r:.80}"
    values = flatten(tensor["data"])
    if len(values) != math.prod(shape):
        return f"{len(values)} values for shape {shape!r:.80}"
    fits = _is_text if datatype == "BYTES" else _is_number
    wrong = next((value for value in values if not fits(value)), None)
    return "" if all(map(fits, values)) else f"{datatype} with the value {wrong!r:.40}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    """Whether a value fits a tensor's element: 64 bits, or a fraction."""
    return isinstance(value, float) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 64)


LARGEST_SAMPLE = 1 << 30
"""Bytes of a sample's file: a request of half precision in JSON is larger than the 25 MB that are sent."""


def _read(path: Path, root: Path, problems: list[Problem]) -> bytes | None:
    try:
        content = read_inside(path, root, most=LARGEST_SAMPLE)
        return uncompressed(content, most=LARGEST_SAMPLE) if is_compressed(path) else content
    except InputError as error:
        problems += error.problems
        return None
    except ValueError as error:
        problems.append(Problem(file=str(path), found=str(error), allowed="a text compressed by gzip"))
        return None
    except OSError as error:
        problems.append(Problem(file=str(path), found=error.strerror or str(error), allowed="a file that can be read"))
        return None


Arrays = dict[str, "np.ndarray[Any, Any]"]
READY_REQUEST = "sample-request.kserve"
"""The client file that holds a sample's request as InvokeEndpoint takes it: a JSON header, then the tensors."""
_NOT_IN_JSON = {"FP16", "BF16"}


def request_arrays(
    sample: SampleEntry, *, adapters: Adapters, model: ModelEntry, files: Mapping[str, Path], file: str
) -> Arrays:
    """The sample request's inputs by name.

    ``files``: client files that an adapter names → where they are. ``file``: the request's, for messages. Raises
    :class:`InputError` where the request is not what the model takes, :class:`WorkFailedError` where a client file is
    not what it has to be.
    """
    if sample.body is not None:
        from tritonstack.client.kserve_request import inputs_from_json  # noqa: PLC0415  NumPy, which the linter need not load

        return inputs_from_json(json.dumps(sample.body).encode(), file=file)
    content = base64.b64decode(sample.content or "")
    adapter = adapters.of(sample.adapter) if sample.adapter else None
    if adapter is None:
        found = f"{sample.adapter} file, but no adapter for it"
        raise InputError([Problem(file=file, found=found, allowed=f"adapters.{sample.adapter}")])
    from tritonstack.client.preprocessing import to_arrays  # noqa: PLC0415  NumPy, and boto3 by way of the client

    try:
        return to_arrays(adapter, content, files, inputs=model.inputs)
    except InputError as error:  # its problems are about the content alone
        raise InputError([replace(each, file=each.file or file) for each in error.problems]) from error


def ready_request(sample: SampleEntry, arrays: Arrays) -> bytes | None:
    """The sample request as it is sent, for a sender without adapters and NumPy; the response is to be binary.

    None where the sample's own body can be sent as it is: Triton refuses half precision in JSON, SageMaker what is too
    large as JSON.
    """
    if (
        sample.body is not None
        and not any(tensor["datatype"] in _NOT_IN_JSON for tensor in sample.body["inputs"])
        and len(json.dumps(sample.body)) <= MAX_PAYLOAD_BYTES
    ):
        return None
    from tritonstack.client.body import encode  # noqa: PLC0415  as above

    return encode(arrays, payload_format="binary").content


def to_tensors(arrays: Mapping[str, np.ndarray[Any, Any]]) -> list[dict[str, Any]]:
    """Arrays as tensors of the prover's plan: flat lists, BYTES elements in base64."""
    from tritonclient.utils import np_to_triton_dtype  # noqa: PLC0415

    tensors = []
    for name, array in arrays.items():
        flat = array.reshape(-1).tolist()
        if array.dtype == object:
            raw = [item.encode() if isinstance(item, str) else bytes(item) for item in flat]
            flat = [base64.b64encode(item).decode() for item in raw]
        datatype = np_to_triton_dtype(array.dtype)
        tensors.append({"name": name, "datatype": datatype, "shape": list(array.shape), "data": flat})
    return tensors


def save_arrays(arrays: Arrays, file: Path) -> bool:
    """Write an .npz file for export scripts; False, and nothing written, for BYTES, which it cannot hold."""
    import numpy as np  # noqa: PLC0415

    if any(array.dtype == object for array in arrays.values()):
        return False
    with file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return True
