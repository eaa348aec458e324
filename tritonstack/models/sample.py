"""A recipe's sample: the request as arrays and as it is sent, the expected answer, and the proof that a built
repository gives it.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tritonstack.adapters import Adapters
from tritonstack.errors import InputError, Problem, WorkFailedError, collecting, refuse
from tritonstack.folder_files import read_inside
from tritonstack.foreign_text import parse_json
from tritonstack.local_aws import installed, require_package
from tritonstack.models.contents import PROVABLE, called_models, skipped_proof
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.model_config import ModelConfig, Node, read_config
from tritonstack.models.model_view import view_model
from tritonstack.models.programs import Report, Spent, has_environment, run_script
from tritonstack.models.recipe import KIND_BACKENDS, RECIPE, Recipe
from tritonstack.models.source_files import CONFIG, model_directories
from tritonstack.sagemaker_rules import MAX_PAYLOAD_BYTES

if TYPE_CHECKING:
    import numpy as np

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def sample_file(folder: Path, recipe: Recipe, name: str, exported: Path | None) -> Path:
    """Where a file of the recipe lies that the folder holds or an export makes."""
    made = name in {made for export in recipe.exports for made in export.produces}
    return exported / name if made and exported is not None else folder / name


def read_sample(folder: Path, recipe: Recipe, exported: Path | None = None, *, with_answer: bool = True) -> SampleEntry:
    """The sample as the manifest holds it; ``exported``: the files of the exports, where they were made.

    Without its answer where an export may have yet to make that. Raises :class:`InputError` with everything that is
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
    suffix = request.suffix.lower()
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
        from tritonstack.client.preprocessing import check_image  # noqa: PLC0415  Pillow, which synthesis need not load

        with collecting(problems):
            check_image(content, file=str(request))
    return {"content": base64.b64encode(content or b"").decode(), "adapter": kind}


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
            raise WorkFailedError(f"{model}: the response to the sample request has no tensor {name}")
        largest = max(
            largest, _difference(_encoded(expected), given[name], sample.tolerance, f"{model}: tensor {name}")
        )
    return largest


def _refuse_nan(outputs: Sequence[Mapping[str, Any]], model: str) -> None:
    for tensor in outputs:
        floating = tensor["datatype"].startswith(("FP", "BF"))
        if floating and any(math.isnan(value) for value in tensor["data"]):
            what = f"{model}: tensor {tensor['name']}"
            raise WorkFailedError(f"{what}: the response holds values that are not numbers (NaN)")


def _difference(expected: Mapping[str, Any], given: Mapping[str, Any], tolerance: float, what: str) -> float:
    for key in ("datatype", "shape"):
        if expected[key] != given[key]:
            raise WorkFailedError(f"{what}: {key} {given[key]} in the response, {expected[key]} expected")
    if not expected["datatype"].startswith(("FP", "BF")):
        if expected["data"] != given["data"]:
            raise WorkFailedError(f"{what}: {given['data'][:10]} in the response, {expected['data'][:10]} expected")
        return 0.0
    pairs = list(zip(expected["data"], given["data"], strict=True))
    differences = [0.0 if a == b else abs(a - b) for a, b in pairs]  # an infinity is equal to itself
    wrong = [difference for difference in differences if not difference <= tolerance]  # so NaN is, too
    if wrong:
        raise WorkFailedError(
            f"{what}: differs by {max(wrong):.3g} from the expected response, {tolerance:g} allowed; "
            f"{len(wrong):,} of {len(pairs):,} values"
        )
    return max(differences, default=0.0)


def _encoded(tensor: Mapping[str, Any]) -> dict[str, Any]:
    """A KServe JSON tensor with flat data; BYTES as base64, which JSON bodies give as text."""
    flat = list(_flatten(tensor["data"]))
    if tensor["datatype"] == "BYTES":
        flat = [base64.b64encode(str(item).encode()).decode() for item in flat]
    return {"name": tensor["name"], "datatype": tensor["datatype"], "shape": list(tensor["shape"]), "data": flat}


