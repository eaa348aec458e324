"""Where ONNX Runtime's options stand in ``config.pbtxt``: what a recipe asks for, what a file says, how they differ.

Triton's README calls four parameters of the model deprecated (``cudnn_conv_algo_search``, ``gpu_mem_limit``,
``arena_extend_strategy``, ``do_copy_in_default_stream``) and wants them as parameters of an accelerator ``cuda``.
There they have no effect: ModelState::LoadModel (src/onnxruntime.cc) puts the model's values, or else the defaults,
over them whenever the configuration has an object ``parameters``, and Triton prints one even when it is empty.
triton-inference-server/server issue 8808 saw it with 24.10. So they are written as the model's, which every release
reads; an accelerator ``cuda`` is written only for options that have no parameter of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tritonstack.models.engine_recipe import EngineShapes
from tritonstack.models.model_config import ModelConfig, Node
from tritonstack.models.onnxruntime_options import OnnxRuntimeOptions, TensorRtAccelerator

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

MODEL_PARAMETERS = frozenset(
    {
        *TOP_LEVEL_ONLY,
        "enable_mem_arena",
        "enable_mem_pattern",
        "execution_mode",
        "inter_op_thread_count",
        "intra_op_thread_count",
        "memory.enable_memory_arena_shrinkage",
        "session.use_device_allocator_for_initializers",
    }
)
"""The parameters of a model that :class:`OnnxRuntimeOptions` has a field for."""

_TRUTH = {"true": "1", "false": "0"}


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

    def _accelerators(self) -> list[str]:
        lines: list[str] = []
        for name, parameters in sorted(self.accelerators.items(), reverse=True):  # TensorRT comes before CUDA
            lines += ["    gpu_execution_accelerator {", f'      name: "{name}"']
            lines += [f'      parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items()]
            lines.append("    }")
        return lines


def expected_config(options: OnnxRuntimeOptions) -> OnnxRuntimeConfig:
    """What ``config.pbtxt`` must say for a recipe's options, in the form that has effect in every release."""
    given = options.model_dump(by_alias=True, exclude_none=True)
    parameters = {key: _text(key, value) for key, value in given.items() if key in MODEL_PARAMETERS}
    accelerators = {}
    if options.tensorrt is not None:
        accelerators["tensorrt"] = _tensorrt(options.tensorrt)
    if options.cuda is not None:
        cuda = options.cuda.model_dump(exclude_none=True)
        accelerators["cuda"] = {key: _text(key, value) for key, value in sorted(cuda.items())}
    return OnnxRuntimeConfig(
        parameters=parameters,
        graph_level=GRAPH_LEVELS.get(options.graph_optimization, 0),
        accelerators=accelerators,
    )


def configured(config: ModelConfig) -> OnnxRuntimeConfig:
    """What a ``config.pbtxt`` says. Truth values are taken as 1 and 0, as Triton takes them."""
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
        for accelerator in gpu_accelerators(config)
    }
    return OnnxRuntimeConfig(parameters=parameters, graph_level=level, accelerators=accelerators)


def gpu_accelerators(config: ModelConfig) -> tuple[Node, ...]:
    """The messages ``optimization.execution_accelerators.gpu_execution_accelerator``."""
    return _accelerators(config, "gpu_execution_accelerator")


def cpu_accelerators(config: ModelConfig) -> tuple[Node, ...]:
    """The messages ``optimization.execution_accelerators.cpu_execution_accelerator``."""
    return _accelerators(config, "cpu_execution_accelerator")


def differences(*, wanted: OnnxRuntimeConfig, found: OnnxRuntimeConfig) -> list[str]:
    """Every option in which a ``config.pbtxt`` differs from a recipe: the option, what stands there, what should."""
    pairs = [("", wanted.parameters, found.parameters)]
    names = sorted(wanted.accelerators.keys() | found.accelerators.keys())
    said = []
    for name in names:
        if name not in found.accelerators or name not in wanted.accelerators:
            has, wants = (_there(name in side.accelerators) for side in (found, wanted))
            said.append(f"accelerator {name}: {has}, the recipe wants it {wants}")
        else:
            pairs.append((f"accelerator {name}: ", wanted.accelerators[name], found.accelerators[name]))
    if wanted.graph_level != found.graph_level:
        words = [_level_word(side.graph_level) for side in (found, wanted)]
        said.insert(0, f"optimization.graph.level: {words[0]}, the recipe wants {words[1]}")
    for prefix, there, here in pairs:
        for key in sorted(there.keys() | here.keys()):
            if there.get(key) != here.get(key):
                said.append(f"{prefix}{key}: {_shown(here.get(key))}, the recipe wants {_shown(there.get(key))}")
    return said


def _accelerators(config: ModelConfig, kind: str) -> tuple[Node, ...]:
    optimization = config.node.node("optimization")
    both = optimization.node("execution_accelerators") if optimization else None
    return both.nodes(kind) if both else ()


def _tensorrt(options: TensorRtAccelerator) -> dict[str, str]:
    given = options.model_dump(by_alias=True, exclude_none=True)
    parameters = {key: _text(key, value) for key, value in given.items()}
    parameters["precision_mode"] = options.precision.upper()
    for bound in ("min", "opt", "max") if options.profiles else ():
        parameters[f"trt_profile_{bound}_shapes"] = ",".join(
            f"{name}:{_shape(shapes, bound)}" for name, shapes in options.profiles.items()
        )
    return parameters


def _shape(shapes: EngineShapes, bound: str) -> str:
    return "x".join(str(length) for length in getattr(shapes, bound))


def _text(key: str, value: object) -> str:
    """A value as Triton's parameters have it: truth values as 1 and 0, words of :data:`NUMBERED` as their number."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(NUMBERED[key].index(str(value))) if key in NUMBERED else str(value)


def _plain(text: str) -> str:
    return _TRUTH.get(text.lower(), text)


def _there(there: bool) -> str:
    return "there" if there else "not there"


def _shown(value: str | None) -> str:
    return "none" if value is None else f'"{value}"'


def _level_word(level: int) -> str:
    return next((f"{number} ({word})" for word, number in GRAPH_LEVELS.items() if number == level), "none (all)")
