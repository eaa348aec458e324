"""``tritonstack verify``: sends every recorded model its sample request, and reads how long models took to load."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.aws.session import DENIED_CODES, Session, code_of, credentials_ended
from tritonstack.catalogue import load_catalogue
from tritonstack.client.body import Array
from tritonstack.client.errors import ModelFailedError
from tritonstack.client.manifest import read_table
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelRelease
from tritonstack.client.streaming import joined_outputs
from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.models.manifest import Manifest, Places
from tritonstack.models.python_failure import response_failure
from tritonstack.models.sample import compare_answer, request_arrays, to_tensors
from tritonstack.models.selection import is_made_of_folder
from tritonstack.monitoring.metric import Metric, Series, queries
from tritonstack.naming import Platform, endpoint_name, scalable_variant, serving_part, serving_stack, stack_path
from tritonstack.releases.records import DeployedSet, deployed_set

DAYS = 14
HOUR = 3600
MICROSECONDS = 1e6
PARTS = {"download": aws_names.MODEL_DOWNLOADING_TIME, "load": aws_names.MODEL_LOADING_TIME}
"""A model that is not on an instance is downloaded, then loaded (developer guide, multi-model metrics)."""


@dataclass(frozen=True, kw_only=True)
class LoadTimes:
    """The slowest of the last two weeks, seconds; downloads and loads may be those of two models."""

    download: float | None = None  # None where no download was measured
    load: float | None = None  # None where no load was measured
    problem: str = ""  # why they could not be read; empty where they could

    @property
    def slowest(self) -> float | None:
        """The longest that a request may have waited for its model; None where nothing was measured."""
        found = [part for part in (self.download, self.load) if part is not None]
        return sum(found) if found else None


def load_times(session: Session, *, endpoint_name: str, variants: list[dict[str, Any]]) -> LoadTimes:
    """The slowest download and load of an endpoint's variants. A refusal of CloudWatch becomes ``problem``."""
    series = [
        Series.of(f"{key}{number}", name, _metric(name, endpoint_name=endpoint_name, variant=variant["VariantName"]))
        for number, variant in enumerate(variants)
        for key, name in PARTS.items()
    ]
    if not series:
        return LoadTimes()
    wanted, end = queries(series, period=HOUR), time.time()
    try:
        paginator = session.client("cloudwatch").get_paginator("get_metric_data")
        pages = paginator.paginate(MetricDataQueries=wanted, StartTime=end - DAYS * 24 * HOUR, EndTime=end + HOUR)
        results = [result for page in pages for result in page["MetricDataResults"]]
    except (ClientError, BotoCoreError) as error:
        return LoadTimes(problem=" ".join(str(error).split()))
    return LoadTimes(download=_slowest(results, "download"), load=_slowest(results, "load"))


def _metric(name: str, *, endpoint_name: str, variant: str) -> Metric:
    dimensions = tuple(aws_names.variant_dimensions(endpoint_name, variant).items())
    return Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=dimensions, statistic="Maximum")


def _slowest(results: list[Mapping[str, Any]], key: str) -> float | None:
    values = [value for result in results if result["Id"].startswith(key) for value in result["Values"]]
    return max(values) / MICROSECONDS if values else None


def _as_landed(deployed: DeployedSet, pools: Iterable[tuple[str, int]]) -> list[DeployedSet]:
    """The deployed set for each GPU that serves, the preferred one first; without instance pools, as it is."""
    rows = [load_catalogue().instance(name) for name, count in pools if count]
    gpus = dict.fromkeys(row.gpu for row in rows if row is not None)
    release = deployed.platform.release if gpus else ""
    return [replace(deployed, platform=Platform(release=release, gpu=gpu)) for gpu in gpus] or [deployed]


def _difference(manifests: Sequence[Manifest], answer: SampleResponse, *, model: str) -> float:
    """The largest difference of a response from what one of the manifests expects; raises as the first of them."""
    errors = []
    for each in manifests:
        try:
            return compare_answer(each.sample, to_tensors(answer.outputs), model=model)
        except TritonstackError as error:
            errors.append(error)
    raise errors[0]


CONFIG_TYPE = "AWS::SageMaker::EndpointConfig"


