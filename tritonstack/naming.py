"""Names that several parts must spell alike: platforms, archives, keys in the bucket, parameters, endpoints.

The reasons for each form are in ``docs/decisions/0002-names-and-keys.md``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tritonstack.aws_names import COMPONENT_LOG_GROUPS, ENDPOINT_LOG_GROUPS

NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
"""Environments, endpoints and models: no dot, so that ``bert.*.tar.gz`` never covers ``bert-large``."""

ENVIRONMENT_TAG = "tritonstack:environment"
ENDPOINT_TAG = "tritonstack:endpoint"
ARTIFACTS, NETWORK, BUILDS, LOAD_TEST, OBSERVABILITY = "artifacts", "network", "builds", "load-test", "observability"
PIPELINE_ACCESS = "pipeline-access"
"""Ids of an environment's stacks in its stage; the stacks' names begin with the environment's (``stack_name``)."""
SERVING_PREFIX = "serving-"
DELETED_WITH_STACK_TAG = "tritonstack:deleted-with-stack"
"""Without this tag on a bucket, ``lambda/bucket_emptying`` leaves it alone."""
LOCAL_MAX_LOADED_MODELS_TAG = "tritonstack:local-max-loaded-models"
"""Read by the local runtime alone: how many models a container may hold. SageMaker has no such limit to set."""
PARAMETERS = "/tritonstack/"
"""Path of every parameter in SSM, and of the log groups that stacks name, but for those of functions."""
FUNCTION_LOGS = "/aws/lambda/"
"""Where the console and most people look for a function's log group; Lambda's own groups are there, too."""
DIGEST_LENGTH = 16
DIGEST_PATTERN = rf"[0-9a-f]{{{DIGEST_LENGTH}}}"
ARCHIVES, MANIFESTS, INPUTS, TIMING_CACHES = "endpoints/", "manifests/", "inputs/", "timing-caches/"
"""Roots of the bucket's keys that stay: archives by endpoint, their manifests, the inputs of digests, tactics."""
STAGING = "staging/"
ORDERS, WAITS, JOBS = f"{STAGING}orders/", f"{STAGING}waits/", f"{STAGING}jobs/"
"""Roots of the keys that builds remove: orders, who waits for each, and engines' jobs."""
RELEASE_SET_SUFFIX, BUILD_SET_SUFFIX = ".release-set", ".build-set"
"""Ends of the keys of assets that functions read, so that a permission covers no other asset."""
PUBLISHED_TYPE, RECORDS_TYPE = "Custom::PublishedArchives", "Custom::ReleaseRecords"
VERIFIED_TYPE = "Custom::VerifiedEndpoint"
SCALING_BEFORE_TYPE, SCALING_SETTLED_TYPE = "Custom::ScalingBefore", "Custom::ScalingSettled"
SCALING_AFTER_TYPE = "Custom::ScalingAfter"
LOG_GROUP_TYPE, BUILDS_TYPE, EMPTIED_TYPE = "Custom::EndpointLogGroup", "Custom::ModelBuilds", "Custom::EmptiedBucket"
"""Types of the custom resources."""
CLIENT_METRICS = "tritonstack/client"
"""CloudWatch namespace of what clients publish: SageMaker has no metric of what a caller waits for."""
END_TO_END_LATENCY = "EndToEndLatency"
MODEL_NAME = "ModelName"
"""Its third dimension, where it is of one model."""
POOL_DIGITS = 4
"""Hexadecimal digits of a list of instance pools in a variant's name."""
SHORT_NAME = 12
"""Characters of an environment's name in the names of jobs: a job's own name must stay below forty characters, for what
it makes is named after it and cut there (API reference: CreateInferenceRecommendationsJob)."""
_ARCHIVE = re.compile(r"(?P<model>[a-z0-9]([a-z0-9-]*[a-z0-9])?)\.(?P<digest>" + DIGEST_PATTERN + r")\.tar\.gz")
_PREFIX = re.compile(r"([A-Za-z0-9_.=+@()-]+/)+")


def gpu_in_names(gpu: str) -> str:
    """A GPU model as names spell it, in lower case (``t4``), from any spelling (``T4``)."""
    return gpu.lower()


@dataclass(frozen=True, kw_only=True, order=True)
class Platform:
    """What an engine depends on: a Triton release (``24.09``) and a GPU, of any spelling, in lower case (``t4``)."""

    release: str
    gpu: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu", gpu_in_names(self.gpu))

    def __str__(self) -> str:
        return f"{self.release}-{self.gpu}"

    @classmethod
    def parse(cls, text: str) -> Platform:
        """The platform that ``24.09-t4`` spells; text without a hyphen is a release, and names no GPU."""
        release, _, gpu = text.partition("-")
        return cls(release=release, gpu=gpu)


