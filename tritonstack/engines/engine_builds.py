"""TensorRT engines that an environment needs, one a platform and archive, and the machines that build them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.catalogue import TritonRelease, load_catalogue
from tritonstack.catalogue.instances import BuilderKind, BuildMachine, load_build_machines, version_parts
from tritonstack.config import EndpointSettings, Environment
from tritonstack.config.yaml_loader import shown, with_lines
from tritonstack.engines.engine_step import LEAST_DRIVERS
from tritonstack.engines.portability import LOADS_COMPATIBLE, compatible_gpus
from tritonstack.engines.trtexec import engine_problems
from tritonstack.errors import Location, Problem
from tritonstack.models.recipe import RECIPE
from tritonstack.models.runtime_options import Engine
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import lacks_plan
from tritonstack.naming import Platform


@dataclass(frozen=True, kw_only=True)
class Builder:
    """The machine and image that build the engines of one platform in one region."""

    platform: Platform  # release and GPU that the engines are for
    region: str  # where they are built and served
    machine: BuildMachine  # with that GPU
    image: str  # the URI of the Triton image that it runs, the endpoint's own
    tensorrt: str | None  # the TensorRT that is expected in the image; None where it is read there for the first time
    cuda: str | None  # the image's CUDA; None where it is unverified

    @property
    def least_driver(self) -> int | None:
        """The oldest driver branch that runs the image's CUDA by itself; None where unknown."""
        return LEAST_DRIVERS.get((version_parts(self.cuda or "") or (0,))[0])

    @property
    def kind(self) -> BuilderKind:
        """The machine's service."""
        return self.machine.kind


class NoBuilderError(LookupError):
    """Nothing can build engines for that platform in that region; ``problem`` has the reason and the alternatives."""

    def __init__(self, *, found: str, allowed: str, advice: str = "") -> None:
        """Takes the parts of the problem."""
        self.problem = Problem(found=found, allowed=allowed, advice=advice)
        super().__init__(f"{found} (allowed: {allowed})")


def builder_for(platform: Platform, region: str, *, image: str, kind: BuilderKind | None = None) -> Builder:
    """The machine that builds a platform's engines.

    CodeBuild where it has the platform's GPU, else SageMaker Processing on the smallest instance type with that GPU.

    Args:
        platform: Triton release and GPU model, the latter in any case.
        region: of the endpoint.
        image: the endpoint's image.
        kind: the only service to use, or None for the first that has the GPU in the region.

    Raises:
        NoBuilderError: the release or the GPU is unknown, the release's TensorRT no longer builds for the GPU, or no
            build machine in the region has it.
    """
    release = load_catalogue().release(platform.release)
    if release is None:
        allowed = f"a release of the catalogue: {', '.join(load_catalogue().served_releases())}"
        raise NoBuilderError(found=f"release {platform.release}", allowed=allowed)
    machines = _machines(platform, region)
    _refuse_lost_gpu(release, machines[0], region=region)
    if kind is not None:
        machines = _of_kind(machines, kind)
    there = [machine for machine in machines if region in machine.regions]
    if not there:
        elsewhere = sorted({name for machine in machines for name in machine.regions})
        asked = " or ".join(f"{machine.kind} on {machine.name}" for machine in machines)
        raise NoBuilderError(
            found=f"GPU {_gpu(machines[0])} in {region}, where AWS lends no machine with one ({asked})",
            allowed=_allowed_gpus(region),
            advice=f"{ANOTHER_TYPE} Regions with a build machine for this GPU: {', '.join(elsewhere)}.",
        )
    return Builder(
        platform=platform, region=region, machine=there[0], image=image, tensorrt=release.tensorrt, cuda=release.cuda
    )


def least_tensorrt(release: TritonRelease) -> tuple[int, ...]:
    """A release's TensorRT, as far as it is known (``11.x`` → ``(11,)``); else that of the last older known one.

    No release has had an older TensorRT than the one before it. Empty where no older release's is known either.
    """
    known = [row for row in load_catalogue().releases.values() if row.tensorrt and row.order <= release.order]
    return version_parts(known[-1].tensorrt or "") if known else ()


def _machines(platform: Platform, region: str) -> tuple[BuildMachine, ...]:
    """Every machine with the platform's GPU, in whatever region; at least one."""
    machines = load_build_machines().of_gpu(platform.gpu)
    if not machines:
        served = [row.name for row in load_catalogue().instances_with(platform.gpu)]
        which = f" (of {', '.join(served)})" if served else ""
        raise NoBuilderError(
            found=f"GPU {platform.gpu.upper()}{which}, which no machine of CodeBuild or SageMaker Processing has",
            allowed=_allowed_gpus(region),
            advice=ANOTHER_TYPE,
        )
    return machines


