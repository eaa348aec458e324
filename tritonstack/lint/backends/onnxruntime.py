"""Rules about ONNX Runtime's options in config.pbtxt: refused or ignored ones, and differences from the recipe.

Source: triton-inference-server/onnxruntime_backend src/onnxruntime.cc (ModelState::ModelState, ModelState::LoadModel).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping

from tritonstack.catalogue.triton_releases import release_order
from tritonstack.lint.config import known_parameters
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.models.model_config import ModelConfig, Node
from tritonstack.models.model_view import ModelView
from tritonstack.models.runtime_options import OnnxRuntimeOptions, TensorRtAccelerator

GRAPH_LEVELS = {"basic": "-1", "extended": "1", "disabled": "2"}
"""Word → ``optimization.graph.level`` (onnxruntime.cc, ModelState::ModelState); every other number means ``all``."""

# Triton's README calls these deprecated as the model's parameters, and takes them as parameters of an accelerator
# ``cuda``. A recipe becomes the deprecated form, which is the first AWS post's and has effect in every release.
# In the accelerator they have none: ModelState::LoadModel (src/onnxruntime.cc) puts the model's values, or else the
# defaults, over them whenever the configuration has an object ``parameters``, and Triton prints one even when it is
# empty. triton-inference-server/server issue 8808 saw it with 24.10.
TOP_LEVEL_ONLY = ("arena_extend_strategy", "cudnn_conv_algo_search", "do_copy_in_default_stream", "gpu_mem_limit")
"""Options of the CUDA provider that have an effect only as parameters of the model."""

LEVEL = "optimization.graph.level"


def wanted_options(options: OnnxRuntimeOptions) -> dict[str, str]:
    """A recipe's options by their names in ``config.pbtxt``, in the form that has effect in every release."""
    given = options.model_dump(exclude_none=True, exclude={"tensorrt", "cuda", "default_max_batch_size"})
    level = GRAPH_LEVELS.get(given.pop("graph_optimization"))
    named = {key: _text(key, value) for key, value in given.items()}
    named |= {LEVEL: level} if level else {}
    if options.tensorrt is not None:
        named |= _accelerator("tensorrt", _tensorrt_parameters(options.tensorrt))
    if options.cuda is not None:
        cuda = options.cuda.model_dump(exclude_none=True, exclude={"parameters"})
        named |= _accelerator("cuda", {key: _text(key, value) for key, value in cuda.items()} | options.cuda.parameters)
    return named


ACCELERATOR = "accelerator "
"""Begins the name of an accelerator (``accelerator cuda``) and of its parameters (``accelerator cuda: use_tf32``)."""


def _accelerator(name: str, parameters: Mapping[str, str]) -> dict[str, str]:
    return {f"{ACCELERATOR}{name}": "1"} | {f"{ACCELERATOR}{name}: {key}": each for key, each in parameters.items()}


def _tensorrt_parameters(options: TensorRtAccelerator) -> dict[str, str]:
    """By Triton's keys, which its README maps to those of ONNX Runtime."""
    named: dict[str, object | None] = {
        "precision_mode": options.precision.upper(),
        "max_workspace_size_bytes": options.workspace_bytes,
        "trt_engine_cache_enable": options.engine_cache,
        "trt_engine_cache_path": options.engine_cache_path,
    }
    for end in ("min", "opt", "max") if options.profiles else ():
        shapes = (f"{name}:{'x'.join(map(str, getattr(each, end)))}" for name, each in options.profiles.items())
        named[f"trt_profile_{end}_shapes"] = ",".join(shapes)
    return {key: _text(key, value) for key, value in named.items() if value is not None} | options.parameters


def configured_options(config: ModelConfig) -> dict[str, str]:
    """The same options as a ``config.pbtxt`` has them. Truth values are taken as 1 and 0, as Triton takes them."""
    named = {
        key: {"true": "1", "false": "0"}.get(value.text("string_value").lower(), value.text("string_value"))
        for key, value in config.node.entries("parameters").items()
        if key in OnnxRuntimeOptions.model_fields and isinstance(value, Node)
    }
    optimization = config.node.node("optimization")
    graph = optimization.node("graph") if optimization else None
    level = str(graph.integer("level")) if graph else ""
    named |= {LEVEL: level} if level in GRAPH_LEVELS.values() else {}
    for accelerator in accelerators_of(config, "gpu"):
        entries = {key: str(value) for key, value in accelerator.entries("parameters").items()}
        plain = {key: {"true": "1", "false": "0"}.get(value.lower(), value) for key, value in entries.items()}
        named |= _accelerator(accelerator.text("name"), plain)
    return named


