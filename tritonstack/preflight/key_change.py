"""The key that deployed objects are under, and the one that the environment's file names."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import naming
from tritonstack.config.environment import CREATED
from tritonstack.preflight.ec2 import made_by
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject


def check_key_change(subject: Subject) -> Iterator[PreflightResult]:
    """A key that is changed stays allowed, as ``artifacts.earlier_key``, until every object is written anew."""
    name = naming.artifact_parameter(environment=subject.environment.environment, value="key-arn")
    needed = "the key that objects are under is artifacts.key_arn or artifacts.earlier_key"
    yield from CheckedItem(check="key-change", subject="key of the artifacts", needed=needed).look(
        _change, subject, name
    )


def _change(item: CheckedItem, subject: Subject, name: str) -> PreflightResult:
    settings = subject.environment.artifacts
    answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
    if answer is None:
        return item.passes("nothing is deployed yet")
    deployed = str(answer["Parameter"]["Value"])
    allowed = (settings.key_arn or CREATED, settings.earlier_key)
    if deployed in allowed:
        return item.passes(deployed)
    stack = naming.stack_name(environment=subject.environment.environment, part=naming.ARTIFACTS)
    made = {deployed.partition("/")[0] + f"/{each}" for each in made_by(subject, stack).get("AWS::KMS::Key", ())}
    current = CREATED if deployed in made else deployed
    if current in allowed:
        return item.passes(deployed)
    return item.fails(
        f"{deployed}, which roles could use no longer"
        + (", and which would leave its stack" if current == CREATED else "")
        + ": no archive that is under it could be loaded",
        advice=f"Set `artifacts: {{earlier_key: {current}}}` in the environment's file while the key is changed: "
        "docs/updates.md#change-the-key has the steps.",
    )