def _refuse_lost_gpu(release: TritonRelease, machine: BuildMachine, *, region: str) -> None:
    """TensorRT drops old compute capabilities."""

    def oldest(row: TritonRelease) -> tuple[int, ...]:
        """The oldest compute capability that its TensorRT builds for; ``(0,)`` where no loss is documented."""
        tensorrt, capabilities = least_tensorrt(row), load_build_machines().oldest_compute_capability
        return max((least for since, least in capabilities.items() if tensorrt >= since), default=(0,))

    catalogue, capability = load_catalogue(), version_parts(machine.compute_capability)
    if capability >= oldest(release):
        return
    served = catalogue.served_releases(region)
    usable = [version for version in served if capability >= oldest(catalogue.releases[version])]
    least = ".".join(map(str, oldest(release)))
    tensorrt = f"TensorRT {release.tensorrt}" if release.tensorrt else "a TensorRT whose exact version is not known"
    raise NoBuilderError(
        found=f"GPU {machine.gpu} (compute capability {machine.compute_capability}) with release {release.version}, "
        f"which has {tensorrt} and builds for compute capability {least} or newer",
        allowed=f"with this GPU one of the releases {', '.join(usable) or '(none there)'}",
        advice=f"Take one of those releases, or an instance type whose GPU has compute capability {least} or newer.",
    )


def _of_kind(machines: tuple[BuildMachine, ...], kind: BuilderKind) -> tuple[BuildMachine, ...]:
    """The GPUs of one service. An engine for one GPU model is never built on another, whatever the service has."""
    chosen = tuple(machine for machine in machines if machine.kind == kind)
    if chosen:
        return chosen
    gpus = dict.fromkeys(_gpu(machine) for machine in load_build_machines().machines if machine.kind == kind)
    raise NoBuilderError(
        found=f"{kind} for GPU {_gpu(machines[0])}, and its machines have {', '.join(gpus)}",
        allowed=", ".join(f"{machine.kind} on {machine.name}" for machine in machines),
        advice="An engine runs on the GPU model that it was built on. TensorRT's hardware compatibility starts with "
        "Ampere, so it never covers an older GPU.",
    )


def _allowed_gpus(region: str) -> str:
    """GPU and instance family, for every family that a region hosts and that engines can be built for there."""
    there = {machine.gpu for machine in load_build_machines().machines if region in machine.regions}
    families = {row.family: row.gpu for row in load_catalogue().instances.values() if region in row.regions}
    gpus = [f"{gpu} ({family})" for family, gpu in families.items() if gpu in there]
    return f"a GPU that is hosted in {region} and can be built for there: {', '.join(gpus) or 'none'}"


def _gpu(machine: BuildMachine) -> str:
    return f"{machine.gpu} (compute capability {machine.compute_capability})"


ANOTHER_TYPE = "Serve on an instance type with such a GPU, or serve the model without an engine (onnxruntime)."


@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """The engines of one platform that one builder builds."""

    builder: Builder  # what builds them
    endpoints: tuple[str, ...]  # the endpoints that serve them, sorted
    archives: tuple[str, ...]  # the archives that need one, sorted; each is built once, whichever endpoints serve it
    # archive → other GPUs that load its engines; only of archives whose recipe has hardware_compatibility
    compatible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EngineBuilds:
    """The engines of an environment."""

    builds: tuple[EngineBuild, ...]  # what is built, by platform and image
    problems: tuple[Problem, ...]  # what cannot be built at all, with what would work


@dataclass(frozen=True, kw_only=True)
class _Need:
    """The archives of one entry of an endpoint's ``models`` that need an engine."""

    endpoint: EndpointSettings
    location: Location  # of the entry in the settings
    sources: tuple[ArchiveSource, ...]  # one or more

    def __str__(self) -> str:
        more = f" and of {len(self.sources) - 1} more archives" if len(self.sources) > 1 else ""
        return f"the engine of {self.sources[0].name}{more}"


