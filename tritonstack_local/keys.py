"""Secrets of the user who started a local AWS: the administrator's access key, and the token of our own routes.

Both are drawn at random by each start and are in its record, which only that user may read. The emulator verifies no
signature, so a request is accepted by its access key's id.
"""

from __future__ import annotations

import hmac
import secrets
import string
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass
from typing import Self

TOKEN_HEADER = "x-tritonstack-token"  # noqa: S105  the header's name
OWN_ROUTES = "/_tritonstack/"
"""Prefix of the paths of emulator and runtime that are not AWS's; each request there carries TOKEN_HEADER."""
_VARIABLES = {
    "access_key_id": "TRITONSTACK_ADMINISTRATOR_ACCESS_KEY_ID",
    "secret_access_key": "TRITONSTACK_ADMINISTRATOR_SECRET_ACCESS_KEY",
    "token": "TRITONSTACK_TOKEN",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class LocalKeys:
    """The keys of one run of a local AWS. Not shown by ``repr``, so that no log has them."""

    access_key_id: str  # of the account's administrator
    secret_access_key: str
    token: str  # of our own routes

    @classmethod
    def draw(cls) -> Self:
        """New keys, in the form of AWS's (IAM user guide, "IAM identifiers": AKIA and 16 of A-Z and 2-7)."""
        letters = string.ascii_uppercase + "234567"
        return cls(
            access_key_id="AKIA" + "".join(secrets.choice(letters) for _ in range(16)),
            secret_access_key=secrets.token_urlsafe(30),
            token=secrets.token_urlsafe(32),
        )

    @classmethod
    def take(cls, variables: MutableMapping[str, str]) -> Self:
        """The keys that a process was started with. Raises ValueError: one is missing.

        They are removed from ``variables``, the process's environment: programs that it starts inherit none.
        """
        found = {member: variables.get(name, "") for member, name in _VARIABLES.items()}
        missing = [_VARIABLES[member] for member, value in found.items() if not value]
        if missing:
            raise ValueError(f"missing: {', '.join(missing)}; `tritonstack local up` draws them")
        for name in _VARIABLES.values():
            del variables[name]
        return cls(**found)

    def variables(self) -> dict[str, str]:
        """The variables that hand the keys to a process of the local AWS."""
        return {_VARIABLES[member]: value for member, value in asdict(self).items()}

    def credentials(self) -> dict[str, str]:
        """The administrator's, as an SDK's variables."""
        return {"AWS_ACCESS_KEY_ID": self.access_key_id, "AWS_SECRET_ACCESS_KEY": self.secret_access_key}

    def token_fault(self, given: str | None) -> str | None:
        """Why a request to a route of our own is refused; None where it carries the token."""
        if given is not None and hmac.compare_digest(given.encode(), self.token.encode()):
            return None
        found = "no" if given is None else "another"
        return (
            f"{found} header {TOKEN_HEADER}: routes below {OWN_ROUTES} are for tritonstack's own commands, which read "
            "the token from the record of `tritonstack local up`"
        )
