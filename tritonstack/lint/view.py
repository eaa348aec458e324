"""Models of an archive as the linter reads them, the target that serves them, and findings at a line of a file."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tritonstack.catalogue import InstanceType, TritonRelease, load_catalogue
from tritonstack.errors import Problem, listing, nearest, refuse
from tritonstack.lint.registry import Finding
from tritonstack.models.contents import called_models
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView, view_model
from tritonstack.models.recipe import RECIPE, Recipe, read_recipe
from tritonstack.models.source_files import CONFIG, is_junk, model_directories

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings


@dataclass(frozen=True, kw_only=True)
class ServingTarget:
    """Where an archive is to be served. Unknown facts are None, and not checked."""

    name: str = ""  # how findings call it: ``endpoint digits of local``, ``release 24.09``; empty for none
    release: TritonRelease | None = None  # the Triton release
    instance: InstanceType | None = None  # the instance type
    region: str | None = None  # the region, which has images of some releases
    own_image: bool = False  # whether an image of one's own runs the release, of which AWS then needs none
    multi_model: bool | None = None  # whether the endpoint is in multi-model mode
    backends: frozenset[str] | None = None  # the backends that there are
    shm_bytes: int | None = None  # the shared memory that each Python instance starts with, bytes
    response_cache: bool | None = None  # whether the server has a response cache
    response_cache_bytes: int = 0  # what it takes of the instance's memory
    streams: bool | None = None  # whether the endpoint's responses are streams of events
    default_model: str | None = None  # single-model mode: the model that SAGEMAKER_TRITON_DEFAULT_MODEL_NAME names
    # single-model mode: whether that variable names the archive's only ensemble where it is not set, as synthesis does
    # for an endpoint of the settings; a container by itself does not
    names_ensemble: bool = False
    # the size of the archive's content as built; without it the files that are there count
    unpacked_bytes: int | None = None

    @property
    def infers(self) -> bool:
        """Whether requests are known to be inference requests, which have exactly one response."""
        return self.multi_model is True or self.streams is False

    @classmethod
    def of_endpoint(cls, endpoint: EndpointSettings, environment: str, *, region: str | None = None) -> ServingTarget:
        """An endpoint of an environment's settings; ``region``: the environment's."""
        release = load_catalogue().release(endpoint.release)
        return cls(
            name=f"endpoint {endpoint.name} of {environment}"
            + (f" on {endpoint.instance_type}" if endpoint.instance_types else ""),
            release=release,
            instance=load_catalogue().instance(endpoint.instance_type),
            region=region,
            own_image=endpoint.image is not None,
            multi_model=endpoint.multi_model,
            streams=endpoint.container.streams,
            backends=release.backends | set(endpoint.additional_backends) if release else None,
            shm_bytes=endpoint.container.shm_default_bytes,
            response_cache=endpoint.container.has_response_cache,
            response_cache_bytes=endpoint.container.response_cache_bytes or 0,
            default_model=endpoint.container.default_model_name,
            names_ensemble=True,
        )

    @classmethod
    def of_names(cls, *, release: str | None, instance_type: str | None) -> ServingTarget:
        """A release and an instance type by their names. Raises :class:`InputError` where there is no such thing."""
        found = load_catalogue().release(release) if release else None
        instance = load_catalogue().instance(instance_type) if instance_type else None
        problems = []
        if release and found is None:
            problems.append(_unknown("--release", release, load_catalogue().served_releases()))
        if instance_type and instance is None:
            problems.append(_unknown("--instance-type", instance_type, load_catalogue().instances))
        refuse(problems)
        return cls(
            name=" on ".join(part for part in (f"release {release}" if release else "", instance_type or "") if part),
            release=found,
            instance=instance,
            backends=found.backends if found else known_backends(),
        )


def known_backends() -> frozenset[str]:
    """Every backend that some release of the catalogue has."""
    return frozenset(load_catalogue().backends)


def _unknown(option: str, value: str, known: Iterable[str]) -> Problem:
    return Problem(field=option, found=value, allowed=listing(known), advice=nearest(value, known))


@dataclass(frozen=True, kw_only=True)
class RepositoryView:
    """The models of one archive. ``recipe`` is None for a repository that is linted by itself."""

    root: Path
    recipe: Recipe | None
    addressed: str | None
    models: Mapping[str, ModelView]
    target: ServingTarget = field(default_factory=ServingTarget)

    @property
    def is_built(self) -> bool:
        """Whether a build makes, or has staged, the archive: it needs every tensor written down."""
        return self.recipe is not None or self.addressed is not None

    @property
    def ensembles(self) -> tuple[ModelView, ...]:
        """The models that Triton takes for ensembles."""
        return tuple(model for model in self.models.values() if model.is_ensemble)

    @functools.cached_property
    def called(self) -> tuple[str, ...]:
        """Models that no ensemble uses and that a Python model of the archive may send requests to (BLS), sorted."""
        models = {name: model for name, model in self.models.items() if model.is_readable}
        return called_models(
            {name: model.config for name, model in models.items()},
            {name: model.directory for name, model in models.items()},
            addressed=self.addressed,
        )

    @functools.cached_property
    def served(self) -> str | None:
        """The model that requests reach: the recipe's, else the only ensemble, else the only model; None if unclear."""
        if self.addressed is not None:
            return self.addressed
        names = [model.name for model in self.ensembles] or list(self.models)
        return names[0] if len(names) == 1 else None


