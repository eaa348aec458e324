"""An environment matched with the archives that its models mean: what synthesis and a local deployment start from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.contents import contents_of
from tritonstack.archives.digest import digests_of
from tritonstack.archives.resolving import resolved_models
from tritonstack.archives.source import ArchiveSource
from tritonstack.engines.plan import EnginePlan, plan_engines
from tritonstack.errors import InputError, Problem
from tritonstack.settings import (
    Environment,
    check_archives,
    engines_built_on_deploy,
    with_archives,
    with_default_models,
)
from tritonstack.settings.findings import with_lines


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an environment serves.

    Attributes:
        environment: the settings with every archive by its own name, and the default model of each single-model
            endpoint, which its archive decides.
        sources: archive's name → its source.
        release_sets: endpoint → archive's name → digest.
        engines: the TensorRT engines that the archives need, and what builds them.
    """

    environment: Environment
    sources: Mapping[str, ArchiveSource]
    release_sets: Mapping[str, Mapping[str, str]]
    engines: EnginePlan


def served_by(environment: Environment, repositories: Path, *, file: Path) -> Served:
    """Match an environment with the model folders in ``repositories``. ``file``: the environment's.

    Raises :class:`InputError`: a model means no sound folder or archive, or an archive does not fit its endpoint (a
    backend that the Triton release does not have, several archives on a single-model endpoint, a TensorRT engine that
    nothing can build).
    """
    resolved = resolved_models(environment, repositories, file=file)
    sources = {source.name: source for found in resolved.values() for source in found}
    digests = digests_of(sources.values())
    contents = {name: contents_of(source) for name, source in sources.items()}
    archives = {entry: tuple(source.name for source in found) for entry, found in resolved.items()}
    engines = plan_engines(environment, resolved, file=file)
    problems = [
        *check_archives(environment, contents, archives=archives, file=file),
        *engines.problems,
        *_check_hub(environment, sources, engines=engines, file=file),
    ]
    if problems:
        raise InputError(problems)
    matched = with_default_models(with_archives(environment, archives), contents)
    sets = {endpoint.name: {name: digests[name] for name in sorted(endpoint.models)} for endpoint in matched.endpoints}
    return Served(environment=matched, sources=sources, release_sets=sets, engines=engines)


def _check_hub(
    environment: Environment, sources: Mapping[str, ArchiveSource], *, engines: EnginePlan, file: Path
) -> Iterator[Problem]:
    """Builds without a way to the internet against recipes whose weights come from the hub."""
    network, builds = environment.joined_network, environment.builds
    inside = builds.network is None and not builds.outside_network
    if network is None or not network.is_closed or not inside or builds.hub.folder is not None:
        return
    if not engines_built_on_deploy(environment, bool(engines.builds)):
        return
    fetched = {part.folder.name for source in sources.values() for part in (source, *source.used) if _of_hub(part)}
    if fetched:
        problem = Problem(
            file=str(file),
            field="network.created.nat",
            found=f"false, and builds fetch the weights of {', '.join(sorted(fetched))} from the Hugging Face Hub",
            allowed="one or each; or builds.outside_network: true; or source.s3 in the recipes; or an image that has "
            "the weights (builds.image, builds.hub.folder); or no builds (builds.on_deploy: false)",
        )
        yield from with_lines([problem], file)


def _of_hub(source: ArchiveSource) -> bool:
    """Whether a build takes a folder's weights from the Hugging Face Hub."""
    origin = source.recipe.source
    return origin is not None and origin.hub is not None and source.weights == "pretrained"


def all_served(environments: Iterable[tuple[Environment, Path]], repositories: Path) -> list[Served]:
    """Each of several environments, with its file, as ``served_by`` matches it; raises with the problems of all."""
    found: list[Served] = []
    problems: dict[Problem, None] = {}
    for environment, file in environments:
        try:
            found.append(served_by(environment, repositories, file=file))
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(tuple(problems))
    return found
