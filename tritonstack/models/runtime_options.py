"""``recipe.yaml``, ``engine`` and ``onnxruntime``: the TensorRT engine to build, and ONNX Runtime's options."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from tritonstack.adapters import RecipePart

Shape = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]

Precision = Literal["fp16", "fp32", "bf16", "graph"]
HardwareCompatibility = Literal["none", "ampere+", "same-compute-capability"]


class EngineShapes(RecipePart):
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


class Engine(RecipePart):
    """A TensorRT engine, built for one release and one kind of GPU from the ONNX graph that is exported.

    Which TensorRT takes which of these stands in ``docs/engines.md``; a release whose TensorRT lacks one is refused.
    """

    precision: Precision = Field(
        "fp16",
        description="The precision that the builder may use beside FP32; graph: exactly the types of the ONNX graph "
        "(strong typing). From TensorRT 11 on precision is the graph's own: fp16 and bf16 are refused there.",
    )
    graph_precision: Literal["fp16"] | None = Field(
        None,
        description="With precision: graph, the precision that the exported ONNX graph is turned into before the "
        "engine is built; its inputs and outputs keep their types. The way to FP16 from TensorRT 11 on.",
    )
    workspace_mib: int = Field(14000, ge=1, description="Memory that the builder may use for tactics, MiB.")
    shapes: dict[str, EngineShapes] = Field(
        min_length=1, description="Input → its smallest, optimal and largest shape."
    )
    optimisation_level: int | None = Field(
        None, ge=0, le=5, description="How long the builder looks for faster tactics; null: TensorRT's own choice (3)."
    )
    timing_cache: bool = Field(
        True, description="Whether measured tactics are kept, per GPU and TensorRT version, for the next build."
    )
    version_compatible: bool = Field(
        False,
        description="Whether later versions of the same major version load the plan. Triton loads such a plan only "
        "with --backend-config=tensorrt,version-compatible=true, and executes code that the plan carries.",
    )
    hardware_compatibility: HardwareCompatibility = Field(
        "none",
        description="Which other GPUs load the plan, at a cost in speed: none; Ampere and newer (ampere+); those of "
        "the same compute capability.",
    )

    tolerance: float | None = Field(
        None,
        ge=0,
        description="The largest difference between the engine's answer and ONNX Runtime's to the same inputs; null: "
        "the sample's tolerance.",
    )

    @model_validator(mode="after")
    def _graph_has_the_precision(self) -> Engine:
        if self.graph_precision is not None and self.precision != "graph":
            raise ValueError("graph_precision only with precision: graph, which builds exactly the graph's types")
        return self

    @field_validator("shapes")
    @classmethod
    def _names_that_trtexec_reads(cls, shapes: dict[str, EngineShapes]) -> dict[str, EngineShapes]:
        if any(character in name for name in shapes for character in "',") or "" in shapes:
            raise ValueError("names without comma and single quote, which part names in trtexec's lists of shapes")
        return shapes


# Sources: triton-inference-server/onnxruntime_backend README.md and src/onnxruntime.cc (ModelState::ModelState,
# ModelState::LoadModel); microsoft/onnxruntime where a value has no effect there.
# lint/onnxruntime.py holds the forms that config.pbtxt has them in.

GraphOptimization = Literal["all", "extended", "basic", "disabled"]


class TensorRtAccelerator(RecipePart):
    """ONNX Runtime's TensorRT provider: engines built when the model is loaded or first asked, not when it is packed.

    Building takes minutes, SageMaker waits 60 s for an invocation and 360 s for a load. The serialization aliases are
    Triton's keys. Its other keys can be written into config.pbtxt, where the recipe has no `onnxruntime`.
    """

    precision: Literal["fp32", "fp16", "bf16", "int8"] = Field(
        "fp32", serialization_alias="precision_mode", description="The precision that engines may use."
    )
    workspace_bytes: int | None = Field(
        None,
        ge=1,
        serialization_alias="max_workspace_size_bytes",
        description="GPU memory that engines may use while they run; null: TensorRT's choice, 1 GiB.",
    )
    engine_cache: bool | None = Field(
        None, serialization_alias="trt_engine_cache_enable", description="Whether built engines are kept in a folder."
    )
    engine_cache_path: str | None = Field(
        None,
        min_length=1,
        serialization_alias="trt_engine_cache_path",
        description="That folder, in the container; it must be writable: /tmp, not the model's directory.",
    )
    profiles: dict[str, EngineShapes] = Field(
        default_factory=dict,
        exclude=True,
        description="Input → its smallest, optimal and largest shape; all inputs with dynamic axes or none.",
    )

    @model_validator(mode="after")
    def _complete(self) -> TensorRtAccelerator:
        if self.engine_cache_path and not self.engine_cache:
            raise ValueError("engine_cache: true beside engine_cache_path, which has no effect without it")
        return self


class CudaAccelerator(RecipePart):
    """Options of ONNX Runtime's CUDA provider that Triton has no parameter of its own for.

    The four that it has one for (`gpu_mem_limit` and its like) stand outside: here they are ignored. See
    https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html.
    """

    cudnn_conv_use_max_workspace: bool | None = Field(
        None, description="Whether cuDNN may use as much memory as a convolution's fastest algorithm asks for."
    )
    cudnn_conv1d_pad_to_nc1d: bool | None = Field(
        None, description="Whether 1D convolutions are padded to [N, C, 1, D] instead of [N, C, D, 1]."
    )
    use_ep_level_unified_stream: bool | None = Field(
        None, description="Whether all of the provider's work goes to one CUDA stream."
    )
    prefer_nhwc: bool | None = Field(None, description="Whether convolutions run with channels last.")
    use_tf32: bool | None = Field(None, description="Whether FP32 products may be computed in TF32 (Ampere and later).")


class OnnxRuntimeOptions(RecipePart):
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
    arena_shrinkage: str | None = Field(
        None,
        pattern=r"^(cpu|gpu):[0-9]+(;(cpu|gpu):[0-9]+)*$",
        serialization_alias="memory.enable_memory_arena_shrinkage",
        description="Arenas that give unused memory back after every run: gpu:0, or cpu:0;gpu:0. Slower, and smaller.",
    )
    device_allocator_for_initializers: bool | None = Field(
        None,
        serialization_alias="session.use_device_allocator_for_initializers",
        description="Whether weights are allocated outside the arena, which then does not grow for them.",
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
        description="NOT of a model but of the backend, for every model of the server: the max_batch_size of a model "
        "without a tensor table in config.pbtxt. It goes into an endpoint's container.additional_args.",
    )
    tensorrt: TensorRtAccelerator | None = Field(None, description="Run what it can with TensorRT, the rest on CUDA.")
    cuda: CudaAccelerator | None = Field(None, description="Further options of the CUDA provider.")

    @field_validator("graph_optimization", mode="before")
    @classmethod
    def _word(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError with the field
                "all, extended, basic or disabled, as a word: of the numbers 2 means disabled, and 0 and 3 mean all"
            )
        return value

    def server_arguments(self) -> tuple[str, ...]:
        """What an endpoint's ``container.additional_args`` needs for the option that is the backend's."""
        if self.default_max_batch_size is None:
            return ()
        return (f"--backend-config=onnxruntime,default-max-batch-size={self.default_max_batch_size}",)
