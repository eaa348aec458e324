"""Model packages: one of each configuration, in a group of the test's own, and both removed at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .jobs import delete, is_unknown

if TYPE_CHECKING:
    from .plan import Plan
    from .services import Clients

CONFIGURATION = "configuration"
"""The custom metadata of a package that says which configuration it is of."""


def register(plan: Plan, clients: Clients) -> None:
    """Make the group and the packages that are not there yet."""
    group = plan["group"]
    if not _has_group(group, clients):
        clients.sagemaker.create_model_package_group(
            ModelPackageGroupName=group, ModelPackageGroupDescription="Of one load test; goes with it"
        )
    found = registered(plan, clients)
    for name, request in plan["packages"].items():
        if name not in found:
            clients.sagemaker.create_model_package(
                **request, ModelPackageGroupName=group, CustomerMetadataProperties={CONFIGURATION: name}
            )


def registered(plan: Plan, clients: Clients) -> dict[str, str]:
    """Configuration → ARN of its package."""
    found: dict[str, str] = {}
    for arn in _arns(plan["group"], clients):
        described = clients.sagemaker.describe_model_package(ModelPackageName=arn)
        found[described["CustomerMetadataProperties"][CONFIGURATION]] = arn
    return found


def remove(plan: Plan, clients: Clients) -> list[str]:
    """Remove packages and group; their ARNs and its name."""
    group = plan["group"]
    if not _has_group(group, clients):
        return []
    sagemaker = clients.sagemaker
    removed = [arn for arn in _arns(group, clients) if delete(sagemaker.delete_model_package, ModelPackageName=arn)]
    if delete(sagemaker.delete_model_package_group, ModelPackageGroupName=group):
        removed.append(group)
    return removed


def _has_group(group: str, clients: Clients) -> bool:
    try:
        clients.sagemaker.describe_model_package_group(ModelPackageGroupName=group)
    except clients.sagemaker.exceptions.ClientError as error:
        if is_unknown(error):
            return False
        raise
    return True


def _arns(group: str, clients: Clients) -> list[str]:
    pages: Any = clients.sagemaker.get_paginator("list_model_packages").paginate(ModelPackageGroupName=group)
    return [str(one["ModelPackageArn"]) for page in pages for one in page["ModelPackageSummaryList"]]
