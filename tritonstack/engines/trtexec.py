"""A recipe's engine as trtexec's command line for a release and a GPU, and as the job of ``engine_step.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.catalogue import TritonRelease, load_catalogue
from tritonstack.catalogue.triton_releases import minor_version
from tritonstack.catalogue.trtexec_options import tensorrt_candidates, trtexec_options
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.models.runtime_options import INT64_TENSORS_SINCE, Engine, Shape
from tritonstack.naming import Platform

if TYPE_CHECKING:  # synthesis imports this module, and NumPy alone is a twentieth of it
    from numpy.typing import NDArray

# Every TensorRT that the release may have has these options: see ``tritonstack.catalogue.trtexec_options``.
BF16_SINCE = (8, 0)
"""The oldest compute capability with BF16 (TensorRT support matrix, BF16 column: Ampere and newer)."""

PRECISIONS = {"fp16": "--fp16", "bf16": "--bf16", "fp32": None, "int8": "--int8", "graph": "--stronglyTyped"}
STRONGLY_TYPED_ADVICE = {
    "fp16": "say precision: graph and graph_precision: fp16, and the build turns the exported graph into FP16",
    "bf16": "say precision: graph, and export the ONNX graph in BF16",
    "int8": "say precision: graph, and export an ONNX graph with QuantizeLinear and DequantizeLinear nodes",
}
STRONGLY_TYPED_ONLY = 11
"""The first major version whose every network is strongly typed; it still takes --stronglyTyped, to no effect."""


@dataclass(frozen=True, kw_only=True)
class EngineTarget:
    """The target of an engine: a release of the catalogue, a GPU's compute capability, the TensorRT it may have."""

    release: TritonRelease
    gpu: str
    compute_capability: tuple[int, ...]
    tensorrt: tuple[str, ...]

    @property
    def named(self) -> str:
        """Name in messages."""
        versions = [_shown(version) for version in dict.fromkeys((self.tensorrt[0], self.tensorrt[-1]))]
        return f"release {self.release.version} with TensorRT {' to '.join(versions)}"

    def takes(self, option: str) -> bool:
        """Whether every TensorRT that the release may have has the option."""
        return all(option in trtexec_options(version) for version in self.tensorrt)

    def lacks(self, option: str) -> str:
        """The words of a message where ``takes`` is False."""
        known = any(option in trtexec_options(version) for version in self.tensorrt)
        return "may not have" if known else "does not have"

    @property
    def is_strongly_typed(self) -> bool:
        """Whether the release's TensorRT supports strongly typed networks alone."""
        return minor_version(self.tensorrt[0])[0] >= STRONGLY_TYPED_ONLY


def tensorrt_versions(release: str) -> tuple[str, ...]:
    """The minor versions of TensorRT that a release may have; the image's own must be one of them.

    Raises :class:`InputError` for a release older than the catalogue.
    """
    return tuple(map(_shown, _candidates(_release(release))))


def engine_problems(engine: Engine, *, release: str, gpu: str, file: str | None = None) -> tuple[Problem, ...]:
    """Why no engine can be built for a release and a GPU (``t4``, in any case); empty where one can.

    ``file``: the recipe, for the messages. Raises :class:`InputError` as ``tensorrt_versions``.
    """
    return tuple(_refusals(engine, _target(release, gpu), file))


def engine_options(engine: Engine, *, release: str, gpu: str) -> tuple[str, ...]:
    """trtexec's options for an engine, but those that name files. Raises :class:`InputError` where there are none."""
    target = _target(release, gpu)
    refusals = tuple(_refusals(engine, target, None))
    refuse(refusals)
    return tuple(_options(engine, target))


def _target(release: str, gpu: str) -> EngineTarget:
    row, card = _release(release), load_catalogue().instances_with(gpu)[0]
    capability = tuple(int(part) for part in card.compute_capability.split("."))
    return EngineTarget(release=row, gpu=card.gpu, compute_capability=capability, tensorrt=_candidates(row))


def _release(release: str) -> TritonRelease:
    row = load_catalogue().release(release)
    if row is None:
        allowed = ", ".join(load_catalogue().served_releases())
        raise InputError([Problem(field="release", found=f"{release}, which is not in the catalogue", allowed=allowed)])
    return row


def _candidates(release: TritonRelease) -> tuple[str, ...]:
    return tensorrt_candidates(release, releases=tuple(load_catalogue().releases.values()))


def _refusals(engine: Engine, target: EngineTarget, file: str | None) -> Iterator[Problem]:
    """Features that the recipe needs and the release's TensorRT or the GPU lacks."""
    level = "--builderOptimizationLevel"
    if engine.optimisation_level is not None and not target.takes(level):
        yield Problem(
            file=file,
            field="engine.optimisation_level",
            found=f"{engine.optimisation_level} for {target.named}, whose trtexec {target.lacks(level)} {level}",
            allowed=f"release {', '.join(_releases_with(level))}; or the field left out",
        )
    precision, option = engine.precision, PRECISIONS[engine.precision]
    here = ", ".join(name for name in PRECISIONS if _has_precision(name, target))
    if option is not None and not target.takes(option):
        graph = "graph" if target.is_strongly_typed else ""
        yield Problem(
            file=file,
            field="engine.precision",
            found=f"{precision} for {target.named}, whose trtexec {target.lacks(option)} {option}"
            + (": from TensorRT 11 on, a network has the types of its ONNX graph" if graph else ""),
            allowed=f"{here}; or release {', '.join(_releases_with(option))}",
            advice=STRONGLY_TYPED_ADVICE[precision] if graph else "",
        )
    if precision == "bf16" and target.compute_capability < BF16_SINCE:
        yield Problem(file=file, field="engine.precision", found=f"bf16 on {target.gpu}, which has none", allowed=here)