def engine_builds(
    environment: Environment, archives: Mapping[str, Sequence[ArchiveSource]], *, file: Path
) -> EngineBuilds:
    """The machines that build an environment's engines, and the engines that cannot be built.

    ``archives``: entry of an endpoint's ``models`` → the sources of the archives that it means. ``file``: the
    environment's file as problems name it.
    """
    served: dict[tuple[Platform, str], tuple[Builder, list[_Need]]] = {}
    findings: list[Problem] = []
    refused: list[Problem] = []
    for need in _needs(environment, archives):
        builder = _builder(need, environment)
        wrong = [*_without_recipe(need), *_unloadable(need), *([builder] if isinstance(builder, Problem) else ())]
        options = _refused_options(need, file=file)
        findings += wrong
        refused += options
        if isinstance(builder, Builder) and not wrong and not options:
            served.setdefault((builder.platform, builder.image), (builder, []))[1].append(need)
    builds = [
        EngineBuild(
            builder=builder,
            endpoints=tuple(sorted({need.endpoint.name for need in needs})),
            archives=tuple(sorted({source.name for need in needs for source in need.sources})),
            compatible=_compatible(needs, gpu=builder.machine.gpu),
        )
        for _, (builder, needs) in sorted(served.items(), key=lambda item: item[0])
    ]
    return EngineBuilds(
        builds=tuple(builds), problems=(*with_lines(dict.fromkeys(findings), file), *dict.fromkeys(refused))
    )


def _needs(environment: Environment, archives: Mapping[str, Sequence[ArchiveSource]]) -> Iterator[_Need]:
    for index, endpoint in enumerate(environment.endpoints):
        for place, entry in zip(endpoint.model_places, endpoint.models, strict=True):
            sources = tuple(source for source in archives[entry] if lacks_plan(source))
            for each in endpoint.platform_settings if sources else ():
                yield _Need(endpoint=each, location=("endpoints", index, *place), sources=sources)


def _builder(need: _Need, environment: Environment) -> Builder | Problem:
    """The builder of one entry's engines, or why there is none."""
    endpoint, region, kind = need.endpoint, environment.region, environment.builds.engine_builder
    try:
        return builder_for(endpoint.platform, region, image=endpoint.image_uri(region), kind=kind)
    except NoBuilderError as error:
        found = f"{need} cannot be built: {error.problem.found}"
        return replace(error.problem, location=need.location, found=found)


def _without_recipe(need: _Need) -> Iterator[Problem]:
    """TensorRT models without an engine in their recipe or in that of the folder they are used from."""
    without = tuple(source for source in need.sources if not _recipes(source))
    if without:
        yield Problem(
            location=need.location,
            found=f"{replace(need, sources=without)} cannot be built: there is no plan, and no engine in its recipe",
            allowed="a recipe with engine: and its shapes, or a model.plan in the folder",
        )


def _unloadable(need: _Need) -> Iterator[Problem]:
    """Version-compatible plans on an endpoint whose Triton has no option for them: it would not run their runtime."""
    compatible = [source for source in need.sources if any(engine.version_compatible for engine in _recipes(source))]
    arguments = need.endpoint.container.additional_args
    if compatible and LOADS_COMPATIBLE not in arguments:
        yield Problem(
            location=(*need.location[:2], "container", "additional_args"),
            found=f"{shown(list(arguments))}, and {compatible[0].name} has an engine with version_compatible: true, "
            "which Triton would not load",
            allowed=f"a list with {LOADS_COMPATIBLE}",
            advice="Add that element, or remove version_compatible from the recipe. Triton then executes code that "
            "plans contain: serve plans of your own builds only.",
        )


def _compatible(needs: Sequence[_Need], *, gpu: str) -> dict[str, tuple[str, ...]]:
    """Archive → the other GPUs that load all of its engines."""
    found = {}
    for source in {source.name: source for need in needs for source in need.sources}.values():
        engines = [set(compatible_gpus(engine, gpu=gpu)) for engine in _recipes(source)]
        if any(engine.hardware_compatibility != "none" for engine in _recipes(source)):
            found[source.name] = tuple(sorted(set.intersection(*engines)))
    return dict(sorted(found.items()))


def _recipes(source: ArchiveSource) -> tuple[Engine, ...]:
    """The engines of an archive: its own, and those of the folders that it uses models of."""
    return tuple(part.recipe.engine for part in (source, *source.used) if part.recipe.engine is not None)


def _refused_options(need: _Need, *, file: Path) -> list[Problem]:
    """Engine options that the endpoint's release or GPU does not have; each recipe once."""
    release, gpu = need.endpoint.release, need.endpoint.platform.gpu
    problems = [
        problem
        for source in need.sources
        for engine in _recipes(source)
        for problem in engine_problems(engine, release=release, gpu=gpu, file=str(source.folder / RECIPE))
    ]
    return [
        replace(problem, found=f"{problem.found} (endpoint {need.endpoint.name} of {file})")
        for problem in dict.fromkeys(problems)
    ]
