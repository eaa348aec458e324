"""SageMaker's resources: named records of an account and region, looked up case-insensitively."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tritonstack_local.emulator.ministack_adapter.core import account_region_table, get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import role_trusts

API = "SageMaker API reference"
PRINCIPAL = "sagemaker.amazonaws.com"
_ROLE_SOURCE = "SageMaker's own sentence for such a role, quoted in github.com/bentoml/BentoML/issues/892"


def refused(sentence: str, source: str, *, code: str = "ValidationException") -> RefusedError:
    """A refusal of SageMaker; ``source`` is a page of its API reference."""
    return RefusedError(code, sentence, source=f"{API}, {source}")


@dataclass(frozen=True, kw_only=True)
class RecordKind:
    """A kind of record: its noun in operations, in sentences and in ARNs."""

    noun: str
    label: str
    arn_part: str

    @property
    def name_member(self) -> str:
        """The member that carries the name (``EndpointName``)."""
        return self.noun + "Name"

    def arn(self, name: str) -> str:
        """The ARN of ``name`` in the request's account and region; names in ARNs are lower case."""
        return f"arn:aws:sagemaker:{get_region()}:{get_account_id()}:{self.arn_part}/{name.lower()}"


MODEL = RecordKind(noun="Model", label="model", arn_part="model")
ENDPOINT_CONFIG = RecordKind(noun="EndpointConfig", label="endpoint configuration", arn_part="endpoint-config")
ENDPOINT = RecordKind(noun="Endpoint", label="endpoint", arn_part="endpoint")
COMPONENT = RecordKind(noun="InferenceComponent", label="inference component", arn_part="inference-component")


@dataclass(kw_only=True)
class Record:
    """A created thing: its name as spelled, ARN, times (seconds since the epoch) and the request that made it."""

    name: str
    arn: str
    request: dict[str, Any]
    created: float = field(default_factory=time.time)
    modified: float = field(default_factory=time.time)

    @property
    def place(self) -> tuple[str, str]:
        """Its account and region."""
        _, _, _, region, account, _ = self.arn.split(":", 5)
        return account, region


R = TypeVar("R", bound=Record)


class Records(Generic[R]):
    """All records of one kind. Methods see the request's account and region, but for ``everywhere``."""

    def __init__(self, kind: RecordKind) -> None:
        self.kind = kind
        self._stored = account_region_table()

    def find(self, name: str) -> R | None:
        """The record, or None."""
        found: R | None = self._stored.get(name.lower())
        return found

    def get(self, name: str) -> R:
        """The record; raises ``RefusedError`` where there is none."""
        record = self.find(name)
        if record is None:
            raise RefusedError(
                "ValidationException", f'Could not find {self.kind.label} "{self.kind.arn(name)}".', source=API
            )
        return record

    def add(self, record: R) -> None:
        """Store a new record; raises ``RefusedError`` where its name is taken, in whatever case."""
        if record.name.lower() in self._stored:
            raise RefusedError(
                "ValidationException",
                f'Cannot create already existing {self.kind.label} "{self.kind.arn(record.name)}".',
                source=API,
            )
        self._stored[record.name.lower()] = record

    def remove(self, name: str) -> R:
        """Remove a record and return it; raises ``RefusedError`` where there is none."""
        record = self.get(name)
        self._stored.pop(name.lower(), None)
        return record

    def by_arn(self, arn: str) -> R | None:
        return next((record for record in self if record.arn == arn), None)

    def __iter__(self) -> Iterator[R]:
        """The records of the request's account and region."""
        return iter(self._stored.values())

    def everywhere(self) -> list[R]:
        """The records of every account and region."""
        return list(self._stored.all_values())


def check_execution_role(arn: str) -> None:
    """Raise ``RefusedError`` where the role is not of this account, does not exist or does not trust SageMaker."""
    if not role_trusts(arn, PRINCIPAL):
        raise RefusedError(
            "ValidationException",
            f'The execution role ARN "{arn}" is invalid. Please ensure that the role exists and that its trust'
            f' relationship policy allows the action "sts:AssumeRole" for the service principal "{PRINCIPAL}".',
            source=_ROLE_SOURCE,
        )
