"""TensorRT engines that a change makes necessary, what builds each, and how long the last one took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.models.manifest import Manifest, ManifestFolder, Sizes
from tritonstack.naming import Platform
from tritonstack.review.document import EngineEntry
from tritonstack.review.models import ServedSet, served_sets
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


def engine_builds(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    stores: Sequence[ManifestFolder] = (),
    dependencies: Mapping[str, str] | None = None,
) -> tuple[EngineEntry, ...]:
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
        site = _site(sets[0], orders[0] if orders else {}, after)
        endpoints = sorted({each.endpoint for each in sets})
        archive = f"{model} ({digest}) for {platform}, which {', '.join(endpoints)} serve{'s'[len(endpoints) > 1 :]},"
        sentences = _sentences(archive, site, certain=dependency is not None, on_deploy=bool(orders))
        time = f"How long that takes is unknown: {source}."
        if seconds is not None:
            time = f"The last took {_duration_text(seconds)} ({source}), without the wait for a machine."
        found.append(
            EngineEntry(
                model=model,
                digest=digest,
                platform=str(platform),
                certain=dependency is not None,
                where=site.text,
                last_seconds=seconds,
                sentence=" ".join([*sentences, time]),
            )
        )
    return tuple(found)


def _sentences(archive: str, site: BuildSite, *, certain: bool, on_deploy: bool) -> Iterator[str]:
    """What builds an archive's engine.

    ``on_deploy``: whether the deployment builds it. With ``builds: {on_deploy: false}`` it fails where the archive is
    missing.
    """
    if certain:
        yield f"{archive} needs an engine:"
    else:
        yield f"Whether {archive} needs an engine is unknown: no build set, folder or manifest has it. If it does,"
    builder = "the deployment" if on_deploy else "a build before the deployment"
    if site.kind is None:
        yield f"{builder} has to build it, unless the bucket has it, and {site.text}."
    else:
        yield f"{builder} builds it, {site.text}, unless the bucket has it."
    if not on_deploy:
        yield "The deployment itself builds nothing, and fails where the archive is missing."


def _duration_text(seconds: float) -> str:
    """``42 s``, ``12 min 5 s``."""
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def deployment_sites(environment: EnvironmentSnapshot) -> tuple[BuildSite, ...]:
    """Where deployments build the engines of an environment's build sets, each place once."""
    found: dict[BuildSite, None] = {}
    for served in served_sets(environment):
        order = _order(environment.stacks[served.stack], served)
        if order is not None and any(row.get("dependency") == "engine" for row in order["archives"]):
            found[_site(served, order, environment)] = None
    return tuple(found)


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
        image, kind = str(order.get("image")), order.get("engine_builder")
        builder = builder_for(served.platform, region, image=image, kind=kind)
    except NoBuilderError as error:
        return BuildSite(reason=str(error))
    machine, gpu = builder.machine.name, builder.machine.gpu
    if builder.kind == "codebuild":
        projects = [one for each in environment.stacks.values() for one in each.of_type("AWS::CodeBuild::Project")]
        given = [each.properties.get("Environment", {}) for each in projects]
        machines = sorted({str(each.get("ComputeType")) for each in given if each.get("Type") == _GPU_CONTAINER})
        if machines and machine not in machines:
            machine, gpu = " or ".join(machines), ""
    return BuildSite(kind=builder.kind, machine=machine, gpu=gpu or None)


def _last_time(
    stores: Sequence[ManifestFolder], model: str, *, platform: Platform, replaced: str | None
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
