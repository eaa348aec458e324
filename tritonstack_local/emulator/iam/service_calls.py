"""Rights that services need of a role or of a caller, and the credentials of their sessions.

What a service needs of a role is what its guide lists. What AWS names itself, such as a network interface, has an
invented name here.
"""

from __future__ import annotations

import contextvars
import json
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tritonstack.cloudformation.limits import allowed
from tritonstack_local.emulator.cloudformation.provisioning import complete
from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    Principal,
    authorize,
    check_trust,
    enforced,
    role_principal,
)
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.principals import register_session, role_record
from tritonstack_local.emulator.iam.request import ServiceRequest
from tritonstack_local.emulator.ministack_adapter import (
    cloudformation,
    ec2,
    iam,
    kms,
    lambda_functions,
    logs,
    s3,
    stepfunctions,
)
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import as_response, role_trusts


class Refusal(NamedTuple):
    """The first need of several that is not allowed, and AWS's sentence."""

    need: Need
    sentence: str


def refusal_of(principal: Principal, needs: Iterable[Need], *, by: str) -> Refusal | None:
    """Authorise a service's next requests, one need after the other; None where all are allowed."""
    for need in needs:
        try:
            authorize(principal, [need], by=by)
        except AccessDeniedError as denied:
            return Refusal(need, denied.sentence)
    return None


def credentials_of(role: Principal, *, service: str, source: str, vpc: str | None) -> dict[str, str]:
    """The variables of a session that ``service`` begins for ``source``.

    ``vpc``: where its requests come from; those of the service itself come from elsewhere.
    """
    if enforced():
        check_trust(role.arn, service=service, context={"aws:SourceArn": source})
    given = register_session(role.arn, str(role.session).rpartition("/")[2], vpc=vpc, lasts=True)
    names = {"AccessKeyId": "ACCESS_KEY_ID", "SecretAccessKey": "SECRET_ACCESS_KEY", "SessionToken": "SESSION_TOKEN"}
    return {f"AWS_{variable}": given[name] for name, variable in names.items()}


def arn_of(service: str, resource: str) -> str:
    """An ARN of the request's account and region."""
    return f"arn:aws:{service}:{get_region()}:{get_account_id()}:{resource}"


def _arn(record: Mapping[str, Any] | None, member: str = "Arn") -> str | None:
    return str(record[member]) if record else None


# In the stores of MiniStack and of our services; Application Auto Scaling and SageMaker put theirs in.
names: dict[str, Callable[..., str | None]] = {
    "stack": lambda name: _arn(cloudformation.stacks_by_name().get(name), "StackId"),
    "role": lambda name: _arn(role_record(name)),
    "user": lambda name: _arn(iam.users().get(name)),
    "key": lambda alias: _arn(kms.resolve_key(alias)),
}
"""``needs.Names``."""


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
    made = () if group in logs.log_groups() else (new,)
    written = (f"logs:{action}" for action in ("CreateLogStream", "PutLogEvents"))
    return (*made, *(Need(action=action, resource=f"{arn}:log-stream:{stream}") for action in written))