@dataclass(frozen=True, kw_only=True, order=True)
class ArchiveName:
    """A model's archive: its model and the digest of its inputs (16 hexadecimal digits)."""

    model: str
    digest: str

    def __str__(self) -> str:
        return f"{self.stem}.tar.gz"

    @property
    def stem(self) -> str:
        """Model and digest, as the names of the archive, its manifest and its client files begin."""
        return f"{self.model}.{self.digest}"

    @classmethod
    def parse(cls, text: str) -> ArchiveName | None:
        """The name that ``text`` spells, or None where it is no archive's name."""
        match = _ARCHIVE.fullmatch(text)
        return cls(model=match["model"], digest=match["digest"]) if match else None


@dataclass(frozen=True, kw_only=True, order=True)
class EndpointReference:
    """An endpoint by its environment's name and by its own name there, as settings have both.

    Attributes:
        environment: the environment's name, ``prod``.
        endpoint: the endpoint's name in its environment, ``digits``.

    Raises:
        ValueError: one of them is no name.
    """

    environment: str
    endpoint: str

    def __post_init__(self) -> None:
        for name in (self.environment, self.endpoint):
            if re.fullmatch(NAME_PATTERN, name) is None:
                raise ValueError(f"{name!r} is no name: small letters, digits and hyphens, as in an environment file")

    def __str__(self) -> str:
        return f"{self.environment}/{self.endpoint}"

    @property
    def records(self) -> str:
        """The path of its release records in SSM, with a trailing slash."""
        return release_parameter(environment=self.environment, endpoint=self.endpoint, model="")

    @property
    def removed_records(self) -> str:
        """The path of records whose models left the release set, kept for a rollback; no endpoint begins with ``_``."""
        return f"{parameter_prefix(self.environment)}_removed/{self.endpoint}/"

    @property
    def outputs(self) -> str:
        """The SSM parameter with the outputs of its stack, the endpoint's mode among them."""
        return outputs_parameter(environment=self.environment, stack=serving_part(self.endpoint))


def key_prefix(text: str) -> str:
    """A folder of a bucket as a key prefix with its trailing slash: what a policy grants of it ends at that slash.

    Raises:
        ValueError: it is the whole bucket, or has signs that S3 advises against or a policy reads as a wildcard.
    """
    prefix = f"{text.rstrip('/')}/"
    if not _PREFIX.fullmatch(prefix):
        raise ValueError("folders of letters, digits and - _ . = + @ ( ), each with a / after it: models/a/")
    return prefix


def archives_prefix(endpoint: str) -> str:
    """Prefix of an endpoint's archives for every platform, with a trailing slash."""
    return f"{ARCHIVES}{endpoint}/"


def manifests_prefix(endpoint: str) -> str:
    """Prefix of the manifests of an endpoint's archives for every platform, with a trailing slash."""
    return f"{MANIFESTS}{endpoint}/"


def platform_prefix(*, endpoint: str, platform: Platform) -> str:
    """Prefix of an endpoint's archives for one platform, with a trailing slash: the endpoint's ``ModelDataUrl``."""
    return f"{archives_prefix(endpoint)}{platform}/"


def archive_key(*, endpoint: str, platform: Platform, archive: ArchiveName) -> str:
    """The key of one archive; its existence commits the archive."""
    return f"{platform_prefix(endpoint=endpoint, platform=platform)}{archive}"


def stored_archive(key: str) -> tuple[str, Platform, ArchiveName] | None:
    """Endpoint, platform and archive that ``archive_key`` made a key of; None for a key of another form."""
    match key.split("/"):
        case [root, endpoint, platform, name] if f"{root}/" == ARCHIVES and (archive := ArchiveName.parse(name)):
            return endpoint, Platform.parse(platform), archive
    return None


def platform_of_prefix(prefix: str) -> Platform:
    """The platform that ``platform_prefix`` made a prefix of."""
    return Platform.parse(prefix.rstrip("/").rpartition("/")[2])


def manifest_prefix(*, endpoint: str, platform: Platform) -> str:
    """Prefix of the manifests of an endpoint's archives for one platform, with a trailing slash."""
    return f"{manifests_prefix(endpoint)}{platform}/"


def manifest_key(*, endpoint: str, platform: Platform, archive: ArchiveName) -> str:
    """The key of an archive's manifest, written before the archive."""
    return f"{manifest_prefix(endpoint=endpoint, platform=platform)}{archive.stem}.json"


def client_files_folder(*, endpoint: str, platform: Platform, archive: ArchiveName) -> str:
    """Prefix of an archive's client files, next to its manifest, without a trailing slash."""
    return f"{manifest_prefix(endpoint=endpoint, platform=platform)}{archive.stem}"


