"""``recipe.yaml``, ``engine`` and ``onnxruntime``: the TensorRT engine to build, and ONNX Runtime's options."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from tritonstack.adapters import ClosedModel, InsidePath
from tritonstack.config.yaml_loader import list_or_mapping

Shape = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]

INT64_TENSORS_SINCE = 10
"""Before TensorRT 10 an engine's tensor is INT32 where the graph's is INT64. trtexec then reads a file of twice the
size without a word, and half of it (``loadFromFile`` in samples/common/sampleUtils.cpp of NVIDIA/TensorRT)."""

Precision = Literal["fp16", "fp32", "bf16", "int8", "graph"]
HardwareCompatibility = Literal["none", "ampere_plus", "same_compute_capability"]


class EngineShapes(ClosedModel):
    """The optimisation profile of one input, the batch dimension first: what trtexec's --minShapes … take."""

    min: Shape = Field(description="The smallest shape that the engine takes.")
    opt: Shape = Field(description="The shape that the engine is fastest for.")
    max: Shape = Field(description="The largest shape that the engine takes.")

    @model_validator(mode="after")
    def _rising(self) -> EngineShapes:
        same_rank = len(self.min) == len(self.opt) == len(self.max)
        if not same_rank or any(not a <= b <= c for a, b, c in zip(self.min, self.opt, self.max, strict=True)):
            raise ValueError("min, opt and max of one rank, each length of min ≤ opt ≤ max")
        return self


Profile = Annotated[dict[str, EngineShapes], Field(min_length=1)]
"""Input → its shapes in one optimisation profile."""


def read_profiles(options: Iterable[str]) -> tuple[dict[str, EngineShapes], ...]:
    """The optimisation profiles in trtexec's options of a built engine, by their numbers.

    Empty where an option is spelled otherwise than a build spells it, as of a plan from elsewhere.
    """
    shapes = re.compile(r"--(min|opt|max)Shapes=(.+)")
    spelled = re.compile(r"(?:'([^']+)'|([^':,]+)):(\d+(?:x\d+)*)(?:,|$)")
    profiles: list[dict[str, dict[str, tuple[int, ...]]]] = [{}]
    for option in options:
        if option.startswith("--profile=") and profiles[-1]:
            profiles.append({})
        elif match := shapes.fullmatch(option):
            for quoted, plain, lengths in spelled.findall(match[2]):
                profiles[-1].setdefault(quoted or plain, {})[match[1]] = tuple(map(int, lengths.split("x")))
    try:
        found = tuple({name: EngineShapes.model_validate(ends) for name, ends in each.items()} for each in profiles)
    except ValueError:
        return ()
    return found if found[0] else ()


