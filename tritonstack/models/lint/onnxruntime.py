"""Rules about ONNX Runtime's options in config.pbtxt: what the backend refuses or ignores, and the recipe.

Source: triton-inference-server/onnxruntime_backend src/onnxruntime.cc (ModelState::ModelState, ModelState::LoadModel).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tritonstack.catalogue.releases import release_order
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView, at_line
from tritonstack.models.model_config import ModelConfig, Node
from tritonstack.models.runtime_options import OnnxRuntimeOptions, TensorRtAccelerator

# Triton's README calls four parameters of the model deprecated (``cudnn_conv_algo_search``, ``gpu_mem_limit``,
# ``arena_extend_strategy``, ``do_copy_in_default_stream``) and wants them as parameters of an accelerator ``cuda``.
# There they have no effect: ModelState::LoadModel (src/onnxruntime.cc) puts the model's values, or else the defaults,
# over them whenever the configuration has an object ``parameters``, and Triton prints one even when it is empty.
# triton-inference-server/server issue 8808 saw it with 24.10. So they are written as the model's, which every release
# reads; an accelerator ``cuda`` is written only for options that have no parameter of their own.


GRAPH_LEVELS = {"basic": -1, "extended": 1, "disabled": 2}
"""Word → ``optimization.graph.level`` (onnxruntime.cc, ModelState::ModelState); every other number means ``all``."""

NUMBERED = {
    "execution_mode": ("sequential", "parallel"),
    "cudnn_conv_algo_search": ("exhaustive", "heuristic", "default"),
    "arena_extend_strategy": ("next_power_of_two", "same_as_requested"),
}
"""Parameters whose words Triton wants as their number."""

TOP_LEVEL_ONLY = ("arena_extend_strategy", "cudnn_conv_algo_search", "do_copy_in_default_stream", "gpu_mem_limit")
"""Options of the CUDA provider that have an effect only as parameters of the model."""

MODEL_PARAMETERS = frozenset({
    *TOP_LEVEL_ONLY, "enable_mem_arena", "enable_mem_pattern", "execution_mode", "inter_op_thread_count",
    "intra_op_thread_count", "memory.enable_memory_arena_shrinkage", "session.use_device_allocator_for_initializers",
})  # fmt: skip
"""The parameters of a model that :class:`OnnxRuntimeOptions` has a field for."""

_AS_NUMBERS = {"true": "1", "false": "0"}


@dataclass(frozen=True, kw_only=True)
class OnnxRuntimeConfig:
    """ONNX Runtime's options as Triton reads them.

    ``parameters``: of the model, those of :data:`MODEL_PARAMETERS`. ``graph_level``: -1, 1, 2, or 0 for all
    optimisations. ``accelerators``: name of a GPU execution accelerator → its parameters.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    graph_level: int = 0
    accelerators: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def fragment(self) -> str:
        """The text to write into ``config.pbtxt``; empty where everything is at its default."""
        lines = [
            f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
            for key, value in sorted(self.parameters.items())
        ]
        inside = [f"  graph {{ level: {self.graph_level} }}"] if self.graph_level else []
        if self.accelerators:
            inside += ["  execution_accelerators {", *self._accelerators(), "  }"]
        return "\n".join(lines + (["optimization {", *inside, "}"] if inside else []))

    def options(self) -> dict[str, str]:
        """Every option by its name, as text."""
        levels = {number: f"{number} ({word})" for word, number in GRAPH_LEVELS.items()}
        named = {"optimization.graph.level": levels.get(self.graph_level, "none (all)")}
        named |= {key: f'"{value}"' for key, value in self.parameters.items()}
        for name, parameters in self.accelerators.items():
            named[f"accelerator {name}"] = "one"
            named |= {f"accelerator {name}: {key}": f'"{value}"' for key, value in parameters.items()}
        return named

    def _accelerators(self) -> list[str]:
        lines: list[str] = []
        for name, parameters in sorted(self.accelerators.items(), reverse=True):  # TensorRT comes before CUDA
            lines += ["    gpu_execution_accelerator {", f'      name: "{name}"']
            lines += [f'      parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items()]
            lines.append("    }")
        return lines


def expected_config(options: OnnxRuntimeOptions) -> OnnxRuntimeConfig:
    """What ``config.pbtxt`` must hold for a recipe's options, in the form that has effect in every release."""
    given = options.model_dump(by_alias=True, exclude_none=True)
    parameters = {key: _text(key, value) for key, value in given.items() if key in MODEL_PARAMETERS}
    accelerators = {}
    if options.tensorrt is not None:
        accelerators["tensorrt"] = _tensorrt_parameters(options.tensorrt)
    if options.cuda is not None:
        cuda = options.cuda.model_dump(exclude_none=True)
        accelerators["cuda"] = {key: _text(key, value) for key, value in sorted(cuda.items())}
    return OnnxRuntimeConfig(
        parameters=parameters,
        graph_level=GRAPH_LEVELS.get(options.graph_optimization, 0),
        accelerators=accelerators,
    )


def configured(config: ModelConfig) -> OnnxRuntimeConfig:
    """ONNX Runtime's options in a ``config.pbtxt``. Truth values are taken as 1 and 0, as Triton takes them."""
    parameters = {
        key: _plain(value.text("string_value"))
        for key, value in config.node.entries("parameters").items()
        if key in MODEL_PARAMETERS and isinstance(value, Node)
    }
    level = 0
    optimization = config.node.node("optimization")
    graph = optimization.node("graph") if optimization else None
    if graph is not None and graph.integer("level") in GRAPH_LEVELS.values():
        level = graph.integer("level")
    accelerators = {
        accelerator.text("name"): {key: _plain(str(value)) for key, value in accelerator.entries("parameters").items()}
        for accelerator in accelerators_of(config, "gpu")
    }
    return OnnxRuntimeConfig(parameters=parameters, graph_level=level, accelerators=accelerators)


def differences(*, wanted: OnnxRuntimeConfig, found: OnnxRuntimeConfig) -> list[str]:
    """Every option in which a ``config.pbtxt`` differs from a recipe: the option, what stands there, what should."""
    one_sided = tuple(f"accelerator {name}: " for name in wanted.accelerators.keys() ^ found.accelerators.keys())
    here, there = found.options(), wanted.options()
    return [
        f"{key}: {here.get(key, 'none')}, the recipe wants {there.get(key, 'none')}"
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key) and not key.startswith(one_sided)
    ]