def fragment(options: Mapping[str, str]) -> str:
    """The text of ``config.pbtxt`` with these options; empty without any."""
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in sorted(options.items())
        if key != LEVEL and not key.startswith(ACCELERATOR)
    ]
    inside = [f"  graph {{ level: {options[LEVEL]} }}"] if LEVEL in options else []
    names = [key.removeprefix(ACCELERATOR) for key in options if key.startswith(ACCELERATOR) and ": " not in key]
    if names:
        inside.append("  execution_accelerators {")
        for name in sorted(names, reverse=True):  # TensorRT before CUDA
            inside.append(f'    gpu_execution_accelerator {{\n      name: "{name}"')
            begin = f"{ACCELERATOR}{name}: "
            inside += [
                f'      parameters {{ key: "{key.removeprefix(begin)}" value: "{value}" }}'
                for key, value in options.items()
                if key.startswith(begin)
            ]
            inside.append("    }")
        inside.append("  }")
    if len(inside) == 1:
        lines.append(f"optimization {{{inside[0][1:]} }}")
    elif inside:
        lines += ["optimization {", *inside, "}"]
    return "\n".join(lines)


def accelerators_of(config: ModelConfig, kind: str) -> tuple[Node, ...]:
    """The accelerators of a ``kind``, ``gpu`` or ``cpu``: ``optimization.execution_accelerators``."""
    optimization = config.node.node("optimization")
    both = optimization.node("execution_accelerators") if optimization else None
    return both.nodes(f"{kind}_execution_accelerator") if both else ()


def _text(key: str, value: object) -> str:
    """A value as Triton's parameters have it: truth values as 1 and 0, words as their number."""
    if isinstance(value, bool):
        return "1" if value else "0"
    words = known_parameters()["onnxruntime"]["values"].get(key, {})
    return next((number for number, word in words.items() if word == value), str(value))


CUDA_ACCELERATOR_SINCE = "24.07"
"""The first release that surely has the accelerator ``cuda``: onnxruntime_backend pull request 256, June 2024."""

BF16_NOT_BEFORE = "25.09"
"""The first release with ONNX Runtime 1.23, whose TensorRT provider has BF16: microsoft/onnxruntime pull request 24743.

From which release on Triton's backend passes it on is UNVERIFIED: it may be a later one.
"""


@functools.cache
def tensorrt_keys(release: str | None = None) -> frozenset[str]:
    """The keys that the accelerator ``tensorrt`` takes in a release, or in the newest; any other fails the load."""
    text = importlib.resources.files("tritonstack.models").joinpath("onnxruntime_tensorrt_keys.json").read_text()
    keys = json.loads(text)
    is_early = release is not None and release_order(release) <= release_order(keys["early_until"])
    return frozenset(keys["early"]) if is_early else frozenset(keys["early"] + keys["later"])


