"""AWS that a command talks to, local or an account; whether the account is the environment's; wrong names explained."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from tritonstack.aws_session import AccountSession, Session, invalid_settings
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError
from tritonstack.local_aws import LocalSession, find_local_aws, is_local, require_local_aws

if TYPE_CHECKING:
    from tritonstack.config import Environment


_ANY_REGION = "us-east-1"
"""To make a client that is not used: a region is needed, and a configured endpoint URL is the same in all."""


def local_session(environment: str, *, wanted: bool = False) -> LocalSession | None:
    """The local AWS's session where ``environment`` means it, or None.

    It does where ``wanted`` says so, and for environment ``local``; there a shell that points at some AWS already
    (``tritonstack local env``) is left alone when no local AWS of ours runs. Raises as ``require_local_aws`` does.
    """
    if wanted or (environment == "local" and (find_local_aws() or not _endpoint_is_configured())):
        return require_local_aws().session()
    return None


def shell_is_local(service: str) -> bool:
    """Whether the process's own AWS settings lead to a local AWS (``tritonstack local env``)."""
    try:
        return is_local(AccountSession(_ANY_REGION).client(service))
    except InputError:
        return False


def _endpoint_is_configured() -> bool:
    """Whether the process's own AWS settings name an endpoint URL, by a variable or a profile."""
    try:
        session = AccountSession(_ANY_REGION)
        ignoring = Config(ignore_configured_endpoint_urls=True)  # type: ignore[call-arg]  # the stubs lack it
        aws = session.client("ssm", config=ignoring).meta.endpoint_url
        return bool(session.client("ssm").meta.endpoint_url != aws)
    except InputError:
        return False


local_option = click.option(
    "--local", is_flag=True, help="The local AWS, whatever the shell points at. Implied by environment local."
)
"""An option of commands that talk to AWS: any environment may be deployed to the local AWS."""


def session_of(settings: Environment, *, local: bool = False) -> Session:
    """What makes an environment's clients: the local AWS for ``local``, else boto3 in the environment's region."""
    return local_session(settings.environment, wanted=local) or AccountSession(settings.region)


def require_account(session: Session, settings: Environment) -> None:
    """Refuse to write into another account than the one that the environment's file names.

    Raises:
        InputError: the credentials are of another account, or there are none.
        WorkFailedError: AWS does not say whose they are.
    """
    try:
        account = session.client("sts").get_caller_identity()["Account"]
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise invalid_settings(error) from error
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"could not find out whose account the AWS credentials are: {error}") from error
    if account != settings.account:
        problem = Problem(
            file=f"environments/{settings.environment}.yaml",
            field="account",
            found=f"the AWS credentials are of account {account}",
            allowed=f"credentials of account {settings.account}, which the file names",
            advice="Choose other credentials (AWS_PROFILE), or name that account in the file.",
        )
        raise InputError([problem])


def calling_session(environment: str, *, local: bool) -> Any:
    """What makes AWS clients: the local AWS, or boto3 in the region that the environment's file names."""

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
    from tritonstack.config import load_environment  # noqa: PLC0415

    return load_environment(path).region
