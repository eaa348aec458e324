"""What ``tritonstack preflight --json`` prints; its schema is ``schemas/preflight.schema.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.preflight.result import Outcome, Result


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PreflightResult(_Part):
    """One thing that was looked at."""

    check: str = Field(description="The check's name.")
    subject: str = Field(description="What was looked at.")
    outcome: Outcome = Field(description="passes, fails, or unknown: AWS did not say.")
    found: str = Field(description="What AWS says, or why it says nothing.")
    needed: str = Field(description="What a deployment needs.")
    advice: str = Field(description="What to do; empty where it passes.")
    permission: str | None = Field(description="The IAM action that is missing; null where none is.")


class PreflightReport(_Part):
    """An environment, before it is deployed."""

    environment: str = Field(description="Its name.")
    account: str = Field(description="That its file names.")
    region: str = Field(description="That its file names.")
    constructed: bool = Field(description="Whether quotas, images and prices are stand-ins: those of the local AWS.")
    passes: int = Field(description="Results that pass.")
    fails: int = Field(description="Results that fail: a deployment will fail.")
    unknown: int = Field(description="Results that could not be known.")
    results: tuple[PreflightResult, ...] = Field(description="By check, in the order of docs/operations.md.")


def report_of(
    results: Sequence[Result], *, environment: str, account: str, region: str, constructed: bool
) -> PreflightReport:
    """The report of an environment's results."""
    counted = {outcome: sum(result.outcome == outcome for result in results) for outcome in ("passes", "fails")}
    return PreflightReport(
        environment=environment,
        account=account,
        region=region,
        constructed=constructed,
        passes=counted["passes"],
        fails=counted["fails"],
        unknown=len(results) - sum(counted.values()),
        results=tuple(PreflightResult(**asdict(result)) for result in results),
    )
