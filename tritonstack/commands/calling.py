"""For commands that call models: which AWS is asked, and what lies behind a name that leads nowhere."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, TritonstackError


def calling_session(environment: str, *, local: bool) -> Any:
    """What makes AWS clients: the local AWS, or boto3 in the region that the environment's file names."""
    from tritonstack.commands.session import AccountSession, local_session  # noqa: PLC0415

    return local_session(environment, wanted=local) or AccountSession(region_of(environment))


def refuse_without_credentials(error: TritonstackError, environment: str, session: Any) -> None:
    """Raise what lies behind an account that cannot be asked while the local AWS runs: that one was meant. Or return.

    Only environment ``local`` implies the local AWS: every other is asked of the account that credentials are of.
    """
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415

    from tritonstack.local_aws import find_local_aws, is_local  # noqa: PLC0415

    if not isinstance(error.__cause__, NoCredentialsError) or is_local(session.client("ssm")):
        return
    if find_local_aws() is None:
        return
    problem = Problem(
        field="AWS settings",
        found="no credentials, and a local AWS that runs",
        allowed=f"credentials of the account of environment {environment}; only environment local needs none",
        advice="Where local deploy deployed it: the same command with --local",
    )
    raise InputError([problem]) from error


def explain_name(
    error: TritonstackError, client: Any, environment: str, session: Any, *, field: str = "--environment"
) -> None:
    """Raise what lies behind a name that leads nowhere: no such environment, or nothing deployed. Else return.

    ``field``: how the command line calls the environment.
    """
    if _has_releases(client):
        return
    folder = _environment_file(environment).parent
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if environment not in names:
        found = f"{environment}, of which there is neither a file {environment}.yaml nor a release record"
        allowed = f"an environment of {folder}: {', '.join(names) or 'none there'}"
        near = difflib.get_close_matches(environment, names, n=1)
        advice = f"Did you mean {near[0]}?" if near else ""
        raise InputError([Problem(field=field, found=found, allowed=allowed, advice=advice)]) from error
    from tritonstack.local_aws import is_local  # noqa: PLC0415

    if is_local(session.client("ssm")):
        from tritonstack.local_aws import installed  # noqa: PLC0415

        found = f"nothing of environment {environment} is deployed on the local AWS"
        if (package := installed()) and environment in package.lost_deployments():
            found += " any more: the one that held it was stopped, and keeps no state"
        advice = f"tritonstack local deploy {environment}".removesuffix(" local")
        raise InputError([Problem(found=found, allowed="a deployed environment", advice=advice)]) from error


def _has_releases(client: Any) -> bool:
    try:
        return bool(client.releases())
    except TritonstackError:
        return False


def _environment_file(environment: str) -> Path:
    from tritonstack.paths import project_folder  # noqa: PLC0415

    return project_folder() / "environments" / f"{environment}.yaml"


def region_of(environment: str) -> str | None:
    """The region that the environment's file names; None without one: then boto3's own settings count."""
    path = _environment_file(environment)
    if not path.is_file():
        return None
    from tritonstack.settings import load_environment  # noqa: PLC0415

    return load_environment(path).region