def interface_needs(subnets: Sequence[str], groups: Sequence[str], *, service: str) -> tuple[Need, ...]:
    """Needs of placing a network interface in each subnet, and of deleting it.

    Sources: Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"; CodeBuild user
    guide, "Allow CodeBuild access to AWS services required to create a VPC network interface"; SageMaker developer
    guide, "Give SageMaker AI Hosted Endpoints Access to Resources in Your Amazon VPC". Only CodeBuild's guide names the
    service that may use the interface. Actions without a resource are needed on ``*``.
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


_JOINS = [f"{verb}NetworkInterface{part}" for verb in ("Create", "Delete") for part in ("", "Permission")]
_TESTS = ("DescribeVpcEndpoints", "ModifyNetworkInterfaceAttribute")


def job_network_refusal(role_arn: str, vpc: Mapping[str, Any], *, kind: Literal["processing", "recommender"]) -> str:
    """Why a job may not join a VPC with its role, empty where it may; looked at when the job is created.

    SageMaker validates these actions without a resource and without a context, so that a statement with a resource
    filter or a condition does not count (developer guide, "SageMaker AI roles", CreateProcessingJob API: a private VPC;
    "Give Inference Recommender Jobs Access to Resources in Your Amazon VPC"). The text is UNVERIFIED.
    """
    names = [*_JOINS, *_DESCRIBED, *(_TESTS if kind == "recommender" else ())]
    needs = [Need(action=f"ec2:{each}", resource="*") for each in names if vpc.get("Subnets")]
    denied = refusal_of(role_principal(role_arn, "SageMaker"), needs, by=f"sagemaker: network of a {kind} job")
    if denied is None:
        return ""
    return f"The role {role_arn} must allow {denied.need.action} on * without a condition: {denied.sentence}"


def vpc_of(subnets: Sequence[str]) -> str | None:
    """The VPC of subnets, which requests of a machine in them come from; None for none."""
    found = ec2.subnets().get(subnets[0]) if subnets else None
    return str(found["VpcId"]) if found else None


# --- KMS through S3 ---
# Sources: S3 user guide, "Using server-side encryption with AWS KMS keys" (permissions, encryption context: the
# object's ARN, or the bucket's with a bucket key); S3 API reference, CreateMultipartUpload ("kms:Decrypt and
# kms:GenerateDataKey": it decrypts the parts). No permission is needed for the AWS managed key.

_KEY_HEADER = "x-amz-server-side-encryption-aws-kms-key-id"


def needs_of_encryption(request: ServiceRequest) -> tuple[Need, ...]:
    """Permissions on the KMS key with which S3 writes or reads an object."""
    if request.service != "s3":
        return ()
    asked, found = request.parameters, []
    bucket, key = str(asked.get("Bucket", "")), str(asked.get("Key", ""))
    if request.operation in ("PutObject", "CreateMultipartUpload", "CopyObject"):
        given = asked.get("SSEKMSKeyId") if asked.get("ServerSideEncryption", "aws:kms").startswith("aws:kms") else ""
        used = s3.bucket_default_sse_headers(bucket).get(_KEY_HEADER, "") if given is None else given
        found.append(("GenerateDataKey", used, bucket, key))
    elif request.operation == "GetObject":
        found.append(("Decrypt", _key_of(bucket, key), bucket, key))
    elif request.operation in ("UploadPart", "UploadPartCopy", "CompleteMultipartUpload"):
        upload = s3.multipart_uploads().get(asked.get("UploadId"), {})
        found.append(("Decrypt", upload.get("preserved_headers", {}).get(_KEY_HEADER, ""), bucket, key))
    if copied := asked.get("CopySource"):
        bucket, _, key = urllib.parse.unquote(copied.removeprefix("/").partition("?versionId=")[0]).partition("/")
        found.append(("Decrypt", _key_of(bucket, key), bucket, key))
    return tuple(need for each in found for need in _key_needs(*each, region=request.region))


_UNUSABLE = {
    "Disabled": ("DisabledException", "is disabled."),
    "PendingDeletion": ("KMSInvalidStateException", "is pending deletion."),
    "PendingImport": ("KMSInvalidStateException", "is pending import."),
}
"""State of a key → KMS's error and the end of its sentence."""


def check_key_states(needs: Iterable[Need]) -> None:
    """Refuse what S3 cannot do with a key in its present state, as S3 passes on KMS's refusal.

    Sources: KMS developer guide, "Key states of AWS KMS keys" (table: GenerateDataKey and Decrypt); knowledge centre,
    "How do I troubleshoot the KMS.DisabledException … from Amazon S3": the code is KMS's with the prefix ``KMS.``.
    """
    for need in needs:
        record = kms.resolve_key(need.resource)
        code, sentence = _UNUSABLE.get(record["KeyState"] if record else "", ("", ""))
        if code:
            raise RefusedError(f"KMS.{code}", f"{need.resource} {sentence}", source="S3, from KMS", status=400)


def check_bucket_owner(request: ServiceRequest) -> None:
    """Refuse a request for a bucket that the account, which the caller expects to own it, does not own.

    S3 user guide, "Verifying bucket ownership with bucket owner condition".
    """
    asked = request.parameters
    source = urllib.parse.unquote(str(asked.get("CopySource", ""))).removeprefix("/").partition("/")[0]
    for member, bucket in (("ExpectedBucketOwner", asked.get("Bucket")), ("ExpectedSourceBucketOwner", source)):
        owner = s3.bucket_owner_account(bucket) if request.service == "s3" and member in asked else None
        if owner is not None and owner != asked[member]:
            raise RefusedError("AccessDenied", "Access Denied", source="S3, bucket owner condition", status=403)


def object_needs(operation: str, bucket: str, key: str) -> tuple[Need, ...]:
    """Permissions of GetObject or PutObject of an object, with its KMS key."""
    asked = {"Bucket": bucket, "Key": key}
    request = ServiceRequest(service="s3", operation=operation, parameters=asked, region=get_region(), access_key="")
    return (Need(action=f"s3:{operation}", resource=f"arn:aws:s3:::{bucket}/{key}"), *needs_of_encryption(request))


def _key_of(bucket: str, key: str) -> str:
    """The key that an object was written under; empty for none."""
    written = s3.object_record(bucket, key) or {}
    return str(written.get("preserved_headers", {}).get(_KEY_HEADER, ""))


