"""Requests that a server on loopback serves: those of programs on this machine, never those of a page in a browser.

Every page that a person opens can send requests to 127.0.0.1, and a host name of its owner's may resolve to it (DNS
rebinding). A browser gives both away: requests of a page carry ``Origin`` (Fetch standard, "Origin header") or
``Sec-Fetch-Site`` (Fetch Metadata), and one to a rebound name carries that name in ``Host``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
TYPED = "none"
"""The value of Sec-Fetch-Site for an address that a person typed; all others are of requests that a page caused."""
SAME_ORIGIN = "same-origin"
"""Its value for a page that the server itself answered with.

That may be an object that somebody stored in a bucket; its images, links and forms by GET carry no ``Origin``.
"""
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[^:\s]+)(?::\d{1,5})?")


@lru_cache(maxsize=1024)
def refusal(
    *,
    host: str | None,
    origin: str | None,
    fetch_site: str | None,
    navigation: bool = False,
    own_page: bool = False,
    virtual_host: bool = False,
) -> str | None:
    """Why a server on loopback refuses a request; None where it may serve it.

    Args:
        host: the header Host; None where there is none, as of an HTTP/1.0 client.
        origin: the header Origin; programs send none.
        fetch_site: the header Sec-Fetch-Site, which only browsers send.
        navigation: whether a link in another page may lead here: true of a page that is shown, and for GET alone.
        own_page: whether the server's own page may send requests: true where it wrote that page itself.
        virtual_host: whether the host is a name that this server itself serves under, such as a bucket's.
    """
    if host is not None and not virtual_host:
        named = _HOST.fullmatch(host.strip().lower())
        if named is None or named[1] not in LOOPBACK_NAMES:
            allowed = ", ".join(sorted(LOOPBACK_NAMES))
            return f"the header Host is {host[:100]!r}; this server answers to {allowed} alone"
    if origin is not None:
        return f"the header Origin is {origin[:100]!r}: a web page; this server serves programs on this machine alone"
    allowed_sites = {TYPED, SAME_ORIGIN} if own_page else {TYPED}
    if fetch_site is not None and fetch_site.strip().lower() not in allowed_sites and not navigation:
        return f"Sec-Fetch-Site is {fetch_site[:100]!r}: a page's request; this server serves programs alone"
    return None


def refusal_of(headers: Mapping[bytes, bytes]) -> str | None:
    """:func:`refusal` for headers as a server of ours reads them, names in lower case."""
    host, origin, site = (headers.get(name) for name in (b"host", b"origin", b"sec-fetch-site"))
    return refusal(
        host=None if host is None else host.decode("latin-1"),
        origin=None if origin is None else origin.decode("latin-1"),
        fetch_site=None if site is None else site.decode("latin-1"),
    )
