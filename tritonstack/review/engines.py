"""TensorRT engines that a change makes necessary, what builds each, and how long the last one took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.models.manifest import Manifest, ManifestStore, Sizes
from tritonstack.naming import Platform
from tritonstack.review.models import ServedSet, served_sets
from tritonstack.review.settings import settings_file
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, StackSnapshot

_MINUTE = 60
_GPU_CONTAINER = "LINUX_GPU_CONTAINER"


@dataclass(frozen=True, kw_only=True)
class BuildSite:
    """Where an engine is built."""

    kind: BuilderKind | None = None  # codebuild or processing; None where it is unknown, or nothing builds the engine
    machine: str | None = None  # CodeBuild's compute type or the instance type of SageMaker Processing; None likewise
    gpu: str | None = None  # of the machine; None likewise
    reason: str = ""  # why ``kind`` is None

    @property
    def text(self) -> str:
        """``CodeBuild on BUILD_GENERAL1_SMALL (A10G)``."""
        if self.kind is None:
            return f"nothing builds it: {self.reason}"
        service = "CodeBuild" if self.kind == "codebuild" else "SageMaker Processing"
        return f"{service} on {self.machine}" + (f" ({self.gpu})" if self.gpu else "")


@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """One archive whose engine is to be built, once for all endpoints. Other fields: ``document.EngineEntry``."""

    model: str
    digest: str
    platform: Platform
    endpoints: tuple[str, ...]  # the endpoints that serve it, by their names in the environment, sorted
    certain: bool
    site: BuildSite  # where it is built
    # whether the deployment builds it. With ``builds: {on_deploy: false}`` it fails where the archive is missing
    on_deploy: bool
    seconds: float | None  # how long the last one took, without the wait for a machine; None where that is unknown
    source: str  # the archive of ``seconds``, or why it is unknown

    @property
    def sentence(self) -> str:
        """All of it in words."""
        serve = f"{', '.join(self.endpoints)} serve{'' if len(self.endpoints) > 1 else 's'}"
        archive = f"{self.model} ({self.digest}) for {self.platform}, which {serve},"
        builder = "the deployment" if self.on_deploy else "a build before the deployment"
        sentences = [f"{archive} needs an engine:"]
        if not self.certain:
            sentences = [
                f"Whether {archive} needs an engine is unknown: no build set, folder or manifest has it. If it does,"
            ]
        if self.site.kind is None:
            sentences.append(f"{builder} has to build it, unless the bucket has it, and {self.site.text}.")
        else:
            sentences.append(f"{builder} builds it, {self.site.text}, unless the bucket has it.")
        if not self.on_deploy:
            sentences.append("The deployment itself builds nothing, and fails where the archive is missing.")
        if self.seconds is None:
            sentences.append(f"How long that takes is unknown: {self.source}.")
        else:
            sentences.append(
                f"The last took {duration_text(self.seconds)} ({self.source}), without the wait for a machine."
            )
        return " ".join(sentences)


def duration_text(seconds: float) -> str:
    """``42 s``, ``12 min 5 s``."""
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def engine_builds(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    stores: Sequence[ManifestStore] = (),
    dependencies: Mapping[str, str] | None = None,
) -> tuple[EngineBuild, ...]:
    """The engines that are needed after the change and were not before, by platform, model and digest.

    An archive that is in the bucket already is not built again; no template has that.

    Args:
        before: the environment at the base; None for a new one.
        after: the environment now; None for a removed one.
        stores: manifests of archives, for their dependencies and for how long their engines took.
        dependencies: model → what its archive depends on (none, python, engine) by its folder, where the template has
            no build set.
    """
    if after is None:
        return ()
    had = {(each.platform, model, digest) for each in served_sets(before) for model, digest in each.models.items()}
    previous = {(each.endpoint, model): digest for each in served_sets(before) for model, digest in each.models.items()}
    wanted: dict[tuple[Platform, str, str], list[ServedSet]] = {}
    for each in served_sets(after):
        for model, digest in each.models.items():
            if (each.platform, model, digest) not in had:
                wanted.setdefault((each.platform, model, digest), []).append(each)
    found = []
    for (platform, model, digest), sets in sorted(wanted.items()):
        orders = [order for each in sets if (order := _order(after.stacks[each.stack], each)) is not None]
        rows = (row for order in orders for row in order["archives"])
        ordered = (row.get("dependency") for row in rows if (row["model"], row["digest"]) == (model, digest))
        dependency = next(ordered, None) or (dependencies or {}).get(model)
        dependency = dependency or Sizes(stores).dependency(model, digest, endpoint=sets[0].endpoint, platform=platform)
        if dependency not in {None, "engine"}:
            continue
        replaced = next((previous[each.endpoint, model] for each in sets if (each.endpoint, model) in previous), None)
        seconds, source = _last_time(stores, model, platform=platform, replaced=replaced)
        found.append(
            EngineBuild(
                model=model,
                digest=digest,
                platform=platform,
                endpoints=tuple(sorted({each.endpoint for each in sets})),
                certain=dependency is not None,
                site=_site(sets[0], orders[0] if orders else {}, after),
                on_deploy=bool(orders),
                seconds=seconds,
                source=source,
            )
        )
    return tuple(found)


def deployment_sites(environment: EnvironmentSnapshot) -> tuple[BuildSite, ...]:
    """Where deployments build the engines of an environment's build sets, each place once."""
    found: dict[BuildSite, None] = {}
    for served in served_sets(environment):
        order = _order(environment.stacks[served.stack], served)
        if order is not None and any(row.get("dependency") == "engine" for row in order["archives"]):
            found[_site(served, order, environment)] = None
    return tuple(found)


