"""Platform or Python version that an archive is built for, and archives that cannot be built for theirs."""

from __future__ import annotations

from collections.abc import Iterable

from tritonstack.catalogue import load_catalogue
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.local_aws import require_package
from tritonstack.models.contents import PROVABLE, contents_of, skipped_proof
from tritonstack.models.recipe import RECIPE, Dependency
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import lacks_plan
from tritonstack.naming import Platform

LOCAL = "local"
"""The target of archives that only the local Triton serves."""


def target_of(source: ArchiveSource, platform: Platform | None) -> str | None:
    """The name of the platform that an archive is built for; None where it serves everywhere.

    ``platform``: of the endpoint that is to serve it; None for the local Triton.
    """
    return target_for(source.recipe.dependency, platform)


def target_for(dependency: Dependency, platform: Platform | None) -> str | None:
    """The same, by an archive's dependency."""
    if dependency == "none":
        return None
    if platform is None:
        return LOCAL
    return f"python-{python_of(platform)}" if dependency == "python" else str(platform)


def python_of(platform: Platform) -> str:
    """The minor version of the Python that Python models run in. Raises :class:`InputError` for unknown releases."""
    release = load_catalogue().release(platform.release)
    if release is None:
        problem = Problem(field="release", found=platform.release, allowed="a release of the catalogue")
        raise InputError([problem])
    return release.python


def refuse_unservable(sources: Iterable[ArchiveSource], *, platform: Platform | None) -> None:
    """Raise :class:`InputError` for every archive that cannot be built for a target so that it would serve there."""
    problems = [problem for source in sources for problem in _problems(source, platform)]
    refuse(problems)


def _problems(source: ArchiveSource, platform: Platform | None) -> Iterable[Problem]:
    file, backends = str(source.folder / RECIPE), contents_of(source).backends
    if not backends <= PROVABLE and not skipped_proof(backends):
        require_package()  # before any export: the archive's proof runs on its local Triton
    if platform is not None and lacks_plan(source):
        yield Problem(
            file=file,
            found=f"{source.name} for {platform}: it needs a TensorRT engine that is built on that GPU with that "
            "release, and holds the ONNX graph instead, which the real backend does not load",
            allowed="the local AWS, whose stand-in for TensorRT runs the graph",
            advice="tritonstack prepare builds the engine on its GPU; with builds: {on_deploy: true} a deployment does",
        )
