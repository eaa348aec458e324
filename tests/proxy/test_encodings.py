"""Content-Encoding, against Python's own gzip and zlib, which tritonclient uses."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.proxy.inference import Coding, CodingError, decoded, encoded, wanted_coding

BODIES = st.binary(max_size=2000) | st.integers(0, 300_000).map(bytes)


@given(body=BODIES)
def test_what_tritonclient_compresses_is_read(body: bytes) -> None:
    assert decoded(gzip.compress(body), "gzip", limit=len(body)) == body
    assert decoded(zlib.compress(body), " Deflate", limit=len(body)) == body
    assert decoded(body, "", limit=0) == decoded(body, "identity", limit=0) == body


@given(body=BODIES)
def test_tritonclient_reads_what_is_compressed_for_it(body: bytes) -> None:
    assert gzip.decompress(encoded(body, "gzip")) == body
    assert zlib.decompress(encoded(body, "deflate")) == body
    assert encoded(body, "identity") is body


def test_what_unfolds_beyond_the_limit_is_refused_without_unfolding_it() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 60_000
    with pytest.raises(CodingError, match="more than 1000 bytes") as raised:
        decoded(bomb, "gzip", limit=1000)
    assert raised.value.status == 413


@pytest.mark.parametrize(
    ("body", "coding", "status", "words"),
    [
        (b"not compressed", "gzip", 400, "no gzip"),
        (gzip.compress(b"cut off" * 100, mtime=0)[:-9], "gzip", 400, "cut off"),
        (zlib.compress(b"a") + b"b", "deflate", 400, "more follows"),
        (b"", "deflate", 400, "cut off"),
        (b"x", "br", 415, "allowed: gzip, deflate"),
        (b"x", "gzip, gzip", 415, "allowed: gzip, deflate"),
    ],
)
def test_a_body_that_is_not_what_it_says_is_refused(body: bytes, coding: str, status: int, words: str) -> None:
    with pytest.raises(CodingError, match=words) as raised:
        decoded(body, coding, limit=10_000)
    assert raised.value.status == status


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("GZIP;q=1.0", "gzip"),
        ("gzip;q=0", "identity"),
        ("", "identity"),
        ("gzip, deflate", "identity"),  # what aiohttp sends by itself
        ("gzip, deflate, br", "identity"),
        ("br", "identity"),
    ],
)
def test_only_one_named_coding_is_asked_for(accepted: str, coding: Coding) -> None:
    assert wanted_coding(accepted) == coding
