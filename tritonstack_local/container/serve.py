"""The server's arguments and environment that SageMaker's ``serve`` script makes from a container's environment.

Source: ``docker/sagemaker/serve`` of triton-inference-server/server, tags v2.21 to v2.71. Its traps are kept, since a
configuration that falls into one in the cloud must fall into it here:

- Verbose logging is on unless SAGEMAKER_TRITON_LOG_VERBOSE is set (since release 23.02).
- SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING is passed to ``--model-namespacing`` unchanged: ``false`` disables.
- SAGEMAKER_TRITON_PING_MODE is computed but not exported: the server sees it only where the container's environment
  has that variable already, whatever its value.
- All values are expanded unquoted, so white space splits them into arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.errors import WorkFailedError

MULTI_MODEL_REPOSITORY = "/tmp/sagemaker"  # noqa: S108  the script's own fixed name
SINGLE_MODEL_REPOSITORY = "/opt/ml/model/"
INFERENCE_TYPES = ("infer", "generate", "generate_stream")
ReleaseVersion = tuple[int, int]

_FLAGS = (
    ("SAGEMAKER_BIND_TO_PORT", "--sagemaker-port={}"),
    ("SAGEMAKER_SAFE_PORT_RANGE", "--sagemaker-safe-port-range={}"),
    ("SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", "--buffer-manager-thread-count={}"),
    ("SAGEMAKER_TRITON_THREAD_COUNT", "--sagemaker-thread-count={}"),
    ("SAGEMAKER_TRITON_LOG_VERBOSE", "--log-verbose={}"),
    ("SAGEMAKER_TRITON_LOG_INFO", "--log-info={}"),
    ("SAGEMAKER_TRITON_LOG_WARNING", "--log-warning={}"),
    ("SAGEMAKER_TRITON_LOG_ERROR", "--log-error={}"),
    ("SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "--backend-config=python,shm-default-byte-size={}"),
    ("SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", "--backend-config=python,shm-growth-byte-size={}"),
    ("SAGEMAKER_TRITON_TENSORFLOW_VERSION", "--backend-config=tensorflow,version={}"),
    ("SAGEMAKER_TRITON_METRICS_PORT", "--metrics-port={}"),
    ("SAGEMAKER_TRITON_GRPC_PORT", "--grpc-port={}"),
)


class ServeExitError(WorkFailedError):
    """The script ends with exit code 1 before it starts the server; the message is its log line."""


@dataclass(frozen=True, kw_only=True)
class ServeCommand:
    """The server's command line and environment."""

    argv: tuple[str, ...]  # ``tritonserver`` and its arguments
    env: Mapping[str, str]  # the container's variables as the server sees them
    # what the script does that a reader of the settings would not expect, and what cannot be shown here
    notes: tuple[str, ...]
    # what ``/invocations`` of a single-model container does, as a path of Triton's HTTP front end; None: it infers
    generates: str | None = None


