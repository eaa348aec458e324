"""``logs``: how long log groups keep what was written."""

from __future__ import annotations

from pydantic import Field

from tritonstack.config.builds import LogDays
from tritonstack.config.fields import SettingsModel


class LogSettings(SettingsModel):
    """Retention, besides that of builds (``builds.log_days``) and of flow logs (``network.created.flow_log_days``)."""

    endpoint_days: LogDays | None = Field(
        default=None,
        description="Days that the containers' logs are kept, under the artifacts' key; their log group then is the "
        "stack's. null: SageMaker makes it, and it never expires.",
    )
    function_days: LogDays | None = Field(
        default=None, description="Days that the logs of functions are kept; null: a week to three months, by function."
    )