def _flatten(data: Any) -> list[Any]:
    """The values of nested lists, in their order; as deep as they are, which recursion could not be."""
    flat: list[Any] = []
    waiting = [iter([data])]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list):
                waiting.append(iter(item))
                break
            flat.append(item)
        else:
            waiting.pop()
    return flat


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
    values = _flatten(tensor["data"])
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
        return read_inside(path, root, most=LARGEST_SAMPLE)
    except InputError as error:
        problems += error.problems
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

    ``files``: client files that an adapter names → where they lie. ``file``: the request's, for messages. Raises
    :class:`InputError` where the request is not what the model takes, :class:`WorkFailedError` where a client file is
    not what it has to be.
    """
    if sample.body is not None:
        from tritonstack.client.inputs import inputs_from_json  # noqa: PLC0415  NumPy, which the linter need not load

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
    """The sample request as it is sent, for a sender without adapters and NumPy, which asks for a binary answer.

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


PROOF_ENVIRONMENT = "exporters"
PROVER = Path(__file__).with_name("prover.py")
"""The program that answers a request with ONNX Runtime, in the environment ``PROOF_ENVIRONMENT``."""

ENVIRONMENT = "EXECUTION_ENV_PATH"


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What a proof measured, with what, what it took, and what stood in for what serves in the cloud."""

    sample_difference: float | None = None  # None where the proof was skipped
    tools: dict[str, str] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    spent: Spent | None = None  # None where the proof was skipped
    skipped: str = ""  # why it was skipped; empty where it was not


def check_floors(folder: Path, *, recipe: Recipe, figures: Mapping[str, float]) -> None:
    """Raise :class:`WorkFailedError` unless every figure that the recipe bounds is there and high enough."""
    for name, floor in recipe.proof.figures.items():
        if name not in figures:
            raise WorkFailedError(f"{folder / RECIPE}: proof.figures.{name}: the export did not report it")
        if not figures[name] >= floor.at_least:
            raise WorkFailedError(
                f"{folder.name}: {name} is {figures[name]:.4g}, at least {floor.at_least:g} is needed"
            )


def prove_sample(
    repository: Path, *, model: ModelEntry, sample: SampleEntry, request: Arrays, work: Path, report: Report
) -> Proven:
    """Answer the sample request with the staged models and compare; skipped where nothing here has their backends.

    Raises :class:`WorkFailedError` naming the tensor that differs, and :class:`InputError` where the environment of a
    backend is not made on this machine.
    """
    backends = (read_config((path / CONFIG).read_text()).backend for path in model_directories(repository))
    if skipped := skipped_proof(backends):
        report(f"proof of {model.name} skipped: {skipped}")
        return Proven(skipped=skipped)
    given = answer_request(repository, model=model.name, request=request, work=work, report=report)
    difference = compare_answer(sample, given.outputs, model=model.name)
    return Proven(sample_difference=difference, tools=given.tools, stand_ins=given.stand_ins, spent=given.spent)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What staged models answered to a request, with what, what it took, and what stood in."""

    outputs: list[dict[str, Any]]  # tensors with flat data; elements of BYTES in base64
    tools: dict[str, str]
    stand_ins: tuple[str, ...]
    spent: Spent


def answer_request(repository: Path, *, model: str, request: Arrays, work: Path, report: Report) -> Answered:
    """Answer a request with the staged models: outside Triton where that can be, else in the local Triton.

    Raises :class:`WorkFailedError` where they fail, and :class:`InputError` where a backend cannot be run on this
    machine.
    """
    configs = {path.name: read_config((path / CONFIG).read_text()) for path in model_directories(repository)}
    if skipped := skipped_proof(config.backend for config in configs.values()):
        allowed = f"backends that the local Triton has or stands in for: {', '.join(sorted(KIND_BACKENDS.values()))}"
        raise InputError([Problem(field=model, found=f"nothing here answers it: {skipped}", allowed=allowed)])
    directories = {name: repository / name for name in configs}
    needs = {config.backend for config in configs.values()}
    needs |= {ENVIRONMENT} if any(ENVIRONMENT in c.node.entries("parameters") for c in configs.values()) else set()
    if not needs <= PROVABLE or (not has_environment(PROOF_ENVIRONMENT) and installed() is not None):
        started = time.monotonic()
        try:
            answer = require_package().answer_in_container(
                repository,
                model=model,
                needs=needs,
                request=request,
                loads=called_models(configs, directories, addressed=model),
                work=work,
                report=report,
            )
        except WorkFailedError as error:
            raise WorkFailedError(in_sources(str(error), repository)) from error
        took, step = time.monotonic() - started, f"proof of {model} (local Triton)"
        spent = Spent(step=step, seconds=took, peak_bytes=answer.peak_bytes)
        report(str(spent))
        outputs = to_tensors(answer.outputs)
        if "python" in needs:  # other backends compare what they give with the configuration
            _check_outputs(configs[model], outputs, model=model)
        return Answered(outputs=outputs, tools=answer.tools, stand_ins=answer.stand_ins, spent=spent)
    plan = {
        "model": model,
        "models": {name: _plan(repository / name, config) for name, config in configs.items()},
        "request": to_tensors(request),
    }
    result, spent = run_prover(plan, work=work, what=f"proof of {model}", report=report)
    if "failure" in result:
        raise WorkFailedError(f"proof of {model} failed:\n  {in_sources(result['failure'], repository)}")
    ran = sorted({config.backend for config in configs.values()} - {"ensemble"})
    stand_ins = tuple(f"backend {backend}: {_PROVERS[backend]}, outside Triton" for backend in ran)
    return Answered(outputs=result["outputs"], tools=result["tools"], stand_ins=stand_ins, spent=spent)


