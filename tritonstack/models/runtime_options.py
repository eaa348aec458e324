"""``recipe.yaml``, ``engine`` and ``onnxruntime``: the TensorRT engine to build, and ONNX Runtime's options."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from tritonstack.adapters import ClosedModel, InsidePath

Shape = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]

INT64_TENSORS_SINCE = 10
"""Before TensorRT 10 an engine's tensor is INT32 where the graph's is INT64. trtexec then reads a file of twice the
size without a word, and half of it (``loadFromFile`` in samples/common/sampleUtils.cpp of NVIDIA/TensorRT)."""

Precision = Literal["fp16", "fp32", "bf16", "int8", "graph"]


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
    shapes: dict[str, EngineShapes] = Field(
        min_length=1, description="Input → its smallest, optimal and largest shape."
    )
    optimisation_level: int | None = Field(
        None, ge=0, le=5, description="How long the builder looks for faster tactics; null: TensorRT's own choice (3)."
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

    @field_validator("shapes")
    @classmethod
    def _names_that_trtexec_reads(cls, shapes: dict[str, EngineShapes]) -> dict[str, EngineShapes]:
        if any(character in name for name in shapes for character in "',") or "" in shapes:
            raise ValueError("names without comma and single quote, which part names in trtexec's lists of shapes")
        return shapes


# Sources: triton-inference-server/onnxruntime_backend README.md and src/onnxruntime.cc (ModelState::ModelState,
# ModelState::LoadModel); microsoft/onnxruntime where a value has no effect there.
# lint/backends/onnxruntime.py holds the forms that config.pbtxt has them in; accelerators are written there alone.

GraphOptimization = Literal["all", "extended", "basic", "disabled"]


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

    @field_validator("graph_optimization", mode="before")
    @classmethod
    def _word(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError with the field
                "all, extended, basic or disabled, as a word: of the numbers 2 means disabled, and 0 and 3 mean all"
            )
        return value