class Engine(ClosedModel):
    """A TensorRT engine, built for one release and one kind of GPU from the ONNX graph that is exported.

    Which TensorRT takes which of these: ``tritonstack docs engines``. A release whose TensorRT lacks one is refused.
    """

    precision: Precision = Field(
        "fp16",
        description="The precision that the builder may use besides FP32 (int8: FP16, too); graph: exactly the types "
        "of the ONNX graph (strong typing). From TensorRT 11 on precision is the graph's own: fp16, bf16 and int8 are "
        "refused there, and INT8 is graph with a graph of QuantizeLinear and DequantizeLinear nodes.",
    )
    calibration_cache: InsidePath | None = Field(
        None,
        description="With precision: int8, a file of the folder with the ranges of the graph's tensors, as the entropy "
        "calibrator 2 of the release's TensorRT writes it; null: the graph has QuantizeLinear and DequantizeLinear "
        "nodes.",
    )
    graph_precision: Literal["fp16"] | None = Field(
        None,
        description="With precision: graph, the precision that the exported ONNX graph is turned into before the "
        "engine is built; its inputs and outputs keep their types. The way to FP16 from TensorRT 11 on.",
    )
    workspace_mib: int = Field(14000, ge=1, description="Memory that the builder may use for tactics, MiB.")
    shapes: Annotated[
        Annotated[Profile, Tag("|mapping")]
        | Annotated[tuple[Profile, ...], Field(min_length=1, strict=False), Tag("|list")],
        Discriminator(list_or_mapping),
    ] = Field(
        description="Input → its smallest, optimal and largest shape; or a list of such sets, one for each "
        "optimisation profile of the engine, the first with number 0: an instance group of config.pbtxt names those "
        'that it uses (`profile: ["0", "1"]`). Several need TensorRT 10 (release 24.05).',
    )
    optimisation_level: int | None = Field(
        None, ge=0, le=5, description="How long the builder looks for faster tactics; null: TensorRT's own choice (3)."
    )
    tf32: bool = Field(
        True,
        description="Whether FP32 may be computed in TF32, on GPUs that have it (from Ampere on); false: trtexec's "
        "--noTF32.",
    )
    version_compatible: bool = Field(
        False,
        description="Whether newer versions of the same major version of TensorRT load the plan, too. Triton loads "
        "such a plan only with `--backend-config=tensorrt,version-compatible=true`, and executes the lean runtime "
        "that the plan contains.",
    )
    hardware_compatibility: HardwareCompatibility = Field(
        "none",
        description="Which other GPUs load the plan, at a cost in speed: none; ampere_plus: GPUs of compute capability "
        "8.0 and newer (built on one of these); same_compute_capability: GPUs of the same compute capability, from "
        "Turing (7.5) on. `tritonstack builders` lists them.",
    )
    verbose: bool = Field(
        False, description="Whether trtexec logs the conversion in detail (--verbose): layers, fusions, tactics."
    )
    measure_seconds: int = Field(
        3,
        ge=0,
        le=600,
        description="How long trtexec measures the finished engine at each profile's optimal shapes, seconds: "
        "throughput and percentiles of its latency go into the manifest's figures. 0: not at all.",
    )
    timing_cache: bool = Field(
        True, description="Whether measured tactics are kept, per GPU and TensorRT version, for the next build."
    )
    tolerance: float | None = Field(
        None,
        ge=0,
        description="The largest difference between the engine's outputs and ONNX Runtime's to the same inputs; null: "
        "the sample's tolerance.",
    )

    @model_validator(mode="after")
    def _fields_of_the_precision(self) -> Engine:
        if self.graph_precision is not None and self.precision != "graph":
            raise ValueError("graph_precision only with precision: graph, which builds exactly the graph's types")
        if self.calibration_cache is not None and self.precision != "int8":
            raise ValueError("calibration_cache only with precision: int8")
        return self

    @property
    def profiles(self) -> tuple[dict[str, EngineShapes], ...]:
        """The optimisation profiles by their numbers: one or more, each with the same inputs."""
        return self.shapes if isinstance(self.shapes, tuple) else (self.shapes,)

    @field_validator("shapes")
    @classmethod
    def _profiles_that_trtexec_reads(
        cls, shapes: dict[str, EngineShapes] | tuple[dict[str, EngineShapes], ...]
    ) -> dict[str, EngineShapes] | tuple[dict[str, EngineShapes], ...]:
        first, *others = shapes if isinstance(shapes, tuple) else (shapes,)
        if any(character in name for name in first for character in "',") or "" in first:
            raise ValueError("names without comma and single quote, which part names in trtexec's lists of shapes")
        for number, other in enumerate(others, start=1):
            if other.keys() != first.keys():
                given, wanted = ", ".join(sorted(other)), ", ".join(sorted(first))
                raise ValueError(f"profiles with the same inputs (profile {number} has {given}, profile 0 {wanted})")
            if any(len(other[name].min) != len(first[name].min) for name in first):
                raise ValueError(f"profiles with shapes of one rank for each input (profile {number} differs)")
            if other in (first, *others[: number - 1]):
                raise ValueError(f"profiles that differ (profile {number} equals an earlier one)")
        return shapes


# Sources: triton-inference-server/onnxruntime_backend README.md and src/onnxruntime.cc (ModelState::ModelState,
# ModelState::LoadModel); microsoft/onnxruntime where a value has no effect there.
# lint/backends/onnxruntime.py holds the forms that config.pbtxt has them in.

GraphOptimization = Literal["all", "extended", "basic", "disabled"]


class TensorRtAccelerator(ClosedModel):
    """ONNX Runtime's TensorRT provider: it builds engines when the model is loaded or first invoked, on its own GPU.

    A build takes minutes, and SageMaker waits 60 s for the response of a multi-model endpoint: so warm the model up,
    on a single-model endpoint. A plan that `engine:` builds beforehand has no such wait.
    """

    precision: Literal["fp32", "fp16", "bf16", "int8"] = Field(
        "fp32", description="The precision that engines may use besides FP32 (`precision_mode`)."
    )
    workspace_bytes: int | None = Field(
        None,
        ge=1,
        description="GPU memory that an engine may use while it runs (`max_workspace_size_bytes`); null: 1 GiB.",
    )
    engine_cache: bool | None = Field(
        None, description="Whether built engines are kept in a folder (`trt_engine_cache_enable`)."
    )
    engine_cache_path: str | None = Field(
        None,
        min_length=1,
        description="That folder in the container, such as /tmp (`trt_engine_cache_path`): it must be writable, as the "
        "model's directory is not, and is empty on a new instance.",
    )
    profiles: dict[str, EngineShapes] = Field(
        default_factory=dict,
        description="Input → its smallest, optimal and largest shape (`trt_profile_min_shapes`, …): all inputs with "
        "free axes, or none. Without them an engine is built again whenever a request widens the shapes.",
    )
    parameters: dict[str, str] = Field(
        default_factory=dict,
        description="Further parameters of the accelerator by Triton's names (`trt_timing_cache_enable`): one that the "
        "release's backend does not know fails the load.",
    )

    @model_validator(mode="after")
    def _complete(self) -> TensorRtAccelerator:
        if self.engine_cache_path and not self.engine_cache:
            raise ValueError("engine_cache: true with engine_cache_path, which has no effect without it")
        return self


