"""Checks of archives against the endpoints that serve them: backends, DALI's memory, the default model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.config.container import ContainerSettings
from tritonstack.config.endpoint import EndpointSettings
from tritonstack.config.environment import Environment
from tritonstack.config.yaml_loader import shown, with_lines
from tritonstack.errors import Location, Problem, nearest
from tritonstack.models.contents import ArchiveContents


def check_model(
    *, endpoint: EndpointSettings, backends: Collection[str], model: str, location: Location, region: str
) -> Iterator[Problem]:
    """Every backend (a value of ``backend:`` or ``platform:``) that a model needs and its endpoint's release lacks."""
    catalogue = load_catalogue()
    release = catalogue.release(endpoint.release)
    if release is None:
        return
    available = sorted(release.backends | set(endpoint.additional_backends))
    needed = [catalogue.platforms.get(each, each) for each in backends]
    for named in backends:
        name = catalogue.platforms.get(named, named)
        if name in available:
            continue
        backend = catalogue.backends.get(name)
        if backend is None:
            bring = "If the image or the archive brings it, name it in additional_backends."
            reason, advice = "which no release has", f"{nearest(name, available)} {bring}".strip()
        else:
            early = backend.since and release.order < release_order(backend.since)
            reason = f"which came with release {backend.since}" if early else f"which went after release {backend.last}"
            instance = catalogue.instance(endpoint.instance_type)
            advice = catalogue.without_backend(
                backend,
                release=release.version,
                region=region,
                instances=() if instance is None else (instance,),
                backends=sorted(set(needed) & release.backends),
            )
        yield Problem(
            location=location,
            found=f"{model} needs the backend {name}{'' if named == name else f' ({named})'}, {reason}",
            allowed=f"a backend of release {release.version}: {', '.join(available)}",
            advice=advice,
        )


DALI_RELEASES_MEMORY = "--backend-config=dali,release_after_unload=true"
"""Without it DALI keeps its GPU memory when a model is unloaded (triton-inference-server/dali_backend, docs)."""


def check_archives(
    environment: Environment,
    contents: Mapping[str, ArchiveContents],
    *,
    archives: Mapping[str, Sequence[str]] | None = None,
    file: Path | None = None,
) -> list[Problem]:
    """Everything about the archives of an environment's models that does not fit their endpoints.

    Args:
        environment: the settings.
        contents: archive → what it contains. Archives that the mapping does not name are not checked.
        archives: entry of ``models`` → the archives that it means; without it, each means the archive of that name.
        file: the environment's file, as the problems should name it; by default ``environments/<environment>.yaml``.
    """
    findings: list[Problem] = []
    for index, endpoint in enumerate(environment.endpoints):
        place: Location = ("endpoints", index)
        known: dict[str, ArchiveContents] = {}
        for where, entry in zip(endpoint.model_places, endpoint.models, strict=True):
            location = (*place, *where)
            meant = (archives or {}).get(entry, (entry,))
            if not endpoint.multi_model and len(meant) > 1:
                found = f"{entry}, which stands for {len(meant)} archives, on a single-model endpoint"
                findings.append(Problem(location=location, found=found, allowed=f"one of them: {', '.join(meant)}"))
            for model in (each for each in meant if each in contents):
                known[model] = contents[model]
                backends, region = sorted(known[model].backends), environment.region
                findings += check_model(
                    endpoint=endpoint, backends=backends, model=model, location=location, region=region
                )
                findings += _check_called(endpoint=endpoint, found=known[model], model=model, location=location)
                findings += _check_streamed(endpoint=endpoint, found=known[model], model=model, location=location)
        findings += _check_arguments(endpoint, known, location=(*place, "container", "additional_args"))
        findings += _check_dali(endpoint=endpoint, contents=known, location=(*place, "container", "additional_args"))
        for number, variant in enumerate(endpoint.variant_settings):
            named = {name for entry in variant.models for name in (archives or {}).get(entry, (entry,))}
            own = {name: found for name, found in known.items() if name in named}
            own_container = bool(endpoint.variants) and endpoint.variants[number].container is not None
            where = (*place, *(("variants", number) if own_container else ()), "container", "default_model_name")
            findings += _check_default_model(endpoint=variant, contents=own, location=where)
        if endpoint.variants:
            findings += _check_requests(known, location=(*place, "variants"))
    return with_lines(findings, file or Path("environments") / f"{environment.environment}.yaml")


