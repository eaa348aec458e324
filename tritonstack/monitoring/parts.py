"""The endpoints of an environment by the observability stack that watches them.

Each stack has a dashboard and alarms of at most fifteen variants: of forty endpoints one dashboard would have more than
CloudWatch's 500 widgets, and one template more than CloudFormation's megabyte. Assignment follows the file alone, for
synthesis does not see what is deployed: the first fifteen variants are in the first stack, however many follow.
"""

from __future__ import annotations

from tritonstack.config import EndpointSettings, Environment

VARIANTS_OF_A_STACK = 15
"""Each has a section of up to 18 widgets: far enough from CloudWatch's 500, and a page that one reads."""


def observed_parts(environment: Environment) -> tuple[tuple[EndpointSettings, ...], ...]:
    """The endpoints of each observability stack, in the file's order; none where nothing is watched.

    The variants of an endpoint stay together, even more of them than ``VARIANTS_OF_A_STACK``.
    """
    if not environment.watched:
        return ()
    parts: list[list[EndpointSettings]] = [[]]
    variants = 0
    for endpoint in environment.endpoints:
        own = len(endpoint.variant_settings)
        if parts[-1] and variants + own > VARIANTS_OF_A_STACK:
            parts.append([])
            variants = 0
        parts[-1].append(endpoint)
        variants += own
    return tuple(tuple(each) for each in parts)
