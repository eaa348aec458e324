"""Each instance type is offered to endpoints in the region, by AWS's own word of today."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.catalogue import partition
from tritonstack.preflight.checks.endpoint_quota import of_type
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject
from tritonstack.read_only_aws import NotKnownError

_PRICE_LIST_REGION = "us-east-1"
"""The Price List answers in few regions, for all of the partition aws (Billing user guide, "Price List Query API")."""


def check(subject: Subject) -> Iterator[Result]:
    """A result for each type. The catalogue's word, older than AWS's, is in ``found``."""
    for name in sorted({endpoint.instance_type for endpoint in subject.environment.endpoints}):
        about = About(
            check="instance-type", subject=name, needed=f"offered to endpoints in {subject.environment.region}"
        )
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    """Two live witnesses: Service Quotas has a quota of the type for endpoints, or the Price List a price for hosting.

    SageMaker has no operation that lists types by region. Where one witness is silent and the other knows nothing of
    the type, it is unknown.
    """
    region, silent, said = subject.environment.region, [], []
    for witness in (_quota, _price):
        try:
            found = witness(subject, about.subject)
        except NotKnownError as error:
            silent.append(error)
            continue
        if found is not None:
            return about.passes(f"{found}; {_catalogue(subject, about.subject)}")
        said.append("Service Quotas has no quota of it" if witness is _quota else "the Price List has no price of it")
    advice = f"Choose a type that SageMaker hosts in {region}, or another region."
    if silent:
        found = "; ".join([*said, *(error.found for error in silent)])
        return about.unknown(found, advice=silent[0].advice, permission=silent[0].permission)
    return about.fails(f"{' and '.join(said)} in {region}; {_catalogue(subject, about.subject)}", advice=advice)


def _quota(subject: Subject, name: str) -> str | None:
    quota = subject.quotas.named("sagemaker", of_type(name))
    return None if quota is None else f"Service Quotas has its quota ({quota.code})"


def _price(subject: Subject, name: str) -> str | None:
    region = subject.environment.region
    if partition(region) != "aws":
        raise NotKnownError(
            f"the Price List of {partition(region)} is not asked", advice="Look at SageMaker's prices of the region."
        )
    wanted = {"instanceName": name, "regionCode": region, "component": "Hosting"}
    answer = subject.calls.must(
        "pricing",
        "get_products",
        region=_PRICE_LIST_REGION,
        ServiceCode="AmazonSageMaker",
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        MaxResults=1,
    )
    return "the Price List has a price of it for hosting" if answer.get("PriceList") else None


def _catalogue(subject: Subject, name: str) -> str:
    region = subject.environment.region
    row = next(each.instance for each in subject.environment.endpoints if each.instance_type == name)
    return f"the catalogue {'has' if region in row.regions else 'has not'} {region} among its regions"


CHECK = Check(name="instance-type", title="instance types in the region", run=check)
