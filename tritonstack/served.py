"""What an environment serves: its settings matched with the archives of the model folders.

Stages, stacks and templates are made of it, and so are the orders of builds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.config import Environment, engines_built_on_deploy
from tritonstack.config.yaml_loader import with_lines
from tritonstack.engines.engine_builds import EngineBuilds, engine_builds
from tritonstack.errors import Problem, collecting, refuse
from tritonstack.models.contents import contents_of
from tritonstack.models.digest import digests_of
from tritonstack.models.selection import resolved_models
from tritonstack.models.source import ArchiveSource
from tritonstack.served_checks import check_archives, with_archives, with_default_models


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an environment serves."""

    # the settings with every archive by its own name, and the default model of each single-model endpoint, which its
    # archive decides
    environment: Environment
    sources: Mapping[str, ArchiveSource]  # archive's name → its source
    release_sets: Mapping[str, Mapping[str, str]]  # endpoint → archive's name → digest
    engines: EngineBuilds  # the TensorRT engines that the archives need, and what builds them


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
    engines = engine_builds(environment, resolved, file=file)
    problems = [
        *check_archives(environment, contents, archives=archives, file=file),
        *engines.problems,
        *_check_closed_builds(environment, sources, engines=engines, file=file),
    ]
    refuse(problems)
    matched = with_default_models(with_archives(environment, archives), contents)
    sets = {endpoint.name: {name: digests[name] for name in sorted(endpoint.models)} for endpoint in matched.endpoints}
    return Served(environment=matched, sources=sources, release_sets=sets, engines=engines)


def _check_closed_builds(
    environment: Environment, sources: Mapping[str, ArchiveSource], *, engines: EngineBuilds, file: Path
) -> Iterator[Problem]:
    """Whatever a deployment's builds would fetch in a network without outbound internet access, where they time out.

    Nothing is wrong with such a network where nothing is built.
    """
    network, builds = environment.joined_network, environment.builds
    if network is None or not network.is_closed or builds.network is not None or builds.outside_network:
        return
    if not engines_built_on_deploy(environment, bool(engines.builds)):
        return
    problems = []
    if builds.image.startswith("aws/codebuild"):
        problems.append(
            Problem(
                location=("network", "created", "nat"),
                found=f"false, and builds in {builds.image} fetch Python packages from the internet",
                allowed="one or each; or builds.outside_network: true; or an image in ECR that has the packages "
                "(builds.image); or no builds (builds.on_deploy: false)",
            )
        )
    parts = [part for source in sources.values() for part in (source, *source.used) if part.weights == "pretrained"]
    fetched = {part.folder.name for part in parts if part.recipe.source and part.recipe.source.hub is not None}
    if fetched and builds.hub.folder is None:
        problems.append(
            Problem(
                location=("network", "created", "nat"),
                found=f"false, and builds fetch the weights of {', '.join(sorted(fetched))} from the Hugging Face Hub",
                allowed="one or each; or builds.outside_network: true; or source.s3 in the recipes; or an image that "
                "has the weights (builds.image, builds.hub.folder); or no builds (builds.on_deploy: false)",
            )
        )
    yield from with_lines(problems, file)


def all_served(environments: Iterable[tuple[Environment, Path]], repositories: Path) -> list[Served]:
    """Each of several environments, with its file, as ``served_by`` matches it; raises with the problems of all."""
    found: list[Served] = []
    problems: list[Problem] = []
    for environment, file in environments:
        with collecting(problems):
            found.append(served_by(environment, repositories, file=file))
    refuse(problems)
    return found
