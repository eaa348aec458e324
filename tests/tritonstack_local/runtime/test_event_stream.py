"""Messages of an event stream, as botocore's decoder reads them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer

from tritonstack_local.runtime.streaming.event_stream import LARGEST_PART, exception, message, payload_parts


def decoded(data: bytes, chance: random.Random) -> list[Any]:
    """The messages that botocore reads of data that comes in random pieces. It checks lengths and checksums."""
    buffer, found, start = EventStreamBuffer(), [], 0
    while start < len(data):
        size = chance.choice([1, 3, chance.randrange(1, 200), chance.randrange(1, len(data) + 1)])
        buffer.add_data(data[start : start + size])
        found += list(buffer)
        start += size
    return found


@pytest.mark.parametrize("seed", range(40))
def test_botocore_reads_random_messages_in_random_pieces_as_they_were_written(seed: int) -> None:
    chance = random.Random(seed)
    letters = "abcXYZ:-ä€\U0001f600 0"
    written = [
        (
            {
                "".join(chance.choices(letters, k=chance.randrange(1, 30))): "".join(
                    chance.choices(letters, k=chance.choice([0, 1, 40, 2000]))
                )
                for _ in range(chance.randrange(6))
            },
            chance.randbytes(chance.choice([0, 1, 7, 500, 40_000])),
        )
        for _ in range(chance.randrange(1, 8))
    ]
    found = decoded(b"".join(message(headers, payload) for headers, payload in written), chance)
    assert [(one.headers, one.payload) for one in found] == written


@pytest.mark.parametrize("size", [0, 1, LARGEST_PART, LARGEST_PART + 1, 3 * LARGEST_PART + 5])
def test_parts_are_bounded_and_hold_the_content_together(size: int) -> None:
    content = random.Random(size).randbytes(size)
    found = decoded(payload_parts(content), random.Random(1))
    assert all(0 < len(one.payload) <= LARGEST_PART for one in found)
    assert b"".join(one.payload for one in found) == content
    assert {one.headers[":event-type"] for one in found} <= {"PayloadPart"}


def test_an_exception_is_the_error_of_its_name_to_botocore() -> None:
    (found,) = decoded(exception("ModelStreamError", {"ErrorCode": "StreamBroken"}), random.Random(2))
    response = found.to_response_dict()
    assert (response["status_code"], response["body"]) == (400, b'{"ErrorCode": "StreamBroken"}')
    assert response["headers"][":exception-type"] == "ModelStreamError"
