"""Triton models that an archive will contain: their backends, ensembles, and models that others send requests to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.models.model_config import ModelConfig, read_config
from tritonstack.models.model_view import view_model
from tritonstack.models.python_calls import INFERS, calls_of, programs_of
from tritonstack.models.recipe import KIND_BACKENDS
from tritonstack.models.source import ArchiveSource
from tritonstack.models.source_files import CONFIG
from tritonstack.untrusted.folder_files import text_inside

PROVABLE = frozenset({"onnxruntime", "ensemble"})
"""Backends that the prover stands in for. Others of ``KIND_BACKENDS`` are proven in the local Triton: a Python model
sees all that Triton gives it nowhere else. The proof of a build does not cover the rest."""


def skipped_proof(backends: Iterable[str]) -> str:
    """Why nothing here can prove an archive that needs these backends; empty where something can."""
    lacking = sorted(set(backends) - {"", *KIND_BACKENDS.values()})
    return f"the local Triton has no backend {', '.join(lacking)}" if lacking else ""


@dataclass(frozen=True, kw_only=True)
class ArchiveContents:
    """The Triton models of one archive, those of used folders included."""

    models: tuple[str, ...]  # their directories' names, sorted
    ensembles: tuple[str, ...]  # those of them that SageMaker's front end takes for ensembles
    # what ``backend:`` and ``platform:`` of their configurations name (``onnxruntime``, ``ensemble``, …)
    backends: frozenset[str]
    addressed: str = ""  # the model that requests reach by the recipe
    # those that no ensemble uses and that a Python model of the archive may send requests to (BLS), sorted: Triton
    # loads an ensemble's steps with it, and these only on request
    called: tuple[str, ...] = ()
    decoupled: bool = False  # whether the addressed model sends any number of responses to a request
    # of the addressed model: ``pixels FP32 [-1, 64]``, sorted; none where Triton completes the configuration
    inputs: tuple[str, ...] = ()
    # its tensors that JSON cannot carry, which requests and events of a stream are: ``x FP16``
    unstreamable: tuple[str, ...] = ()
    # arguments of the server that the recipe's options need
    server_arguments: tuple[str, ...] = ()


def contents_of(source: ArchiveSource) -> ArchiveContents:
    """The future content of an archive.

    A configuration that names no backend adds none: the linter refuses it. Raises :class:`InputError` where a recipe
    or an overlay is wrong.
    """
    texts = {model.name: model.config for model in source.own_models}
    directories = {model.name: model.directory for model in source.own_models}
    for used in source.recipe.uses:
        for name in used.models:
            config = source.folder.parent / used.folder / name / CONFIG
            if config.is_file():
                texts[name] = text_inside(config, source.folder.parent / used.folder)
                directories[name] = config.parent
    configs = {name: read_config(texts[name]) for name in sorted(texts)}
    return ArchiveContents(
        models=tuple(configs),
        ensembles=tuple(name for name, config in configs.items() if config.is_ensemble),
        backends=frozenset(config.backend for config in configs.values()) - {""},
        addressed=source.model,
        called=called_models(configs, directories, addressed=source.model),
        decoupled=is_decoupled(configs, addressed=source.model),
        inputs=_inputs_of(configs.get(source.model)),
        unstreamable=_unstreamable(configs.get(source.model)),
        server_arguments=source.recipe.onnxruntime.server_arguments if source.recipe.onnxruntime else (),
    )


def _inputs_of(config: ModelConfig | None) -> tuple[str, ...]:
    if config is None:
        return ()
    most = config.max_batch_size
    return tuple(sorted(f"{each.name} {each.data_type} {list(each.shape(most))}" for each in config.inputs))


def _unstreamable(config: ModelConfig | None) -> tuple[str, ...]:
    """Tensors that a generate request cannot have: half precision, which Triton refuses in JSON; an input ``id``."""
    if config is None:
        return ()
    halves = [f"{each.name} {each.data_type}" for each in (*config.inputs, *config.outputs) if each.data_type in HALVES]
    return (*halves, *("id, a key of the request's own" for each in config.inputs if each.name == "id"))


HALVES = ("FP16", "BF16")


def is_decoupled(configs: Mapping[str, ModelConfig], *, addressed: str | None) -> bool:
    """Whether a model sends any number of responses to a request: itself, or as an ensemble one of its steps."""
    config = configs.get(addressed or "")
    if config is None:
        return False
    steps = (configs.get(step.text("model_name")) for step in config.steps)
    return config.decoupled or any(step is not None and step.decoupled for step in steps)


def called_models(
    configs: Mapping[str, ModelConfig], directories: Mapping[str, Path], *, addressed: str | None
) -> tuple[str, ...]:
    """The models of an archive that none of its ensembles uses and that a Python model of it may call, sorted.

    A model that names no backend has the one that Triton derives from its files.
    """
    steps = {step.text("model_name") for config in configs.values() for step in config.steps}
    others = {name for name, config in configs.items() if not config.is_ensemble and name not in (addressed, *steps)}
    backends = {name: config.backend or view_model(directories[name], ()).backend for name, config in configs.items()}
    programs = [programs_of(directories[name]) for name, backend in backends.items() if backend == "python"]
    infers = bool(others) and any(INFERS in calls_of(paths) for paths in programs)
    return tuple(sorted(others)) if infers else ()
