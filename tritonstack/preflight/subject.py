"""Input and results of preflight checks: the environment, facts of its account read once, the report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.catalogue import partition
from tritonstack.config import Environment, engines_built_on_deploy
from tritonstack.deployed.left import Deployed, deployed_and_left
from tritonstack.served import Served

CheckOutcome = Literal["passes", "fails", "warns", "unknown"]
"""``passes``: a deployment finds what it needs; ``fails``: it does not; ``warns``: it does, and leaves something that
is to be looked at; ``unknown``: AWS did not respond."""


class _PreflightModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PreflightResult(_PreflightModel):
    """Result of one check of one item."""

    check: str = Field(description="The check's name.")
    subject: str = Field(description="What was looked at.")
    outcome: CheckOutcome = Field(
        description="passes, fails, warns: what a deployment leaves, or unknown: AWS did not say."
    )
    found: str = Field(description="What AWS says, or why it says nothing.")
    needed: str = Field(description="What a deployment needs.")
    advice: str = Field(description="What to do; empty where it passes.")
    permission: str | None = Field(description="The IAM action that is missing; null where none is.")


class PreflightReport(_PreflightModel):
    """An environment, before it is deployed."""

    environment: str = Field(description="Its name.")
    account: str = Field(description="That its file names.")
    region: str = Field(description="That its file names.")
    constructed: bool = Field(description="Whether quotas, images and prices are stand-ins: those of the local AWS.")
    passes: int = Field(description="Results that pass.")
    fails: int = Field(description="Results that fail: a deployment will fail.")
    warns: int = Field(default=0, description="Results to look at, which no deployment fails at.")
    unknown: int = Field(description="Results that could not be known.")
    results: tuple[PreflightResult, ...] = Field(description="By check, in the order of tritonstack docs preflight.")


def report_of(results: Sequence[PreflightResult], environment: Environment, *, constructed: bool) -> PreflightReport:
    """The report of an environment's results."""
    outcomes = [result.outcome for result in results]
    return PreflightReport(
        environment=environment.environment,
        account=environment.account,
        region=environment.region,
        constructed=constructed,
        passes=outcomes.count("passes"),
        fails=outcomes.count("fails"),
        warns=outcomes.count("warns"),
        unknown=outcomes.count("unknown"),
        results=tuple(results),
    )


@dataclass(frozen=True, kw_only=True)
class CheckedItem:
    """One item that a check looks at, and what a deployment needs of it; makes the results of the check."""

    check: str
    subject: str
    needed: str

    def passes(self, found: str) -> PreflightResult:
        """The item has what a deployment needs."""
        return self._result("passes", found)

    def fails(self, found: str, *, advice: str) -> PreflightResult:
        """A deployment will fail."""
        return self._result("fails", found, advice)

    def warns(self, found: str, *, advice: str) -> PreflightResult:
        """A deployment goes well, and leaves something to look at."""
        return self._result("warns", found, advice)

    def unknown(self, found: str, *, advice: str, permission: str | None = None) -> PreflightResult:
        """AWS did not respond."""
        return self._result("unknown", found, advice, permission)

    def _result(
        self, outcome: CheckOutcome, found: str, advice: str = "", permission: str | None = None
    ) -> PreflightResult:
        return PreflightResult(
            check=self.check,
            subject=self.subject,
            outcome=outcome,
            found=found,
            needed=self.needed,
            advice=advice,
            permission=permission,
        )

    def look(
        self, work: Callable[..., PreflightResult | Iterable[PreflightResult]], *arguments: Any
    ) -> Iterator[PreflightResult]:
        """The results of ``work(self, *arguments)``; one that is unknown where AWS does not respond."""
        try:
            found = work(self, *arguments)
            results = [found] if isinstance(found, PreflightResult) else list(found)
        except NotKnownError as error:
            results = [self.unknown(error.found, advice=error.advice, permission=error.permission)]
        yield from results


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A service quota."""

    service: str  # Service Quotas' code of the service (``sagemaker``)
    code: str  # the quota's code (``L-7A3DF611``)
    name: str  # its name (``ml.g4dn.xlarge for endpoint usage``)
    value: float  # the account's; AWS's default where the account's is not listed
    is_default: bool  # whether the value is AWS's default
    adjustable: bool  # whether an increase can be requested

    def __str__(self) -> str:
        return f"{self.value:g} ({'default of ' if self.is_default else ''}{self.code} «{self.name}»)"

    def how_to_raise(self, *, region: str, wanted: int) -> str:
        """How to raise the quota to ``wanted``."""
        if not self.adjustable:
            return "It is not adjustable: use another type, or fewer instances."
        line = (
            f"aws service-quotas request-service-quota-increase --region {region} --service-code {self.service}"
            f" --quota-code {self.code} --desired-value {wanted}"
        )
        place = f"https://{region}.console.aws.amazon.com/servicequotas/home/services/{self.service}/quotas/"
        console = f" (or {place}{self.code})" if partition(region) == "aws" else ""
        return f"Ask for {wanted}: {line}{console}; it may take days."


@dataclass(frozen=True, kw_only=True)
class RunningInstances:
    """Instances of a production variant."""

    owner: str  # the endpoint's name
    instance_type: str  # theirs
    instances: int  # how many there are, or are to be, whichever is more


_QUOTAS_OF_A_PAGE = 100
"""The most that one answer has (API reference, ListServiceQuotas); SageMaker has thousands of quotas."""
_DESCRIBED_AT_ONCE = 8
GONE = ("ValidationException",)
"""Error code of SageMaker for an endpoint, a config or a model that was deleted since it was listed."""


def endpoint_and_variants(calls: ReadOnlyCalls, name: str) -> tuple[dict[str, Any], list[Any]]:
    """DescribeEndpoint's response and the variants of its config, both empty where the endpoint is gone."""
    endpoint = calls.ask("sagemaker", "describe_endpoint", absent=GONE, EndpointName=name)
    if endpoint is None:
        return {}, []
    config_name = endpoint["EndpointConfigName"]
    config = calls.ask("sagemaker", "describe_endpoint_config", absent=GONE, EndpointConfigName=config_name)
    return endpoint, (config or {}).get("ProductionVariants", [])


