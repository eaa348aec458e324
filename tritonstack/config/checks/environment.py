"""An environment's own fields, and environments against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonstack.catalogue import partition
from tritonstack.config.checks.site import Site, nearest
from tritonstack.config.environment import Environment
from tritonstack.config.findings import Finding, shown

MOST_TAG_KEY, MOST_TAG_VALUE = 128, 256
RESERVED_TAG_PREFIXES = ("aws:", "tritonstack:")
_TAG_SIGNS = frozenset(" _.:/=+-@")


def check_site(
    *,
    site: Site,
    stem: str,
    permissions_boundary: str | None,
    tags: Mapping[str, str],
    artifact_key: str | None = None,
) -> Iterator[Finding]:
    """What is wrong with an environment's own fields; ``stem`` is its file's name without the suffix."""
    if site.environment is not None and site.environment != stem:
        yield Finding(
            location=("environment",),
            found=shown(site.environment),
            allowed=f"{stem}, as the file is called",
            advice=f"Rename the file to {site.environment}.yaml or the environment to {stem}.",
        )
    if site.region is not None and site.region not in site.catalogue.regions:
        yield Finding(
            location=("region",),
            found=shown(site.region),
            allowed=f"a region where SageMaker hosts endpoints: {', '.join(site.catalogue.regions)}",
            advice=nearest(site.region, site.catalogue.regions),
        )
    if permissions_boundary is not None:
        yield from _check_boundary(site=site, boundary=permissions_boundary)
    for key, value in tags.items():
        yield from _check_tag(key=key, value=value)
    if artifact_key is not None and site.region is not None and artifact_key.split(":")[3] != site.region:
        yield Finding(
            location=("artifacts", "key_arn"),
            found=f"a key in {artifact_key.split(':')[3]}",
            allowed=f"a key in the environment's region, {site.region}",
        )


def _check_boundary(*, site: Site, boundary: str) -> Iterator[Finding]:
    _, named_partition, _, _, account, _ = boundary.split(":", maxsplit=5)
    if site.region is not None and named_partition != partition(site.region):
        yield Finding(
            location=("permissions_boundary",),
            found=f"an ARN of partition {named_partition}",
            allowed=f"one of {partition(site.region)}, where {site.region} is",
        )
    if site.account is not None and account not in ("aws", site.account):
        yield Finding(
            location=("permissions_boundary",),
            found=f"a policy of account {account}",
            allowed=f"a policy of account {site.account}, or one of AWS's own",
        )


def _check_tag(*, key: str, value: str) -> Iterator[Finding]:
    place = ("tags", key)
    reserved = next((prefix for prefix in RESERVED_TAG_PREFIXES if key.lower().startswith(prefix)), None)
    if reserved:
        yield Finding(location=place, found=f"the key {key}", allowed=f"a key that does not begin with {reserved}")
    if not 1 <= len(key) <= MOST_TAG_KEY or not _tag_text(key):
        yield Finding(
            location=place,
            found=f"the key {shown(key)}",
            allowed=f"1 to {MOST_TAG_KEY} letters, digits, blanks and _ . : / = + - @",
        )
    if len(value) > MOST_TAG_VALUE or not _tag_text(value):
        yield Finding(
            location=place,
            found=shown(value),
            allowed=f"at most {MOST_TAG_VALUE} letters, digits, blanks and _ . : / = + - @",
        )


def _tag_text(text: str) -> bool:
    return all(sign.isalnum() or sign in _TAG_SIGNS for sign in text)


def check_repeated_names(names: Mapping[int, str]) -> Iterator[Finding]:
    """Endpoints whose name another one of the environment has; ``names`` maps an index in the list to a name."""
    first: dict[str, int] = {}
    for index, name in names.items():
        if name in first:
            yield Finding(
                location=("endpoints", index, "name"),
                found=f"{name}, as endpoints[{first[name]}] is called already",
                allowed="a name that no other endpoint of the environment has",
            )
        first.setdefault(name, index)


def check_names_across(environments: Mapping[str, Environment]) -> Iterator[tuple[str, Finding]]:
    """Endpoints of different environments that would have one name in one account and region.

    ``environments`` maps a file to its environment; each finding comes with the file it is about. Such a pair are
    endpoint ``b-c`` of environment ``a1`` and endpoint ``c`` of environment ``a1-b``.
    """
    owners: dict[tuple[str, str, str], str] = {}
    for file, environment in environments.items():
        for index, endpoint in enumerate(environment.endpoints):
            name = endpoint.sagemaker_name(environment.environment)
            key = (environment.account, environment.region, name)
            if key in owners and owners[key] != file:
                yield (
                    file,
                    Finding(
                        location=("endpoints", index, "name"),
                        found=f"{name} at SageMaker, as in {owners[key]}",
                        allowed="a name that no other environment of the same account and region gives",
                    ),
                )
            owners.setdefault(key, file)
