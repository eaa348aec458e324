"""Proof that a staged repository gives its sample's answer: in ONNX Runtime or in the local Triton."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonstack.archives.programs import Report, Spent, has_environment, run_script
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.lint.backends.onnxruntime import accelerators_of
from tritonstack.local_aws import LackingModuleError, installed, require_package
from tritonstack.models.contents import PROVABLE, called_models, is_decoupled, skipped_proof
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.model_config import EXECUTION_ENV_PATH, ModelConfig, Node, read_config
from tritonstack.models.model_view import view_model
from tritonstack.models.python_failure import lacking_module_advice
from tritonstack.models.recipe import KIND_BACKENDS, RECIPE, Recipe
from tritonstack.models.sample import Arrays, compare_answer, to_tensors
from tritonstack.models.source_files import CONFIG, model_directories
from tritonstack.untrusted.foreign_text import parse_json

PROOF_ENVIRONMENT = "exporters"
PROVER = Path(__file__).with_name("prover.py")
"""The program that answers a request with ONNX Runtime, in the environment ``PROOF_ENVIRONMENT``."""


@dataclass(frozen=True, kw_only=True)
class Proven:
    """Result of a proof: largest difference, tools, time and memory, stand-ins."""

    sample_difference: float | None = None  # None where the proof was skipped
    tools: dict[str, str] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    spent: Spent | None = None  # None where the proof was skipped
    skipped: str = ""  # why it was skipped; empty where it was not


def check_floors(folder: Path, *, recipe: Recipe, figures: Mapping[str, float]) -> None:
    """Raise :class:`WorkFailedError` unless every figure that the recipe bounds is there and high enough."""
    for name, floor in recipe.proof.figures.items():
        if name not in figures:
            raise WorkFailedError(f"{folder / RECIPE}: proof.figures.{name}: the export did not report it")
        if not figures[name] >= floor.at_least:
            raise WorkFailedError(
                f"{folder.name}: {name} is {figures[name]:.4g}, at least {floor.at_least:g} is needed"
            )


def prove_sample(
    repository: Path,
    *,
    model: ModelEntry,
    sample: SampleEntry,
    request: Arrays,
    environments: Mapping[str, Path],
    lacking: str,
    work: Path,
    report: Report,
) -> Proven:
    """Run the sample request with the staged models and compare; skipped where no server here has their backends.

    ``environments``: as :func:`answer_request` takes them. ``lacking``: why there is none for the local Triton, where
    the model needs one: the proof is skipped.

    Raises :class:`ResponseDiffersError` naming the tensors that differ, :class:`WorkFailedError` where the models fail,
    and :class:`InputError` where the environment of a backend is not made on this machine.
    """
    backends = (read_config((path / CONFIG).read_text()).backend for path in model_directories(repository))
    if skipped := skipped_proof(backends) or lacking:
        report(f"proof of {model.name} skipped: {skipped}")
        return Proven(skipped=skipped)
    try:
        given = answer_request(
            repository, model=model.name, request=request, environments=environments, work=work, report=report
        )
    except LackingModuleError as error:
        report(f"proof of {model.name} skipped: {error}")
        return Proven(skipped=str(error))
    difference = compare_answer(sample, given.outputs, model=model.name)
    return Proven(sample_difference=difference, tools=given.tools, stand_ins=given.stand_ins, spent=given.spent)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Outputs of staged models for a request, with tools, time and memory, stand-ins."""

    outputs: list[dict[str, Any]]  # tensors with flat data; elements of BYTES in base64
    tools: dict[str, str]
    stand_ins: tuple[str, ...]
    spent: Spent


def answer_request(
    repository: Path,
    *,
    model: str,
    request: Arrays,
    environments: Mapping[str, Path],
    work: Path,
    report: Report,
) -> Answered:
    """Run a request with the staged models: outside Triton where possible, else in the local Triton.

    ``environments``: file of the repository → the packed environment that takes its place in the local Triton.

    Raises :class:`WorkFailedError` where they fail, and :class:`InputError` where a backend cannot be run on this
    machine.
    """
    configs = {path.name: read_config((path / CONFIG).read_text()) for path in model_directories(repository)}
    if skipped := skipped_proof(config.backend for config in configs.values()):
        allowed = f"backends of the local Triton, stand-ins included: {', '.join(sorted(KIND_BACKENDS.values()))}"
        raise InputError([Problem(field=model, found=f"no server here for it: {skipped}", allowed=allowed)])
    directories = {name: repository / name for name in configs}
    needs = {config.backend for config in configs.values()}
    needs |= (
        {EXECUTION_ENV_PATH}
        if any(EXECUTION_ENV_PATH in c.node.entries("parameters") for c in configs.values())
        else set()
    )
    decoupled = is_decoupled(configs, addressed=model)
    streamed = {each.name: each.data_type for each in configs[model].outputs} if decoupled else None
    if (
        streamed is not None
        or not needs <= PROVABLE
        or (not has_environment(PROOF_ENVIRONMENT) and installed() is not None)
    ):
        started = time.monotonic()
        try:
            answer = require_package().answer_in_container(
                repository,
                model=model,
                needs=needs,
                request=request,
                environments=environments,
                loads=called_models(configs, directories, addressed=model),
                streamed=streamed,
                work=work,
                report=report,
            )
        except LackingModuleError:
            raise
        except WorkFailedError as error:
            raise WorkFailedError(in_sources(str(error), repository) + _advice(str(error), repository)) from error
        took, step = time.monotonic() - started, f"proof of {model} (local Triton)"
        spent = Spent(step=step, seconds=took, peak_bytes=answer.peak_bytes)
        report(str(spent))
        outputs = to_tensors(answer.outputs)
        if "python" in needs:  # other backends compare what they give with the configuration
            _check_outputs(configs[model], outputs, model=model, joined=streamed is not None)
        return Answered(outputs=outputs, tools=answer.tools, stand_ins=answer.stand_ins, spent=spent)
    task = {
        "model": model,
        "models": {name: _model_task(repository / name, config) for name, config in configs.items()},
        "request": to_tensors(request),
    }
    result, spent = run_prover(task, work=work, what=f"proof of {model}", report=report)
    if "failure" in result:
        raise WorkFailedError(f"proof of {model} failed:\n  {in_sources(result['failure'], repository)}")
    ran = sorted({config.backend for config in configs.values()} - {"ensemble"})
    accelerators = {each.text("name") for config in configs.values() for each in accelerators_of(config, "gpu")}
    without = f" and without {' and '.join(sorted(accelerators))}" if accelerators else ""
    stand_ins = tuple(f"backend {backend}: {_PROVERS[backend]}, outside Triton{without}" for backend in ran)
    return Answered(outputs=result["outputs"], tools=result["tools"], stand_ins=stand_ins, spent=spent)


