"""AWS credentials that end while a command is at work: how that is recognised, and what is said."""

from __future__ import annotations

import re
from collections.abc import Iterator

EXPIRED_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
"""How services say it: S3's error responses, STS's and other services' common errors, EC2's error codes."""
NOT_TAKEN_CODES = frozenset({"InvalidClientTokenId", "UnrecognizedClientException"})
"""How they say that they do not know the credentials, or not any more: a revoked session (STS's common errors)."""
RENEW = (
    "  do:      renew the AWS credentials (aws sso login, or a new session of the role),\n"
    "           then give the same command again: what was done by then stays and is not done twice"
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
    return any(type(each).__name__ in _LOCAL or _SAID.search(str(each)) for each in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
