"""Other GPUs and releases that load a TensorRT plan, by the compatibility that it was built with.

Source: TensorRT's support matrix (Engine Portability), include/NvInfer.h (HardwareCompatibilityLevel), and README.md of
triton-inference-server/tensorrt_backend (version-compatible). Without an option a plan is for the GPU and the TensorRT
that built it: equal compute capabilities alone promise nothing.
"""

from __future__ import annotations

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import version_parts
from tritonstack.catalogue.triton_releases import minor_version
from tritonstack.engines.trtexec import LEVELS, VERSION_COMPATIBLE, tensorrt_versions
from tritonstack.models.manifest import EngineEntry, Manifest
from tritonstack.models.runtime_options import Engine, HardwareCompatibility
from tritonstack.naming import Platform, gpu_in_names

LOADS_COMPATIBLE = "--backend-config=tensorrt,version-compatible=true"
"""Triton's option, with which it loads plans of an older TensorRT and executes the runtime that they contain."""


def compatible_gpus(engine: Engine, *, gpu: str) -> tuple[str, ...]:
    """The other GPUs of the catalogue that load an engine built on ``gpu``, sorted; none without the recipe's field."""
    gpus = {row.gpu for row in load_catalogue().instances.values()} - {gpu}
    built = _capability(gpu)
    return tuple(
        sorted(other for other in gpus if _takes_gpu(engine.hardware_compatibility, built, _capability(other)))
    )


def serves_on(manifest: Manifest, *, built: Platform, platform: Platform) -> bool:
    """Whether an archive with engines that was built for a platform serves on another, too.

    Every engine must load there, and packed Python environments be for the Python of its release.
    """
    release = load_catalogue().release(platform.release)
    if release is None or not manifest.engines:
        return False
    environments = (manifest.environment, *manifest.more_environments)
    return all(each is None or each.python == release.python for each in environments) and all(
        _loads(engine, built=built, platform=platform) for engine in manifest.engines.values()
    )


def _loads(engine: EngineEntry, *, built: Platform, platform: Platform) -> bool:
    if gpu_in_names(built.gpu) != platform.gpu:
        words: dict[str, HardwareCompatibility] = {
            f"--hardwareCompatibilityLevel={word}": level for level, (word, _) in LEVELS.items()
        }
        level: HardwareCompatibility = next((words[each] for each in engine.options if each in words), "none")
        if not _takes_gpu(level, version_parts(engine.compute_capability), _capability(platform.gpu)):
            return False
    if built.release == platform.release:
        return True
    # Newer versions of the same major version, whichever of its candidates the release has.
    had = minor_version(engine.tensorrt)
    there = [minor_version(version) for version in tensorrt_versions(platform.release)]
    return VERSION_COMPATIBLE in engine.options and all(had <= new and had[0] == new[0] for new in there)


def _takes_gpu(level: HardwareCompatibility, built: tuple[int, ...], other: tuple[int, ...]) -> bool:
    if level == "ampere_plus":
        return min(built, other) >= LEVELS[level][1]
    return level == "same_compute_capability" and built == other >= LEVELS[level][1]


def _capability(gpu: str) -> tuple[int, ...]:
    """A GPU's compute capability; empty for one that the catalogue lacks, which so loads nothing of another's."""
    rows = load_catalogue().instances_with(gpu)
    return version_parts(rows[0].compute_capability) if rows else ()