def _check_outputs(config: ModelConfig, outputs: Sequence[Mapping[str, Any]], *, model: str) -> None:
    """Raise :class:`WorkFailedError` unless every configured output is there, of its type and shape.

    Triton hands on whatever a Python model gives.
    """
    given = {tensor["name"]: tensor for tensor in outputs}
    for wanted in config.outputs:
        tensor = given.get(wanted.name)
        if tensor is None:
            raise WorkFailedError(f"{model}: the output {wanted.name} is missing")
        shape = wanted.shape(config.max_batch_size)
        same = len(shape) == len(tensor["shape"]) and all(
            length in (-1, found) for length, found in zip(shape, tensor["shape"], strict=True)
        )
        if tensor["datatype"] != wanted.data_type or not same:
            found = f"{tensor['datatype']} {list(tensor['shape'])}"
            raise WorkFailedError(
                f"{model}: output {wanted.name}: {found}, config.pbtxt says {wanted.data_type} {shape}"
            )


def run_prover(plan: Mapping[str, Any], *, work: Path, what: str, report: Report) -> tuple[dict[str, Any], Spent]:
    """What ONNX Runtime answers a plan's request, or its ``failure`` (see ``prover.py``). ``work``: for its files."""
    plan_file, result_file = work / "plan.json", work / "result.json"
    plan_file.write_text(json.dumps(plan))
    arguments = ["-P", str(PROVER), str(plan_file.resolve()), str(result_file.resolve())]
    spent = run_script(environment=PROOF_ENVIRONMENT, arguments=arguments, folder=work, what=what, report=report)
    return parse_json(result_file.read_text()), spent


_PROVERS = {"onnxruntime": "ONNX Runtime on the CPU"}


def _plan(folder: Path, config: ModelConfig) -> dict[str, Any]:
    """One model of the prover's plan; see ``prover.py``."""
    view = view_model(folder, ())
    newest = folder / (view.served_versions or view.versions or ("1",))[-1]
    batch = config.max_batch_size
    tensors = {
        kind: [
            {
                "name": t.name,
                "datatype": t.data_type,
                "shape": t.shape(batch),
                "backend_shape": t.backend_shape(batch),
                "optional": t.optional,
            }
            for t in listed
        ]
        for kind, listed in (("inputs", config.inputs), ("outputs", config.outputs))
    }
    return tensors | {
        "backend": config.backend,
        "file": str((newest / config.model_file).resolve()),
        "steps": [
            {"model": step.text("model_name"), "inputs": _map(step, "input_map"), "outputs": _map(step, "output_map")}
            for step in config.steps
        ],
    }


def _map(step: Node, field: str) -> dict[str, str]:
    return {key: str(value) for key, value in step.entries(field).items()}


def in_sources(text: str, repository: Path) -> str:
    """A message about a staged repository, with every staged file by the name of its source.

    A source below the working directory is named from there, as a person would.
    """
    sources: dict[str, str] = json.loads(sources_file(repository).read_text())
    here = Path.cwd()
    for name in sorted(sources, key=len, reverse=True):
        source = Path(sources[name]).resolve()
        shown = source.relative_to(here) if source.is_relative_to(here) else source
        text = text.replace(str(repository.resolve() / name), str(shown))
    return text


def sources_file(repository: Path) -> Path:
    """The file next to a staged repository that notes where each of its files comes from."""
    return repository.with_name(f"{repository.name}.sources.json")
