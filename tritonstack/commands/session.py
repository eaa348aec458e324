"""Which AWS a command talks to, and whether it is the account that the environment's file names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import LocalSession, find_local_aws, is_local, require_local_aws

if TYPE_CHECKING:
    from tritonstack.settings import Environment


_ANY_REGION = "us-east-1"
"""To make a client that is not used: a region is needed, and a configured endpoint URL is the same in all."""


class AccountSession:
    """Makes clients of the account that the process's own AWS settings point at."""

    def __init__(self, region: str | None) -> None:
        """``region``: the environment's; None leaves it to boto3's own settings. Raises InputError for wrong ones."""
        try:
            self._session = boto3.Session(region_name=region)
        except (BotoCoreError, ValueError) as error:
            raise _wrong_settings(error) from error

    def client(self, service_name: str, *, config: Any = None) -> Any:
        """A boto3 client. Raises InputError where settings lead nowhere (no region, no URL)."""
        try:
            return self._session.client(service_name, config=config)
        except (BotoCoreError, ValueError) as error:
            raise _wrong_settings(error) from error


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


def session_of(settings: Environment, *, local: bool = False) -> LocalSession | AccountSession:
    """What makes an environment's clients: the local AWS for ``local``, else boto3 in the environment's region."""
    return local_session(settings.environment, wanted=local) or AccountSession(settings.region)


class ConfiguredSession:
    """Makes the clients of another session with one configuration: how they try again, how they pace themselves."""

    def __init__(self, session: LocalSession | AccountSession, config: Config) -> None:
        """``session``: makes the clients."""
        self._session = session
        self._config = config

    def client(self, service_name: str) -> Any:
        """A boto3 client."""
        return self._session.client(service_name, config=self._config)


def require_account(session: LocalSession | AccountSession, settings: Environment) -> None:
    """Refuse to write into another account than the one that the environment's file names.

    Raises:
        InputError: the credentials are of another account, or there are none.
        WorkFailedError: AWS does not say whose they are.
    """
    try:
        account = session.client("sts").get_caller_identity()["Account"]
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise _wrong_settings(error) from error
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


def _wrong_settings(error: Exception) -> InputError:
    return InputError([Problem(field="AWS settings", found=str(error), allowed="what boto3 can use")])
