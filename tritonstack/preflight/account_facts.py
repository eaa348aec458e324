"""Facts of the account that checks share: quotas by name, instances in use, the environment's stacks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tritonstack.catalogue import partition
from tritonstack.config import engines_built_on_deploy
from tritonstack.engines.order import Served
from tritonstack.preflight.result import About, Result
from tritonstack.read_only_aws import NotKnownError, ReadOnlyCalls
from tritonstack.releases.deployed import stack_name

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Finds a value when it is first asked for; others wait for it, and get the same refusal."""

    def __init__(self, find: Callable[[], Value]) -> None:
        """``find`` may raise :class:`NotKnownError`."""
        self._find = find
        self._lock = threading.Lock()
        self._found: list[Value] = []
        self._refused: NotKnownError | None = None

    def get(self) -> Value:
        """The value. Raises :class:`NotKnownError` where AWS does not say."""
        with self._lock:
            if self._refused is not None:
                raise NotKnownError(
                    self._refused.found, advice=self._refused.advice, permission=self._refused.permission
                )
            if not self._found:
                try:
                    self._found.append(self._find())
                except NotKnownError as error:
                    self._refused = error
                    raise
            return self._found[0]


_PAGE = 100
"""The most that one answer has (API reference, ListServiceQuotas); SageMaker has thousands of quotas."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota.

    Attributes:
        service: Service Quotas' code of the service (``sagemaker``).
        code: the quota's code (``L-7A3DF611``).
        name: its name (``ml.g4dn.xlarge for endpoint usage``).
        value: the account's; AWS's default where the account's is not listed.
        is_default: whether it is AWS's default that is listed, not what the account has.
        adjustable: whether more can be asked for.
    """

    service: str
    code: str
    name: str
    value: float
    is_default: bool
    adjustable: bool

    def __str__(self) -> str:
        return f"{self.value:g} ({'default of ' if self.is_default else ''}{self.code} «{self.name}»)"


class Quotas:
    """The quotas of one account and region; each service's list is read once, whoever asks."""

    def __init__(self, calls: ReadOnlyCalls, *, region: str) -> None:
        """``region``: for links and command lines."""
        self._calls = calls
        self._region = region
        self._lock = threading.Lock()
        self._lists: dict[tuple[str, bool], Once[dict[str, Quota]]] = {}

    def named(self, service: str, name: str) -> Quota | None:
        """The quota called ``name``, in any case; None where the service has none of that name in the region.

        ListServiceQuotas leaves out a quota whose value for the account is not available; its default then counts.

        Raises:
            NotKnownError: AWS refuses or does not answer.
        """
        for defaults in (False, True):
            found = self._list(service, defaults=defaults).get().get(name.lower())
            if found is not None:
                return found
        return None

    def compare(self, about: About, *, service: str, name: str, needed: int) -> Result:
        """Whether the quota called ``name`` is ``needed`` or more. Raises as ``named``."""
        quota = self.named(service, name)
        if quota is None:
            return about.unknown(
                f"Service Quotas of {self._region} lists no «{name}» of {service}",
                advice="Look at the service's quotas in the console: the name may differ there, or there is none.",
            )
        if quota.value >= needed:
            return about.passes(str(quota))
        return about.fails(str(quota), advice=self.how_to_raise(quota, wanted=needed))

    def how_to_raise(self, quota: Quota, *, wanted: int) -> str:
        """What to do to have ``wanted``."""
        if not quota.adjustable:
            return "It is not adjustable: use another type, or fewer instances."
        place = f"https://{self._region}.console.aws.amazon.com/servicequotas/home/services/{quota.service}/quotas/"
        line = (
            f"aws service-quotas request-service-quota-increase --region {self._region} --service-code {quota.service}"
            f" --quota-code {quota.code} --desired-value {wanted}"
        )
        console = f" (or {place}{quota.code})" if partition(self._region) == "aws" else ""
        return f"Ask for {wanted}: {line}{console}; it may take days."

    def _list(self, service: str, *, defaults: bool) -> Once[dict[str, Quota]]:
        with self._lock:
            key = (service, defaults)
            if key not in self._lists:
                self._lists[key] = Once(lambda: self._read(service, defaults=defaults))
            return self._lists[key]

    def _read(self, service: str, *, defaults: bool) -> dict[str, Quota]:
        operation = "list_aws_default_service_quotas" if defaults else "list_service_quotas"
        rows = self._calls.pages(
            "service-quotas", operation, "Quotas", ServiceCode=service, PaginationConfig={"PageSize": _PAGE}
        )
        quotas = (_quota(row, service, is_default=defaults) for row in rows)
        return {quota.name.lower(): quota for quota in quotas if quota is not None}


def _quota(row: dict[str, Any], service: str, *, is_default: bool) -> Quota | None:
    """None for a row that has an error in the place of its value."""
    if row.get("Value") is None or row.get("ErrorReason"):
        return None
    return Quota(
        service=service,
        code=row["QuotaCode"],
        name=row["QuotaName"],
        value=row["Value"],
        is_default=is_default,
        adjustable=bool(row.get("Adjustable")),
    )


_LOOKS = 8
"""How many endpoints or jobs are looked at at once."""
_GONE = ("ValidationException",)
"""What SageMaker answers of an endpoint or a config that is gone since it was listed."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The instances of one production variant, or of one processing job.

    Attributes:
        owner: the endpoint's or the job's name.
        instance_type: theirs.
        instances: how many there are, or are to be, whichever is more.
    """

    owner: str
    instance_type: str
    instances: int


