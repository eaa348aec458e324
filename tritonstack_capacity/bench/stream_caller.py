"""The load generator's requests to an endpoint that streams, and when the events of their responses came."""

from __future__ import annotations

import json
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import aiohttp
import numpy as np
from botocore.eventstream import EventStreamBuffer, ParserError

from tritonstack.client.errors import MalformedResponseError
from tritonstack.client.streaming import EventReader
from tritonstack_capacity.bench.http_caller import SHOWN, HttpCaller, words_of
from tritonstack_capacity.bench.measuring import StreamPart, percentiles


class StreamTimes:
    """Times of the streams since the last ``take``."""

    def __init__(self, *, now: Callable[[], float] = time.perf_counter) -> None:
        """The first interval begins now."""
        self._now = now
        self._begin = now()
        self._first, self._gaps, self._events = array("d"), array("d"), array("q")

    def add(self, *, sent: float, first: float, last: float, events: int) -> None:
        """A stream that ended well, its events' times on ``now``'s clock."""
        self._first.append((first - sent) * 1000)
        self._events.append(events)
        if events > 1:
            self._gaps.append((last - first) * 1000 / (events - 1))

    def take(self) -> StreamPart | None:
        """The streams so far, which begins the next interval; None without any."""
        begin, self._begin = self._begin, self._now()
        first, gaps, events = (np.array(each, dtype=np.float64) for each in (self._first, self._gaps, self._events))
        self._first, self._gaps, self._events = array("d"), array("d"), array("q")
        if not len(events):
            return None
        return StreamPart(
            streams=len(events),
            events=float(events.mean()),
            events_per_second=float(events.sum()) / max(self._begin - begin, 1e-9),
            first_ms=percentiles(first),
            gap_ms=percentiles(gaps),
        )


class StreamCaller(HttpCaller):
    """Sends one request, and reads its stream event by event; ``times`` has those of every successful one."""

    def __init__(self, session: aiohttp.ClientSession, request: Any) -> None:
        super().__init__(session, request)
        self.times = StreamTimes()

    async def __call__(self) -> str | None:
        """One request. None for a stream that ended well, else in a few words what came."""
        request, sent = self.request, time.perf_counter()
        try:
            async with self._session.post(request.url, data=request.body, headers=request.headers) as answer:
                if answer.status != 200:
                    return f"{answer.status}: {words_of(await answer.read())}"
                return await self._read(answer, sent)
        except TimeoutError:
            return "no response in time"
        except (aiohttp.ClientError, ParserError, MalformedResponseError) as error:
            return f"{type(error).__name__}: {error}"[:SHOWN]

    async def _read(self, answer: aiohttp.ClientResponse, sent: float) -> str | None:
        messages, reader = EventStreamBuffer(), EventReader()
        first, last, events = 0.0, 0.0, 0
        content: list[bytes] = []
        async for data in answer.content.iter_any():
            messages.add_data(data)
            for part in _parts(messages):
                if isinstance(part, str):
                    return part
                content.append(part)
                for event in reader.feed(part):
                    if (failure := _failure(event)) is not None:
                        return failure
                    last = time.perf_counter()
                    first = first or last
                    events += 1
        reader.end()
        if not events:
            return "a stream without an event"
        self.last = b"".join(content), answer.headers.get("X-Amzn-SageMaker-Content-Type", "")
        self.times.add(sent=sent, first=first, last=last, events=events)
        return None


def _parts(messages: EventStreamBuffer) -> Iterator[bytes | str]:
    """The payload of each whole message; the words of an error that ends the stream."""
    for message in messages:
        headers: Any = message.headers  # whose stub has it as a number
        if headers.get(":message-type") == "exception":
            yield f"{headers.get(':exception-type')}: {words_of(message.payload)}"
        else:
            yield message.payload


def _failure(event: str) -> str | None:
    """The text of an event that is an error; None of a response of the model."""
    with suppress(ValueError, AttributeError):
        document = json.loads(event)
        return None if "model_name" in document else str(document.get("error", event))[:SHOWN]
    return f"an event that is no response of Triton: {event[:80]}"