def serve_command(
    environment: Mapping[str, str],
    *,
    multi_model: bool,
    model_data: Path | None = None,
    release: str | None = None,
    multi_model_repository: str = MULTI_MODEL_REPOSITORY,
    single_model_repository: str = SINGLE_MODEL_REPOSITORY,
) -> ServeCommand:
    """The server's command for a container's environment.

    Raises ServeExitError: the script would end with exit code 1.
    """
    notes: list[str] = []
    variables = dict(environment)
    if multi_model:
        variables["SAGEMAKER_MULTI_MODEL"] = "true"
    multi_model = variables.get("SAGEMAKER_MULTI_MODEL") == "true"
    known = _forget_newer(variables, release=release, notes=notes)
    generates = None
    # Not expanded with the rest: the paths in place of the script's fixed ones may have a space.
    repository = f"--model-repository={multi_model_repository if multi_model else single_model_repository}"
    arguments = _flags(known, release=parse_release(release))
    if known.get("SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT"):
        notes.append(
            "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT has no effect: nvidia-smi lists no GPU, "
            "so no --model-load-gpu-limit is given"
        )
    if not multi_model:
        known["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] = default_model(known, model_data, notes=notes)
        arguments.append(f"--load-model={known['SAGEMAKER_TRITON_DEFAULT_MODEL_NAME']}")
        generates = _generate_path(known, notes=notes)
    _set_ping_mode(known, multi_model=multi_model, notes=notes)
    if known.get("SAGEMAKER_TRITON_ADDITIONAL_ARGS"):
        arguments.append(known["SAGEMAKER_TRITON_ADDITIONAL_ARGS"])
    fixed = ("tritonserver", "--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit")
    argv = (*fixed, repository, *" ".join(arguments).split())
    return ServeCommand(argv=argv, env=known, notes=tuple(notes), generates=generates)


def parse_release(text: str | None) -> ReleaseVersion | None:
    """``24.09`` as numbers that compare; None is the newest."""
    if text is None:
        return None
    year, month = text.split(".")[:2]
    return int(year), int(month)


def default_model(variables: Mapping[str, str], folder: Path | None, *, notes: list[str]) -> str:
    """The model that serves ``/invocations`` in single-model mode: a folder's name.

    Raises ServeExitError: ``config.pbtxt`` at the root; the named folder is missing; no folder, or several and no
    name.
    """
    if folder is None or not folder.is_dir():
        raise ServeExitError("ERROR: No model found in model repository: the model's data is missing")
    if (folder / "config.pbtxt").is_file():
        raise ServeExitError(
            "ERROR: Incorrect directory structure: config.pbtxt lies at the archive's root, "
            "it belongs into a folder named after the model"
        )
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    named = variables.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME")
    if named:
        if not (folder / named).is_dir():
            raise ServeExitError(
                f"ERROR: SAGEMAKER_TRITON_DEFAULT_MODEL_NAME is {named}, and no such directory exists. "
                f"Directories found: {' '.join(found) or 'none'}"
            )
        return named
    if not found:
        raise ServeExitError("ERROR: No model found in model repository")
    if len(found) > 1:
        raise ServeExitError(
            "ERROR: More than one directory in the model repository and no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME "
            f"(the ensemble's name). Directories found: {' '.join(found)}"
        )
    notes.append(f"no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: the only directory, {found[0]}, is served")
    return found[0]


def _forget_newer(variables: Mapping[str, str], *, release: str | None, notes: list[str]) -> dict[str, str]:
    """The variables without those that the requested release does not have."""
    catalogue = load_catalogue().serve_variables
    asked = parse_release(release)
    known = {}
    for name, value in variables.items():
        since = catalogue[name].since if name in catalogue and not catalogue[name].since_is_upper_bound else None
        first = parse_release(since)
        if asked and first and first > asked:
            notes.append(f"{name} is ignored: release {release} does not know it, {since} does")
        else:
            known[name] = value
    return known


def _flags(known: Mapping[str, str], *, release: ReleaseVersion | None) -> list[str]:
    """The flags that are one variable each, defaults included."""

    def at_least(*first: int) -> bool:
        return release is None or release >= first

    values = {"SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "16777216", "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "1048576"}
    if at_least(23, 2):
        values["SAGEMAKER_TRITON_LOG_VERBOSE"] = "true"
    # An empty variable counts as unset.
    values |= {name: value for name, value in known.items() if value}
    flags = [f"--allow-grpc={values.get('SAGEMAKER_TRITON_ALLOW_GRPC', 'false')}"]
    flags.append(f"--allow-metrics={values.get('SAGEMAKER_TRITON_ALLOW_METRICS', 'false')}")
    if at_least(23, 4):
        flags.append(f"--model-namespacing={values.get('SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING', 'true')}")
    return flags + [flag.format(values[name]) for name, flag in _FLAGS if name in values]


def _generate_path(known: Mapping[str, str], *, notes: list[str]) -> str | None:
    """The path that serves ``/invocations`` of a container that generates; None of one that infers.

    Raises ServeExitError: an inference type that the script refuses.
    """
    kind = known.get("SAGEMAKER_TRITON_INFERENCE_TYPE")
    if not kind:
        return None
    if kind not in INFERENCE_TYPES:
        raise ServeExitError(
            f"ERROR: SAGEMAKER_TRITON_INFERENCE_TYPE is {kind}, allowed are {', '.join(INFERENCE_TYPES)}"
        )
    if kind == "infer":
        return None
    path = f"/v2/models/{known['SAGEMAKER_TRITON_DEFAULT_MODEL_NAME']}/{kind}"
    notes.append(
        f"SAGEMAKER_TRITON_INFERENCE_TYPE={kind} is read by servers from release 25.03 on, and the local one is older: "
        f"{path} of its HTTP front end, which is the same code, takes the place of /invocations"
    )
    return path


def _set_ping_mode(known: dict[str, str], *, multi_model: bool, notes: list[str]) -> None:
    """Compute the ping mode as the script does, which exports it only where the variable was exported before."""
    computed = known.get("SAGEMAKER_TRITON_OVERRIDE_PING_MODE") or ("live" if multi_model else "ready")
    if "SAGEMAKER_TRITON_PING_MODE" in known:
        known["SAGEMAKER_TRITON_PING_MODE"] = computed
    elif computed != "ready":
        notes.append(
            f"the ping mode {computed} does not reach the server, which uses ready: SAGEMAKER_TRITON_PING_MODE is not "
            "in the container's environment, and the script does not export it"
        )
