"""The account, its CDK bootstrap, the images that it may pull, and a KMS key of your own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.aws.iam_policies import listed
from tritonstack.aws.read_only import NotKnownError
from tritonstack.catalogue import dns_suffix
from tritonstack.config.patterns import ECR_URI
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject


def check_account(subject: Subject) -> Iterator[PreflightResult]:
    """The credentials' account and the clients' region are those of the environment's file."""
    environment = subject.environment
    item = CheckedItem(
        check="account", subject=environment.environment, needed=f"{environment.account} in {environment.region}"
    )
    yield from item.look(_account, subject)


def _account(item: CheckedItem, subject: Subject) -> PreflightResult:
    environment = subject.environment
    identity = subject.calls.must("sts", "get_caller_identity")
    region = subject.calls.client("sts").meta.region_name
    found = f"{identity['Account']} in {region}, as {identity['Arn']}"
    if identity["Account"] != environment.account:
        return item.fails(found, advice="Choose credentials of that account (AWS_PROFILE), or name yours in the file.")
    if region != environment.region:
        return item.fails(found, advice=f"The local AWS is {region} alone: name that region in the file.")
    return item.passes(found)


NEEDED_VERSION = 6
"""The version that synthesised stacks need: MIN_BOOTSTRAP_STACK_VERSION of aws-cdk-lib 2.275.0,
core/lib/stack-synthesizers/default-synthesizer.js. A test compares it with the installed aws-cdk-lib."""
QUALIFIER = "hnb659fds"
"""DefaultStackSynthesizer.DEFAULT_QUALIFIER of the same file."""
_CONTEXT = "@aws-cdk/core:bootstrapQualifier"


