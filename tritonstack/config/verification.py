"""What a deployment asks of an endpoint before release records move."""

from __future__ import annotations

from pydantic import Field

from tritonstack.config.fields import SettingsModel

LONGEST_MINUTES = 50
"""A custom resource ends after an hour (CloudFormation user guide); the rest is for a last call and the answer."""


class VerificationSettings(SettingsModel):
    """The check after an endpoint's update: it runs the requested config, and what changed answers as expected."""

    models: int = Field(
        default=20,
        ge=0,
        le=500,
        description="How many of the models whose digest or platform changed are sent their sample requests; 0 sends "
        "none, and the endpoint's config is checked all the same.",
    )
    minutes: int = Field(
        default=LONGEST_MINUTES,
        ge=1,
        le=LONGEST_MINUTES,
        description="After this time a deployment whose models have not all answered fails, minutes.",
    )
