"""PutDashboard, checked; MiniStack answers for the dashboards that are there."""

from __future__ import annotations

import re
from typing import Any

from ministack.services import cloudwatch

from tritonstack_local.emulator.cloudwatch.alarm_operations import Request, refused
from tritonstack_local.emulator.cloudwatch.dashboard import problems

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")


def put_dashboard(request: Request) -> dict[str, Any]:
    """PutDashboard: refused for errors; warnings are answered and the dashboard is kept."""
    if not _NAME.fullmatch(request["DashboardName"]):
        raise refused(
            "PutDashboard",
            "The field DashboardName must be 1 to 255 letters, digits, dashes and underscores",
            code="InvalidParameterInput",
        )
    errors, warnings = problems(request["DashboardBody"])
    if errors:
        found = "; ".join(f"{path}: {sentence}" for path, sentence in errors)
        raise refused("PutDashboard", f"The dashboard body is invalid: {found}", code="InvalidParameterInput")
    arn = cloudwatch.cloudformation_put_dashboard(request["DashboardName"], request["DashboardBody"])
    if request.get("Tags"):
        cloudwatch._resource_tags[arn] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    return {"DashboardValidationMessages": [{"DataPath": path, "Message": sentence} for path, sentence in warnings]}
