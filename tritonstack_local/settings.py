"""How other parts find the local AWS without knowing how it is made."""

from __future__ import annotations

from tritonstack_local.aws import LocalAws, find_local_aws, require_local_aws

__all__ = ["LocalAws", "find_local_aws", "require_local_aws"]