def qualifier_of(project: Path) -> str:
    """The qualifier that ``cdk.json`` sets, else the CDK's own."""
    try:
        context = json.loads((project / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    except (OSError, ValueError):
        return QUALIFIER
    return str(context.get(_CONTEXT, QUALIFIER))


def check_bootstrap(subject: Subject) -> Iterator[PreflightResult]:
    """The CDK's bootstrap of account and region: version, and bucket, which may be deleted alone."""
    environment, qualifier = subject.environment, qualifier_of(subject.project)
    advice = f"npx cdk bootstrap aws://{environment.account}/{environment.region}"
    if qualifier != QUALIFIER:
        advice += f" --qualifier {qualifier}"
    item = CheckedItem(check="bootstrap", subject="version", needed=f"{NEEDED_VERSION} or later")
    yield from item.look(_bootstrap_version, subject, qualifier, advice)
    bucket = f"cdk-{qualifier}-assets-{environment.account}-{environment.region}"
    item = CheckedItem(check="bootstrap", subject="bucket", needed=f"{bucket}, of account {environment.account}")
    yield from item.look(_bootstrap_bucket, subject, bucket, advice)


def _bootstrap_version(item: CheckedItem, subject: Subject, qualifier: str, advice: str) -> PreflightResult:
    name = f"/cdk-bootstrap/{qualifier}/version"
    answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
    if answer is None:
        return item.fails(f"no parameter {name}: the region is not bootstrapped", advice=advice)
    found = answer["Parameter"]["Value"]
    return item.passes(found) if int(found) >= NEEDED_VERSION else item.fails(found, advice=advice)


def _bootstrap_bucket(item: CheckedItem, subject: Subject, bucket: str, advice: str) -> PreflightResult:
    """HeadBucket: 404 is a bucket that is gone. 403 means a missing permission, or another account's bucket.

    ``ExpectedBucketOwner`` makes S3 respond 403 for another account's (API reference, HeadBucket): where it responds
    200 without that, it is another account's bucket that lets these credentials in.
    """
    owner = subject.environment.account
    try:
        answer = subject.calls.ask("s3", "head_bucket", absent=_NO_BUCKET, Bucket=bucket, ExpectedBucketOwner=owner)
    except NotKnownError as error:
        if error.permission is None:
            raise
        try:
            subject.calls.ask("s3", "head_bucket", Bucket=bucket)
        except NotKnownError:
            raise NotKnownError(
                f"{error.found}; or {bucket} is a bucket of another account, to which S3 responds alike",
                advice=f"Allow {error.permission} on it, then run it again. Where that changes nothing, it is "
                f"another's: {_ANOTHER_QUALIFIER}",
                permission=error.permission,
            ) from error
        return item.fails(f"{bucket} is another account's: no assets must go there", advice=_ANOTHER_QUALIFIER)
    if answer is None:
        return item.fails(
            f"no bucket {bucket}",
            advice=f"{advice}. Where the stack CDKToolkit is there and its bucket was deleted, that makes none: "
            "tritonstack docs troubleshooting#the-bootstrap-bucket-is-gone",
        )
    return item.passes(bucket)


_NO_BUCKET = ("404", "NoSuchBucket", "NotFound")
_ANOTHER_QUALIFIER = (
    f"bootstrap with a qualifier of your own (npx cdk bootstrap --qualifier NAME), and set {_CONTEXT} in cdk.json."
)
_MEDIA_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


def check_image(subject: Subject) -> Iterator[PreflightResult]:
    """The images that endpoints and builds pull are in ECR: BatchGetImage in the image's account, as a pull does."""
    environment = subject.environment
    there = [endpoint for endpoint in environment.endpoints if endpoint.image_build is None]
    uris = {endpoint.image_uri(environment.region) for endpoint in there}
    uris |= {build.builder.image for build in subject.served.engines.builds}
    if subject.builds_on_deploy:
        uris.add(environment.builds.image)
    for uri in sorted(uris):
        image = ECR_URI.fullmatch(uri)
        if image is not None:  # else it is of another registry: CodeBuild's own
            item = CheckedItem(check="image", subject=uri, needed="an image of that tag or digest that may be pulled")
            yield from item.look(_image, subject, image)


def _image(item: CheckedItem, subject: Subject, image: re.Match[str]) -> PreflightResult:
    answer = subject.calls.ask(
        "ecr",
        "batch_get_image",
        absent=("RepositoryNotFoundException",),
        region=image["region"],
        registryId=image["account"],
        repositoryName=image["repository"],
        imageIds=[{"imageTag": image["tag"]} if image["tag"] else {"imageDigest": image["digest"]}],
        acceptedMediaTypes=list(_MEDIA_TYPES),
    )
    advice = "Name a release whose image AWS has there (the catalogue lists them), or set `image:` to your own copy."
    if answer is None:
        return item.fails(f"account {image['account']} has no repository {image['repository']}", advice=advice)
    if not answer.get("images"):
        reasons = ", ".join(failure.get("failureCode", "") for failure in answer.get("failures", ()))
        return item.fails(f"no such image ({reasons or 'none found'})", advice=advice)
    digest = answer["images"][0].get("imageId", {}).get("imageDigest", "an image without a digest")
    return item.passes(str(digest))


_NO_KEY = ("NotFoundException",)
_POLICY_PAGE = "tritonstack docs decisions/0014-network-and-keys has the statements."
USED = "kms:GenerateDataKey"
"""The action that every user of a key here needs, whatever else."""


def _services(subject: Subject) -> Iterator[str]:
    """CloudWatch Logs, where log groups are encrypted; CloudWatch, where alarms notify an encrypted topic."""
    environment = subject.environment
    created = environment.network is not None and environment.network.created is not None
    if subject.builds_on_deploy or created or environment.logs.endpoint_days is not None:
        yield f"logs.{environment.region}.{dns_suffix(environment.region)}"
    if environment.alarms is not None:
        yield "cloudwatch.amazonaws.com"


def check_key(subject: Subject) -> Iterator[PreflightResult]:
    """The key of the environment's file: state, kind and policy."""
    arn, field = subject.environment.artifacts.key_arn, "artifacts.key_arn"
    if arn is None:
        return
    needed = f"{field}: an enabled symmetric key in {subject.environment.region}"
    results = list(CheckedItem(check="key", subject=arn, needed=needed).look(_key_state, subject, arn))
    yield from results
    if any(result.outcome == "fails" for result in results):
        return
    services = tuple(_services(subject))
    needed = f"{field}: delegates to IAM of the account" + (f"; lets in {', '.join(services)}" if services else "")
    yield from CheckedItem(check="key", subject=f"policy of {arn}", needed=needed).look(
        _key_policy, subject, arn, services
    )


def _key_state(item: CheckedItem, subject: Subject, arn: str) -> PreflightResult:
    answer = subject.calls.ask("kms", "describe_key", absent=_NO_KEY, KeyId=arn)
    if answer is None:
        return item.fails("no such key", advice="Name a key that is there.")
    metadata = answer["KeyMetadata"]
    state, usage = metadata.get("KeyState", "Enabled"), metadata.get("KeyUsage", "ENCRYPT_DECRYPT")
    spec = metadata.get("KeySpec", "SYMMETRIC_DEFAULT")
    found = f"{state}, {usage}, {spec}"
    if state != "Enabled":
        return item.fails(found, advice="Enable it (aws kms enable-key), or cancel its deletion, or name another one.")
    if usage != "ENCRYPT_DECRYPT" or spec != "SYMMETRIC_DEFAULT":
        return item.fails(found, advice="Name a symmetric key for encryption: S3, EBS and logs take no other.")
    return item.passes(found)


def _key_policy(item: CheckedItem, subject: Subject, arn: str, services: tuple[str, ...]) -> PreflightResult:
    metadata = subject.calls.must("kms", "describe_key", KeyId=arn)["KeyMetadata"]
    answer = subject.calls.must("kms", "get_key_policy", KeyId=metadata["Arn"], PolicyName="default")
    policy = json.loads(answer["Policy"])
    missing = [service for service in services if not lets_in(policy, (service, f"{service}.cn"))]
    account = subject.environment.account
    if not lets_in(policy, (f"arn:aws:iam::{account}:root",)):
        missing.insert(0, f"IAM of account {account}")
    if missing:
        return item.fails(
            f"lets in no {', no '.join(missing)}", advice=f"Add statements to the key's policy: {_POLICY_PAGE}"
        )
    return item.passes("lets in what is needed (conditions are not looked at)")


def lets_in(policy: dict[str, Any], principals: Iterable[str], *, action: str = USED) -> bool:
    """Whether a key's or a role's policy allows an action to one of the principals if every condition is met."""
    statements = [
        {name: each[name] for name in ("Effect", "Principal", "Action", "NotAction") if name in each}
        for each in listed(policy.get("Statement"))
        if "Principal" in each and (each["Effect"] == "Allow" or not each.get("Condition"))
    ]
    policies = Policies(resource=statements, resource_must_allow=True)
    requests = (Request(principal=each, action=action, resource="*") for each in principals)
    return any(evaluate(each, policies).allowed for each in requests)