class CudaAccelerator(ClosedModel):
    """Options of ONNX Runtime's CUDA provider that Triton has no parameter of the model for.

    Those that it has one for (`gpu_mem_limit` and others) are fields of `onnxruntime` itself.
    """

    cudnn_conv_use_max_workspace: bool | None = Field(
        None, description="Whether cuDNN may use as much memory as a convolution's fastest algorithm takes."
    )
    cudnn_conv1d_pad_to_nc1d: bool | None = Field(
        None, description="Whether 1D convolutions are padded to [N, C, 1, D] instead of [N, C, D, 1]."
    )
    use_ep_level_unified_stream: bool | None = Field(
        None, description="Whether all of the provider's work uses one CUDA stream."
    )
    prefer_nhwc: bool | None = Field(None, description="Whether convolutions run with the channels last.")
    use_tf32: bool | None = Field(None, description="Whether FP32 may be computed in TF32, on GPUs that have it.")
    parameters: dict[str, str] = Field(
        default_factory=dict,
        description="Further parameters of the accelerator, by the names of ONNX Runtime's CUDA provider.",
    )


class OnnxRuntimeOptions(ClosedModel):
    """Options of one model. null, or a field that is not given: ONNX Runtime's default, nothing in config.pbtxt."""

    graph_optimization: GraphOptimization = Field(
        "all",
        description="How far the graph is rewritten: all (the default), extended (level 1), basic (level -1), disabled "
        "(level 2). By word, because Triton's protobuf says of -1 what its ONNX Runtime backend does at 2.",
    )
    execution_mode: Literal["sequential", "parallel"] | None = Field(
        None,
        description="Whether independent branches of the graph run side by side. On the CPU only: ONNX Runtime goes "
        "back to sequential with a warning where the CUDA provider is used (core/session/inference_session.cc).",
    )
    intra_op_thread_count: int | None = Field(
        None, ge=0, description="CPU threads within one operator; 0: as many as there are cores."
    )
    inter_op_thread_count: int | None = Field(
        None, ge=0, description="CPU threads across operators, for execution_mode parallel; 0: as many as cores."
    )
    enable_mem_arena: bool | None = Field(None, description="Whether CPU memory is kept in an arena between requests.")
    enable_mem_pattern: bool | None = Field(
        None,
        description="Whether the memory of one run is planned and taken as one block, where shapes repeat. Only with "
        "execution_mode sequential (core/framework/session_state.cc).",
    )
    arena_extend_strategy: Literal["next_power_of_two", "same_as_requested"] | None = Field(
        None, description="How the CUDA arena grows: by powers of two (the default), or by what is asked for."
    )
    gpu_mem_limit: int | None = Field(
        None, ge=1, description="The largest size of the CUDA arena, bytes; null: all of the GPU's memory."
    )
    do_copy_in_default_stream: bool | None = Field(
        None, description="Whether copies use the stream of the computation (the default) or one of their own."
    )
    cudnn_conv_algo_search: Literal["exhaustive", "heuristic", "default"] | None = Field(
        None,
        description="How cuDNN's convolution algorithm is found: by measuring all (the default; the first request of "
        "every new shape is slow), by heuristics, or not at all.",
    )

    default_max_batch_size: int | None = Field(
        None,
        ge=1,
        description="The max_batch_size of a model whose config.pbtxt has none and whose graph batches (4 without it). "
        "It is an option of the backend, for every model of a server: each endpoint with this model must have "
        "`--backend-config=onnxruntime,default-max-batch-size=N` in container.additional_args.",
    )
    tensorrt: TensorRtAccelerator | None = Field(
        None, description="The TensorRT provider: it runs what it can of the graph, CUDA the rest."
    )
    cuda: CudaAccelerator | None = Field(
        None, description="Further options of the CUDA provider, from release 24.07 on."
    )

    @property
    def server_arguments(self) -> tuple[str, ...]:
        """Arguments that an endpoint's server needs for the options that are the backend's."""
        size = self.default_max_batch_size
        return () if size is None else (f"--backend-config=onnxruntime,default-max-batch-size={size}",)

    @field_validator("graph_optimization", mode="before")
    @classmethod
    def _word(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError with the field
                "all, extended, basic or disabled, as a word: of the numbers 2 means disabled, and 0 and 3 mean all"
            )
        return value