def key_arn(name: str) -> str:
    """The ARN of a KMS key by its ARN, its id or an alias."""
    record = kms.resolve_key(name)
    return str(record["Arn"]) if record else name if name.startswith("arn:") else arn_of("kms", f"key/{name}")


def _key_needs(action: str, name: str, bucket: str, key: str, *, region: str) -> tuple[Need, ...]:
    if not name or ":key/" not in (arn := key_arn(name)):
        return ()
    whole = "<BucketKeyEnabled>true" in s3.bucket_encryption().get(bucket, "")
    context = {
        "aws:ViaAWSService": "true",
        "kms:CallerAccount": get_account_id(),
        "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{bucket}" if whole else f"arn:aws:s3:::{bucket}/{key}",
        "kms:EncryptionContextKeys": ("aws:s3:arn",),
        "kms:ViaService": f"s3.{region}.amazonaws.com",
    }
    return (Need(action=f"kms:{action}", resource=arn, context=context),)


# --- MiniStack's Lambda functions and state machines act with their roles ---
# A function runs with a session of its role, also where that may not write the function's log: then there are no lines.

_LAMBDA = "lambda.amazonaws.com"
_GUIDE = "Lambda developer guide, troubleshooting"
_LAMBDA_QUOTAS = "Lambda developer guide, Lambda quotas: environment variables"
_NOT_PERMITTED = "The provided execution role does not have permissions to call"
_DESTINATIONS = {"sqs": "sqs:SendMessage", "sns": "sns:Publish", "lambda": "lambda:InvokeFunction"}
_CHECKED = ("FunctionName", "Role", "VpcConfig")


def install_roles() -> None:
    """Have MiniStack's functions and state machines act with their roles. Once a process."""
    theirs = lambda_functions.execution_credentials.current
    create, update = lambda_functions.create_function.current, lambda_functions.update_config.current
    emit, configure = lambda_functions.emit_lambda_logs.current, lambda_functions.put_event_invoke_config.current

    def credentials(config: dict[str, Any]) -> dict[str, str]:
        given: dict[str, str] = theirs(config)
        role, vpc = _session(config), (config.get("VpcConfig") or {}).get("VpcId") or None
        return credentials_of(role, service=_LAMBDA, source=config["FunctionArn"], vpc=vpc) or given

    def created(request: dict[str, Any]) -> Any:
        _check_function(request)
        return create(request)

    def updated(name: str, request: dict[str, Any]) -> Any:
        before = (lambda_functions.functions().get(name) or {}).get("config", {})
        if before:
            _check_function({**{member: before.get(member) for member in _CHECKED}, **request})
        if request.get("Role", before.get("Role")) != before.get("Role"):
            lambda_functions.invalidate_worker(name)  # a warm worker has the former role's session
        return update(name, request)

    def logged(function: dict[str, Any], request_id: str, *rest: Any, **more: Any) -> None:
        config = function.get("config") or function
        named = (config.get("LoggingConfig") or {}).get("LogGroup")
        if named and named not in logs.log_groups() and not enforced():
            return  # the stack that made it has deleted it, and could not make it again
        group = named or f"/aws/lambda/{config['FunctionName']}"
        if refusal_of(_session(config), log_needs(group, request_id), by=f"lambda: log of {group}") is None:
            emit(function, request_id, *rest, **more)

    def configured(name: str, qualifier: str | None, request: dict[str, Any]) -> Any:
        for target in [each.get("Destination", "") for each in (request.get("DestinationConfig") or {}).values()]:
            config, service = (lambda_functions.functions().get(name) or {}).get("config"), target.split(":")[2:3]
            if config and service and (action := _DESTINATIONS.get(service[0])):
                needs = [Need(action=action, resource=target)]
                _check_needs(_session(config), needs, on=service[0].upper(), by=f"lambda: destination of {name}")
        return configure(name, qualifier, request)

    lambda_functions.execution_credentials.replace(credentials)
    lambda_functions.create_function.replace(as_response(created))
    lambda_functions.update_config.replace(as_response(updated))
    lambda_functions.emit_lambda_logs.replace(logged)
    lambda_functions.put_event_invoke_config.replace(as_response(configured))
    complete("AWS::Lambda::Function", check=_check_function, apply=lambda *_: None)
    _install_state_machines()


def _session(config: Mapping[str, Any]) -> Principal:
    """The session of a function's role, that its code and Lambda itself act with."""
    return role_principal(config["Role"], config["FunctionName"])


