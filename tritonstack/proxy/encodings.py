"""Content-Encoding both ways, as Triton's HTTP front end has it: identity, gzip and deflate (zlib's format)."""

from __future__ import annotations

from typing import Any, Literal

from isal import isal_zlib

Coding = Literal["identity", "gzip", "deflate"]

_WBITS: dict[str, int] = {"gzip": 31, "deflate": 15}
_LEVEL = 1
"""Over loopback every byte saved costs more than it brings: the fastest level that still compresses."""
_IsalError: Any = isal_zlib.error


class CodingError(Exception):
    """A body that cannot be decoded. ``status`` is HTTP's: 400, 413, 415."""

    def __init__(self, status: int, message: str) -> None:
        """Takes the status and a sentence."""
        self.status = status
        super().__init__(message)


def decoded(body: bytes, coding: str, *, limit: int) -> bytes:
    """A request's body without its Content-Encoding, at most ``limit`` bytes of it. Raises CodingError."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in _WBITS:
        raise CodingError(415, f"Content-Encoding {coding!r}; allowed: gzip, deflate, identity")
    whole: bytes
    reader = isal_zlib.decompressobj(_WBITS[coding])
    try:
        whole = reader.decompress(body, limit + 1)
    except _IsalError as error:
        raise CodingError(400, f"the body is no {coding}: {error}") from error
    if len(whole) > limit:
        raise CodingError(413, f"the body is more than {limit} bytes once it is decompressed")
    if not reader.eof or reader.unused_data:
        raise CodingError(400, f"the body is no {coding}: {'it is cut off' if not reader.eof else 'more follows it'}")
    return whole


def wanted_coding(accept_encoding: str) -> Coding:
    """How an answer is to be encoded.

    tritonclient names one coding where its caller asks for one. A list (``gzip, deflate, br``) is what HTTP libraries
    send by themselves: it allows identity, which costs least over loopback.
    """
    codings = []
    for item in accept_encoding.lower().split(","):
        name, _, parameters = item.partition(";")
        if name.strip() and parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            codings.append(name.strip())
    if codings == ["gzip"]:
        return "gzip"
    return "deflate" if codings == ["deflate"] else "identity"


def encoded(body: bytes, coding: Coding) -> bytes:
    """An answer's body in a coding."""
    if coding == "identity":
        return body
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _WBITS[coding])
    whole: bytes = compressor.compress(body) + compressor.flush()
    return whole
