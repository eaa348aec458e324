"""cdk-nag's pack NIST 800-53 R5, for the stages of an app that it is meant for."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
import cdk_nag
from constructs import IConstruct


class NistChecks(cdk_nag.NIST80053R5Checks):
    """The pack for a part of an app: a plug-in that a stage registers is given the whole app, too."""

    def __init__(self, scopes: Sequence[IConstruct]) -> None:
        """Check these constructs and what is below them."""
        super().__init__()
        self._scopes = scopes

    def validate(self, context: cdk.IPolicyValidationContext) -> cdk.PolicyValidationPluginReport:  # noqa: ARG002
        """Find what the pack does not allow; called at synthesis."""
        reports = [self.validate_scope(scope) for scope in self._scopes]
        violations = [each for report in reports for each in report.violations]
        return cdk.PolicyValidationPluginReport(success=not violations, violations=violations)
