"""A CloudWatch dashboard from the definition that ``tritonstack dashboard`` draws too."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from tritonstack.observability.dashboard_body import dashboard_body
from tritonstack.observability.graph import Dashboard as Definition


class Dashboard(Construct):
    """The dashboard. Its name is ours, for people have it among their bookmarks.

    Attributes:
        dashboard: the resource.
    """

    def __init__(self, scope: Construct, construct_id: str, *, definition: Definition) -> None:
        """Make the dashboard of a ``definition``; values of its dimensions may be known at deployment only."""
        super().__init__(scope, construct_id)
        self.dashboard = cloudwatch.CfnDashboard(
            self, "Dashboard", dashboard_name=definition.name, dashboard_body=dashboard_body(definition)
        )

    @property
    def dashboard_name(self) -> str:
        """The dashboard's name."""
        return str(self.dashboard.ref)
