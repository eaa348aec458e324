"""A recipe's engine as trtexec's command line for a release and a GPU, and as the job of ``engine_step.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.catalogue import TritonRelease, load_catalogue
from tritonstack.catalogue.triton_releases import minor_version
from tritonstack.catalogue.trtexec_options import takes_option, tensorrt_candidates
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.models.runtime_options import INT64_TENSORS_SINCE, Engine, HardwareCompatibility, Shape
from tritonstack.naming import Platform

if TYPE_CHECKING:  # synthesis imports this module, and NumPy alone is a twentieth of it
    from numpy.typing import NDArray

# Every TensorRT that the release may have has these options: see ``tritonstack.catalogue.trtexec_options``.
BF16_SINCE = (8, 0)
"""The oldest compute capability with BF16 (TensorRT support matrix, BF16 column: Ampere and newer)."""

PROFILE = "--profile"
"""trtexec's option with the number of an optimisation profile, before its shapes (sampleOptions.cpp)."""

VERSION_COMPATIBLE = "--versionCompatible"
"""trtexec's option, of the build and of loading such a plan."""

LEVELS: Mapping[HardwareCompatibility, tuple[str, tuple[int, ...]]] = {
    "ampere_plus": ("ampere+", (8, 0)),
    "same_compute_capability": ("sameComputeCapability", (7, 5)),
}
"""Recipe's hardware compatibility → trtexec's word, and the oldest compute capability that has it (NvInfer.h)."""

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

    def takes(self, option: str, value: str = "") -> bool:
        """Whether every TensorRT that the release may have has the option, and takes the value."""
        return all(takes_option(version, option, value) for version in self.tensorrt)

    def lacks(self, option: str, value: str = "") -> str:
        """The words of a message where ``takes`` is False."""
        known = any(takes_option(version, option, value) for version in self.tensorrt)
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
    compatibility = engine.hardware_compatibility
    level, oldest = LEVELS.get(compatibility, ("", (0,)))
    needed: list[tuple[str, object, tuple[str, str]]] = [
        ("hardware_compatibility", compatibility if level else None, ("--hardwareCompatibilityLevel", level)),
        ("optimisation_level", engine.optimisation_level, ("--builderOptimizationLevel", "")),
        ("version_compatible", engine.version_compatible or None, (VERSION_COMPATIBLE, "")),
    ]
    for field, value, (name, argument) in needed:
        if value is not None and not target.takes(name, argument):
            spelled, lacks = f"{name}={argument}" if argument else name, target.lacks(name, argument)
            yield Problem(
                file=file,
                field=f"engine.{field}",
                found=f"{str(value).lower()} for {target.named}, whose trtexec {lacks} {spelled}",
                allowed=f"release {', '.join(_releases_with(name, argument))}; or the field left out",
            )
    if target.compute_capability < oldest:
        yield Problem(
            file=file,
            field="engine.hardware_compatibility",
            found=f"{compatibility} on {target.gpu}, of compute capability {_dotted(target.compute_capability)}",
            allowed=f"none; or a GPU of compute capability {_dotted(oldest)} or newer",
        )
    if len(engine.profiles) > 1 and not target.takes(PROFILE):
        yield Problem(
            file=file,
            field="engine.shapes",
            found=f"{len(engine.profiles)} profiles for {target.named}, "
            f"whose trtexec {target.lacks(PROFILE)} {PROFILE}",
            allowed=f"one set of shapes; or release {', '.join(_releases_with(PROFILE))}",
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


def _dotted(capability: tuple[int, ...]) -> str:
    return ".".join(map(str, capability))


def _releases_with(option: str, value: str = "") -> list[str]:
    """The releases with an image of AWS's whose every possible TensorRT has an option, and takes its value."""
    catalogue = load_catalogue()
    return [
        version
        for version in catalogue.served_releases()
        if all(takes_option(known, option, value) for known in _candidates(catalogue.releases[version]))
    ]


def _shown(version: str) -> str:
    """A TensorRT version as far as its options depend on it: ``10.4.0`` → ``10.4``."""
    return ".".join(map(str, minor_version(version)))


def _options(engine: Engine, target: EngineTarget) -> Iterator[str]:
    for number, profile in enumerate(engine.profiles):
        if len(engine.profiles) > 1:
            yield f"{PROFILE}={number}"  # trtexec takes the three that follow it at once for this profile's
        for end in ("min", "opt", "max"):
            shapes = [_spelt(name, getattr(shape, end)) for name, shape in sorted(profile.items())]
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
    if not engine.tf32:
        yield "--noTF32"  # every version has it
    if engine.version_compatible:
        yield VERSION_COMPATIBLE
    if engine.hardware_compatibility != "none":
        yield f"--hardwareCompatibilityLevel={LEVELS[engine.hardware_compatibility][0]}"
    if engine.verbose:
        yield "--verbose"
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
    more_inputs: Sequence[Mapping[str, NDArray[Any]]] = (),
) -> dict[str, Any]:
    """Write ``job.json`` and the inputs' raw files into the graph's folder; returns the job.

    ``inputs``: input → the proof's array, in the graph's type, the batch first; ``more_inputs``: those of the engine's
    further profiles. ``outputs``: those that the plan must return. ``timeout_seconds``: of build and proof together.
    Raises :class:`InputError` with every reason where the release and the GPU have no such engine, or an input has a
    type that no engine takes.
    """
    proofs = (inputs, *more_inputs)
    wrong = {
        Problem(field=f"inputs.{name}", found=str(array.dtype), allowed=", ".join(TYPES)): None
        for proof in proofs
        for name, array in proof.items()
        if array.dtype.name not in TYPES
    }
    refuse(tuple(wrong))
    release, card = platform.release, load_catalogue().instances_with(platform.gpu)[0]
    options, versions = engine_options(engine, release=release, gpu=card.gpu), tensorrt_versions(release)
    narrow = minor_version(versions[-1])[0] < INT64_TENSORS_SINCE
    raw = [{name: _engine_array(name, array, narrow=narrow) for name, array in proof.items()} for proof in proofs]
    described: list[dict[str, Any]] = []
    for number, proof in enumerate(raw):
        described.append({})
        for index, (name, array) in enumerate(proof.items()):
            file = f"input{index}.raw" if number == 0 else f"profile{number}-input{index}.raw"
            array.tofile(folder / file)
            described[-1][name] = {"file": file, "shape": list(array.shape)}
    job = {
        "release": release,
        "tensorrt": list(versions),
        "gpu": {"name": card.gpu, "compute_capability": card.compute_capability},
        "cuda": _release(release).cuda,
        "options": list(options),
        "inputs": described[0],
        "more_inputs": described[1:],
        "measure": {
            "seconds": engine.measure_seconds,
            "shapes": [{name: list(shape.opt) for name, shape in sorted(each.items())} for each in engine.profiles],
        },
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