@dataclass(frozen=True, kw_only=True)
class VerifiedModel:
    """The response of one recorded model."""

    model: str  # its name
    digest: str  # of the archive that its record names
    problem: str = ""  # what is wrong; empty where nothing is
    # the largest difference of a floating-point value from the expected response; None: no response
    difference: float | None = None
    milliseconds: float | None = None  # of the request, waiting for a load included; None: no response


@dataclass(frozen=True, kw_only=True)
class VerifiedEndpoint:
    """State of one endpoint, and its models' responses."""

    endpoint: str  # its name in the environment
    config: str = ""  # the EndpointConfig that it runs; empty where that is not known
    instances: int = 0  # how many instances it has now, 0 where that is not known
    pools: tuple[tuple[str, int], ...] = ()  # instance type of a pool and its instances now; none without pools
    problem: str = ""  # what is wrong with the endpoint itself; empty where nothing is
    models: tuple[VerifiedModel, ...] = ()  # by name
    loads: LoadTimes | None = None  # multi-model: how long its models took to load; None on a single-model endpoint

    @property
    def slowest_load(self) -> float | None:
        """The longest wait of a request for a model, or the longest response just now, seconds; None: nothing is known.

        CloudWatch has a load a minute later; the responses that waited for it include it already.
        """
        if self.loads is None:
            return None
        answers = [model.milliseconds / 1000 for model in self.models if model.milliseconds is not None]
        found = [*answers, *([] if self.loads.slowest is None else [self.loads.slowest])]
        return max(found) if found else None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem and not any(model.problem for model in self.models)


@dataclass(frozen=True, kw_only=True)
class SampleResponse:
    """The response to a sample request; of a stream all of its events together."""

    outputs: Mapping[str, Array]
    milliseconds: float  # of the successful attempt; of a stream as ``total_milliseconds``
    total_milliseconds: float  # waiting for a load included