def view_folder(folder: Path, target: ServingTarget | None = None) -> RepositoryView:
    """A model folder with a recipe, or a model repository without one. Raises InputError where a recipe is wrong."""
    if not (folder / RECIPE).is_file():
        return view_repository(folder, addressed=None, target=target)
    recipe = read_recipe(folder)
    models = {model.name: view_model(model, produced_below(recipe, model.name)) for model in model_directories(folder)}
    models |= used_models(recipe, folder)
    return RepositoryView(
        root=folder,
        recipe=recipe,
        addressed=recipe.model or folder.name,
        models=models,
        target=target or ServingTarget(),
    )


def view_repository(
    folder: Path, *, addressed: str | None, target: ServingTarget | None = None, absent: Iterable[str] = ()
) -> RepositoryView:
    """A model repository by itself, without a recipe.

    A directory without a ``config.pbtxt`` is a model where Triton derives a backend from it.
    ``absent``: files of models that are not there, and need not be: ``<model>/<file>``.
    """
    lacking = [name.partition("/") for name in absent]
    models = {
        model.name: view_model(model, [file for owner, _, file in lacking if owner == model.name])
        for model in model_directories(folder)
    }
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in models and not is_junk(path.name):
            model = view_model(path, ())
            if _is_model_without_config(model):
                models[path.name] = model
    return RepositoryView(
        root=folder, recipe=None, addressed=addressed, models=models, target=target or ServingTarget()
    )


def _is_model_without_config(model: ModelView) -> bool:
    """Whether Triton derives a backend; from a dot in the name (``notes.old``) only one that there is counts."""
    derived = model.derived
    return bool(derived.backend) and (
        not derived.from_name or (derived.backend in known_backends() and bool(model.versions))
    )


def used_models(recipe: Recipe, folder: Path) -> dict[str, ModelView]:
    """The models that a recipe takes from folders next to its own; another rule checks that they exist."""
    models: dict[str, ModelView] = {}
    for used in recipe.uses:
        other = folder.parent / used.folder
        produced_by = read_recipe(other)
        for name in used.models:
            if (other / name / CONFIG).is_file():
                models[name] = view_model(other / name, produced_below(produced_by, name))
    return models


def produced_below(recipe: Recipe, model: str) -> list[str]:
    """The files that a build makes or downloads below one model's directory."""
    names = (*(name for export in recipe.exports for name in export.produces), *recipe.files)
    return [name.removeprefix(f"{model}/") for name in names if name.startswith(f"{model}/")]


def at_line(model: ModelView, line: int, rule: str, found: str, allowed: str = "", advice: str = "") -> Finding:  # noqa: PLR0917  (in the order of its text)
    """A finding at a line of a model's ``config.pbtxt``; 0 for the whole file."""
    return Finding(file=model.file, line=line, rule=rule, found=found, allowed=allowed, advice=advice)


def at_field(  # noqa: PLR0917  (as above)
    model: ModelView, field: str, rule: str, found: str, allowed: str = "", node: Node | None = None
) -> Finding:
    """A finding at the line of the first occurrence of a field of the configuration, or of a message in it."""
    where = node if node is not None else model.config.node
    return at_line(model, where.line_of(field), rule, found, allowed)