def with_archives(environment: Environment, archives: Mapping[str, Sequence[str]]) -> Environment:
    """The settings in which every endpoint names its archives one by one, sorted as written.

    ``archives``: entry of ``models`` → the archives that it means.
    """
    endpoints = []
    for endpoint in environment.endpoints:
        names = dict.fromkeys(name for entry in endpoint.models for name in archives.get(entry, (entry,)))
        variants = tuple(
            each.model_copy(update={"model": archives.get(each.model, (each.model,))[0]}) for each in endpoint.variants
        )
        endpoints.append(endpoint.model_copy(update={"models": tuple(names), "variants": variants}))
    return environment.model_copy(update={"endpoints": tuple(endpoints)})


def with_default_models(environment: Environment, contents: Mapping[str, ArchiveContents]) -> Environment:
    """The settings in which each single-model endpoint whose archive has several model folders names those to load.

    Where the settings name none to serve, it is the archive's only ensemble, or the recipe's model where that calls
    the others (``check_archives`` refuses the rest). Models that it calls are loaded with it, by flags of the server.
    """
    endpoints = []
    for endpoint in environment.endpoints:
        own: dict[str, object] = {"container": _with_default_model(endpoint, contents)}
        if endpoint.variants:
            containers = [_with_default_model(each, contents) for each in endpoint.variant_settings]
            pairs = zip(endpoint.variants, containers, strict=True)
            own = {"variants": tuple(each.model_copy(update={"container": container}) for each, container in pairs)}
        endpoints.append(endpoint.model_copy(update=own))
    return environment.model_copy(update={"endpoints": tuple(endpoints)})


def _with_default_model(endpoint: EndpointSettings, contents: Mapping[str, ArchiveContents]) -> ContainerSettings:
    """The container's settings with the model that it serves by default, and those that are loaded with it."""
    name, found = _default_model(endpoint, contents), contents.get(endpoint.models[0])
    loads = tuple(f"--load-model={each}" for each in found.called if each != name) if found else ()
    update: dict[str, object] = {"default_model_name": name}
    if loads and not endpoint.multi_model:
        update["additional_args"] = (*endpoint.container.additional_args, *loads)
    return endpoint.container.model_copy(update=update)


def _check_requests(contents: Mapping[str, ArchiveContents], *, location: Location) -> Iterator[Problem]:
    """SageMaker sends a request to either variant, so both models must take it.

    Inputs that a configuration leaves to Triton's auto-completion are not known here.
    """
    known = {model: found.inputs for model, found in contents.items() if found.inputs}
    if len(set(known.values())) > 1:
        taken = [f"{model} takes {', '.join(inputs)}" for model, inputs in known.items()]
        yield Problem(
            location=(*location, 1, "model"),
            found="; ".join(taken),
            allowed="a model with the same inputs, by name, data type and dims: a request reaches either variant",
            advice="Give the other model an endpoint of its own, or the same inputs by an ensemble in front of it.",
        )


def _check_called(
    *, endpoint: EndpointSettings, found: ArchiveContents, model: str, location: Location
) -> Iterator[Problem]:
    """Models that others of the archive call by BLS: what loads them, and which model requests reach."""
    if not found.called:
        return
    variable = load_catalogue().serve_variables["SAGEMAKER_TRITON_ADDITIONAL_ARGS"]
    if endpoint.multi_model:
        yield Problem(
            location=location,
            found=f"{model}, whose program calls {', '.join(found.called)} by name, on a multi-model endpoint: two "
            "releases of it on one instance have these names twice, and requests to both fail",
            allowed="a single-model endpoint; or, in the archive, an ensemble of all steps",
            advice="tritonstack explain bls-multi-model",
        )
    elif not variable.known_to(endpoint.release):
        yield Problem(
            location=location,
            found=f"{model}, whose program calls {', '.join(found.called)}, with release {endpoint.release}: nothing "
            "tells its image to load them",
            allowed=f"release {variable.since} or newer",
        )


