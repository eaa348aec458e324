"""Rights that services need of a role or of a caller, and the credentials of their sessions.

What a service needs of a role is what its guide lists. What AWS names itself, such as a network interface, has an
invented name here.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudwatch_logs, ec2, iam, kms, s3, sts
from ministack.services.cloudformation import _stacks

from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    Principal,
    authorize,
    enforced,
    session_credentials,
)
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.principals import role_record
from tritonstack_local.emulator.iam.request import ServiceRequest


class Refusal(NamedTuple):
    """The first need of several that is not allowed, and AWS's sentence."""

    need: Need
    sentence: str


def refusal_of(principal: Principal, needs: Iterable[Need], *, by: str) -> Refusal | None:
    """Authorise what a service is about to do, one need after the other; None where all is allowed."""
    for need in needs:
        try:
            authorize(principal, [need], by=by)
        except AccessDeniedError as denied:
            return Refusal(need, denied.sentence)
    return None


def credentials_of(role: Principal, *, service: str, source: str, vpc: str | None) -> dict[str, str]:
    """The variables of a session that ``service`` begins for ``source``; none where permissions are not enforced.

    ``vpc``: where its requests come from; those of the service itself come from elsewhere.
    """
    if not enforced():
        return {}
    session = str(role.session).rpartition("/")[2]
    context = {"aws:SourceArn": source}
    given = session_credentials(role.arn, service=service, session_name=session, context=context, vpc=vpc)
    sts._sessions[given["AWS_ACCESS_KEY_ID"]]["Expiration"] = None  # AWS renews them; a warm worker keeps its variables
    return given


def arn_of(service: str, resource: str) -> str:
    """An ARN of the request's account and region."""
    return f"arn:aws:{service}:{get_region()}:{get_account_id()}:{resource}"


class StoredNames:
    """What ARNs hold and requests do not (``needs.Names``), in the stores of MiniStack and of our services."""

    def __init__(self) -> None:
        """Application Auto Scaling and SageMaker put themselves in."""
        self.target_of: Callable[[str, str, str], str | None] = lambda *_: None
        self.config_of: Callable[[str], Mapping[str, Any] | None] = lambda _name: None

    def stack_arn(self, name: str) -> str | None:
        """The ARN of a stack."""
        return _arn(_stacks.get(name), "StackId")

    def role_arn(self, name: str) -> str | None:
        """The ARN of a role."""
        return _arn(role_record(name))

    def user_arn(self, name: str) -> str | None:
        """The ARN of a user."""
        return _arn(iam._users.get(name))

    def key_arn(self, name: str) -> str | None:
        """The ARN of the KMS key of an alias."""
        return _arn(kms._resolve_key(name))

    def scalable_target_arn(self, namespace: str, resource_id: str, dimension: str) -> str | None:
        """The ARN of a scalable target."""
        return self.target_of(namespace, resource_id, dimension)

    def volume_key_arn(self, endpoint_config: str) -> str | None:
        """The ARN of the KMS key of an endpoint config's volumes."""
        key = (self.config_of(endpoint_config) or {}).get("KmsKeyId")
        return key_arn(key) if key else None


def _arn(record: Mapping[str, Any] | None, member: str = "Arn") -> str | None:
    return str(record[member]) if record else None


names = StoredNames()


# --- What services need of a role ---

