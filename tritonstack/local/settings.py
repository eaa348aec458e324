"""How other parts find the local AWS without knowing how it is made."""

from __future__ import annotations

import os

from tritonstack.local.aws import LocalAws, find_local_aws, require_local_aws

__all__ = ["LocalAws", "find_local_aws", "require_local_aws", "use_local_aws"]


def use_local_aws() -> LocalAws:
    """Point this process's AWS SDK at the running local AWS.

    Raises:
        InputError: none runs.
    """
    aws = require_local_aws()
    os.environ.update(aws.variables())
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    return aws
