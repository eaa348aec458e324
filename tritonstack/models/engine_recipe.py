"""The TensorRT engine of a recipe: the shapes it is optimised for, its precision and what its builder may do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from tritonstack.recipe_part import RecipePart

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
    tf32: bool = Field(True, description="Whether FP32 may be computed in TF32, on GPUs that have it.")
    structured_sparsity: bool = Field(False, description="Whether the builder may use weights' 2:4 sparsity.")
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