def accelerators_of(config: ModelConfig, kind: str) -> tuple[Node, ...]:
    """The accelerators of a ``kind``, ``gpu`` or ``cpu``: ``optimization.execution_accelerators``."""
    optimization = config.node.node("optimization")
    both = optimization.node("execution_accelerators") if optimization else None
    return both.nodes(f"{kind}_execution_accelerator") if both else ()


def _tensorrt_parameters(options: TensorRtAccelerator) -> dict[str, str]:
    given = options.model_dump(by_alias=True, exclude_none=True)
    parameters = {key: _text(key, value) for key, value in given.items()}
    parameters["precision_mode"] = options.precision.upper()
    for bound in ("min", "opt", "max") if options.profiles else ():
        parameters[f"trt_profile_{bound}_shapes"] = ",".join(
            f"{name}:{'x'.join(map(str, getattr(shapes, bound)))}" for name, shapes in options.profiles.items()
        )
    return parameters


def _text(key: str, value: object) -> str:
    """A value as Triton's parameters have it: truth values as 1 and 0, words of :data:`NUMBERED` as their number."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(NUMBERED[key].index(str(value))) if key in NUMBERED else str(value)


def _plain(text: str) -> str:
    return _AS_NUMBERS.get(text.lower(), text)


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


def check_onnxruntime(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about the models that ONNX Runtime serves."""
    release = view.target.release.version if view.target.release else None
    for model in view.models.values():
        if model.backend != "onnxruntime":
            continue
        options = view.recipe.onnxruntime if view.recipe and model.name == view.addressed else None
        yield from _recipe(model, options)
        yield from _accelerators(model, release)
        yield from _parameters(model)
        yield from _without_effect(model, options)


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
        yield at_line(model, line, "onnxruntime-recipe", "; ".join(said), allowed, f"the recipe's form is\n{fragment}")


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
            yield from _cuda(model, accelerator)


