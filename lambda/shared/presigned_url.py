"""A document put to a presigned URL, which has an end and must stand in no log."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

HTTP_SECONDS = 10
PAUSES = (1.0, 3.0)
"""Before each further try, in seconds."""
LONGEST_SECONDS = HTTP_SECONDS * (1 + len(PAUSES)) + sum(PAUSES)
EXPIRED = frozenset({403, 404, 410})
"""What is answered when the URL's time, its stack or its signature is over."""


def put(url: str, document: bytes) -> bool:
    """Put a document, again where that fails; whether it was taken. It is not where the URL's time is over.

    Raises OSError: every try failed.
    """
    for pause in (*PAUSES, None):
        try:
            _put(url, document)
        except urllib.error.HTTPError as error:
            if error.code in EXPIRED:
                print(json.dumps({"unheard": error.code}))
                return False
            _again(error, pause)
        except OSError as error:
            _again(error, pause)
        else:
            break
    return True


def _again(error: OSError, pause: float | None) -> None:
    if pause is None:
        raise error
    print(json.dumps({"put": "failed, and is tried again", "because": str(error)}))
    time.sleep(pause)


def _put(url: str, document: bytes) -> None:
    # The URL comes from CloudFormation. A type would not match the signature, which was made for none.
    request = urllib.request.Request(url, data=document, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    with urllib.request.urlopen(request, timeout=HTTP_SECONDS):  # noqa: S310
        pass