class Fleets:
    """Read once, whoever asks."""

    def __init__(self, calls: ReadOnlyCalls) -> None:
        """``calls``: of the environment's account and region."""
        self._calls = calls
        self._endpoints = Once(self._of_endpoints)
        self._jobs = Once(self._of_jobs)

    def of_endpoints(self) -> tuple[Fleet, ...]:
        """Of every endpoint of the account in the region. Raises :class:`NotKnownError`."""
        return self._endpoints.get()

    def of_jobs(self) -> tuple[Fleet, ...]:
        """Of every processing job that runs. Raises :class:`NotKnownError`."""
        return self._jobs.get()

    def _of_endpoints(self) -> tuple[Fleet, ...]:
        names = [row["EndpointName"] for row in self._calls.pages("sagemaker", "list_endpoints", "Endpoints")]
        return _each(self._endpoint, names)

    def _of_jobs(self) -> tuple[Fleet, ...]:
        rows = self._calls.pages(
            "sagemaker", "list_processing_jobs", "ProcessingJobSummaries", StatusEquals="InProgress"
        )
        return _each(self._job, [row["ProcessingJobName"] for row in rows])

    def _endpoint(self, name: str) -> tuple[Fleet, ...]:
        endpoint = self._calls.ask("sagemaker", "describe_endpoint", absent=_GONE, EndpointName=name)
        if endpoint is None:
            return ()
        config = self._calls.ask(
            "sagemaker", "describe_endpoint_config", absent=_GONE, EndpointConfigName=endpoint["EndpointConfigName"]
        )
        types = {row["VariantName"]: row.get("InstanceType") for row in (config or {}).get("ProductionVariants", ())}
        return tuple(
            Fleet(
                owner=name,
                instance_type=types[row["VariantName"]],
                instances=max(row.get("CurrentInstanceCount") or 0, row.get("DesiredInstanceCount") or 0),
            )
            for row in endpoint.get("ProductionVariants", ())
            if types.get(row["VariantName"])  # a serverless variant has no instances
        )

    def _job(self, name: str) -> tuple[Fleet, ...]:
        job = self._calls.must("sagemaker", "describe_processing_job", ProcessingJobName=name)
        cluster = job["ProcessingResources"]["ClusterConfig"]
        return (Fleet(owner=name, instance_type=cluster["InstanceType"], instances=cluster["InstanceCount"]),)


def _each(look: Callable[[str], tuple[Fleet, ...]], names: Sequence[str]) -> tuple[Fleet, ...]:
    with ThreadPoolExecutor(_LOOKS) as pool:
        return tuple(fleet for fleets in pool.map(look, names) for fleet in fleets)


_NO_STACK = "does not exist"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack as CloudFormation describes it.

    Attributes:
        status: its state (``UPDATE_COMPLETE``).
        reason: of that state, or empty.
        protected: whether termination protection is on.
    """

    status: str
    reason: str
    protected: bool


class Stacks:
    """Each stack and its resources are read once, whoever asks."""

    def __init__(self, calls: ReadOnlyCalls) -> None:
        """``calls``: of the environment's account and region."""
        self._calls = calls
        self._lock = threading.Lock()
        self._stacks: dict[str, Once[Stack | None]] = {}
        self._resources: dict[str, Once[Mapping[str, tuple[str, ...]]]] = {}

    def get(self, name: str) -> Stack | None:
        """The stack; None where there is none. Raises :class:`NotKnownError`."""
        with self._lock:
            found = self._stacks.setdefault(name, Once(lambda: self._describe(name)))
        return found.get()

    def made(self, name: str, resource_type: str) -> tuple[str, ...]:
        """The physical ids of a stack's resources of a type; none where there is no stack. Raises as ``get``."""
        with self._lock:
            found = self._resources.setdefault(name, Once(lambda: self._list(name)))
        return found.get().get(resource_type, ())

    def _describe(self, name: str) -> Stack | None:
        try:
            rows = self._calls.must("cloudformation", "describe_stacks", StackName=name)["Stacks"]
        except NotKnownError as error:
            if _NO_STACK in error.found:  # CloudFormation has no code of its own for it (ValidationError)
                return None
            raise
        row: dict[str, Any] = rows[0]
        return Stack(
            status=row["StackStatus"],
            reason=row.get("StackStatusReason", ""),
            protected=bool(row.get("EnableTerminationProtection")),
        )

    def _list(self, name: str) -> dict[str, tuple[str, ...]]:
        if self.get(name) is None:
            return {}
        found: dict[str, list[str]] = {}
        rows = self._calls.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
        for row in rows:
            if row.get("PhysicalResourceId") and row.get("ResourceStatus") != "DELETE_COMPLETE":
                found.setdefault(row["ResourceType"], []).append(row["PhysicalResourceId"])
        return {kind: tuple(ids) for kind, ids in found.items()}


def stack_names(served: Served) -> tuple[str, ...]:
    """The stacks that a deployment of the environment has, in its order (``stacks/stage.py`` makes them)."""
    environment = served.environment
    name = environment.environment
    names = [f"{name}-artifacts"]
    if environment.network is not None:
        names.append(f"{name}-network")
    if engines_built_on_deploy(environment, bool(served.engines.builds)):
        names.append(f"{name}-builds")
    names += [stack_name(environment=name, endpoint=endpoint.name) for endpoint in environment.endpoints]
    if environment.dashboard or environment.alarms is not None:
        names.append(f"{name}-observability")
    return tuple(names)
