"""Rules about ONNX Runtime's options in a config.pbtxt: what the backend refuses or ignores, and what the recipe says.

Source: triton-inference-server/onnxruntime_backend src/onnxruntime.cc (ModelState::ModelState, ModelState::LoadModel).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator

from tritonstack.catalogue.releases import release_order
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node
from tritonstack.models.onnxruntime_config import (
    GRAPH_LEVELS,
    MODEL_PARAMETERS,
    NUMBERED,
    TOP_LEVEL_ONLY,
    configured,
    cpu_accelerators,
    differences,
    expected_config,
    gpu_accelerators,
)
from tritonstack.models.onnxruntime_options import OnnxRuntimeOptions

CUDA_ACCELERATOR_SINCE = "24.07"
"""The first release that surely has the accelerator ``cuda``: onnxruntime_backend pull request 256, June 2024."""

BF16_NOT_BEFORE = "25.09"
"""The first release with ONNX Runtime 1.23, whose TensorRT provider has BF16: microsoft/onnxruntime pull request 24743.

From which release on Triton's backend passes it on is UNVERIFIED: it may be a later one.
"""

TRUTH_PARAMETERS = frozenset({"do_copy_in_default_stream", "enable_mem_arena", "enable_mem_pattern"})
"""Parameters that must read as a truth value."""

COUNT_PARAMETERS = frozenset({"gpu_mem_limit", "inter_op_thread_count", "intra_op_thread_count"})
"""Parameters that must read as a whole number."""

OTHER_PARAMETERS = frozenset({"share_session_between_instances"})
"""Parameters that the backend reads and a recipe has no field for."""

PRECISIONS = ("FP32", "FP16", "BF16", "INT8")
_TRUTH = ("0", "1", "false", "true")


@functools.cache
def tensorrt_keys(release: str | None = None) -> frozenset[str]:
    """The keys that the accelerator ``tensorrt`` takes in a release, or in the newest; any other fails the load."""
    text = importlib.resources.files("tritonstack.models").joinpath("onnxruntime_tensorrt_keys.json").read_text()
    keys = json.loads(text)
    is_early = release is not None and release_order(release) <= release_order(keys["early_until"])
    return frozenset(keys["early"]) if is_early else frozenset(keys["early"] + keys["later"])


def check_onnxruntime(view: RepositoryView, *, release: str | None = None) -> Iterator[Finding]:
    """Every finding about the models that ONNX Runtime serves.

    ``release``: the Triton release (``YY.MM``) that shall serve them, instead of the view's own.
    """
    served_by = view.target.release
    if release is None and served_by is not None:
        release = served_by.version
    for model in view.models.values():
        if model.backend != "onnxruntime":
            continue
        options = view.recipe.onnxruntime if view.recipe and model.name == view.addressed else None
        yield from _recipe(model, options)
        yield from _accelerators(model, release)
        yield from _parameters(model)
        yield from _graph_level(model, options)
        yield from _without_effect(model, options)


def _at(model: ModelView, line: int, rule: str, found: str, allowed: str, *, advice: str = "") -> Finding:
    return Finding(file=model.file, line=line, rule=rule, found=found, allowed=allowed, advice=advice)


def _recipe(model: ModelView, options: OnnxRuntimeOptions | None) -> Iterator[Finding]:
    """The file against the recipe, which is the place where options are chosen."""
    if options is None:
        return
    wanted = expected_config(options)
    said = differences(wanted=wanted, found=configured(model.config))
    if said:
        node = model.config.node
        line = node.line_of("optimization" if node.has("optimization") else "parameters")
        fragment = wanted.fragment() or "nothing: no parameters and no optimization of ONNX Runtime's"
        allowed = "what recipe.yaml says under onnxruntime, or a recipe that says what stands here"
        yield _at(
            model, line, "onnxruntime-recipe", "; ".join(said), allowed, advice=f"the recipe's form is\n{fragment}"
        )


def _accelerators(model: ModelView, release: str | None) -> Iterator[Finding]:
    for accelerator in cpu_accelerators(model.config):
        if accelerator.text("name") != "openvino":
            found = f"cpu_execution_accelerator {accelerator.text('name') or 'without a name'}"
            yield _at(model, accelerator.line, "onnxruntime-refused", found, "openvino")
    for accelerator in gpu_accelerators(model.config):
        name = accelerator.text("name")
        if name == "tensorrt":
            yield from _tensorrt(model, accelerator, release)
        elif name != "cuda":
            found = f"gpu_execution_accelerator {name or 'without a name'}"
            yield _at(model, accelerator.line, "onnxruntime-refused", found, "tensorrt, cuda")
        elif release is not None and release_order(release) < release_order(CUDA_ACCELERATOR_SINCE):
            found = f"gpu_execution_accelerator cuda in release {release}"
            allowed = f"a release from {CUDA_ACCELERATOR_SINCE}; earlier ones know tensorrt only"
            yield _at(model, accelerator.line, "onnxruntime-refused", found, allowed)
        else:
            yield from _cuda(model, accelerator)


def _tensorrt(model: ModelView, accelerator: Node, release: str | None) -> Iterator[Finding]:
    where = f" in release {release}" if release else ""
    for key, value in accelerator.entries("parameters").items():
        if key not in tensorrt_keys(release):
            found, allowed = f"parameter {key} of tensorrt{where}", ", ".join(sorted(tensorrt_keys(release)))
            yield _at(model, accelerator.line, "onnxruntime-refused", found, allowed)
        elif key == "precision_mode" and value not in _precisions(release):
            found, allowed = f'{key} "{value}"{where}', ", ".join(_precisions(release))
            yield _at(model, accelerator.line, "onnxruntime-refused", found, allowed)


def _precisions(release: str | None) -> tuple[str, ...]:
    is_early = release is not None and release_order(release) < release_order(BF16_NOT_BEFORE)
    return tuple(name for name in PRECISIONS if not (is_early and name == "BF16"))


def _cuda(model: ModelView, accelerator: Node) -> Iterator[Finding]:
    for key in accelerator.entries("parameters"):
        if key in TOP_LEVEL_ONLY:
            found = f"parameter {key} of the accelerator cuda, where its default is put over it"
            allowed = f'parameters {{ key: "{key}" value {{ string_value: "…" }} }} of the model'
            yield _at(model, accelerator.line, "onnxruntime-ignored", found, allowed)


def _parameters(model: ModelView) -> Iterator[Finding]:
    for key, value in model.config.node.entries("parameters").items():
        if not isinstance(value, Node):
            continue
        text = value.text("string_value")
        allowed = _allowed(key, text)
        if allowed:
            yield _at(model, value.line, "onnxruntime-refused", f'parameter {key}: "{text}"', allowed)
        elif key not in MODEL_PARAMETERS | OTHER_PARAMETERS:
            known = ", ".join(sorted(MODEL_PARAMETERS | OTHER_PARAMETERS))
            yield _at(model, value.line, "onnxruntime-ignored", f"parameter {key}", known)


def _allowed(key: str, text: str) -> str:
    """What a parameter's value must be, where ``text`` is none of it; empty where it is, or anything goes."""
    if key in NUMBERED and text not in (numbers := [str(number) for number in range(len(NUMBERED[key]))]):
        return " or ".join(f'"{number}" ({word})' for number, word in zip(numbers, NUMBERED[key], strict=True))
    if key in TRUTH_PARAMETERS and text.lower() not in _TRUTH:
        return '"1" or "0"'
    if key in COUNT_PARAMETERS and not text.isdecimal():
        return "a whole number, in quotes"
    return ""


