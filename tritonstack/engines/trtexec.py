"""A recipe's engine as trtexec's command line for a release and a GPU, and as the job of ``engine_step.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.catalogue import InstanceType, TritonRelease, load_catalogue
from tritonstack.catalogue.options import takes_value, tensorrt_candidates
from tritonstack.catalogue.releases import minor_version
from tritonstack.errors import InputError, Problem
from tritonstack.models.runtime_options import Engine, Shape
from tritonstack.naming import Platform

if TYPE_CHECKING:  # synthesis imports this module, and NumPy alone is a twentieth of it
    from numpy.typing import NDArray

# Only options are given that every TensorRT knows which the release may have: see ``tritonstack.catalogue.options``.
BF16_SINCE = (8, 0)
"""The oldest compute capability with BF16 (TensorRT support matrix, BF16 column: Ampere and newer)."""

LEVELS = {"ampere+": ("ampere+", (8, 0)), "same-compute-capability": ("sameComputeCapability", (7, 5))}
"""Recipe's hardware compatibility → trtexec's word, and the oldest compute capability that has it (NvInfer.h)."""

PRECISIONS = {"fp16": "--fp16", "bf16": "--bf16", "fp32": None, "graph": "--stronglyTyped"}
STRONGLY_TYPED_ADVICE = {
    "fp16": "say precision: graph and graph_precision: fp16, and the build turns the exported graph into FP16",
    "bf16": "say precision: graph, and export the ONNX graph in BF16",
}
STRONGLY_TYPED_ONLY = 11
"""The first major version whose every network is strongly typed; it still takes --stronglyTyped, to no effect."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What an engine is built for: a release of the catalogue, a GPU's compute capability, the TensorRT it may have."""

    release: TritonRelease
    gpu: str
    compute_capability: tuple[int, ...]
    tensorrt: tuple[str, ...]

    @property
    def named(self) -> str:
        """How a message names it."""
        versions = [_shown(version) for version in dict.fromkeys((self.tensorrt[0], self.tensorrt[-1]))]
        return f"release {self.release.version} with TensorRT {' to '.join(versions)}"

    def takes(self, option: str, value: str = "") -> bool:
        """Whether every TensorRT that the release may have knows the option, and the value."""
        return all(takes_value(version=version, option=option, value=value) for version in self.tensorrt)

    def lacks(self, option: str, value: str = "") -> str:
        """The words of a message where ``takes`` is False."""
        known = [takes_value(version=version, option=option, value=value) for version in self.tensorrt]
        return "may not have" if any(known) else "does not have"

    @property
    def is_strongly_typed(self) -> bool:
        """Whether the release's TensorRT knows strongly typed networks alone."""
        return minor_version(self.tensorrt[0])[0] >= STRONGLY_TYPED_ONLY


def tensorrt_versions(release: str) -> tuple[str, ...]:
    """The minor versions of TensorRT that a release of the catalogue may have: what the image's own must be one of.

    Raises :class:`InputError` for a release without known TensorRT.
    """
    row, problems = _release(release)
    if row is None:
        raise InputError(problems)
    return tuple(map(_shown, _candidates(row)))


def engine_problems(
    engine: Engine, *, release: str, gpu: str, own_image: bool = False, file: str | None = None
) -> tuple[Problem, ...]:
    """Why no engine can be built for a release and a GPU (``t4``, in any case); empty where one can.

    ``own_image``: the environment names the image itself, so that AWS need not have one of the release. ``file``: the
    recipe, for the messages.
    """
    target, problems = _target(release=release, gpu=gpu, own_image=own_image)
    if target is None:
        return problems
    return tuple(_refusals(engine, target, file))


def engine_options(engine: Engine, *, release: str, gpu: str) -> tuple[str, ...]:
    """trtexec's options for an engine, but those that name files. Raises :class:`InputError` where there are none.

    Whether AWS has an image of the release is not asked here: ``engine_problems`` does.
    """
    target, problems = _target(release=release, gpu=gpu, own_image=True)
    if target is None:
        raise InputError(problems)
    refusals = tuple(_refusals(engine, target, None))
    if refusals:
        raise InputError(refusals)
    return tuple(_options(engine, target))