def _check_outputs(config: ModelConfig, outputs: Sequence[Mapping[str, Any]], *, model: str, joined: bool) -> None:
    """Raise :class:`WorkFailedError` unless every configured output is there, of its type and shape.

    Triton hands on whatever a Python model gives. ``joined``: of all responses of a stream, in one dimension.
    """
    given = {tensor["name"]: tensor for tensor in outputs}
    for wanted in config.outputs:
        tensor = given.get(wanted.name)
        if tensor is None:
            raise WorkFailedError(f"{model}: the output {wanted.name} is missing")
        shape = wanted.shape(config.max_batch_size)
        same = joined or (
            len(shape) == len(tensor["shape"])
            and all(length in (-1, found) for length, found in zip(shape, tensor["shape"], strict=True))
        )
        if tensor["datatype"] != wanted.data_type or not same:
            found = f"{tensor['datatype']} {list(tensor['shape'])}"
            raise WorkFailedError(
                f"{model}: output {wanted.name}: {found}, config.pbtxt says {wanted.data_type} {shape}"
            )


def run_prover(task: Mapping[str, Any], *, work: Path, what: str, report: Report) -> tuple[dict[str, Any], Spent]:
    """Outputs of ONNX Runtime for a task, or its ``failure`` (see ``prover.py``). ``work``: for its files."""
    task_file, result_file = work / "task.json", work / "result.json"
    task_file.write_text(json.dumps(task))
    arguments = ["-P", str(PROVER), str(task_file.resolve()), str(result_file.resolve())]
    spent = run_script(environment=PROOF_ENVIRONMENT, arguments=arguments, folder=work, what=what, report=report)
    return parse_json(result_file.read_text()), spent


_PROVERS = {"onnxruntime": "ONNX Runtime on the CPU"}


def _model_task(folder: Path, config: ModelConfig) -> dict[str, Any]:
    """One model of the prover's task; see ``prover.py``."""
    view = view_model(folder, ())
    newest = folder / (view.served_versions or view.versions or ("1",))[-1]
    batch = config.max_batch_size
    tensors = {
        kind: [
            {
                "name": t.name,
                "datatype": t.data_type,
                "shape": t.shape(batch),
                "backend_shape": t.backend_shape(batch),
                "optional": t.optional,
            }
            for t in listed
        ]
        for kind, listed in (("inputs", config.inputs), ("outputs", config.outputs))
    }
    return tensors | {
        "backend": config.backend,
        "file": str((newest / config.model_file).resolve()),
        "steps": [
            {"model": step.text("model_name"), "inputs": _map(step, "input_map"), "outputs": _map(step, "output_map")}
            for step in config.steps
        ],
    }


def _map(step: Node, field: str) -> dict[str, str]:
    return {key: str(value) for key, value in step.entries(field).items()}


def in_sources(text: str, repository: Path) -> str:
    """A message about a staged repository, with every staged file by the name of its source.

    A source below the working directory is named from there, as a person would.
    """
    sources: dict[str, str] = json.loads(sources_file(repository).read_text())
    here = Path.cwd()
    for name in sorted(sources, key=len, reverse=True):
        source = Path(sources[name]).resolve()
        shown = source.relative_to(here) if source.is_relative_to(here) else source
        text = text.replace(str(repository.resolve() / name), str(shown))
    return text


def _advice(text: str, repository: Path) -> str:
    """The command for a module that the program of a staged model lacks, as a further line; empty where none is."""
    sources: dict[str, str] = json.loads(sources_file(repository).read_text())
    in_file = re.search(rf'File "{re.escape(str(repository.resolve()))}/([^/"]+)/', text)
    config = Path(sources.get(f"{in_file[1]}/{CONFIG}", "")) if in_file else Path()
    advice = lacking_module_advice(text, folder=config.parent.parent.name, model=config.parent.name)
    return f"\n  do:      {advice}" if advice and config.parent.name else ""


def sources_file(repository: Path) -> Path:
    """The file next to a staged repository that notes where each of its files comes from."""
    return repository.with_name(f"{repository.name}.sources.json")
