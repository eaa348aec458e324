"""What an environment's builds stack and its artifacts stack tell in SSM parameters."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import Session, code_of
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.naming import artifact_parameter, builds_parameter


def builds_value(session: Session, *, environment: str, value: str) -> str:
    """A value of the builds stack (``engine-project-name``).

    Raises :class:`InputError` where that stack is not deployed, :class:`WorkFailedError` where SSM refuses.
    """
    return _read(session, builds_parameter(environment=environment, value=value), f"{environment}/builds")


def artifacts_value(session: Session, *, environment: str, value: str) -> str:
    """A value of the artifacts stack (``key-arn``). Raises as :func:`builds_value`."""
    return _read(session, artifact_parameter(environment=environment, value=value), f"{environment}/artifacts")


def _read(session: Session, name: str, stack: str) -> str:
    try:
        return str(session.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    except (BotoCoreError, ClientError) as error:
        if code_of(error) != "ParameterNotFound":
            raise WorkFailedError(f"could not read the parameter {name}: {error}") from error
        allowed = f"the stack {stack}, which builds TensorRT engines" if "/builds" in stack else f"the stack {stack}"
        problem = Problem(field=name, found="no such parameter", allowed=allowed, advice=f"cdk deploy '{stack}'")
        raise InputError([problem]) from None