_IMAGE = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([^:@]+)")
_PULL = ("BatchGetImage", "GetDownloadUrlForLayer", "BatchCheckLayerAvailability")
_INTERFACE_CHANGES = {
    "lambda": ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"),
    "codebuild": ("DeleteNetworkInterface", "CreateNetworkInterfacePermission"),
    "sagemaker": ("DeleteNetworkInterface", "CreateNetworkInterfacePermission"),
}
_DESCRIBED = [f"Describe{each}" for each in ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")]


def pull_needs(image: str) -> tuple[Need, ...]:
    """Needs of pulling an image from a private repository of ECR; none for an image of another registry."""
    found = _IMAGE.match(image)
    if found is None:
        return ()
    account, region, name = found.groups()
    repository = f"arn:aws:ecr:{region}:{account}:repository/{name}"
    login = Need(action="ecr:GetAuthorizationToken", resource="*")
    return (login, *(Need(action=f"ecr:{action}", resource=repository) for action in _PULL))


def log_needs(group: str, stream: str) -> tuple[Need, ...]:
    """Needs of writing a new stream; of the group, too, where it is not there."""
    arn = arn_of("logs", f"log-group:{group}")
    new = Need(action="logs:CreateLogGroup", resource=f"{arn}:log-stream:")
    made = () if group in cloudwatch_logs._log_groups else (new,)
    written = (f"logs:{action}" for action in ("CreateLogStream", "PutLogEvents"))
    return (*made, *(Need(action=action, resource=f"{arn}:log-stream:{stream}") for action in written))


def interface_needs(subnets: Sequence[str], groups: Sequence[str], *, service: str) -> tuple[Need, ...]:
    """Needs of placing a machine in each subnet, and of taking it back.

    Sources: Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"; CodeBuild user
    guide, "Allow CodeBuild access to AWS services required to create a VPC network interface"; SageMaker developer
    guide, "Give SageMaker AI Hosted Endpoints Access to Resources in Your Amazon VPC". Only CodeBuild's guide names the
    service that an interface is lent to. Actions without a resource are asked for on ``*``.
    """
    nameless = ["DescribeNetworkInterfaces", "DescribeSubnets"] if service == "lambda" else [*_DESCRIBED]
    nameless += ["DeleteNetworkInterfacePermission"] if service == "sagemaker" else []
    lent = {"ec2:AuthorizedService": "codebuild.amazonaws.com"} if service == "codebuild" else {}
    made, needs = arn_of("ec2", "network-interface/eni-0123456789abcdef0"), []
    for name in subnets:
        places = ("network-interface/*", f"subnet/{name}", *(f"security-group/{group}" for group in groups))
        needs += [Need(action="ec2:CreateNetworkInterface", resource=arn_of("ec2", each)) for each in places]
        for action in _INTERFACE_CHANGES[service]:
            context = {"ec2:Subnet": arn_of("ec2", f"subnet/{name}"), **(lent if "Permission" in action else {})}
            needs.append(Need(action=f"ec2:{action}", resource=made, context=context))
    return tuple(needs) + tuple(Need(action=f"ec2:{each}", resource="*") for each in nameless if subnets)


def vpc_of(subnets: Sequence[str]) -> str | None:
    """The VPC of subnets, which requests of a machine in them come from; None for none."""
    found = ec2._subnets.get(subnets[0]) if subnets else None
    return str(found["VpcId"]) if found else None


# --- KMS through S3 ---
# Sources: S3 user guide, "Using server-side encryption with AWS KMS keys" (permissions, encryption context: the
# object's ARN, or the bucket's with a bucket key); S3 API reference, CreateMultipartUpload ("kms:Decrypt and
# kms:GenerateDataKey": it decrypts the parts). No permission is needed for the AWS managed key.

_KEY_HEADER = "x-amz-server-side-encryption-aws-kms-key-id"


def needs_of_encryption(request: ServiceRequest) -> tuple[Need, ...]:
    """What a caller needs of the KMS key under which S3 writes or reads an object."""
    if request.service != "s3":
        return ()
    asked, found = request.parameters, []
    bucket, key = str(asked.get("Bucket", "")), str(asked.get("Key", ""))
    if request.operation in ("PutObject", "CreateMultipartUpload", "CopyObject"):
        given = asked.get("SSEKMSKeyId") if asked.get("ServerSideEncryption", "aws:kms").startswith("aws:kms") else ""
        used = s3._bucket_default_sse_headers(bucket).get(_KEY_HEADER, "") if given is None else given
        found.append(("GenerateDataKey", used, bucket, key))
    elif request.operation == "GetObject":
        found.append(("Decrypt", _key_of(bucket, key), bucket, key))
    elif request.operation in ("UploadPart", "UploadPartCopy", "CompleteMultipartUpload"):
        upload = s3._multipart_uploads.get(asked.get("UploadId"), {})
        found.append(("Decrypt", upload.get("preserved_headers", {}).get(_KEY_HEADER, ""), bucket, key))
    if copied := asked.get("CopySource"):
        bucket, _, key = urllib.parse.unquote(copied.removeprefix("/").partition("?versionId=")[0]).partition("/")
        found.append(("Decrypt", _key_of(bucket, key), bucket, key))
    return tuple(need for each in found for need in _key_needs(*each, region=request.region))


def object_needs(operation: str, bucket: str, key: str) -> tuple[Need, ...]:
    """What GetObject or PutObject of an object needs, with its KMS key."""
    asked = {"Bucket": bucket, "Key": key}
    request = ServiceRequest(service="s3", operation=operation, parameters=asked, region=get_region(), access_key="")
    return (Need(action=f"s3:{operation}", resource=f"arn:aws:s3:::{bucket}/{key}"), *needs_of_encryption(request))


def _key_of(bucket: str, key: str) -> str:
    """The key that an object was written under; empty for none."""
    written = s3._buckets.get(bucket, {}).get("objects", {}).get(key, {})
    return str(written.get("preserved_headers", {}).get(_KEY_HEADER, ""))


def key_arn(name: str) -> str:
    """The ARN of a KMS key by its ARN, its id or an alias."""
    record = kms._resolve_key(name)
    return str(record["Arn"]) if record else name if name.startswith("arn:") else arn_of("kms", f"key/{name}")


def _key_needs(action: str, name: str, bucket: str, key: str, *, region: str) -> tuple[Need, ...]:
    if not name or ":key/" not in (arn := key_arn(name)):
        return ()
    whole = "<BucketKeyEnabled>true" in s3._bucket_encryption.get(bucket, "")
    context = {
        "aws:ViaAWSService": "true",
        "kms:CallerAccount": get_account_id(),
        "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{bucket}" if whole else f"arn:aws:s3:::{bucket}/{key}",
        "kms:EncryptionContextKeys": ("aws:s3:arn",),
        "kms:ViaService": f"s3.{region}.amazonaws.com",
    }
    return (Need(action=f"kms:{action}", resource=arn, context=context),)
