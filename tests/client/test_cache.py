"""Values that grow old."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.client.fakes import FakeTime
from tritonstack.client.releases import TimedCache


class Source:
    """Counts how often it is read; fails on demand."""

    def __init__(self) -> None:
        self.reads = 0
        self.failure: Exception | None = None

    def __call__(self) -> int:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        return self.reads


def test_a_value_is_kept_for_its_time_and_then_read_again() -> None:
    time, source = FakeTime(), Source()
    cache: TimedCache[str, int] = TimedCache(seconds=60, now=lambda: time.seconds)
    assert [cache.get("k", source), cache.get("k", source)] == [1, 1]
    time.seconds += 59.9
    assert cache.get("k", source) == 1
    time.seconds += 0.1
    assert cache.get("k", source) == 2


def test_a_value_loaded_before_the_wanted_time_is_read_again_once() -> None:
    time, source = FakeTime(), Source()
    cache: TimedCache[str, int] = TimedCache(seconds=60, now=lambda: time.seconds)
    cache.get("k", source)
    time.seconds += 1
    failed_at = time.seconds
    time.seconds += 1
    assert cache.get("k", source, loaded_since=failed_at) == 2
    assert cache.get("k", source, loaded_since=failed_at) == 2


def test_an_older_value_serves_while_the_source_is_down() -> None:
    time, source = FakeTime(), Source()
    cache: TimedCache[str, int] = TimedCache(
        seconds=60, now=lambda: time.seconds, stale_errors=(ConnectionError,), stale_seconds=5
    )
    cache.get("k", source)
    time.seconds += 60
    source.failure = ConnectionError("down")
    assert cache.get("k", source) == 1
    assert cache.get("k", source) == 1
    assert source.reads == 2, "the source is not asked again at once"
    time.seconds += 5
    source.failure = None
    assert cache.get("k", source) == 3


def test_a_failure_without_an_older_value_is_raised_and_not_kept() -> None:
    source = Source()
    cache: TimedCache[str, int] = TimedCache(seconds=60, now=FakeTime().clock().now, stale_errors=(ConnectionError,))
    source.failure = ConnectionError("down")
    with pytest.raises(ConnectionError):
        cache.get("k", source)
    source.failure = None
    assert cache.get("k", source) == 2


def test_other_failures_are_raised_in_spite_of_an_older_value() -> None:
    time, source = FakeTime(), Source()
    cache: TimedCache[str, int] = TimedCache(seconds=60, now=lambda: time.seconds, stale_errors=(ConnectionError,))
    cache.get("k", source)
    time.seconds += 60
    source.failure = LookupError("gone")
    with pytest.raises(LookupError):
        cache.get("k", source)


def test_threads_that_need_the_same_key_load_it_once_and_other_keys_go_on() -> None:
    begun, go_on = threading.Event(), threading.Event()
    reads = []

    def slow() -> str:
        reads.append("slow")
        begun.set()
        assert go_on.wait(20)
        return "slow"

    cache: TimedCache[str, str] = TimedCache(seconds=60, now=FakeTime().clock().now)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(cache.get, "slow", slow) for _ in range(8)]
        assert begun.wait(20)
        assert cache.get("other", lambda: "other") == "other"
        go_on.set()
        assert {future.result(20) for future in waiting} == {"slow"}
    assert reads == ["slow"]
