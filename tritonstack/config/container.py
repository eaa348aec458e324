"""``container``: the variables that serve and Triton's SageMaker front end read, typed, rendered and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from tritonstack.catalogue import InstanceType, load_catalogue, release_order
from tritonstack.config.fields import SettingsModel, VariableName, VariableValue
from tritonstack.config.yaml_loader import shown
from tritonstack.errors import Location, Problem, nearest

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings


# Sources: triton-inference-server/server, docker/sagemaker/serve and src/sagemaker_server.cc. Since which release a
# variable is read is in ``catalogue/data/serve_variables.json``.


MINIMUM_SHM_BYTES = 4 * 1024 * 1024
"""Triton's Python backend refuses a smaller start size («can't be smaller than 4 MiBs», libtriton_python.so 2.51.0)."""
MINIMUM_CACHE_BYTES = 1024 * 1024
"""Triton's local cache "may fail to initialize for very small values" (user guide, response_cache): below 1 MiB a size
is a slip of the pen."""
MOST_BYTES = 2**53
"""What a number of JSON holds exactly; the instance's memory bounds all sizes long before (``_check_memory``)."""

PingMode = Literal["live", "ready"]
InferenceType = Literal["infer", "generate_stream"]
Port = Annotated[int, Field(ge=1024, le=65535)]


def _one_error(value: Any, handler: ValidatorFunctionWrapHandler) -> bool | int:
    """One message for the union, instead of one for each of its members."""
    try:
        level: bool | int = handler(value)
    except ValidationError:
        raise PydanticCustomError("log_level", "true, false or a level (a whole number from 0)") from None
    return level


LogLevel = Annotated[bool | Annotated[int, Field(ge=0)], WrapValidator(_one_error)]