def _tensorrt(model: ModelView, accelerator: Node, release: str | None) -> Iterator[Finding]:
    where = f" in release {release}" if release else ""
    for key, value in accelerator.entries("parameters").items():
        if key not in tensorrt_keys(release):
            found, allowed = f"parameter {key} of tensorrt{where}", ", ".join(sorted(tensorrt_keys(release)))
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, allowed)
        elif key == "precision_mode" and value not in _precisions(release):
            found, allowed = f'{key} "{value}"{where}', ", ".join(_precisions(release))
            yield at_line(model, accelerator.line, "onnxruntime-refused", found, allowed)


def _precisions(release: str | None) -> tuple[str, ...]:
    is_early = release is not None and release_order(release) < release_order(BF16_NOT_BEFORE)
    return tuple(name for name in PRECISIONS if not (is_early and name == "BF16"))


def _cuda(model: ModelView, accelerator: Node) -> Iterator[Finding]:
    for key in accelerator.entries("parameters"):
        if key in TOP_LEVEL_ONLY:
            found = f"parameter {key} of the accelerator cuda, where its default is put over it"
            allowed = f'parameters {{ key: "{key}" value {{ string_value: "…" }} }} of the model'
            yield at_line(model, accelerator.line, "onnxruntime-ignored", found, allowed)


def _parameters(model: ModelView) -> Iterator[Finding]:
    for key, value in model.config.node.entries("parameters").items():
        if not isinstance(value, Node):
            continue
        text = value.text("string_value")
        allowed = _allowed(key, text)
        if allowed:
            yield at_line(model, value.line, "onnxruntime-refused", f'parameter {key}: "{text}"', allowed)
        elif key not in MODEL_PARAMETERS | OTHER_PARAMETERS:
            known = ", ".join(sorted(MODEL_PARAMETERS | OTHER_PARAMETERS))
            yield at_line(model, value.line, "onnxruntime-ignored", f"parameter {key}", known)


def _allowed(key: str, text: str) -> str:
    """What a parameter's value must be, where ``text`` is none of it; empty where it is, or anything goes."""
    if key in NUMBERED and text not in (numbers := [str(number) for number in range(len(NUMBERED[key]))]):
        return " or ".join(f'"{number}" ({word})' for number, word in zip(numbers, NUMBERED[key], strict=True))
    if key in TRUTH_PARAMETERS and text.lower() not in _TRUTH:
        return '"1" or "0"'
    if key in COUNT_PARAMETERS and not text.isdecimal():
        return "a whole number, in quotes"
    return ""


def _without_effect(model: ModelView, options: OnnxRuntimeOptions | None) -> Iterator[Finding]:
    given = configured(model.config).parameters
    groups = model.config.node.nodes("instance_group")
    on_gpu = not groups or any(group.text("kind") in ("", "KIND_AUTO", "KIND_GPU") for group in groups)
    line = model.config.node.line_of("parameters")
    parallel = given.get("execution_mode") == "1"
    if parallel and on_gpu:
        found = "execution_mode 1 (parallel) on a GPU, where ONNX Runtime goes back to sequential"
        yield at_line(model, line, "onnxruntime-ignored", found, "execution_mode 1 with instances of KIND_CPU only")
    if parallel and given.get("enable_mem_pattern") == "1":
        found = "enable_mem_pattern 1 beside execution_mode 1, in which ONNX Runtime plans no memory"
        yield at_line(model, line, "onnxruntime-ignored", found, "one of the two")
    if "inter_op_thread_count" in given and not parallel:
        found = "inter_op_thread_count without execution_mode 1"
        yield at_line(model, line, "onnxruntime-ignored", found, "execution_mode 1 (parallel) beside it, or neither")
    if options is not None and options.server_arguments():
        found = "onnxruntime.default_max_batch_size of the recipe, and a tensor table here"
        allowed = f"max_batch_size here; {options.server_arguments()[0]} is of all models of a server"
        advice = "for models without a tensor table put it into an endpoint's container.additional_args"
        yield at_line(model, model.config.node.line, "onnxruntime-ignored", found, allowed, advice)