def dependencies_of(environment: str, *, project: Path) -> dict[str, str]:
    """Model → what its archive depends on, by the folders of a project. Reads settings and recipes alone.

    Raises:
        InputError: the environment's file, or a recipe that it needs, is wrong.
    """
    from tritonstack.config import load_environment  # noqa: PLC0415 - as below
    from tritonstack.models.inputs import resolved_models  # noqa: PLC0415 - pydantic's models, rarely needed

    file = project / settings_file(environment)
    if not file.is_file():
        return {}
    resolved = resolved_models(load_environment(file), project / "model_repos", file=file)
    return {source.name: source.recipe.dependency for found in resolved.values() for source in found}


def _order(stack: StackSnapshot, served: ServedSet) -> Mapping[str, Json] | None:
    """The build set of an endpoint, where its deployment builds what is missing."""
    for _, document in sorted(stack.documents.items()):
        ordered = isinstance(document, dict) and isinstance(document.get("archives"), list)
        if ordered and document.get("endpoint") == served.endpoint:
            found: Mapping[str, Json] = document
            return found
    return None


def _site(served: ServedSet, order: Mapping[str, Json], environment: EnvironmentSnapshot) -> BuildSite:
    """The place that the build chooses, on the machine that the template's CodeBuild project has."""
    from tritonstack.engines.plan import NoBuilderError, builder_for  # noqa: PLC0415 - most changes build nothing

    region = order.get("region") or environment.stacks[served.stack].region
    if region is None:
        return BuildSite(reason="the region is decided when it is deployed")
    try:
        builder = builder_for(
            served.platform, region, image=order.get("image") or served.image, kind=order.get("engine_builder")
        )
    except NoBuilderError as error:
        return BuildSite(reason=f"{error.found} (allowed: {error.allowed})")
    machine, gpu = builder.machine.name, builder.machine.gpu
    if builder.kind == "codebuild":
        projects = [one for each in environment.stacks.values() for one in each.of_type("AWS::CodeBuild::Project")]
        given = [each.properties.get("Environment", {}) for each in projects]
        machines = sorted({str(each.get("ComputeType")) for each in given if each.get("Type") == _GPU_CONTAINER})
        if machines and machine not in machines:
            machine, gpu = " or ".join(machines), ""
    return BuildSite(kind=builder.kind, machine=machine, gpu=gpu or None)


def _last_time(
    stores: Sequence[ManifestStore], model: str, *, platform: Platform, replaced: str | None
) -> tuple[float | None, str]:
    """How long the engines of a model took on a platform, and the archive; or None, and why it is unknown.

    Manifests have no date, so "the last" is the archive that is replaced; where that is unknown, the longest of those
    that are there. Engines of a stand-in for TensorRT are left out.
    """
    stand_ins = False
    for store in stores:
        found = [each for each in store.of_model(model) if each.engines]
        measured = [each for each in found if not any(entry.stand_in for entry in each.engines.values())]
        stand_ins = stand_ins or len(measured) < len(found)
        measured = [each for each in measured if each.target == str(platform)]
        chosen = [each for each in measured if each.digest == replaced] or measured
        if chosen:
            longest = max(chosen, key=lambda each: (_seconds(each), each.digest))
            more = len({each.digest for each in chosen})
            which = f", the longest of {more}" if more > 1 else ""
            return _seconds(longest), f"{model} {longest.digest} on {platform}, in {store.name}{which}"
    if stand_ins:
        return None, f"the engines of {model} here are a stand-in's, which builds none"
    places = " or ".join(store.name for store in stores)
    return None, f"no engine of {model} for {platform} in {places}" if places else "no manifests are given"


def _seconds(manifest: Manifest) -> float:
    return sum(sum(entry.durations.values()) for entry in manifest.engines.values())