class ContainerSettings(SettingsModel):
    """Settings of the Triton container. ``null`` leaves a variable unset, so that the image's default holds."""

    log_verbose: LogLevel = Field(
        default=False,
        description="Verbose log: true, false or a level. The image's own default is true; here it is off unless set.",
    )
    log_info: bool | None = Field(default=None, description="Whether Triton logs information messages.")
    log_warning: bool | None = Field(default=None, description="Whether Triton logs warnings.")
    log_error: bool | None = Field(default=None, description="Whether Triton logs errors.")
    shm_default_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=MINIMUM_SHM_BYTES,
        le=MOST_BYTES,
        description="Shared memory that each Python model instance starts with, bytes (4 MiB at least).",
    )
    shm_growth_bytes: int = Field(
        default=1024 * 1024,
        ge=1,
        le=MOST_BYTES,
        description="Step by which that shared memory grows, bytes.",
    )
    response_cache_bytes: int | None = Field(
        default=None,
        ge=MINIMUM_CACHE_BYTES,
        le=MOST_BYTES,
        description="From release 23.07: size of Triton's response cache in each instance's memory, bytes; null: none. "
        "Models with response_cache { enable: true } in config.pbtxt serve repeated requests from it; all models of an "
        "instance share it, and the least recently used responses make room.",
    )
    thread_count: int | None = Field(default=None, ge=1, description="Threads of the HTTP front end (Triton: 8).")
    buffer_manager_thread_count: int | None = Field(
        default=None, ge=0, description="Threads that copy tensors (Triton: 0)."
    )
    model_load_gpu_limit: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Fraction of a GPU's memory above which loading a model is refused. Single-model endpoints only: "
        "in multi-model mode Triton responds 400 instead of 507, and SageMaker never unloads another model.",
    )
    model_namespacing: bool = Field(
        default=True,
        description="Whether archives may repeat the names of inner models. false renders "
        "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING=false, which is what switches it off.",
    )
    ping_mode: PingMode | None = Field(
        default=None,
        description="What /ping reports: live (the server runs) or ready (no model is failing or being loaded). "
        "Unset: live in multi-model mode, the image's default (ready) in single-model mode. Images before release "
        "23.07 read no ping mode: for them live cannot be rendered, in multi-model mode neither.",
    )
    default_model_name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        description="Single-model endpoints: the folder in the archive that /invocations serves (the ensemble).",
    )
    inference_type: InferenceType | None = Field(
        default=None,
        description="Single-model endpoints from release 25.03: what /invocations does (Triton: infer). "
        "generate_stream takes a JSON object of values by tensor name and sends each response of the model as an "
        "event, which decoupled models need (tritonstack docs streaming). Not with data_capture or load tests. The "
        "third type, generate, is not offered: it is generate_stream for models of exactly one response.",
    )
    tensorflow_version: Literal[1, 2] | None = Field(
        default=None, description="TensorFlow's major version, for releases that still have that backend (to 25.02)."
    )
    allow_metrics: bool | None = Field(
        default=None,
        description="Whether Triton serves Prometheus metrics on metrics_port, in the container (serve: false, in "
        "either mode). SageMaker passes no request to that port. Its detailed observability scrapes "
        "containers: of AWS's own it finds the place, of an image of yours it takes /metrics on port 8080, where "
        "Triton's front end answers 400.",
    )
    metrics_port: Port | None = Field(default=None, description="Port of those metrics (Triton: 8002).")
    allow_grpc: bool | None = Field(
        default=None, description="Whether Triton serves gRPC inside the container (not reachable through SageMaker)."
    )
    grpc_port: Port | None = Field(default=None, description="Port of gRPC (Triton: 8001).")
    additional_args: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(),
        description="Further tritonserver flags, each as one --flag=value. serve splits them at blanks and keeps "
        "quotes as they are, so an element has neither.",
    )
    environment: dict[VariableName, VariableValue] = Field(
        default={}, description="Further variables, for models to read. None may begin with SAGEMAKER_."
    )

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that tritonserver gets besides those that serve gives it."""
        size = self.response_cache_bytes
        return (*(() if size is None else (f"{LOCAL_CACHE}={size}",)), *self.additional_args)

    @property
    def streams(self) -> bool:
        """Whether each response is a stream of events."""
        return self.inference_type == "generate_stream"

    @property
    def has_response_cache(self) -> bool:
        """Whether Triton has a response cache: the local one, or another that ``additional_args`` configure."""
        return any(flag.startswith("--cache-config=") for flag in self.flags)

    def rendered(self, *, multi_model: bool, release: str) -> dict[str, str]:
        """The container's environment, sorted by name.

        Variables that no one set are rendered only where the image of ``release`` (``YY.MM``) reads them.
        """
        rendered = dict(self.environment)
        for variable in load_catalogue().serve_variables.values():
            value: Any = getattr(self, variable.field) if variable.field else None
            if variable.field == "ping_mode" and multi_model:
                value = value or "live"
            elif variable.field == "model_namespacing":
                # Despite its name the variable is handed to --model-namespacing as it is: "false" is what disables.
                value = None if value else False
            elif variable.field == "additional_args":
                value = " ".join(self.flags) or None
            if value is not None and variable.known_to(release):
                rendered[variable.name] = str(value).lower() if isinstance(value, bool) else str(value)
        return dict(sorted(rendered.items()))


LOCAL_CACHE = "--cache-config=local,size"
_FLAG = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?P<value>=.+)?")
_UNSAFE = re.compile(r"[\s'\"\\*?\[\]]")
"""Blanks split; quotes and backslashes stay in the value; * ? [ ] may be replaced by file names."""


def check_arguments(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Check ``additional_args``; ``location`` is that of ``container``."""
    for index, argument in enumerate(endpoint.container.additional_args):
        wrong = _wrong(argument, release=endpoint.release)
        if wrong is not None:
            allowed, advice = wrong
            place = (*location, "additional_args", index)
            yield Problem(location=place, found=shown(argument), allowed=allowed, advice=advice)


def _wrong(argument: str, *, release: str) -> tuple[str, str] | None:
    """What is allowed in place of ``argument`` and what to do; None where it is allowed."""
    flag = _FLAG.fullmatch(argument)
    if flag is None or _UNSAFE.search(argument):
        return (
            "one --flag or --flag=value with no blank, quote, backslash, *, ?, [ or ] in it",
            "serve hands flags over unquoted: a blank would split one, a quote would stay in the value.",
        )
    for owned, field in _flag_owners().items():
        if argument == owned or argument.startswith(f"{owned}="):
            advice = f"Set container.{field} instead." if field else "Remove it: SageMaker depends on this flag."
            return "a flag that serve does not give itself", advice
    return _not_read(flag, release=release)


def _not_read(flag: re.Match[str], *, release: str) -> tuple[str, str] | None:
    """The same of an option that does not suit SageMaker or ``release``, and of one without its value."""
    options, name = load_catalogue().server_options, flag["name"]
    if name in options.refused:
        return f"an option that suits SageMaker: {options.refused[name]}", "Remove it."
    if options.lacks(name, release=release):
        advice = nearest(f"--{name}", [f"--{each}" for each in sorted(options.names)])
        newer = f"; it came after release {options.absent_in[name]}" if name in options.absent_in else ""
        return f"an option that tritonserver of release {release} has{newer}", advice or "It would end at once."
    since = options.effective_since.get(name, release)
    if release_order(release) < release_order(since):
        return f"release {since} or newer: older front ends of SageMaker do not read it", "Remove it."
    if name in options.without_value and flag["value"] is not None:
        return f"--{name} alone", ""
    if name in options.names and name not in options.without_value and flag["value"] is None:
        return f"--{name}=value", "Without its value it would take the next flag for it."
    return None


