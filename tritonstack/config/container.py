"""The container's environment: what serve and Triton's SageMaker front end read, typed, and what is rendered of it.

Sources: triton-inference-server/server, docker/sagemaker/serve and src/sagemaker_server.cc. Since which release a
variable is read stands in ``catalogue/data/serve_variables.json``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from tritonstack.catalogue import load_catalogue
from tritonstack.config.fields import SettingsModel, VariableName, VariableValue

PREFIX = "SAGEMAKER_TRITON_"
MINIMUM_SHM_BYTES = 4 * 1024 * 1024
"""Triton's Python backend refuses a smaller start size («can't be smaller than 4 MiBs», libtriton_python.so 2.51.0)."""
MOST_BYTES = 2**53
"""What a number of JSON holds exactly; the instance's memory bounds both sizes long before (checks/container.py)."""

PingMode = Literal["live", "ready"]
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
    """What the Triton container is told. ``null`` leaves a variable unset, so that the image's default holds."""

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
    thread_count: int | None = Field(default=None, ge=1, description="Threads of the HTTP front end (Triton: 8).")
    buffer_manager_thread_count: int | None = Field(
        default=None, ge=0, description="Threads that copy tensors (Triton: 0)."
    )
    model_load_gpu_limit: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description=(
            "Fraction of a GPU's memory above which loading a model is refused. Single-model endpoints only: in "
            "multi-model mode Triton answers 400 instead of 507, and SageMaker never unloads another model."
        ),
    )
    model_namespacing: bool = Field(
        default=True,
        description=(
            "Whether archives may repeat the names of inner models. false renders "
            "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING=false, which is what switches it off."
        ),
    )
    ping_mode: PingMode | None = Field(
        default=None,
        description=(
            "What /ping reports: live (the server runs) or ready (no model is failing or being loaded). "
            "Unset: live in multi-model mode, the image's default (ready) in single-model mode. Images before release "
            "23.07 read no ping mode: for them live cannot be rendered, in multi-model mode neither."
        ),
    )
    default_model_name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        description="Single-model endpoints: the folder in the archive that /invocations serves (the ensemble).",
    )
    inference_type: Literal["infer"] | None = Field(
        default=None,
        description=(
            "Single-model endpoints from release 25.03: what /invocations does (Triton: infer). generate and "
            "generate_stream are not offered: their requests are no inference requests, which verification, clients "
            "and load tests send, and lint refuses the decoupled models that need them. Streamed answers are out of "
            "scope."
        ),
    )
    tensorflow_version: Literal[1, 2] | None = Field(
        default=None, description="TensorFlow's major version, for releases that still have that backend (to 25.02)."
    )
    allow_metrics: bool | None = Field(
        default=None,
        description=(
            "Whether Triton serves Prometheus metrics on metrics_port, in the container (serve: false, in either "
            "mode). SageMaker passes no call to that port. Its detailed observability (metrics.detailed) scrapes "
            "containers: of AWS's own it finds the place, of an image of yours it takes /metrics on port 8080, where "
            "Triton's front end answers 400."
        ),
    )
    metrics_port: Port | None = Field(default=None, description="Port of those metrics (Triton: 8002).")
    allow_grpc: bool | None = Field(
        default=None, description="Whether Triton serves gRPC inside the container (not reachable through SageMaker)."
    )
    grpc_port: Port | None = Field(default=None, description="Port of gRPC (Triton: 8001).")
    additional_args: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(),
        description=(
            "Further tritonserver flags, each as one --flag=value. serve splits them at blanks and keeps quotes as "
            "they are, so an element has neither."
        ),
    )
    environment: dict[VariableName, VariableValue] = Field(
        default={}, description="Further variables, for models to read. None may begin with SAGEMAKER_."
    )

    def rendered(self, *, multi_model: bool, release: str) -> dict[str, str]:
        """The container's environment, sorted by name.

        Variables that no one set are rendered only where the image of ``release`` (``YY.MM``) reads them.
        """
        ping_mode = self.ping_mode or ("live" if multi_model else None)
        known = load_catalogue().serve_variables
        values = {
            "LOG_VERBOSE": _text(self.log_verbose),
            "LOG_INFO": _text(self.log_info),
            "LOG_WARNING": _text(self.log_warning),
            "LOG_ERROR": _text(self.log_error),
            "SHM_DEFAULT_BYTE_SIZE": _text(self.shm_default_bytes),
            "SHM_GROWTH_BYTE_SIZE": _text(self.shm_growth_bytes),
            "THREAD_COUNT": _text(self.thread_count),
            "BUFFER_MANAGER_THREAD_COUNT": _text(self.buffer_manager_thread_count),
            "MODEL_LOAD_GPU_LIMIT": _text(self.model_load_gpu_limit),
            # Despite its name the variable is handed to --model-namespacing as it is: "false" is what disables.
            "DISABLE_MODEL_NAMESPACING": None if self.model_namespacing else "false",
            # serve computes the ping mode but exports it only where the variable exists already.
            "OVERRIDE_PING_MODE": ping_mode,
            "PING_MODE": ping_mode,
            "DEFAULT_MODEL_NAME": self.default_model_name,
            "INFERENCE_TYPE": self.inference_type,
            "TENSORFLOW_VERSION": _text(self.tensorflow_version),
            "ALLOW_METRICS": _text(self.allow_metrics),
            "METRICS_PORT": _text(self.metrics_port),
            "ALLOW_GRPC": _text(self.allow_grpc),
            "GRPC_PORT": _text(self.grpc_port),
            "ADDITIONAL_ARGS": " ".join(self.additional_args) or None,
        }
        rendered = {
            PREFIX + name: value
            for name, value in values.items()
            if value is not None and known[PREFIX + name].known_to(release)
        }
        return dict(sorted((rendered | self.environment).items()))


def _text(value: bool | float | None) -> str | None:
    """A value as serve reads it: ``true``, ``false`` or the number."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else f"{value}"
