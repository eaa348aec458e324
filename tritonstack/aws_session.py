"""Sessions: objects that make boto3 clients, of an AWS account or of the local AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tritonstack.errors import InputError, Problem

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


def invalid_settings(error: Exception) -> InputError:
    """The refusal of AWS settings (variables, profile) that boto3 cannot use."""
    return InputError([Problem(field="AWS settings", found=str(error), allowed="what boto3 can use")])
