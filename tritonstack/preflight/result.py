"""The result of a check, and the document of ``tritonstack preflight --json``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.read_only_aws import NotKnownError

Outcome = Literal["passes", "fails", "unknown"]
"""``passes``: a deployment finds what it needs; ``fails``: it will not; ``unknown``: AWS did not say."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One thing that was looked at.

    Attributes:
        check: the check's name (``endpoint-quota``).
        subject: what was looked at (``ml.g4dn.xlarge``).
        outcome: what follows for a deployment.
        found: what AWS says, or why it says nothing.
        needed: what a deployment needs.
        advice: what to do; empty where it passes.
        permission: the IAM action that is missing, where one is (``ecr:BatchGetImage``).
    """

    check: str
    subject: str
    outcome: Outcome
    found: str
    needed: str
    advice: str = ""
    permission: str | None = None


@dataclass(frozen=True, kw_only=True)
class About:
    """One thing that a check looks at, and what a deployment needs of it: makes its results."""

    check: str
    subject: str
    needed: str

    def passes(self, found: str) -> Result:
        """A deployment finds what it needs."""
        return self._result("passes", found)

    def fails(self, found: str, *, advice: str) -> Result:
        """A deployment will fail."""
        return self._result("fails", found, advice=advice)

    def unknown(self, found: str, *, advice: str, permission: str | None = None) -> Result:
        """AWS did not say."""
        return self._result("unknown", found, advice=advice, permission=permission)

    def _result(self, outcome: Outcome, found: str, *, advice: str = "", permission: str | None = None) -> Result:
        return Result(
            check=self.check,
            subject=self.subject,
            outcome=outcome,
            found=found,
            needed=self.needed,
            advice=advice,
            permission=permission,
        )

    def look(self, work: Callable[..., Result | Iterable[Result]], *arguments: Any) -> Iterator[Result]:
        """The results of ``work(self, *arguments)``; one that is unknown where AWS does not answer it."""
        try:
            found = work(self, *arguments)
            results = [found] if isinstance(found, Result) else list(found)
        except NotKnownError as error:
            results = [self.unknown(error.found, advice=error.advice, permission=error.permission)]
        yield from results


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
    results: tuple[PreflightResult, ...] = Field(description="By check, in the order of docs/preflight.md.")


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
