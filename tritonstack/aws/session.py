"""AWS sessions: objects that make boto3 clients, of an account or of the local AWS; and expired credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tritonstack.errors import InputError, Problem, WorkFailedError

if TYPE_CHECKING:
    from botocore.config import Config


class Session(Protocol):
    """Makes boto3 clients: ``boto3.Session``, the classes below, or the local AWS's session."""

    def client(self, service_name: Any, *, config: Config | None = None) -> Any:
        """A boto3 client of a service."""
        ...


class AccountSession:
    """A session of the account that the process's own AWS settings point at."""

    def __init__(self, region: str | None) -> None:
        """``region``: the environment's; None: as boto3's settings have it. Raises InputError for invalid settings."""
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        try:
            self._session = boto3.Session(region_name=region)
        except (BotoCoreError, ValueError) as error:
            raise invalid_settings(error) from error

    def client(self, service_name: Any, *, config: Config | None = None) -> Any:
        """A boto3 client. Raises InputError for settings that lack a region or have an invalid URL."""
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        try:
            return self._session.client(service_name, config=config)
        except (BotoCoreError, ValueError) as error:
            raise invalid_settings(error) from error


class ConfiguredSession:
    """A session whose clients share one configuration: retries, timeouts, pace."""

    def __init__(self, session: Session, config: Config) -> None:
        """``session`` makes the clients; ``config`` is theirs."""
        self._session = session
        self._config = config

    def client(self, service_name: Any, *, config: Config | None = None) -> Any:
        """A boto3 client; ``config`` overrides single values."""
        return self._session.client(service_name, config=self._config.merge(config) if config else self._config)


def code_of(error: BaseException) -> str:
    """AWS's code of an error of botocore's, empty where AWS was not reached."""
    response = getattr(error, "response", None)  # of a connection's error it may be something else
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def read_parameter(session: Session, name: str) -> str | None:
    """The value of an SSM parameter, None where there is none. Raises WorkFailedError where SSM refuses."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        return str(session.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    except (BotoCoreError, ClientError) as error:
        if code_of(error) == "ParameterNotFound":
            return None
        raise WorkFailedError(f"could not read the parameter {name}: {error}") from error


def stack_value(session: Session, name: str, *, stack: str) -> str:
    """The value of an SSM parameter of a ``stack`` (``dev/artifacts``).

    Raises :class:`InputError` where it is not deployed, :class:`WorkFailedError` where SSM refuses.
    """
    found = read_parameter(session, name)
    if found is None:
        allowed, advice = f"the deployed stack {stack}", f"cdk deploy '{stack}'"
        raise InputError([Problem(field=name, found="no such parameter", allowed=allowed, advice=advice)])
    return found


def parameters_below(session: Session, path: str) -> dict[str, str]:
    """SSM parameters right under a path: last part of the name → value. Raises WorkFailedError where SSM refuses."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        pages = session.client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path.rstrip("/"))
        rows = [row for page in pages for row in page["Parameters"]]
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"could not read the parameters below {path}: {error}") from error
    return {row["Name"].rpartition("/")[2]: row["Value"] for row in rows}


def invalid_settings(error: Exception) -> InputError:
    """The refusal of AWS settings (variables, profile) that boto3 cannot use."""
    advice = 'set AWS_REGION and AWS_PROFILE, or for the local AWS: eval "$(tritonstack local env)"'
    return InputError([Problem(field="AWS settings", found=str(error), allowed="what boto3 can use", advice=advice)])


EXPIRED_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
"""Codes of expired credentials: S3's error responses, STS's and other services' common errors, EC2's error codes."""
NOT_TAKEN_CODES = frozenset({"InvalidClientTokenId", "UnrecognizedClientException"})
"""Codes of unknown or revoked credentials (STS's common errors)."""
CREDENTIAL_CODES = (
    EXPIRED_CODES
    | NOT_TAKEN_CODES
    | {"AuthFailure", "IncompleteSignature", "InvalidAccessKeyId", "InvalidSignatureException"}
    | {"MissingAuthenticationToken", "SignatureDoesNotMatch"}
)
"""Codes about who signed (services' error lists; STS's common errors)."""
DENIED_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "403", "Forbidden"}
)
"""Codes of a missing permission (each service's error list)."""
THROTTLING_CODES = frozenset(
    {"Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "RequestLimitExceeded",
     "RequestThrottled", "SlowDown"}
)  # fmt: skip
"""Codes of too many calls, also with status 400 (botocore, retries/standard.py)."""
RENEW = (
    "  do:      renew the AWS credentials (aws sso login, or a new session of the role),\n"
    "           then run the same command again: what was done by then stays and is not done twice"
)
_LOCAL = frozenset(
    {"CredentialRetrievalError", "TokenRetrievalError", "SSOError", "SSOTokenLoadError", "UnauthorizedSSOTokenError",
     "LoginError", "LoginRefreshRequired", "LoginTokenLoadError"}
)  # fmt: skip
"""botocore's own errors where it has no fresh credentials (``botocore.exceptions``); by name, to import nothing."""
_SAID = re.compile(rf"\b({'|'.join(sorted(EXPIRED_CODES | NOT_TAKEN_CODES))})\b")


def credentials_ended(error: BaseException) -> bool:
    """Whether an error, or one that it came from, is of credentials that AWS takes no more.

    Messages count, too: they hold the code that botocore, or the CDK, was given, also where several errors became one.
    """
    return any(type(each).__name__ in _LOCAL or _SAID.search(str(each)) for each in causes(error))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