def _target(*, release: str, gpu: str, own_image: bool) -> tuple[Target | None, tuple[Problem, ...]]:
    row, problems = _release(release)
    card = _instance_with(gpu)
    if card is None:
        known = ", ".join(sorted({instance.gpu for instance in load_catalogue().instances.values()}))
        problems = (*problems, Problem(field="gpu", found=gpu, allowed=known))
    if row is not None and not own_image and release not in load_catalogue().image_table.regions:
        no_image = Problem(
            field="release",
            found=f"{release}: AWS's lists name no region with its image",
            allowed=", ".join(load_catalogue().served_releases()),
            advice="name an image of your own (image), or take another release",
        )
        problems = (*problems, no_image)
    if row is None or card is None or problems:
        return None, problems
    capability = tuple(int(part) for part in card.compute_capability.split("."))
    return Target(release=row, gpu=card.gpu, compute_capability=capability, tensorrt=_candidates(row)), ()


def _release(release: str) -> tuple[TritonRelease | None, tuple[Problem, ...]]:
    """The release's row where something is known of its TensorRT, else why not."""
    catalogue = load_catalogue()
    row = catalogue.release(release)
    if row is not None and _candidates(row):
        return row, ()
    reason = catalogue.release_table.images_without_a_row.get(release, "the catalogue does not know the release")
    found = (
        f"{release}: {reason}" if row is None else f"{release}, with TensorRT {row.tensorrt}, of which no options are"
    )
    found += "" if row is None else " known"
    allowed = ", ".join(each for each in catalogue.served_releases() if _candidates(catalogue.releases[each]))
    return None, (Problem(field="release", found=found, allowed=allowed),)


def _candidates(release: TritonRelease) -> tuple[str, ...]:
    return tensorrt_candidates(release, releases=tuple(load_catalogue().releases.values()))


def _instance_with(gpu: str) -> InstanceType | None:
    return next((row for row in load_catalogue().instances.values() if row.gpu.lower() == gpu.lower()), None)


def _refusals(engine: Engine, target: Target, file: str | None) -> Iterator[Problem]:
    """What the recipe wants and the release's TensorRT or the GPU has not."""
    yield from _precision_refusals(engine, target, file)
    yield from _hardware_refusals(engine, target, file)
    wanted = [
        ("optimisation_level", engine.optimisation_level is not None, "--builderOptimizationLevel"),
        ("version_compatible", engine.version_compatible, "--versionCompatible"),
    ]
    for field, is_wanted, option in wanted:
        if is_wanted and not target.takes(option):
            yield _unknown_option(field, getattr(engine, field), option, target, file)


def _precision_refusals(engine: Engine, target: Target, file: str | None) -> Iterator[Problem]:
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


def _has_precision(precision: str, target: Target) -> bool:
    """Whether an engine of that precision can be built for the target."""
    option = PRECISIONS[precision]
    has_unit = precision != "bf16" or target.compute_capability >= BF16_SINCE
    return has_unit and (option is None or target.takes(option))


def _hardware_refusals(engine: Engine, target: Target, file: str | None) -> Iterator[Problem]:
    if engine.hardware_compatibility == "none":
        return
    word, oldest = LEVELS[engine.hardware_compatibility]
    if not target.takes("--hardwareCompatibilityLevel", word):
        option = f"--hardwareCompatibilityLevel={word}"
        yield _unknown_option("hardware_compatibility", engine.hardware_compatibility, option, target, file)
    if target.compute_capability < oldest:
        yield Problem(
            file=file,
            field="engine.hardware_compatibility",
            found=f"{engine.hardware_compatibility} on {target.gpu}, of compute capability "
            + ".".join(map(str, target.compute_capability)),
            allowed=f"none; or a GPU from compute capability {'.'.join(map(str, oldest))} on",
        )


def _unknown_option(field: str, value: object, option: str, target: Target, file: str | None) -> Problem:
    parts = option.split("=")
    return Problem(
        file=file,
        field=f"engine.{field}",
        found=f"{str(value).lower()} for {target.named}, whose trtexec {target.lacks(*parts)} {option}",
        allowed=f"release {', '.join(_releases_with(*parts))}; or the field left out",
    )


def _releases_with(option: str, value: str = "") -> list[str]:
    """The releases with an image of AWS's whose every possible TensorRT knows an option, and its value."""
    catalogue = load_catalogue()
    return [
        version
        for version in catalogue.served_releases()
        if all(
            takes_value(version=known, option=option, value=value) for known in _candidates(catalogue.releases[version])
        )
    ]


def _shown(version: str) -> str:
    """A TensorRT version as far as its options depend on it: ``10.4.0`` → ``10.4``."""
    return ".".join(map(str, minor_version(version)))


