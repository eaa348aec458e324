"""TensorRT engines that a change makes necessary, what builds each, and how long the last one took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.models.manifest import Manifest, ManifestStore
from tritonstack.naming import Platform
from tritonstack.review.served import ServedSet, served_sets
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, StackSnapshot

_MINUTE = 60


@dataclass(frozen=True, kw_only=True)
class EngineTime:
    """How long the engines of one archive took to build and to prove, one after the other.

    Attributes:
        seconds: of the archive that ``source`` names; None where nobody knows. Waiting for the machine is not in it.
        source: which archive, in which place; or why nobody knows.
    """

    seconds: float | None
    source: str

    @property
    def text(self) -> str:
        """A sentence."""
        if self.seconds is None:
            return f"How long that takes is not known: {self.source}."
        return f"The last took {duration_text(self.seconds)} ({self.source}), the wait for a machine not counted."


class EngineTimes:
    """What manifests tell of engines that were built."""

    def __init__(self, stores: Sequence[ManifestStore] = ()) -> None:
        """Takes the stores in the order to ask them."""
        self._stores = tuple(stores)

    def last(self, model: str, *, platform: Platform, replaced: str | None) -> EngineTime:
        """How long the engines of a model took on a platform.

        A manifest holds no point in time, so "the last" is the archive that is replaced; where that is not known, the
        longest of those that are. What a stand-in took says nothing and is left out.

        Args:
            model: the model.
            platform: release and GPU.
            replaced: the digest that is served until then; None where there is none.
        """
        stand_ins = False
        for store in self._stores:
            found = [each for each in store.of_model(model) if each.engines]
            stand_ins = stand_ins or any(_is_stand_in(each) for each in found)
            measured = [each for each in found if each.target == str(platform) and not _is_stand_in(each)]
            chosen = [each for each in measured if each.digest == replaced] or measured
            if chosen:
                longest = max(chosen, key=lambda each: (_seconds(each), each.digest))
                of = f"{model} {longest.digest} on {platform}, in {store.name}"
                more = len({each.digest for each in chosen}) - 1
                which = f", the longest of {more + 1}" if more else ""
                return EngineTime(seconds=_seconds(longest), source=f"{of}{which}")
        if stand_ins:
            return EngineTime(seconds=None, source=f"the engines of {model} here are a stand-in's, which builds none")
        places = " or ".join(store.name for store in self._stores)
        reason = f"no engine of {model} for {platform} in {places}" if places else "no manifests are given"
        return EngineTime(seconds=None, source=reason)

    def dependency(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> str | None:
        """What an archive depends on beside its inputs, as its manifest says; None where there is none."""
        for store in self._stores:
            found = store.manifest(model, digest, endpoint=endpoint, platform=platform)
            if found is not None:
                return found.dependency
        return None


def duration_text(seconds: float) -> str:
    """A duration in words: ``42 s``, ``12 min 5 s``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{whole} s"


def _seconds(manifest: Manifest) -> float:
    return sum(sum(entry.durations.values()) for entry in manifest.engines.values())


def _is_stand_in(manifest: Manifest) -> bool:
    return any(entry.stand_in for entry in manifest.engines.values())


_PROJECT = "AWS::CodeBuild::Project"
_GPU_CONTAINER = "LINUX_GPU_CONTAINER"


class Need(StrEnum):
    """Whether an archive needs an engine."""

    YES = "needs an engine"
    UNKNOWN = "may need an engine"


class BuiltBy(StrEnum):
    """What starts the build."""

    DEPLOYMENT = "the deployment"
    BEFOREHAND = "a build before the deployment"
    """The environment has ``builds: {on_deploy: false}``: the deployment fails where the archive is missing."""


@dataclass(frozen=True, kw_only=True)
class BuildSite:
    """Where an engine is built.

    Attributes:
        kind: codebuild or processing; None where nothing can be told.
        machine: CodeBuild's compute type or the instance type of SageMaker Processing; None likewise.
        gpu: of the machine; None likewise.
        reason: why nothing can be told, or nothing builds it; empty where it is known.
    """

    kind: BuilderKind | None = None
    machine: str | None = None
    gpu: str | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """In words: ``CodeBuild on BUILD_GENERAL1_SMALL (A10G)``."""
        if self.kind is None:
            return f"nothing builds it: {self.reason}"
        service = "CodeBuild" if self.kind == "codebuild" else "SageMaker Processing"
        return f"{service} on {self.machine}" + (f" ({self.gpu})" if self.gpu else "")


@dataclass(frozen=True, kw_only=True)
class EngineBuildNotice:
    """One archive whose engine is to be built, once for all endpoints of the platform.

    Attributes:
        model: the model.
        digest: of its inputs.
        platform: release and GPU that the engine is for.
        endpoints: the endpoints that serve it, by their names in the environment, sorted.
        need: whether it is known that the archive needs an engine.
        site: where it is built.
        built_by: what starts the build.
        last: how long the last one took, or why nobody knows.
    """

    model: str
    digest: str
    platform: Platform
    endpoints: tuple[str, ...]
    need: Need
    site: BuildSite
    built_by: BuiltBy
    last: EngineTime

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return " ".join(self._sentences())

    @property
    def seconds(self) -> float | None:
        """How long the last one took; None where nobody knows, which ``last.source`` tells."""
        return self.last.seconds

    def _sentences(self) -> Iterator[str]:
        serve = f"{', '.join(self.endpoints)} serve{'' if len(self.endpoints) > 1 else 's'}"
        archive = f"{self.model} ({self.digest}) for {self.platform}, which {serve},"
        if self.need is Need.UNKNOWN:
            yield f"Whether {archive} needs an engine is not known: no build set, folder or manifest tells. If it does,"
        else:
            yield f"{archive} needs an engine:"
        if self.site.kind is None:
            yield f"{self.built_by.value} has to build it, unless the bucket has it, and {self.site.text}."
        else:
            yield f"{self.built_by.value} builds it, {self.site.text}, unless the bucket has it."
        if self.built_by is BuiltBy.BEFOREHAND:
            yield "The deployment itself builds nothing, and fails where the archive is missing."
        yield self.last.text