def _check_streamed(
    *, endpoint: EndpointSettings, found: ArchiveContents, model: str, location: Location
) -> Iterator[Problem]:
    """A decoupled model needs an endpoint that streams; and streams carry JSON alone."""
    if found.decoupled and not endpoint.streams:
        mode = "a multi-model endpoint" if endpoint.multi_model else "an endpoint that infers"
        yield Problem(
            location=location,
            found=f"{model}, a decoupled model, on {mode}: its front end refuses requests to it",
            allowed="a single-model endpoint with container.inference_type: generate_stream, release 25.03 or newer",
            advice="tritonstack docs streaming",
        )
    if endpoint.streams and found.unstreamable:
        yield Problem(
            location=location,
            found=f"{model} with {', '.join(found.unstreamable)}, on an endpoint that streams",
            allowed="tensors of other types and names: requests and events are JSON, which has no half precision",
            advice="Put a step that casts to FP32 in front of it and behind it.",
        )


def _default_model(endpoint: EndpointSettings, contents: Mapping[str, ArchiveContents]) -> str | None:
    named = endpoint.container.default_model_name
    found = contents.get(endpoint.models[0])
    if endpoint.multi_model or named is not None or found is None or len(found.models) < 2:
        return named
    if not found.ensembles and found.called:
        return found.addressed
    return found.ensembles[0] if len(found.ensembles) == 1 else None


def _check_default_model(
    *, endpoint: EndpointSettings, contents: Mapping[str, ArchiveContents], location: Location
) -> Iterator[Problem]:
    """A single-model container ends at once where its archive has several folders and none is named (serve)."""
    if endpoint.multi_model:
        return
    for model, found in contents.items():
        named = endpoint.container.default_model_name
        allowed = f"a model folder of the archive {model}: {', '.join(found.models) or 'none there'}"
        if named is not None and named not in found.models:
            yield Problem(location=location, found=shown(named), allowed=allowed)
        elif len(found.models) > 1 and _default_model(endpoint, contents) is None:
            ensembles = f"{len(found.ensembles)} ensembles" if found.ensembles else "no ensemble"
            yield Problem(
                location=location,
                found=f"null, and the archive has {len(found.models)} model folders with {ensembles}",
                allowed=allowed,
                advice="Name the folder that /invocations shall serve.",
            )


def _check_arguments(
    endpoint: EndpointSettings, contents: Mapping[str, ArchiveContents], *, location: Location
) -> Iterator[Problem]:
    """Arguments of the server that recipes need: an option of a backend, which every model of the server has."""
    given = endpoint.container.additional_args
    wanted = {argument: model for model, found in sorted(contents.items()) for argument in found.server_arguments}
    for argument, model in wanted.items():
        if argument not in given:
            yield Problem(
                location=location,
                found=f"{shown(list(given))}, and the recipe of {model} has an option of the whole server",
                allowed=f"a list with {argument}",
                advice="Add that element, or remove the option from the recipe.",
            )


def _check_dali(
    *, endpoint: EndpointSettings, contents: Mapping[str, ArchiveContents], location: Location
) -> Iterator[Problem]:
    """In multi-model mode, models are unloaded to make room; DALI must give its GPU memory back then."""
    using = sorted(model for model, found in contents.items() if "dali" in found.backends)
    if not (endpoint.multi_model and using) or DALI_RELEASES_MEMORY in endpoint.container.additional_args:
        return
    variable = load_catalogue().serve_variables["SAGEMAKER_TRITON_ADDITIONAL_ARGS"]
    newer = "" if variable.known_to(endpoint.release) else f" It takes release {variable.since} or newer."
    yield Problem(
        location=location,
        found=f"{shown(list(endpoint.container.additional_args))}, and {', '.join(using)} needs the backend dali",
        allowed=f"a list with {DALI_RELEASES_MEMORY}",
        advice=f"Add that element: without it DALI keeps GPU memory after a model is unloaded.{newer}",
    )
