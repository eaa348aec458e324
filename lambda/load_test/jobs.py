"""Jobs of Inference Recommender: started, asked after, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from ..shared.clients import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .services import Clients

FINAL = frozenset({"COMPLETED", "FAILED", "STOPPED", "DELETED"})
"""The statuses that a job ends in (API reference: DescribeInferenceRecommendationsJob, ``Status``)."""
LEAVING = frozenset({"STOPPING", "DELETING"})
UNKNOWN = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
"""What SageMaker answers for a job that there is none of; of a ValidationException its words decide."""


def start(job: Mapping[str, Any], *, package: str, role: str, clients: Clients) -> None:
    """Start a job, unless it was started: a step that is repeated finds its own job."""
    request = dict(job["request"])
    given = dict(request["InputConfig"])
    given["ModelPackageVersionArn"] = package
    request |= {"JobName": job["name"], "RoleArn": role, "InputConfig": given}
    if describe(str(job["name"]), clients) is None:
        clients.sagemaker.create_inference_recommendations_job(**request)


def describe(name: str, clients: Clients) -> Mapping[str, Any] | None:
    """What SageMaker says of a job; None where there is none."""
    try:
        return cast("Mapping[str, Any]", clients.sagemaker.describe_inference_recommendations_job(JobName=name))
    except clients.sagemaker.exceptions.ClientError as error:
        if is_unknown(error):
            return None
        raise


def runs(name: str, clients: Clients) -> bool:
    """Whether a job has been made and not ended."""
    described = describe(name, clients)
    return described is not None and described["Status"] not in FINAL


def stop(name: str, clients: Clients) -> bool:
    """Ask a job to end; whether it ran. One that ends meanwhile is no failure."""
    described = describe(name, clients)
    if described is None or described["Status"] in FINAL | LEAVING:
        return False
    try:
        clients.sagemaker.stop_inference_recommendations_job(JobName=name)
    except clients.sagemaker.exceptions.ClientError:
        if runs(name, clients):
            raise
    return True


def delete(call: Callable[..., object], **what: str) -> bool:
    """Make a call that deletes; False where another clean-up of the same test was first, which is no failure."""
    try:
        call(**what)
    except ClientError as error:
        if is_unknown(error):
            return False
        raise
    return True


def is_unknown(error: Any) -> bool:
    """Whether a refusal says that there is no such thing."""
    code = code_of(error)
    words = str(error).lower()
    return code in UNKNOWN or (code == "ValidationException" and ("not find" in words or "not exist" in words))