def engine_builds(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    history: EngineTimes,
    dependencies: Mapping[str, str] | None = None,
) -> tuple[EngineBuildNotice, ...]:
    """The engines that are needed after the change and were not before, by platform, model and digest.

    An archive that lies in the bucket already is not built again, which no template tells.

    Args:
        before: the environment at the base; None where it is new.
        after: the environment now; None where it goes.
        history: how long earlier ones took, and what manifests tell of an archive's dependencies.
        dependencies: model → what its archive depends on (none, python, engine), as its folder says; used where the
            template has no build set. Default: None.
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
    archives = (
        _Archive(
            platform=platform,
            model=model,
            digest=digest,
            sets=tuple(sets),
            orders=tuple(order for each in sets if (order := _order(after.stacks[each.stack], each)) is not None),
            replaced=next(
                (previous[each.endpoint, model] for each in sets if (each.endpoint, model) in previous), None
            ),
        )
        for (platform, model, digest), sets in sorted(wanted.items())
    )
    notices = (_notice(each, after, history, dependencies or {}) for each in archives)
    return tuple(each for each in notices if each is not None)


def deployment_sites(environment: EnvironmentSnapshot) -> tuple[BuildSite, ...]:
    """Where deployments build the engines of an environment's build sets, each place once."""
    found: dict[BuildSite, None] = {}
    for served in served_sets(environment):
        order = _order(environment.stacks[served.stack], served)
        if order is not None and any(row.get("dependency") == "engine" for row in order["archives"]):
            found[_site(served, order, environment)] = None
    return tuple(found)


def dependencies_of(environment: str, *, project: Path) -> dict[str, str]:
    """Model → what its archive depends on, as the folders of a project say it. Reads settings and recipes alone.

    Raises :class:`InputError` where the environment's file, or a recipe that it needs, is wrong.
    """
    from tritonstack.config import load_environment  # noqa: PLC0415 - as above
    from tritonstack.models.inputs import resolved_models  # noqa: PLC0415 - pydantic's models, which most need not

    file = project / "environments" / f"{environment}.yaml"
    if not file.is_file():
        return {}
    resolved = resolved_models(load_environment(file), project / "model_repos", file=file)
    return {source.name: source.recipe.dependency for found in resolved.values() for source in found}


@dataclass(frozen=True, kw_only=True)
class _Archive:
    """An archive that is served after the change and was not before.

    ``sets``: the release sets that have it. ``orders``: their build sets, where deployments build. ``replaced``: the
    digest that is served until then.
    """

    platform: Platform
    model: str
    digest: str
    sets: tuple[ServedSet, ...]
    orders: tuple[Mapping[str, Json], ...]
    replaced: str | None

    @property
    def ordered_dependency(self) -> str | None:
        """What the build sets say that it depends on."""
        rows = (row for order in self.orders for row in order["archives"])
        mine = (row for row in rows if (row["model"], row["digest"]) == (self.model, self.digest))
        return next((str(row["dependency"]) for row in mine if row.get("dependency")), None)


def _notice(
    archive: _Archive, after: EnvironmentSnapshot, history: EngineTimes, dependencies: Mapping[str, str]
) -> EngineBuildNotice | None:
    """What there is to say of an archive; None where it needs no engine."""
    told = (
        archive.ordered_dependency
        or dependencies.get(archive.model)
        or history.dependency(
            archive.model, archive.digest, endpoint=archive.sets[0].endpoint, platform=archive.platform
        )
    )
    if told not in {None, "engine"}:
        return None
    return EngineBuildNotice(
        model=archive.model,
        digest=archive.digest,
        platform=archive.platform,
        endpoints=tuple(sorted({each.endpoint for each in archive.sets})),
        need=Need.UNKNOWN if told is None else Need.YES,
        site=_site(archive.sets[0], archive.orders[0] if archive.orders else {}, after),
        built_by=BuiltBy.DEPLOYMENT if archive.orders else BuiltBy.BEFOREHAND,
        last=history.last(archive.model, platform=archive.platform, replaced=archive.replaced),
    )


def _order(stack: StackSnapshot, served: ServedSet) -> Mapping[str, Json] | None:
    """The build set of an endpoint, where its deployment builds what is missing."""
    for _, document in sorted(stack.documents.items()):
        ordered = isinstance(document, dict) and isinstance(document.get("archives"), list)
        if ordered and document.get("endpoint") == served.endpoint:
            found: Mapping[str, Json] = document
            return found
    return None


def _site(served: ServedSet, order: Mapping[str, Json], environment: EnvironmentSnapshot) -> BuildSite:
    """Where: as the build chooses it, on the machine that the template's project has."""
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
        told = _compute_types(environment)
        if told and machine not in told:
            machine, gpu = " or ".join(told), ""
    return BuildSite(kind=builder.kind, machine=machine, gpu=gpu or None)


def _compute_types(environment: EnvironmentSnapshot) -> list[str]:
    """CodeBuild's machines with a GPU that the environment's templates name."""
    projects = [each for stack in environment.stacks.values() for each in stack.of_type(_PROJECT)]
    given = [each.properties.get("Environment", {}) for each in projects]
    return sorted({str(each.get("ComputeType")) for each in given if each.get("Type") == _GPU_CONTAINER})