def check_onnxruntime(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about the models that ONNX Runtime serves."""
    release = view.target.release.version if view.target.release else None
    for model in view.models.values():
        if model.backend != "onnxruntime":
            continue
        if view.recipe and view.recipe.onnxruntime and model.name == view.addressed:
            yield from _recipe(model, view.recipe.onnxruntime)
            yield from _default_batch(model, view.recipe.onnxruntime)
        yield from _accelerators(model, release)
        yield from _without_effect(model)


def _recipe(model: ModelView, options: OnnxRuntimeOptions) -> Iterator[Finding]:
    """The file against the recipe, which is the place where options are chosen."""
    wanted, found = wanted_options(options), configured_options(model.config)
    # An accelerator that the recipe does not name is config.pbtxt's own; one that is missing is one difference.
    free = {key for key in found if key.startswith(ACCELERATOR) and key.partition(":")[0] not in wanted}
    found = {key: value for key, value in found.items() if key not in free}
    absent = tuple(f"{key}:" for key in wanted if key.startswith(ACCELERATOR) and ":" not in key and key not in found)
    differ = [
        key
        for key in sorted(wanted.keys() | found.keys())
        if wanted.get(key) != found.get(key) and not key.startswith(absent)
    ]
    if differ:
        node = model.config.node
        line = node.line_of("optimization" if node.has("optimization") else "parameters")
        said = [f"{key}: {found.get(key, 'none')}, the recipe wants {wanted.get(key, 'none')}" for key in differ]
        advice = f"the recipe's form is\n{fragment(wanted) or 'none of these options'}"
        yield at_line(model, line, "onnxruntime-recipe", "; ".join(said), advice=advice)


def _default_batch(model: ModelView, options: OnnxRuntimeOptions) -> Iterator[Finding]:
    """The backend's default beside a max_batch_size of the model (onnxruntime.cc, ModelState::AutoCompleteMaxBatch)."""
    limit = model.config.max_batch_size
    if options.default_max_batch_size is not None and limit:
        found = f"max_batch_size {limit} with default_max_batch_size {options.default_max_batch_size} of the recipe"
        allowed = "no max_batch_size here, or no default_max_batch_size in the recipe: the model's own comes first"
        yield at_line(model, model.config.node.line_of("max_batch_size"), "onnxruntime-ignored", found, allowed)


def _accelerators(model: ModelView, release: str | None) -> Iterator[Finding]:
    for accelerator in accelerators_of(model.config, "cpu"):
        if accelerator.text("name") != "openvino":
            found = f"cpu_execution_accelerator {accelerator.text('name') or 'without a name'}"
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, "openvino")
    for accelerator in accelerators_of(model.config, "gpu"):
        name = accelerator.text("name")
        if name == "tensorrt":
            yield from _tensorrt(model, accelerator, release)
        elif name != "cuda":
            found = f"gpu_execution_accelerator {name or 'without a name'}"
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, "tensorrt, cuda")
        elif release is not None and release_order(release) < release_order(CUDA_ACCELERATOR_SINCE):
            found = f"gpu_execution_accelerator cuda in release {release}"
            allowed = f"a release from {CUDA_ACCELERATOR_SINCE}; earlier ones know tensorrt only"
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, allowed)
        else:
            for key in accelerator.entries("parameters").keys() & set(TOP_LEVEL_ONLY):
                found = f"parameter {key} of the accelerator cuda, where its default is put over it"
                allowed = f'parameters {{ key: "{key}" value {{ string_value: "…" }} }} of the model'
                yield at_line(model, accelerator.line, "onnxruntime-ignored", found, allowed)


def _tensorrt(model: ModelView, accelerator: Node, release: str | None) -> Iterator[Finding]:
    where = f" in release {release}" if release else ""
    is_early = release is not None and release_order(release) < release_order(BF16_NOT_BEFORE)
    precisions = ("FP32", "FP16", "INT8") if is_early else ("FP32", "FP16", "BF16", "INT8")
    for key, value in accelerator.entries("parameters").items():
        if key not in tensorrt_keys(release):
            found, allowed = f"parameter {key} of tensorrt{where}", ", ".join(sorted(tensorrt_keys(release)))
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, allowed)
        elif key == "precision_mode" and value not in precisions:
            found, allowed = f'{key} "{value}"{where}', ", ".join(precisions)
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, allowed)


def _without_effect(model: ModelView) -> Iterator[Finding]:
    given = configured_options(model.config)
    groups = model.config.node.nodes("instance_group")
    on_gpu = not groups or any(group.text("kind") in ("", "KIND_AUTO", "KIND_GPU") for group in groups)
    line = model.config.node.line_of("parameters")
    parallel = given.get("execution_mode") == "1"
    if parallel and on_gpu:
        found = "execution_mode 1 (parallel) on a GPU, where ONNX Runtime goes back to sequential"
        yield at_line(model, line, "onnxruntime-ignored", found, "execution_mode 1 with instances of KIND_CPU only")
    if parallel and given.get("enable_mem_pattern") == "1":
        found = "enable_mem_pattern 1 together with execution_mode 1, in which ONNX Runtime plans no memory"
        yield at_line(model, line, "onnxruntime-ignored", found, "one of the two")
    if "inter_op_thread_count" in given and not parallel:
        found = "inter_op_thread_count without execution_mode 1"
        yield at_line(model, line, "onnxruntime-ignored", found, "execution_mode 1 (parallel) with it, or neither")
