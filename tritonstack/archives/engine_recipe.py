"""The TensorRT engine of a recipe: the shapes it is optimised for, its precision and its builder's memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tritonstack.archives.parts import RecipePart

Shape = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]


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
    """A TensorRT engine, built for one release and one kind of GPU from the ONNX graph that is exported."""

    precision: Literal["fp16", "fp32"] = Field("fp16", description="The precision that the builder may use.")
    workspace_mib: int = Field(14000, ge=1, description="Memory that the builder may use for tactics, MiB.")
    shapes: dict[str, EngineShapes] = Field(
        min_length=1, description="Input → its smallest, optimal and largest shape."
    )
