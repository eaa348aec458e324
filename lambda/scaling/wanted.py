"""What a template wants of an endpoint's scaling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wanted:
    """What a template wants.

    Attributes:
        endpoint: its name.
        variant: its production variant.
        minimum: the least number of instances, and ``maximum`` the greatest.
        initial: the number to start with.
        policies: name → target tracking configuration.
        schedules: scheduled actions, as PutScheduledAction takes them.
        routing: the traffic routing configuration of an update that keeps the variant; empty where there is none.
    """

    endpoint: str
    variant: str
    minimum: int
    maximum: int
    initial: int
    policies: Mapping[str, Any]
    schedules: tuple[Mapping[str, Any], ...]
    routing: Mapping[str, Any]

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Read it from the JSON text that a construct wrote, before ``routing`` was more than its type, now or later.

        A rollback from a later version hands that version's text to this one: what it added is left out.
        """
        given = {name: value for name, value in json.loads(text).items() if name in cls.__dataclass_fields__}
        routing = given["routing"]
        if isinstance(routing, str):
            routing = {"Type": routing} if routing else {}
        return cls(**{**given, "schedules": tuple(given["schedules"]), "routing": routing})