class Verifier:
    """Verifies endpoints of one environment against their stacks, records and manifests."""

    def __init__(self, environment: str, *, session: Session, client: ModelClient) -> None:
        """``client`` invokes the models. Raises InputError where the environment's artifacts are not deployed."""
        self.environment = environment
        self._session = session
        self._client = client
        self._bucket = ArtifactBucket(environment=environment, session=session)

    def endpoint(
        self, endpoint: str, releases: tuple[ModelRelease, ...], *, say: Callable[[str], None] = lambda _text: None
    ) -> VerifiedEndpoint:
        """Check one endpoint, and invoke each of these models. Raises WorkFailedError where AWS refuses a request.

        ``say`` is called with each step.
        """
        deployed = deployed_set(self._session, environment=self.environment, endpoint=endpoint)
        if deployed is None:
            return VerifiedEndpoint(endpoint=endpoint, problem="it is not deployed")
        say("what it runs")
        found = self._described(endpoint)
        variants = found.get("ProductionVariants", [])
        pools = tuple(
            (pool["InstanceType"], pool["CurrentInstanceCount"])
            for variant in variants
            for pool in variant.get("InstancePools", ())
        )
        models = []
        for number, release in enumerate(releases, start=1):
            say(f"{number} of {len(releases)}: {release.model}")
            models.append(self.model(release, deployed, pools=pools))
        name = endpoint_name(environment=self.environment, endpoint=endpoint)
        return VerifiedEndpoint(
            endpoint=endpoint,
            config=found.get("EndpointConfigName", ""),
            instances=sum(variant.get("CurrentInstanceCount", 0) for variant in variants),
            pools=pools,
            problem=self._problem(found, deployed),
            models=tuple(models),
            loads=load_times(self._session, endpoint_name=name, variants=variants) if deployed.multi_model else None,
        )

    def model(
        self, release: ModelRelease, deployed: DeployedSet, *, pools: Iterable[tuple[str, int]] = ()
    ) -> VerifiedModel:
        """Look for a record's archive and send it its sample request.

        ``pools``: instance type → instances now; the response must be that of one of their GPUs.
        """
        try:
            found = [self._manifest(release, each) for each in _as_landed(deployed, pools)]
            manifest, folder = found[0]
            answer = self._invoke(release, deployed, manifest, folder)
            difference = _difference([each for each, _ in found], answer, model=release.model)
        except TritonstackError as error:
            if credentials_ended(error):
                raise  # every other model would fail alike
            problem = " ".join(str(error).split())
            if isinstance(error, ModelFailedError):
                repositories = Places.of_project().repositories
                problem = response_failure(
                    error,
                    model=release.model,
                    repositories=repositories,
                    serves_folder=is_made_of_folder(release.archive, repositories),
                )
            return VerifiedModel(model=release.model, digest=release.digest, problem=problem)
        return VerifiedModel(
            model=release.model, digest=release.digest, difference=difference, milliseconds=answer.total_milliseconds
        )

    def ask(
        self, release: ModelRelease, deployed: DeployedSet, *, sample_of: ModelRelease | None = None
    ) -> SampleResponse:
        """Invoke a release's archive with its own sample request, or with that of ``sample_of``.

        Raises:
            WorkFailedError: archive or manifest is missing; and as :meth:`ModelClient.invoke`.
        """
        return self._invoke(release, deployed, *self._manifest(sample_of or release, deployed))

    def _manifest(self, release: ModelRelease, deployed: DeployedSet) -> tuple[Manifest, str]:
        """The manifest of a release whose archive is there, and the folder of its client files."""
        place = Place(endpoint=release.endpoint, platform=deployed.platform)
        archive, key = place.archive(release.archive), place.manifest(release.archive)
        if self._bucket.look(archive) is None:
            raise WorkFailedError(f"its archive is missing: s3://{self._bucket.name}/{archive}")
        content = self._bucket.read(key)
        if content is None:
            raise WorkFailedError(f"its manifest is missing: s3://{self._bucket.name}/{key}")
        try:
            manifest = Manifest.model_validate_json(content)
        except ValueError as error:
            raise WorkFailedError(f"s3://{self._bucket.name}/{key} is no manifest of this version: {error}") from error
        return manifest, place.client_folder(release.archive)

    def _invoke(self, release: ModelRelease, deployed: DeployedSet, manifest: Manifest, folder: str) -> SampleResponse:
        """The response to the sample request of a manifest, whose client files are in ``folder``."""
        table = read_table(json.loads(manifest.to_json()), bucket=self._bucket.name, folder=folder)
        adapter = manifest.adapters.of(manifest.sample.adapter) if manifest.sample.adapter else None
        files = self._client.client_files(table, adapter.files) if adapter else {}
        request = request_arrays(
            manifest.sample,
            adapters=manifest.adapters,
            model=manifest.model,
            files=files,
            file=manifest.sample.file,
        )
        addressed = release.archive if deployed.multi_model else release.model
        variant = deployed.variants.get(release.model)
        name = f"{release.endpoint}/{addressed}"
        if deployed.multi_model or not self._client.streams(name):
            response = self._client.invoke(name, request, payload_format="binary", variant=variant)
            return SampleResponse(
                outputs=response.outputs,
                milliseconds=response.milliseconds,
                total_milliseconds=response.total_milliseconds,
            )
        began = time.monotonic()
        datatypes = {output.name: output.datatype for output in manifest.model.outputs}
        events = [event.outputs for event in self._client.stream(name, request, variant=variant)]
        outputs, took = joined_outputs(events, datatypes), (time.monotonic() - began) * 1000
        return SampleResponse(outputs=outputs, milliseconds=took, total_milliseconds=took)

    def _described(self, endpoint: str) -> Mapping[str, Any]:
        """DescribeEndpoint's response; empty where there is no such endpoint."""
        name = endpoint_name(environment=self.environment, endpoint=endpoint)
        try:
            found: Mapping[str, Any] = self._session.client("sagemaker").describe_endpoint(EndpointName=name)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "ValidationException" and "Could not find" in str(error):
                return {}
            raise WorkFailedError(f"could not read the endpoint {name}: {error}") from error
        return found

    def _problem(self, found: Mapping[str, Any], deployed: DeployedSet) -> str:
        """Problem of an endpoint as described, with the remedy; empty for none."""
        endpoint = deployed.endpoint
        part = stack_path(environment=self.environment, part=serving_part(endpoint))
        anew = f"  do: cdk destroy '{part}', then cdk deploy '{part}'; archives stay in the bucket"
        under_way = f": a deployment is under way ({deployed.status})" if deployed.in_progress else ""
        if not found:
            gone = "there is no such endpoint at SageMaker"
            if under_way:
                return gone + under_way
            return (
                f"{gone}: it was deleted outside of its stack, which can no longer be changed: each change fails, and "
                f"ends in UPDATE_ROLLBACK_FAILED\n{anew}"
            )
        status, config = found["EndpointStatus"], found["EndpointConfigName"]
        why = f": {found['FailureReason']}" if found.get("FailureReason") else ""
        if status == "Failed":  # DeleteEndpoint is the only operation on it (API reference, DescribeEndpoint)
            return f"it is Failed{why}{under_way}" + ("" if under_way else f"\n{anew}")
        if status != "InService":
            return f"it is {status}{why}"
        expected = self._config_of_stack(endpoint)
        if config.lower() != expected:
            differs = f"it runs config {config}, and its stack says {expected}{why}"
            name = endpoint_name(environment=self.environment, endpoint=endpoint)
            back = f"aws sagemaker update-endpoint --endpoint-name {name} --endpoint-config-name {expected}"
            return differs + (under_way or f"\n  do: {back}, which moves it to the stack's")
        return "" if deployed.in_progress else "\n".join(self._stuck(found, deployed))

    def _stuck(self, found: Mapping[str, Any], deployed: DeployedSet) -> Iterator[str]:
        """Remains of a failed rollback: a stack that takes no deployment, and variants without scaling."""
        if deployed.status == "UPDATE_ROLLBACK_FAILED":
            yield (
                f"it serves, and its stack {deployed.stack} is UPDATE_ROLLBACK_FAILED, which takes no deployment\n"
                "  do: tritonstack docs troubleshooting#a-rollback-that-failed"
            )
        for resource in self._not_scaled(found, deployed):
            limits = set(deployed.scaled)
            least, most = limits.pop() if len(limits) == 1 else ("MINIMUM", "MAXIMUM")
            yield (
                f"it is to be scaled, and Application Auto Scaling has no scalable target {resource}: its instances "
                "stay as many as they are\n"
                "  do: aws application-autoscaling register-scalable-target --service-namespace sagemaker "
                f"--scalable-dimension {aws_names.VARIANT_INSTANCE_COUNT} --resource-id {resource} "
                f"--min-capacity {least} --max-capacity {most}; then deploy with another scaling.maximum, which puts "
                "its policies back"
            )

    def _not_scaled(self, found: Mapping[str, Any], deployed: DeployedSet) -> list[str]:
        """Resource ids of live variants that are no scalable targets, where fewer are than the stack has.

        None also without the permission to read the targets.
        """
        name = endpoint_name(environment=self.environment, endpoint=deployed.endpoint)
        live = [
            scalable_variant(endpoint_name=name, variant=each["VariantName"])
            for each in found.get("ProductionVariants", [])
        ]
        if not deployed.scaled or not live:
            return []
        scaling = self._session.client("application-autoscaling")
        try:
            answer = scaling.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=live)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) in DENIED_CODES:
                return []
            raise WorkFailedError(f"could not read the scalable targets of {name}: {error}") from error
        registered = {target["ResourceId"] for target in answer["ScalableTargets"]}
        return [] if len(registered) >= len(deployed.scaled) else [each for each in live if each not in registered]

    def _config_of_stack(self, endpoint: str) -> str:
        """The name of the EndpointConfig that the stack made last, in lower case."""
        stack = serving_stack(environment=self.environment, endpoint=endpoint)
        try:
            found = self._session.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
        except (ClientError, BotoCoreError) as error:
            raise WorkFailedError(f"could not read the stack {stack}: {error}") from error
        configs = [one["PhysicalResourceId"] for one in found if one["ResourceType"] == CONFIG_TYPE]
        # The physical id is the ARN (template reference: Ref), and an ARN spells the name in lower case.
        return configs[0].rpartition("/")[2].lower() if configs else "none"