class AccountFacts:
    """Facts of the account that checks share. Each is read once: other threads wait for it, and get the same refusal.

    Every method raises NotKnownError where AWS refuses or does not respond.
    """

    def __init__(self, calls: ReadOnlyCalls, *, region: str) -> None:
        """``region``: for links and command lines."""
        self._calls = calls
        self._region = region
        self._lock = threading.Lock()
        self._facts: dict[Hashable, Future[Any]] = {}

    def _once(self, key: Hashable, read: Callable[[], Any]) -> Any:
        with self._lock:
            is_first = key not in self._facts
            fact: Future[Any] = self._facts.setdefault(key, Future())
        if is_first:
            try:
                fact.set_result(read())
            except BaseException as error:  # noqa: BLE001  (raised in every thread that wants the fact)
                fact.set_exception(error)
        return fact.result()

    def quota(self, service: str, name: str) -> Quota | None:
        """The quota called ``name``, in any case; None where the service has none of that name in the region.

        ListServiceQuotas leaves out a quota whose value for the account is not available; its default then counts.
        """
        for defaults in (False, True):
            read = partial(self._read_quotas, service, defaults=defaults)
            found: Quota | None = self._once((service, defaults), read).get(name.lower())
            if found is not None:
                return found
        return None

    def compare_quota(self, item: CheckedItem, service: str, name: str, needed: int) -> PreflightResult:
        """Whether the quota called ``name`` is ``needed`` or more."""
        quota = self.quota(service, name)
        if quota is None:
            return item.unknown(
                f"Service Quotas of {self._region} lists no «{name}» of {service}",
                advice="Look at the service's quotas in the console: the name may differ there, or there is none.",
            )
        if quota.value >= needed:
            return item.passes(str(quota))
        return item.fails(str(quota), advice=quota.how_to_raise(region=self._region, wanted=needed))

    def _read_quotas(self, service: str, *, defaults: bool) -> dict[str, Quota]:
        """Name in lower case → quota. A row may have an error in the place of its value."""
        operation = "list_aws_default_service_quotas" if defaults else "list_service_quotas"
        rows = self._calls.pages(
            "service-quotas",
            operation,
            "Quotas",
            ServiceCode=service,
            PaginationConfig={"PageSize": _QUOTAS_OF_A_PAGE},
        )
        return {
            row["QuotaName"].lower(): Quota(
                service=service,
                code=row["QuotaCode"],
                name=row["QuotaName"],
                value=row["Value"],
                is_default=defaults,
                adjustable=bool(row.get("Adjustable")),
            )
            for row in rows
            if row.get("Value") is not None and not row.get("ErrorReason")
        }

    def deployed(self, settings: Environment, *, project: Path) -> Deployed:
        """The account's stacks in the environment's region, and those that left the environment's file."""
        found: Deployed = self._once("stacks", lambda: deployed_and_left(self._calls, settings, project=project))
        return found

    def endpoint_instances(self) -> tuple[RunningInstances, ...]:
        """Instances of every endpoint of the account in the region; several are described at once."""

        def read() -> tuple[RunningInstances, ...]:
            rows = self._calls.pages("sagemaker", "list_endpoints", "Endpoints")
            with ThreadPoolExecutor(_DESCRIBED_AT_ONCE) as pool:
                described = pool.map(self._instances_of, [row["EndpointName"] for row in rows])
                return tuple(each for found in described for each in found)

        instances: tuple[RunningInstances, ...] = self._once("instances", read)
        return instances

    def _instances_of(self, name: str) -> tuple[RunningInstances, ...]:
        endpoint, variants = endpoint_and_variants(self._calls, name)
        types = {row["VariantName"]: row.get("InstanceType") for row in variants}
        rows = endpoint.get("ProductionVariants", ())
        counts = [
            (types[row["VariantName"]], max(row.get("CurrentInstanceCount") or 0, row.get("DesiredInstanceCount") or 0))
            for row in rows
            if types.get(row["VariantName"])  # a serverless variant has no instances
        ]
        pools = (pool for row in rows for pool in row.get("InstancePools", ()))
        counts += [(pool["InstanceType"], pool["CurrentInstanceCount"]) for pool in pools]
        return tuple(RunningInstances(owner=name, instance_type=kind, instances=count) for kind, count in counts)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Input of every check."""

    served: Served  # the environment, matched with its archives
    calls: ReadOnlyCalls  # read-only calls to the account
    project: Path  # the project's folder (``cdk.json``, ``model_repos``)
    local: bool  # whether the account is the local AWS's, where quotas, images and prices are constructed
    at_once: int = 1  # endpoints that a deployment updates at the same time
    facts: AccountFacts = field(init=False)  # facts of the account that several checks need

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", AccountFacts(self.calls, region=self.environment.region))

    @property
    def environment(self) -> Environment:
        """The settings."""
        return self.served.environment

    @property
    def builds_on_deploy(self) -> bool:
        """Whether a deployment builds archives that are missing."""
        return engines_built_on_deploy(self.environment, bool(self.served.engines.builds))