def inputs_key(*, digest: str) -> str:
    """The key of the inputs that a digest covers, kept so that it can be built for a later platform."""
    return f"{INPUTS}{digest}.tar.gz"


def parameter_prefix(environment: str) -> str:
    """The path of an environment's parameters in SSM, with a trailing slash."""
    return f"{PARAMETERS}{environment}/"


def log_group(*, environment: str, of: str) -> str:
    """The log group of an environment's ``builds``, ``engines``, ``network`` or ``load-tests``."""
    return f"{parameter_prefix(environment)}{of}"


def pipeline_stack(pipeline: str) -> str:
    """The name of a pipeline's own stack in CloudFormation."""
    return f"{pipeline}-pipeline"


def pipeline_log_group(pipeline: str) -> str:
    """The log group of a pipeline's own builds."""
    return f"{PARAMETERS}pipeline/{pipeline}"


def function_log_group(*, stack: str, path: Sequence[str]) -> str:
    """The log group of a function: its stack, and the ids of its constructs below the stack.

    ``/aws/lambda/prod-serving-digits/Endpoint/Scaling``. Not the function's name, whose end CloudFormation makes up.
    """
    return FUNCTION_LOGS + "/".join((stack, *(re.sub(r"[^A-Za-z0-9_.-]", "-", each) for each in path)))


def builds_function(environment: str) -> str:
    """The name of the function that starts an environment's builds.

    Fixed, because custom resources of other stacks have its ARN as their ServiceToken, which may never change.
    """
    return f"{environment}-builds"


def release_parameter(*, environment: str, endpoint: str, model: str) -> str:
    """The SSM parameter that records a model's current digest; "": the path of an endpoint's records."""
    return f"{parameter_prefix(environment)}{endpoint}/{model}"


def released_model(name: str, *, environment: str) -> tuple[str, str] | None:
    """Endpoint and model that ``release_parameter`` made a name of; None for another parameter of the environment."""
    match name.removeprefix(parameter_prefix(environment)).split("/"):
        case [endpoint, model] if not endpoint.startswith("_"):
            return endpoint, model
    return None


def endpoint_of_records(path: str) -> str:
    """The endpoint, in its environment, whose release records are under a path: ``EndpointReference.records``."""
    return path.rstrip("/").rpartition("/")[2]


def artifact_parameter(*, environment: str, value: str) -> str:
    """The SSM parameter that carries a value of the artifacts stack (``bucket-name``, ``key-arn``).

    An endpoint's name cannot begin with an underscore, so these never meet release records.
    """
    return f"{parameter_prefix(environment)}_artifacts/{value}"


def builds_parameter(*, environment: str, value: str) -> str:
    """The SSM parameter that carries a value of the builds stack (``project-name``, ``function-arn``)."""
    return f"{parameter_prefix(environment)}_builds/{value}"


def load_test_parameter(*, environment: str, value: str) -> str:
    """The SSM parameter that carries a value of the load-test stack (``project-name``, ``state-machine-arn``)."""
    return f"{parameter_prefix(environment)}_load-test/{value}"


def load_test_prefix(*, test: str = "") -> str:
    """Prefix of a load test's settings, payloads and results, with a trailing slash; "": where all lie."""
    return f"load-tests/{test}/" if test else "load-tests/"


def payloads_prefix(*, test: str) -> str:
    """Where a load test's payloads lie, with a trailing slash; "*": those of any test, as a pattern."""
    return f"{load_test_prefix(test=test)}payloads/"


def load_test_job_prefix(environment: str) -> str:
    """Prefix of the names of an environment's load test jobs, and of all that they make: at most 16 characters.

    A longer name than ``SHORT_NAME`` is cut, and ends in its own digest, so that two environments never share it.
    """
    if len(environment) > SHORT_NAME:
        digest = hashlib.sha256(environment.encode()).hexdigest()[:5]
        environment = f"{environment[: SHORT_NAME - 6].rstrip('-')}-{digest}"
    return f"{environment}-lt-"


def network_parameter(*, environment: str, value: str) -> str:
    """The SSM parameter that carries a value of the network stack (``vpc-id``, ``subnet-us-east-1a``)."""
    return f"{parameter_prefix(environment)}_network/{value}"


def stack_name(*, environment: str, part: str) -> str:
    """The name of an environment's stack in CloudFormation; ``part``: its id in the stage (``serving-digits``)."""
    return f"{environment}-{part}"


def serving_stack(*, environment: str, endpoint: str) -> str:
    """The name of an endpoint's stack in CloudFormation."""
    return stack_name(environment=environment, part=serving_part(endpoint))