def _options(engine: Engine, target: Target) -> Iterator[str]:
    yield from _shapes(engine)
    option = PRECISIONS[engine.precision]
    if option is not None:
        yield option
    has_pools = target.takes("--memPoolSize")
    yield f"--memPoolSize=workspace:{engine.workspace_mib}" if has_pools else f"--workspace={engine.workspace_mib}"
    if engine.optimisation_level is not None:
        yield f"--builderOptimizationLevel={engine.optimisation_level}"
    if engine.version_compatible:
        yield "--versionCompatible"
    if engine.hardware_compatibility != "none":
        yield f"--hardwareCompatibilityLevel={LEVELS[engine.hardware_compatibility][0]}"
    yield "--skipInference" if target.takes("--skipInference") else "--buildOnly"


def _shapes(engine: Engine) -> Iterator[str]:
    shapes = sorted(engine.shapes.items())
    for end in ("min", "opt", "max"):
        yield f"--{end}Shapes=" + ",".join(_spelt(name, getattr(shape, end)) for name, shape in shapes)


def _spelt(name: str, shape: Shape) -> str:
    """``name:1x128``; a name with a colon in single quotes (trtexec --help)."""
    quoted = f"'{name}'" if ":" in name else name
    return f"{quoted}:{'x'.join(map(str, shape))}"


TYPES = ("float16", "float32", "int8", "uint8", "int32", "int64", "bool")
"""The types that an input of an engine may have (NumPy's names; TensorRT has no others that NumPy has too)."""

INT64_TENSORS_SINCE = 10
"""Before TensorRT 10 an engine's tensor is INT32 where the graph's is INT64. trtexec then reads a file of twice the
size without a word, and half of it (``loadFromFile`` in samples/common/sampleUtils.cpp of NVIDIA/TensorRT)."""


@dataclass(frozen=True, kw_only=True)
class EngineJob:
    """What one run of the step does."""

    engine: Engine  # of the recipe
    platform: Platform  # the release whose image builds, and the GPU
    onnx: str  # the graph's path, as the step finds it from the job's folder
    inputs: Mapping[str, NDArray[Any]]  # input → the proof's array, in the graph's type, the batch first
    outputs: Sequence[str]  # the outputs that the plan must answer
    timing_cache: str | None  # the path where the cache may lie; None: no cache, as also where the recipe wants none
    timeout_seconds: float  # how long build and proof may take together


def write_job(job: EngineJob, folder: Path, *, output: str = "output") -> Path:
    """Write ``job.json`` and the inputs' raw files into a folder, the job last; returns the job's path.

    ``output``: the step's output folder, from the job's. Raises :class:`InputError` with every reason where the release
    and the GPU have no such engine, or an input has a type that no engine takes.
    """
    wrong = [
        Problem(field=f"inputs.{name}", found=str(array.dtype), allowed=", ".join(TYPES))
        for name, array in job.inputs.items()
        if array.dtype.name not in TYPES
    ]
    if wrong:
        raise InputError(wrong)
    release, gpu = job.platform.release, job.platform.gpu
    options = engine_options(job.engine, release=release, gpu=gpu)
    versions = tensorrt_versions(release)
    narrow = minor_version(versions[-1] + ".0")[0] < INT64_TENSORS_SINCE
    raw = {name: _engine_array(name, array, narrow=narrow) for name, array in job.inputs.items()}
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {}
    for index, (name, array) in enumerate(raw.items()):
        array.tofile(folder / f"input{index}.raw")
        inputs[name] = {"file": f"input{index}.raw", "shape": list(array.shape)}
    known = load_catalogue().release(release)
    card = _instance_with(gpu)
    if card is None:
        raise AssertionError("refused with the options")
    described = {
        "release": release,
        "tensorrt": list(versions),
        "gpu": {"name": card.gpu, "compute_capability": card.compute_capability},
        "cuda": None if known is None else known.cuda,
        "options": list(options),
        "onnx": job.onnx,
        "plan": "model.plan",
        "inputs": inputs,
        "outputs": list(job.outputs),
        "timing_cache": job.timing_cache if job.engine.timing_cache else None,
        "timeout_seconds": job.timeout_seconds,
        "output": output,
    }
    temporary = folder / ".job.json.new"
    temporary.write_text(json.dumps(described, indent=1) + "\n")
    return temporary.replace(folder / "job.json")


def _engine_array(name: str, array: NDArray[Any], *, narrow: bool) -> NDArray[Any]:
    """An input as the engine's tensor holds it. Raises InputError for a number that INT32 does not hold."""
    if not narrow or array.dtype != "int64":
        return array
    narrowed = array.astype("int32")
    if (narrowed != array).any():
        advice = "give the recipe's sample smaller numbers: before TensorRT 10 an engine takes INT32"
        raise InputError([Problem(field=f"inputs.{name}", found="a number of 64 bits", allowed="INT32", advice=advice)])
    return narrowed
