"""``builds``: its minutes against each other and against how long a deployment waits, and where its secret is."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.config.builds import SHORTEST_MINUTES, BuildSettings
from tritonstack.config.findings import Finding

RECORDS = "/tritonstack/"
"""Where release records and the stacks' values are."""

WAIT_MINUTES = 12 * 60
"""The longest that a CloudFormation wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
QUEUE_MINUTES = 60
"""How long a build may stand in CodeBuild's queue before it is given up; ours, of 5 to 480 minutes."""
START_MINUTES = 15
"""For what lies around a build: its start, and the event that ends the wait."""
LONGEST_BUILD = WAIT_MINUTES - QUEUE_MINUTES - START_MINUTES


def check_builds(builds: BuildSettings) -> Iterator[Finding]:
    """Time limits that cannot hold together, and a secret among parameters that others read."""
    token = builds.hub.token_parameter
    if token is not None and token.startswith(RECORDS):
        yield Finding(
            location=("builds", "hub", "token_parameter"),
            found=token,
            allowed=f"a name outside {RECORDS}: whatever reads release records may read every parameter below it",
        )
    if builds.timeout_minutes > LONGEST_BUILD:
        yield Finding(
            location=("builds", "timeout_minutes"),
            found=f"{builds.timeout_minutes}: with {QUEUE_MINUTES} minutes in the queue and {START_MINUTES} around it "
            f"{builds.timeout_minutes + QUEUE_MINUTES + START_MINUTES} minutes, and a deployment waits for "
            f"{WAIT_MINUTES} at most",
            allowed=f"{LONGEST_BUILD} or less",
        )
    longest = builds.timeout_minutes - QUEUE_MINUTES
    if builds.engine_timeout_minutes > longest:
        yield Finding(
            location=("builds", "engine_timeout_minutes"),
            found=f"{builds.engine_timeout_minutes}: with {QUEUE_MINUTES} minutes in the queue "
            f"{builds.engine_timeout_minutes + QUEUE_MINUTES} minutes, and the build that waits for the engine may "
            f"take {builds.timeout_minutes} (builds.timeout_minutes)",
            allowed=f"{longest} or less"
            if longest >= SHORTEST_MINUTES
            else f"{SHORTEST_MINUTES} or more, and {QUEUE_MINUTES} minutes more than that for builds.timeout_minutes",
        )
