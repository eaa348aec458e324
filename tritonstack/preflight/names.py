"""Names that the account has already, in other hands than the environment's."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import naming
from tritonstack.preflight.subject import GONE, CheckedItem, PreflightResult, Subject


def check_endpoint_name(subject: Subject) -> Iterator[PreflightResult]:
    """Endpoints called as the environment's are its own, by their tags; one that is not there yet is fine."""
    environment = subject.environment
    for endpoint in environment.endpoints:
        name = endpoint.sagemaker_name(environment.environment)
        item = CheckedItem(
            check="endpoint-name", subject=name, needed="no endpoint of that name, or this environment's own"
        )
        yield from item.look(_owner, subject, name, endpoint.name)


def _owner(item: CheckedItem, subject: Subject, name: str, endpoint: str) -> PreflightResult:
    described = subject.calls.ask("sagemaker", "describe_endpoint", absent=GONE, EndpointName=name)
    if described is None:
        return item.passes("no endpoint of that name")
    answer = subject.calls.must("sagemaker", "list_tags", ResourceArn=described["EndpointArn"])
    tags = {each["Key"]: each["Value"] for each in answer.get("Tags", ())}
    owner = tags.get(naming.ENVIRONMENT_TAG), tags.get(naming.ENDPOINT_TAG)
    if owner == (subject.environment.environment, endpoint):
        return item.passes("this environment's own")
    advice = (
        f"Rename endpoint {endpoint} in the environment's file, or delete the other one where nothing calls it: "
        f"aws sagemaker delete-endpoint --region {subject.environment.region} --endpoint-name {name}"
    )
    if owner == (None, None):
        return item.fails(f"an endpoint without the tag {naming.ENVIRONMENT_TAG}: no stack made it", advice=advice)
    found = f"endpoint {owner[1] or 'unknown'} of environment {owner[0] or 'unknown'}"
    return item.fails(f"{found}, by its tags", advice=advice)