def stack_path(*, environment: str, part: str) -> str:
    """What the CDK command line calls an environment's stack: ``cdk deploy prod/serving-digits``."""
    return f"{environment}/{part}"


def serving_part(endpoint: str) -> str:
    """The id of an endpoint's stack in its stage."""
    return f"{SERVING_PREFIX}{endpoint}"


def observability_part(number: int) -> str:
    """The id of an observability stack in its stage: the first has no number."""
    return OBSERVABILITY + (f"-{number}" if number > 1 else "")


def composite_alarm(environment: str, *, severity: str, part: int = 1, group: int | None = None) -> str:
    """The composite alarm of a severity: the one that notifies, that of a later observability stack, or a group."""
    name = f"{environment}-{severity}" + (f"-{observability_part(part)}" if part > 1 else "")
    return name if group is None else f"{name}-{group}"


def outputs_parameter(*, environment: str, stack: str = "") -> str:
    """The SSM parameter with the outputs of a stack (``artifacts``, ``serving-digits``); "": the path."""
    return f"{parameter_prefix(environment)}_outputs/{stack}"


def order_key(*, order: str) -> str:
    """The key of an order: the archives that one build of the environment makes."""
    return f"{ORDERS}{order}.json"


def job_prefix(*, run: str) -> str:
    """Where one engine's job and its output lie between the phases of a build, with a trailing slash."""
    return f"{JOBS}{run}/"


def captured_prefix(*, endpoint: str) -> str:
    """Where an endpoint's captured requests and responses are, with a trailing slash."""
    return f"captured/{endpoint}/"


def timing_caches_prefix(*, gpu: str) -> str:
    """Prefix of the timing caches of one GPU model, with a trailing slash."""
    return f"{TIMING_CACHES}{gpu_in_names(gpu)}/"


def timing_cache_key(*, gpu: str, tensorrt: str) -> str:
    """The key of the tactics that TensorRT measured: they are of one GPU model and one TensorRT version."""
    return f"{timing_caches_prefix(gpu=gpu)}{tensorrt}/timing.cache"


def tensorrt_of_timing_cache(key: str) -> str:
    """The TensorRT version in the key of a timing cache."""
    return key.removeprefix(TIMING_CACHES).split("/")[1]


def endpoint_name(*, environment: str, endpoint: str) -> str:
    """The fixed name of an endpoint at SageMaker (at most 63 characters, checked with the settings)."""
    return f"{environment}-{endpoint}"


LOG_METRICS = "tritonstack/"
"""Prefix of this project's own CloudWatch namespaces."""


def dashboard(environment: str, *, part: int = 1) -> str:
    """The name of an environment's dashboard, or of a later one where it has several."""
    return f"tritonstack-{environment}" + (f"-{part}" if part > 1 else "")


def endpoint_log_group(endpoint_name: str) -> str:
    """The log group of an endpoint's containers, which SageMaker makes; ``endpoint_name``: its name at SageMaker."""
    return f"{ENDPOINT_LOG_GROUPS}{endpoint_name}"


def component_log_group(component: str) -> str:
    """The log group of an inference component's containers, which SageMaker makes."""
    return f"{COMPONENT_LOG_GROUPS}{component}"


def log_metrics_namespace(endpoint_name: str) -> str:
    """The namespace of the metrics that count lines of an endpoint's log group."""
    return f"{LOG_METRICS}{endpoint_name}"


def log_query(environment: str, *, part: int = 1) -> str:
    """The name of the saved query for loads and unloads, in a folder of the environment; of a later stack another."""
    return f"tritonstack/{environment}/model loads and unloads" + (f" {part}" if part > 1 else "")


def scalable_variant(*, endpoint_name: str, variant: str) -> str:
    """The ResourceId of a variant at Application Auto Scaling (API reference: RegisterScalableTarget)."""
    return f"endpoint/{endpoint_name}/variant/{variant}"


def engine_job_prefix(environment: str) -> str:
    """Prefix of the names of an environment's engine jobs at SageMaker."""
    return f"{environment}-engine-"


def variant_name(*, instance_type: str, name: str | None = None, pools: Sequence[str] = ()) -> str:
    """The production variant's name, which carries the instance type (``ml.g4dn.xlarge`` → ``g4dn-xlarge``).

    ``name``: of one of several variants; it precedes the type. ``pools``: the types of instance pools, in order; a hash
    of them follows (``g5-xlarge-pool-3f21``), so that another list is another variant, as another type is.
    """
    kind = instance_type.removeprefix("ml.").replace(".", "-")
    if pools:
        kind += f"-pool-{hashlib.sha256(' '.join(pools).encode()).hexdigest()[:POOL_DIGITS]}"
    return kind if name is None else f"{name}-{kind}"