def _has_precision(precision: str, target: EngineTarget) -> bool:
    """Whether an engine of that precision can be built for the target."""
    option = PRECISIONS[precision]
    has_unit = precision != "bf16" or target.compute_capability >= BF16_SINCE
    return has_unit and (option is None or target.takes(option))


def _releases_with(option: str) -> list[str]:
    """The releases with an image of AWS's whose every possible TensorRT has an option."""
    catalogue = load_catalogue()
    return [
        version
        for version in catalogue.served_releases()
        if all(option in trtexec_options(known) for known in _candidates(catalogue.releases[version]))
    ]


def _shown(version: str) -> str:
    """A TensorRT version as far as its options depend on it: ``10.4.0`` → ``10.4``."""
    return ".".join(map(str, minor_version(version)))


def _options(engine: Engine, target: EngineTarget) -> Iterator[str]:
    for end in ("min", "opt", "max"):
        shapes = [_spelt(name, getattr(shape, end)) for name, shape in sorted(engine.shapes.items())]
        yield f"--{end}Shapes={','.join(shapes)}"
    option = PRECISIONS[engine.precision]
    if option is not None:
        yield option
    if engine.precision == "int8":
        yield "--fp16"  # for layers without an INT8 form, as trtexec itself advises; every TensorRT with --int8 has it
    has_pools = target.takes("--memPoolSize")
    yield f"--memPoolSize=workspace:{engine.workspace_mib}" if has_pools else f"--workspace={engine.workspace_mib}"
    if engine.optimisation_level is not None:
        yield f"--builderOptimizationLevel={engine.optimisation_level}"
    yield "--skipInference" if target.takes("--skipInference") else "--buildOnly"


def _spelt(name: str, shape: Shape) -> str:
    """``name:1x128``; a name with a colon in single quotes (trtexec --help)."""
    quoted = f"'{name}'" if ":" in name else name
    return f"{quoted}:{'x'.join(map(str, shape))}"


TYPES = ("float16", "float32", "int8", "uint8", "int32", "int64", "bool")
"""The types that an input of an engine may have (NumPy's names; TensorRT has no others that NumPy has too)."""


JOB, GRAPH, PLAN = "job.json", "model.onnx", "model.plan"
TIMING_CACHE, CALIBRATION = "timing.cache", "calibration.cache"
"""Files of a job's folder and of its output, as ``engine_step.py`` names them; an earlier timing cache is optional."""


def write_job(
    folder: Path,
    *,
    engine: Engine,
    platform: Platform,
    inputs: Mapping[str, NDArray[Any]],
    outputs: Sequence[str],
    timeout_seconds: float,
) -> dict[str, Any]:
    """Write ``job.json`` and the inputs' raw files into the graph's folder; returns the job.

    ``inputs``: input → the proof's array, in the graph's type, the batch first. ``outputs``: those that the plan must
    return. ``timeout_seconds``: of build and proof together. Raises :class:`InputError` with every reason where the
    release and the GPU have no such engine, or an input has a type that no engine takes.
    """
    wrong = [
        Problem(field=f"inputs.{name}", found=str(array.dtype), allowed=", ".join(TYPES))
        for name, array in inputs.items()
        if array.dtype.name not in TYPES
    ]
    refuse(wrong)
    release, card = platform.release, load_catalogue().instances_with(platform.gpu)[0]
    options, versions = engine_options(engine, release=release, gpu=card.gpu), tensorrt_versions(release)
    narrow = minor_version(versions[-1])[0] < INT64_TENSORS_SINCE
    raw = {name: _engine_array(name, array, narrow=narrow) for name, array in inputs.items()}
    described = {}
    for index, (name, array) in enumerate(raw.items()):
        array.tofile(folder / f"input{index}.raw")
        described[name] = {"file": f"input{index}.raw", "shape": list(array.shape)}
    job = {
        "release": release,
        "tensorrt": list(versions),
        "gpu": {"name": card.gpu, "compute_capability": card.compute_capability},
        "cuda": _release(release).cuda,
        "options": list(options),
        "inputs": described,
        "outputs": list(outputs),
        "timing_cache": engine.timing_cache,
        "calibration_cache": engine.calibration_cache is not None,
        "timeout_seconds": timeout_seconds,
        "output": "output",
    }
    (folder / JOB).write_text(json.dumps(job, indent=1) + "\n")
    return job


def change_job(folder: Path, **changes: Any) -> None:
    """Change some members of a written job."""
    (folder / JOB).write_text(json.dumps({**json.loads((folder / JOB).read_text()), **changes}, indent=1) + "\n")


def _engine_array(name: str, array: NDArray[Any], *, narrow: bool) -> NDArray[Any]:
    """An input as the engine's tensor holds it. Raises InputError for a number that INT32 does not hold."""
    if not narrow or array.dtype != "int64":
        return array
    narrowed = array.astype("int32")
    if (narrowed != array).any():
        advice = "give the recipe's sample smaller numbers: before TensorRT 10 an engine takes INT32"
        raise InputError([Problem(field=f"inputs.{name}", found="a number of 64 bits", allowed="INT32", advice=advice)])
    return narrowed
