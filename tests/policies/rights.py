"""What every role must be able to do, and what none may: ``rights.yaml``."""

from __future__ import annotations

from tests.arns import actions_of, arn_of
from tests.cases import table
from tritonstack.aws.iam_evaluation import Request

Row = tuple[str, str, dict[str, str]]
"""Actions, separated by blanks; resource; context."""
_Written = tuple[str, str] | tuple[str, str, dict[str, str]]
_Rows = list[_Written | list[_Written]]

BUCKET = "arn:aws:s3:::archives"
PLATFORMS = {"e0": "24.09-t4", "e1": "24.09-a10g", "e2": "24.09-t4"}
"""Endpoint → the platform of its archives."""


def row(actions: str, resource: str, context: dict[str, str] | None = None) -> Row:
    """A row with its actions and its ARN in full."""
    return " ".join(actions_of(actions)), arn_of(resource), context or {}


def _rows(written: _Rows, endpoint: str = "") -> list[Row]:
    """Rows in full, of an endpoint."""
    flat = [each for item in written for each in (item if isinstance(item, list) else [item])]

    def filled(text: str) -> str:
        return text.replace("<endpoint>", endpoint).replace("<platform>", PLATFORMS.get(endpoint, ""))

    return [
        (actions, filled(resource), {key: filled(value) for key, value in context.items()})
        for actions, resource, context in (row(*each) for each in flat)
    ]


def _tables(name: str) -> dict[str, _Rows]:
    return table(__file__, name, dict[str, _Rows])


def _may() -> dict[str, list[Row]]:
    serving, rest = _tables("serving"), _tables("may")
    found = {f"serving-{each}/{role}": _rows(rows, each) for each in PLATFORMS for role, rows in serving.items()}
    return found | {role: [*found.get(role, []), *_rows(rows)] for role, rows in rest.items()}


MAY = _may()
NONE_MAY = _rows(table(__file__, "none_may", _Rows))
"""Another bucket, key, role, endpoint, environment, network; and the settings of what is one's own."""
BY_ANOTHER_WAY = {role: _rows(rows) for role, rows in _tables("by_another_way").items()}
"""What a role may not do, though others may."""


def of_others(endpoint: str) -> list[Row]:
    """What no role of the stack of ``endpoint`` may do to the other endpoints."""
    written = table(__file__, "of_another_endpoint", _Rows)
    return [each for other in PLATFORMS if other != endpoint for each in _rows(written, other)]


def requests(rows: list[Row]) -> list[Request]:
    """Every request of the rows; the principal is added later."""
    return [
        Request(principal="", action=action, resource=resource, context=context)
        for actions, resource, context in rows
        for action in actions.split()
    ]
