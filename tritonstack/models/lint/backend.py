"""Rules about ``backend`` and ``platform``: which backend serves a model, and whether there is one.

Source: core src/model_config_utils.cc (AutoCompleteBackendFields, ValidateModelConfig, GetBackendType).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.models.lint.completion import complete
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView

_PAIRED = ("tensorflow", "tensorrt", "onnxruntime", "pytorch")
"""Backends whose platform Triton checks: GetBackendType knows these and no other."""

_LIBRARY_PREFIX = "libtriton_"


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with the choice of a backend."""
    config, node = model.config, model.config.node
    if not model.is_readable:
        return
    platform, backend = node.text("platform"), node.text("backend")
    if not platform and not backend:
        yield from _missing(view, model)
    elif platform and not backend and not config.platform_backend:
        yield at_field(model, "platform", "platform-unknown", f'platform: "{platform}"', 'backend: "…" instead')
    elif platform and backend:
        yield from _pair(model, platform, backend)
    known = view.target.backends
    is_there = known is None or model.backend in known or _brings_library(model)
    if known is not None and model.backend and not config.is_ensemble and not is_there:
        line = node.line_of("backend" if backend else "platform")
        allowed = f"{', '.join(sorted(known))} ({view.target.name or 'of all releases'})"
        advice = _advice(view, model.backend)
        yield at_line(model, line, "backend-not-in-release", f"backend {model.backend}", allowed, advice)
    yield from _runtime(model)
    yield from _transactions(view, model)
    if node.has("model_repository_agents"):
        found, allowed = "model_repository_agents", "none: no SageMaker image has a repository agent"
        yield at_field(model, "model_repository_agents", "repository-agent", found, allowed)


def _advice(view: RepositoryView, backend: str) -> str:
    """What to do about a backend that earlier releases had; nothing about any other."""
    release, known = view.target.release, load_catalogue().backends.get(backend)
    if release is None or known is None or known.last is None:
        return ""
    return known.after_last if release_order(release.version) > release_order(known.last) else ""


def _missing(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Neither ``backend`` nor ``platform``: what Triton takes, and where it takes nothing."""
    derived, line = model.derived, model.config.node.line
    if not derived.backend:
        found, allowed = "neither backend nor platform", 'backend: "…" or platform: "…"'
        yield at_line(model, line, "backend-missing", found, allowed)
        return
    of_archive = derived.from_name and model.name == view.served
    if of_archive and view.target.multi_model:
        found = f"no backend; a multi-model endpoint loads {model.name} under the archive's name, not the folder's"
        yield at_line(model, line, "backend-missing", found, f'backend: "{derived.backend}"')
        return
    what = "the folder's name" if derived.from_name else "the files"
    found = f"neither backend nor platform; Triton derives {derived.backend} from {what}"
    advice = "on a multi-model endpoint the archive's name counts, and the load fails" if of_archive else ""
    yield at_line(model, line, "backend-guessed", found, f'backend: "{derived.backend}"', advice)


def _pair(model: ModelView, platform: str, backend: str) -> Iterator[Finding]:
    """``platform`` and ``backend`` together."""
    stands_for = model.config.platform_backend
    found = f'platform: "{platform}" with backend: "{backend}"'
    if stands_for == "ensemble":
        yield at_field(model, "platform", "backend-platform-pair", found, "no backend beside an ensemble")
    elif backend in _PAIRED and stands_for != backend:
        yield at_field(model, "platform", "backend-platform-pair", found, f"no platform, or the one of {backend}")
    elif stands_for != backend:
        yield at_field(model, "platform", "platform-ignored", found, f'backend: "{backend}" alone')


def _brings_library(model: ModelView) -> bool:
    """Whether the archive carries the backend's library or Python code, where Triton looks for it first."""
    library = f"{_LIBRARY_PREFIX}{model.backend}.so"
    return any(file.rsplit("/", 1)[-1] == library for file in model.files)


def _runtime(model: ModelView) -> Iterator[Finding]:
    """``runtime``: the backend's file, which is looked for in the version, the model and the backend's folder."""
    if model.is_ensemble:
        return
    runtime = model.config.node.text("runtime")
    backends_own = (f"{_LIBRARY_PREFIX}{model.backend}.so", "model.py")
    if runtime and runtime not in backends_own and all(file.rsplit("/", 1)[-1] != runtime for file in model.files):
        allowed = f"none, {' or '.join(backends_own)}, or a library of the archive"
        yield at_field(model, "runtime", "runtime", f"runtime {runtime}", allowed)


def _transactions(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    policy = model.config.node.node("model_transaction_policy")
    is_decoupled = complete(view, model).decoupled
    if is_decoupled:
        written = policy is not None and policy.flag("decoupled")
        found = "decoupled: true" if written else "auto_complete_config makes it decoupled"
        # From release 25.03 on /invocations can be told to generate (sagemaker_server.cc); settings refuse that.
        allowed = "false: SageMaker's front end refuses inference requests to such a model"
        yield at_line(model, policy.line if policy else 0, "decoupled", found, allowed)
    cache = model.config.node.node("response_cache")
    if cache is None or not cache.flag("enable"):
        return
    other = "decoupled" if is_decoupled else ""
    other = "sequence_batching" if model.config.node.has("sequence_batching") else other
    if other:
        yield at_line(model, cache.line, "response-cache", f"response_cache with {other}", "one of the two")
