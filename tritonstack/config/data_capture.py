"""``data_capture``: requests and answers of a single-model endpoint, kept in the artifact bucket."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonstack.config.fields import Name, SettingsModel


class DataCapture(SettingsModel):
    """What is kept of calls. Limits: API reference, DataCaptureConfig."""

    percentage: int = Field(ge=1, le=100, description="How many of a hundred calls are kept.")
    capture: Annotated[tuple[Literal["input", "output"], ...], Field(strict=False, min_length=1, max_length=2)] = Field(
        default=("input", "output"), description="What is kept of a call: input, output or both."
    )
    folder: Name = Field(
        default="captured",
        description="Where it is kept in the artifact bucket, under its key: <folder>/<endpoint>/.",
    )
    days: int = Field(default=30, ge=1, description="Days until what was kept is deleted.")
