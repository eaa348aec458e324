"""ARNs of AWS resources, from service, type and name (service authorization reference, "Resource types")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COLON_SERVICES = frozenset({"cloudwatch", "lambda", "logs", "states"})
"""Services whose ARNs separate resource type and name by a colon; the others by a slash."""
_SHORT = re.compile(r"(?P<service>[a-z0-9-]+):(?P<resource>.+)")


@dataclass(frozen=True, kw_only=True)
class Arn:
    """An ARN in its parts; those may be tokens of a template."""

    partition: str  # ``aws``, ``aws-cn``
    service: str
    region: str  # empty where the service's ARNs have none
    account: str  # empty likewise
    resource: str  # type and name, as the service separates them

    @classmethod
    def parse(cls, text: str) -> Arn:
        """The parts of an ARN. Raises ValueError where ``text`` has fewer."""
        _, partition, service, region, account, resource = text.split(":", 5)
        return cls(partition=partition, service=service, region=region, account=account, resource=resource)

    def __str__(self) -> str:
        return f"arn:{self.partition}:{self.service}:{self.region}:{self.account}:{self.resource}"


@dataclass(frozen=True, kw_only=True)
class AccountRegion:
    """An account and region with resources; all three may be tokens of a template."""

    partition: str  # ``aws``, ``aws-cn``
    region: str
    account: str

    def arn(self, service: str, resource: str, name: str, *, account: str | None = None) -> str:
        """The ARN of a resource; ``account``: of another account, such as the owner of a shared subnet."""
        sign = ":" if service in _COLON_SERVICES else "/"
        return self._whole(service, f"{resource}{sign}{name}", account or self.account)

    def expanded(self, short: str) -> str:
        """The ARN that ``sagemaker:endpoint/prod-digits`` stands for; ``*`` and whole ARNs as they are."""
        found = None if short.startswith("arn:") else _SHORT.fullmatch(short)
        return short if found is None else self._whole(found["service"], found["resource"], self.account)

    def _whole(self, service: str, resource: str, account: str) -> str:
        parts = Arn(partition=self.partition, service=service, region=self.region, account=account, resource=resource)
        return str(parts)


def bucket_arn(name: str, *, partition: str) -> str:
    """The ARN of a bucket, or with ``bucket/key`` of an object: neither region nor account is in it."""
    return str(Arn(partition=partition, service="s3", region="", account="", resource=name))


def s3_url_arn(url: str, *, partition: str) -> str:
    """The ARN of the object at an ``s3://`` URL."""
    return bucket_arn(url.removeprefix("s3://"), partition=partition)


def role_arn(name: str, *, partition: str, account: str, path: str | None = None) -> str:
    """The ARN of a role. ``path``: with a slash at both ends; None: it has none."""
    return iam_arn(f"role{path or '/'}{name}", partition=partition, account=account)


def iam_arn(resource: str, *, partition: str, account: str) -> str:
    """The ARN of a resource of IAM (``policy/name``, ``root``): no region is in it."""
    return str(Arn(partition=partition, service="iam", region="", account=account, resource=resource))
