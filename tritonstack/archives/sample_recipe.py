"""The sample and the proof of a recipe: what has to hold before an archive is packed."""

from __future__ import annotations

from pydantic import Field

from tritonstack.recipe_part import InsidePath, RecipePart


class Floor(RecipePart):
    """The least value that a figure may have."""

    at_least: float = Field(description="The build fails below it.")


class Proof(RecipePart):
    """What has to hold before an archive is packed."""

    figures: dict[str, Floor] = Field(
        default_factory=dict, description="Figures of the exports' reports, and what each must reach."
    )
    tolerance: float = Field(
        1e-4, ge=0, description="The largest difference between the exported model and the source framework (FP32)."
    )
    largest_batch: int | None = Field(
        None,
        ge=1,
        description="The largest batch that the exports are proved with, beside 1; null: the model's max_batch_size. "
        "For a large model the proof takes most of a build's time, and memory with its batch; a build prints both.",
    )


class Sample(RecipePart):
    """A request that the built archive answers as expected; it goes into the manifest."""

    request: InsidePath = Field(
        description="A body in KServe's JSON form (.json), arrays (.npz), or a file for one of the adapters: what "
        "`tritonstack invoke --input` takes. Of the folder, or made by an export."
    )
    answer: InsidePath = Field(
        description="The expected answer in KServe's JSON form, without names of model or version. Of the folder, or "
        "made by an export, which lets the source framework answer."
    )
    tolerance: float = Field(
        0.0, ge=0, description="The largest absolute difference of a floating-point value; all else must be equal."
    )
