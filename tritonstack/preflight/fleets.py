"""What runs in the account already: instances of endpoints and of processing jobs, by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tritonstack.preflight.once import Once
from tritonstack.read_only_aws import ReadOnlyCalls

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
