"""Where a recipe's weights come from, and how large the model is made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from tritonstack.recipe_part import RecipePart

Size = Literal["full", "tiny"]
Weights = Literal["pretrained", "random"]


class Source(RecipePart):
    """Pretrained weights: ``hub`` with ``revision``, or ``s3`` with ``sha256``. Both name exactly one content."""

    hub: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$",
        description="A model of the Hugging Face Hub: organisation/name.",
    )
    revision: str | None = Field(
        None, pattern=r"^[0-9a-f]{40}$", description="The commit of that model: 40 hexadecimal digits, no branch."
    )
    s3: str | None = Field(
        None,
        pattern=r"^s3://[a-z0-9.-]+/.+$",
        description="An object in S3, s3://bucket/key: one file, or a .tar.gz, .tgz or .zip of a folder laid out like "
        "a model of the hub.",
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="Of that object: 64 hexadecimal digits.")

    @model_validator(mode="after")
    def _one_kind(self) -> Source:
        given = {name for name in ("hub", "revision", "s3", "sha256") if getattr(self, name) is not None}
        if given not in ({"hub", "revision"}, {"s3", "sha256"}):
            raise ValueError("hub with revision, or s3 with sha256")
        return self

    def plain(self) -> dict[str, str]:
        """As the recipe has it, without the fields that are not set."""
        return self.model_dump(exclude_none=True)


class Sizes(RecipePart):
    """Size → what differs in the source framework's model configuration. Names, types and widths stay as they are."""

    full: dict[str, Any] = Field(default_factory=dict, description="What differs for the size that is deployed.")
    tiny: dict[str, Any] = Field(
        default_factory=dict, description="What differs for tests: few layers, a small vocabulary."
    )