def _flag_owners() -> dict[str, str | None]:
    """Flags that serve gives itself → the setting under ``container`` that decides them, or None where nothing does."""
    catalogue = load_catalogue()
    owners: dict[str, str | None] = {flag.split("=")[0]: None for flag in catalogue.fixed_flags}
    for variable in catalogue.serve_variables.values():
        flag = variable.flag.split(" ")[0]
        if flag.startswith("--"):
            # "--model-namespacing=<value>" and "--model-repository=/tmp/…", but "--backend-config=python,shm-…" whole.
            owners[flag if "," in flag else flag.split("=")[0]] = variable.field
    return owners | dict.fromkeys((LOCAL_CACHE, "--response-cache-byte-size"), "response_cache_bytes")


def check_container(
    *, endpoint: EndpointSettings, instance: InstanceType | None, location: Location
) -> Iterator[Problem]:
    """Check the container's settings; ``location`` is the endpoint's."""
    place = (*location, "container")
    yield from _check_variables(endpoint=endpoint, location=place)
    yield from _check_further_variables(endpoint=endpoint, location=place)
    yield from check_arguments(endpoint=endpoint, location=place)
    if instance is not None:
        yield from _check_memory(container=endpoint.container, instance=instance, location=place)


def _check_variables(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Each field that was set must be read by the release's image, in the endpoint's mode."""
    tensorflow = load_catalogue().backends["tensorflow"]
    # of a field with two variables one
    variables = {each.field: each for each in load_catalogue().serve_variables.values() if each.field is not None}
    variables["response_cache_bytes"] = variables["additional_args"]
    for field, variable in variables.items():
        value = getattr(endpoint.container, field)
        if value == ContainerSettings.model_fields[field].default:
            continue
        of_release, of_mode = f"{shown(value)} with release {endpoint.release}", f"{shown(value)} in multi-model mode"
        place = (*location, field)
        if not variable.known_to(endpoint.release):
            allowed = f"release {variable.since} or newer: older images do not read {variable.name}"
            yield Problem(location=place, found=of_release, allowed=allowed, advice="Or remove the field.")
        if field == "tensorflow_version" and not tensorflow.in_release(endpoint.release):
            allowed = f"null: the last release with the TensorFlow backend is {tensorflow.last}"
            yield Problem(location=place, found=of_release, allowed=allowed, advice="Or take an older release.")
        if endpoint.multi_model and field == "model_load_gpu_limit":
            allowed = "null: Triton then responds 400 instead of 507, so SageMaker never evicts another model"
            yield Problem(location=place, found=of_mode, allowed=allowed)
        elif endpoint.multi_model and variable.scope == "single-model":
            allowed = "null: it acts on /invocations only, which multi-model mode does not use"
            yield Problem(location=place, found=of_mode, allowed=allowed)


def _check_further_variables(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    for name in endpoint.container.environment:
        if not name.upper().startswith("SAGEMAKER_"):
            continue
        variable = load_catalogue().serve_variables.get(name.upper())
        advice = f"Set container.{variable.field} instead." if variable and variable.field else "Remove it."
        reason = ": no release's serve script reads this one" if variable is None else ""
        if variable is not None and variable.field is None:
            reason = ": SageMaker sets this one itself"
        yield Problem(
            location=(*location, "environment", name),
            found=f"the variable {name}",
            allowed=f"a name without the prefix SAGEMAKER_{reason}",
            advice=advice,
        )


def _check_memory(*, container: ContainerSettings, instance: InstanceType, location: Location) -> Iterator[Problem]:
    """SageMaker offers up to half of the instance's memory as shared memory (developer guide, Triton)."""
    half = int(instance.memory_gib * 1024**3 / 2)
    start, growth = container.shm_default_bytes, container.shm_growth_bytes
    allowed = f"{half} bytes: SageMaker gives {instance.name} half of its {instance.memory_gib:g} GiB as /dev/shm"
    if start > half:
        yield Problem(location=(*location, "shm_default_bytes"), found=str(start), allowed=f"at most {allowed}")
    elif start + growth > half:
        yield Problem(
            location=(*location, "shm_growth_bytes"),
            found=f"{growth} on top of shm_default_bytes {start}",
            allowed=f"with one step of growth at most {allowed}",
        )
    cache = container.response_cache_bytes
    if cache is not None and cache > half:
        allowed = f"at most {half} bytes: models and /dev/shm share the {instance.memory_gib:g} GiB of {instance.name}"
        yield Problem(location=(*location, "response_cache_bytes"), found=str(cache), allowed=allowed)
