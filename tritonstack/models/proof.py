"""Prove a staged repository before it is packed: its figures reach their floors, its sample is answered."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import require_package
from tritonstack.models.folder import CONFIG, model_directories
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.model_config import ModelConfig, Node, read_config
from tritonstack.models.programs import Report, Spent, run_script
from tritonstack.models.recipe import RECIPE, Recipe
from tritonstack.models.sample import compare_answer
from tritonstack.models.sample_request import Arrays, to_tensors
from tritonstack.models.staging import in_sources

PROVABLE = frozenset({"onnxruntime", "python", "ensemble"})
"""Backends that the prover stands in for. All others, and Python models with an environment of their own, are proven
in the local Triton."""

PROOF_ENVIRONMENT = "exporters"
PROVER = Path(__file__).with_name("prover.py")
"""The program that answers a request with ONNX Runtime, in the environment ``PROOF_ENVIRONMENT``."""

ENVIRONMENT = "EXECUTION_ENV_PATH"


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What a proof measured, with what, what it took, and what stood in for what serves in the cloud."""

    sample_difference: float
    tools: dict[str, str]
    stand_ins: tuple[str, ...]
    spent: Spent


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
    repository: Path, *, model: ModelEntry, sample: SampleEntry, request: Arrays, work: Path, report: Report
) -> Proven:
    """Answer the sample request with the staged models and compare.

    Raises :class:`WorkFailedError` naming the tensor that differs, and :class:`InputError` where a backend cannot be
    proven on this machine.
    """
    configs = {path.name: read_config((path / CONFIG).read_text()) for path in model_directories(repository)}
    if any(_needs_container(config) for config in configs.values()):
        return _prove_in_container(
            repository, configs, model=model, sample=sample, request=request, work=work, report=report
        )
    plan = {
        "model": model.name,
        "models": {name: _plan(repository / name, config) for name, config in configs.items()},
        "request": to_tensors(request),
    }
    plan_file, result_file = work / "plan.json", work / "result.json"
    plan_file.write_text(json.dumps(plan))
    spent = run_script(
        environment=PROOF_ENVIRONMENT,
        arguments=["-P", str(PROVER), str(plan_file.resolve()), str(result_file.resolve())],
        folder=work,
        what=f"proof of {model.name}",
        report=report,
    )
    result = json.loads(result_file.read_text())
    if "failure" in result:
        raise WorkFailedError(f"proof of {model.name} failed:\n  {in_sources(result['failure'], repository)}")
    difference = compare_answer(sample, result["outputs"], model=model.name)
    ran = sorted({config.backend for config in configs.values()} - {"ensemble"})
    stand_ins = tuple(f"{_PROVERS[backend]}, outside Triton" for backend in ran)
    return Proven(sample_difference=difference, tools=result["tools"], stand_ins=stand_ins, spent=spent)


_PROVERS = {
    "onnxruntime": "backend onnxruntime: ONNX Runtime on the CPU",
    "python": "backend python: the model's code with a stand-in for triton_python_backend_utils",
}


def _needs(config: ModelConfig) -> set[str]:
    return {config.backend, *({ENVIRONMENT} & config.node.entries("parameters").keys())}


def _needs_container(config: ModelConfig) -> bool:
    return not _needs(config) <= PROVABLE


def _prove_in_container(
    repository: Path,
    configs: Mapping[str, ModelConfig],
    *,
    model: ModelEntry,
    sample: SampleEntry,
    request: Arrays,
    work: Path,
    report: Report,
) -> Proven:
    started = time.monotonic()
    answer = require_package().answer_in_container(
        repository,
        model=model.name,
        needs={need for config in configs.values() for need in _needs(config)},
        request=request,
        work=work,
        report=report,
    )
    spent = Spent(
        step=f"proof of {model.name} (local Triton)",
        seconds=time.monotonic() - started,
        peak_bytes=answer.peak_bytes,
    )
    report(str(spent))
    difference = compare_answer(sample, to_tensors(answer.outputs), model=model.name)
    return Proven(sample_difference=difference, tools=answer.tools, stand_ins=answer.stand_ins, spent=spent)


def _plan(folder: Path, config: ModelConfig) -> dict[str, Any]:
    """One model of the prover's plan; see ``prover.py``."""
    versions = [path for path in folder.iterdir() if path.is_dir() and path.name.isdigit()]
    newest = max(versions, key=lambda path: int(path.name))
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
        "config": config.node.plain(),
        "file": str((newest / config.model_file).resolve()),
        "steps": [
            {"model": step.text("model_name"), "inputs": _map(step, "input_map"), "outputs": _map(step, "output_map")}
            for step in config.steps
        ],
    }


def _map(step: Node, field: str) -> dict[str, str]:
    return {key: str(value) for key, value in step.entries(field).items()}