def _check_needs(role: Principal, needs: Iterable[Need], *, on: str, by: str) -> None:
    """Refuse a function's role that is not allowed what Lambda needs on a service."""
    if refused := refusal_of(role, needs, by=by):
        sentence = f"{_NOT_PERMITTED} {refused.need.action.partition(':')[2]} on {on}"
        raise RefusedError("InvalidParameterValueException", sentence, source=_GUIDE)


def _check_function(settings: Mapping[str, Any]) -> None:
    """Refuse variables over Lambda's 4 KB, a role that it cannot assume, or that may not place it in its VPC."""
    variables = (settings.get("Environment") or {}).get("Variables") or {}
    measured = json.dumps(variables, separators=(",", ":"), ensure_ascii=False)
    if len(measured.encode()) > allowed("bytes of a function's variables"):
        sentence = "Lambda was unable to configure your environment variables because the environment variables you "
        sentence += f"have provided exceeded the 4KB limit. String measured: {measured}"
        raise RefusedError("InvalidParameterValueException", sentence, source=_LAMBDA_QUOTAS)
    role, vpc = settings.get("Role") or "", settings.get("VpcConfig") or {}
    name = str(settings.get("FunctionName", "function"))
    if not enforced():
        return
    if not role_trusts(role, _LAMBDA):
        sentence = "The role defined for the function cannot be assumed by Lambda."
        raise RefusedError("InvalidParameterValueException", sentence, source=_GUIDE)
    needs = interface_needs(vpc.get("SubnetIds", ()), vpc.get("SecurityGroupIds", ()), service="lambda")
    _check_needs(role_principal(role, name), needs, on="EC2", by=f"lambda: network of {name}")


# --- Step Functions ---

_STATES = "states.amazonaws.com"
_LOG_DELIVERY = (
    *(f"{verb}LogDelivery" for verb in ("Create", "Get", "Update", "Delete")),
    *("ListLogDeliveries", "PutResourcePolicy", "DescribeResourcePolicies", "DescribeLogGroups"),
)
"""Step Functions developer guide, "Using CloudWatch Logs to log execution history"."""
_execution: contextvars.ContextVar[str] = contextvars.ContextVar("tritonstack_execution", default="")


def _install_state_machines() -> None:
    """Check a machine's role when it is made, and its right to invoke a task's function.

    The error of such a task: awslabs/aws-deployment-framework, issue 460.
    """
    run, call = stepfunctions.run_execution.current, stepfunctions.call_lambda.current
    create = stepfunctions.create_state_machine.current

    def running(execution: str) -> None:
        _execution.set(execution)
        run(execution)

    def called(function: str, event: Any) -> Any:
        execution = stepfunctions.executions().get(_execution.get()) or {}
        machine = stepfunctions.state_machines().get(execution.get("stateMachineArn"))
        if machine is not None:
            arn = function if function.startswith("arn:") else arn_of("lambda", f"function:{function}")
            caller = role_principal(machine["roleArn"], execution["name"][:64])
            need = Need(action="lambda:InvokeFunction", resource=arn)
            refused = refusal_of(caller, [need], by=f"states: execution {execution['name']}")
            if refused is not None:
                details = "(Service: AWSLambda; Status Code: 403; Error Code: AccessDeniedException)"
                raise stepfunctions.execution_error("Lambda.AWSLambdaException", f"{refused.sentence} {details}")
        return call(function, event)

    def created(request: dict[str, Any]) -> Any:
        _check_machine({name[:1].upper() + name[1:]: value for name, value in request.items()})
        return create(request)

    stepfunctions.run_execution.replace(running)
    stepfunctions.call_lambda.replace(called)
    stepfunctions.create_state_machine.replace(as_response(created))
    complete("AWS::StepFunctions::StateMachine", check=_check_machine, apply=lambda *_: None)


def _check_machine(properties: Mapping[str, Any]) -> None:
    """Refuse a role that Step Functions cannot assume, or that may not deliver the logs."""
    role, logging = properties.get("RoleArn") or "", properties.get("LoggingConfiguration") or {}
    source = "Step Functions, CreateStateMachine"
    if not enforced():
        return
    if not role_trusts(role, _STATES):
        sentence = (
            f"Neither the global service principal {_STATES}, nor the regional one is authorized to assume the"
            " provided role."
        )
        raise RefusedError("AccessDeniedException", sentence, source=source)
    logs = str(logging.get("Level", logging.get("level", "OFF"))) != "OFF"
    needs = [Need(action=f"logs:{action}", resource="*") for action in _LOG_DELIVERY if logs]
    if refusal_of(role_principal(role, "StepFunctions"), needs, by="states: log of a state machine"):
        sentence = "The state machine IAM Role is not authorized to access the Log Destination"
        raise RefusedError("AccessDeniedException", sentence, source=source)
