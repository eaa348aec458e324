"""Service Quotas of the account: what it has, found by the quota's name."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from tritonstack.catalogue import partition
from tritonstack.preflight.once import Once
from tritonstack.preflight.result import About, Result
from tritonstack.read_only_aws import ReadOnlyCalls

_PAGE = 100
"""The most that one answer has (API reference, ListServiceQuotas); SageMaker has thousands of quotas."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota.

    Attributes:
        service: Service Quotas' code of the service (``sagemaker``).
        code: the quota's code (``L-7A3DF611``).
        name: its name (``ml.g4dn.xlarge for endpoint usage``).
        value: the account's; AWS's default where the account's is not listed.
        is_default: whether it is AWS's default that is listed, not what the account has.
        adjustable: whether more can be asked for.
    """

    service: str
    code: str
    name: str
    value: float
    is_default: bool
    adjustable: bool

    def __str__(self) -> str:
        return f"{self.value:g} ({'default of ' if self.is_default else ''}{self.code} «{self.name}»)"


class Quotas:
    """The quotas of one account and region; each service's list is read once, whoever asks."""

    def __init__(self, calls: ReadOnlyCalls, *, region: str) -> None:
        """``region``: for links and command lines."""
        self._calls = calls
        self._region = region
        self._lock = threading.Lock()
        self._lists: dict[tuple[str, bool], Once[dict[str, Quota]]] = {}

    def named(self, service: str, name: str) -> Quota | None:
        """The quota called ``name``, in any case; None where the service has none of that name in the region.

        ListServiceQuotas leaves out a quota whose value for the account is not available; its default then counts.

        Raises:
            NotKnownError: AWS refuses or does not answer.
        """
        for defaults in (False, True):
            found = self._list(service, defaults=defaults).get().get(name.lower())
            if found is not None:
                return found
        return None

    def compare(self, about: About, *, service: str, name: str, needed: int) -> Result:
        """Whether the quota called ``name`` is ``needed`` or more. Raises as ``named``."""
        quota = self.named(service, name)
        if quota is None:
            return about.unknown(
                f"Service Quotas of {self._region} lists no «{name}» of {service}",
                advice="Look at the service's quotas in the console: the name may differ there, or there is none.",
            )
        if quota.value >= needed:
            return about.passes(str(quota))
        return about.fails(str(quota), advice=self.how_to_raise(quota, wanted=needed))

    def how_to_raise(self, quota: Quota, *, wanted: int) -> str:
        """What to do to have ``wanted``."""
        if not quota.adjustable:
            return "It is not adjustable: use another type, or fewer instances."
        place = f"https://{self._region}.console.aws.amazon.com/servicequotas/home/services/{quota.service}/quotas/"
        line = (
            f"aws service-quotas request-service-quota-increase --region {self._region} --service-code {quota.service}"
            f" --quota-code {quota.code} --desired-value {wanted}"
        )
        console = f" (or {place}{quota.code})" if partition(self._region) == "aws" else ""
        return f"Ask for {wanted}: {line}{console}; it may take days."

    def _list(self, service: str, *, defaults: bool) -> Once[dict[str, Quota]]:
        with self._lock:
            key = (service, defaults)
            if key not in self._lists:
                self._lists[key] = Once(lambda: self._read(service, defaults=defaults))
            return self._lists[key]

    def _read(self, service: str, *, defaults: bool) -> dict[str, Quota]:
        operation = "list_aws_default_service_quotas" if defaults else "list_service_quotas"
        rows = self._calls.pages(
            "service-quotas", operation, "Quotas", ServiceCode=service, PaginationConfig={"PageSize": _PAGE}
        )
        quotas = (_quota(row, service, is_default=defaults) for row in rows)
        return {quota.name.lower(): quota for quota in quotas if quota is not None}


def _quota(row: dict[str, Any], service: str, *, is_default: bool) -> Quota | None:
    """None for a row that has an error in the place of its value."""
    if row.get("Value") is None or row.get("ErrorReason"):
        return None
    return Quota(
        service=service,
        code=row["QuotaCode"],
        name=row["QuotaName"],
        value=row["Value"],
        is_default=is_default,
        adjustable=bool(row.get("Adjustable")),
    )
