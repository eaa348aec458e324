"""What wakes somebody: thresholds of alarms, whom they tell, and where their runbook is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tritonstack.config.fields import EMAIL_PATTERN, NOT_BLANK_PATTERN, SettingsModel

MINUTES_IN_A_DAY = 24 * 60
"""An alarm looks at a day at most where its periods are shorter than an hour (API reference: PutMetricAlarm)."""


class Thresholds(SettingsModel):
    """From where on something is wrong with an endpoint.

    The defaults are ours, for an endpoint that nobody has measured yet: set them from a load test.
    """

    server_error_percent: float = Field(
        default=1.0, gt=0, le=100, description="Share of a minute's calls that end with 5XX, percent."
    )
    server_errors: int = Field(
        default=3, ge=1, description="And so many at least, so that one failed call of a quiet minute is no alarm."
    )
    model_error_percent: float = Field(
        default=5.0,
        gt=0,
        le=100,
        description="Share of a minute's calls that the container answers with an error, a caller's mistakes included.",
    )
    model_errors: int = Field(default=10, ge=1, description="And so many at least.")
    p99_latency_ms: float = Field(
        default=1000, gt=0, description="What one call in a hundred may take in the model, milliseconds."
    )
    cache_hit_percent: float = Field(
        default=50,
        gt=0,
        le=100,
        description="Multi-model mode. Share of calls whose model is loaded already: an alarm where it is lower …",
    )
    loading_wait_ms: float = Field(
        default=1000, gt=0, description="Multi-model mode. … while a call waits longer than this for its model."
    )
    disk_percent: float = Field(
        default=85, gt=0, le=100, description="Single-model mode. How full an instance's disk may be, percent."
    )
    gpu_memory_percent: float = Field(
        default=95,
        gt=0,
        le=100,
        description="Single-model mode. How full the GPUs' memory may be, percent, on average over an instance's GPUs.",
    )
    no_traffic_minutes: int | None = Field(
        default=None,
        ge=1,
        le=MINUTES_IN_A_DAY,
        description="So long without a single call is an alarm; null: an endpoint may be idle.",
    )
    budget_usd_per_hour: float | None = Field(
        default=None, gt=0, description="What the endpoint's instances may cost an hour, USD; null: no alarm."
    )


class AlarmSettings(SettingsModel):
    """The alarms of an environment."""

    email: Annotated[
        tuple[Annotated[str, Field(pattern=EMAIL_PATTERN, max_length=254)], ...], Field(strict=False, max_length=20)
    ] = Field(default=(), description="Who is told; each confirms a message first. Others subscribe to the topic.")
    runbooks: str = Field(
        default="docs/operations.md",
        pattern=NOT_BLANK_PATTERN,
        max_length=300,
        description="Where docs/operations.md is read (the URL in your repository): each alarm links its paragraph.",
    )
    thresholds: Thresholds = Field(
        default_factory=Thresholds, description="Of every endpoint that has none of its own."
    )