def _graph_level(model: ModelView, options: OnnxRuntimeOptions | None) -> Iterator[Finding]:
    """A level that few read right, where no recipe says in words that it is meant."""
    optimization = model.config.node.node("optimization")
    graph = optimization.node("graph") if optimization else None
    if graph is None or options is not None or graph.integer("level") in (0, GRAPH_LEVELS["extended"]):
        return
    level = graph.integer("level")
    meaning = next((word for word, number in GRAPH_LEVELS.items() if number == level), "all")
    found = f"optimization.graph.level {level}, which ONNX Runtime's backend reads as {meaning}"
    allowed = f"graph_optimization: {meaning} under onnxruntime in recipe.yaml, if that is meant"
    yield _at(model, graph.line_of("level"), "onnxruntime-graph-level", found, allowed)


def _without_effect(model: ModelView, options: OnnxRuntimeOptions | None) -> Iterator[Finding]:
    given = configured(model.config).parameters
    groups = model.config.node.nodes("instance_group")
    on_gpu = not groups or any(group.text("kind") in ("", "KIND_AUTO", "KIND_GPU") for group in groups)
    line = model.config.node.line_of("parameters")
    parallel = given.get("execution_mode") == "1"
    if parallel and on_gpu:
        found = "execution_mode 1 (parallel) on a GPU, where ONNX Runtime goes back to sequential"
        yield _at(model, line, "onnxruntime-ignored", found, "execution_mode 1 with instances of KIND_CPU only")
    if parallel and given.get("enable_mem_pattern") == "1":
        found = "enable_mem_pattern 1 beside execution_mode 1, in which ONNX Runtime plans no memory"
        yield _at(model, line, "onnxruntime-ignored", found, "one of the two")
    if "inter_op_thread_count" in given and not parallel:
        found = "inter_op_thread_count without execution_mode 1"
        yield _at(model, line, "onnxruntime-ignored", found, "execution_mode 1 (parallel) beside it, or neither")
    if options is not None and options.server_arguments():
        found = "onnxruntime.default_max_batch_size of the recipe, and a tensor table here"
        allowed = f"max_batch_size here; {options.server_arguments()[0]} is of all models of a server"
        advice = "for models without a tensor table put it into an endpoint's container.additional_args"
        yield _at(model, model.config.node.line, "onnxruntime-ignored", found, allowed, advice=advice)
