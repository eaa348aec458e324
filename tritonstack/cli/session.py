"""The AWS that a command talks to, local or an account, and explanations where it is the wrong one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)

from tritonstack.aws.session import AccountSession, Session, invalid_settings
from tritonstack.cli.conventions import LOCAL
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, listing, nearest
from tritonstack.local_aws import LocalSession, find_local_aws, is_local, require_local_aws
from tritonstack.paths import environment_file

if TYPE_CHECKING:
    from tritonstack.config import Environment

_ANY_REGION = "us-east-1"
"""To make a client that sends nothing: a region is needed, and a configured endpoint URL is the same in all."""


def local_session(environment: str, *, wanted: bool = False) -> LocalSession | None:
    """The local AWS's session for ``wanted`` and for environment ``local``, else None.

    Environment ``local`` keeps the shell's own AWS settings where these name an endpoint URL (``tritonstack local
    env``) and no local AWS runs. Raises as ``require_local_aws``.
    """
    if wanted or (environment == LOCAL and (find_local_aws() or not _endpoint_is_configured())):
        return require_local_aws().session()
    return None


def _endpoint_is_configured() -> bool:
    """Whether the process's own AWS settings name an endpoint URL, by a variable or a profile."""
    try:
        session = AccountSession(_ANY_REGION)
        ignoring = Config(ignore_configured_endpoint_urls=True)  # type: ignore[call-arg]  # the stubs lack it
        aws = session.client("ssm", config=ignoring).meta.endpoint_url
        return bool(session.client("ssm").meta.endpoint_url != aws)
    except InputError:
        return False


def session_of(settings: Environment, *, local: bool = False) -> Session:
    """The session for an environment: the local AWS for ``local``, else boto3 in the environment's region."""
    return local_session(settings.environment, wanted=local) or AccountSession(settings.region)


def calling_session(environment: str, *, local: bool) -> Session:
    """The session for an environment's name; its file is read for the region alone, and may be absent."""
    return local_session(environment, wanted=local) or AccountSession(region_of(environment))


def region_of(environment: str) -> str | None:
    """The region in the environment's file; None without a file: boto3's own settings then apply."""
    path = environment_file(environment)
    if not path.is_file():
        return None
    from tritonstack.config import load_environment  # noqa: PLC0415 - pydantic models take a moment

    return load_environment(path).region


def require_account(session: Session, settings: Environment) -> None:
    """Check that the credentials are of the account in the environment's file, before anything is written.

    Raises:
        InputError: the credentials are of another account, or there are none.
        WorkFailedError: STS does not respond.
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


def explain(error: TritonstackError, client: Any, environment: str, session: Session) -> None:
    """Raise InputError where the AWS settings or the environment's name are what is wrong; else return.

    The settings point at a local AWS that does not run; credentials are missing and a local AWS runs; or the
    environment does not exist or is not deployed.
    """
    on_local_aws = is_local(session.client("ssm"))
    if on_local_aws and isinstance(error.__cause__, EndpointConnectionError) and find_local_aws() is None:
        require_local_aws()  # its message has how to start one
    if not on_local_aws and isinstance(error.__cause__, NoCredentialsError) and find_local_aws() is not None:
        problem = Problem(
            field="AWS settings",
            found="no credentials, and a local AWS that runs",
            allowed=f"credentials of the account of environment {environment}; only environment local needs none",
            advice="Where local deploy deployed it: the same command with --local",
        )
        raise InputError([problem]) from error
    with suppress(TritonstackError):
        if client.releases():
            return
    folder = environment_file(environment).parent
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if environment not in names:
        found = f"{environment}, of which there is neither a file {environment}.yaml nor a release record"
        allowed = f"an environment of {folder}: {listing(names, none='none there')}"
        advice = nearest(environment, names)
        raise InputError([Problem(field="--environment", found=found, allowed=allowed, advice=advice)]) from error
    if on_local_aws:
        found = f"nothing of environment {environment} is deployed on the local AWS"
        advice = f"tritonstack local deploy{'' if environment == LOCAL else f' -e {environment}'}"
        raise InputError([Problem(found=found, allowed="a deployed environment", advice=advice)]) from error
