"""Which models a container holds, and which goes when there is no room."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
from pathlib import Path

import pytest

from tests.tritonstack_local.runtime.fakes import archive, asynchronous, config, fails_with, stage, until
from tritonstack.aws.sagemaker_rules import ModelState
from tritonstack.loopback.http_server import InvokeError


@asynchronous
async def test_concurrent_callers_share_one_load(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.held_loads["a.tar.gz"] = asyncio.Event()
        calls = [asyncio.create_task(at.model_of("a.tar.gz")) for _ in range(20)]
        await until(lambda: at.triton.count("load") == 1)
        at.triton.held_loads["a.tar.gz"].set()
        assert await asyncio.gather(*calls) == ["a.tar.gz"] * 20
        assert at.triton.count("load") == 1


@asynchronous
async def test_other_models_respond_while_one_loads(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.held_loads["slow.tar.gz"] = asyncio.Event()
        slow = asyncio.create_task(at.model_of("slow.tar.gz"))
        await until(lambda: at.triton.count("load") == 2)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        assert await at.model_of("b.tar.gz") == "b.tar.gz"
        assert not slow.done()
        at.triton.held_loads["slow.tar.gz"].set()
        assert await slow == "slow.tar.gz"


@asynchronous
async def test_the_least_recently_used_model_goes_at_the_limit(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=2) as at:
        for target in ("a.tar.gz", "b.tar.gz", "a.tar.gz", "c.tar.gz"):
            await at.call(target)
        assert [target for kind, target in at.triton.calls if kind == "unload"] == ["b.tar.gz"]
        assert at.triton.largest == 2
        assert not at.fleet().store.path("b.tar.gz").parent.exists()
        assert at.fleet().store.path("a.tar.gz").is_dir()


@asynchronous
async def test_no_model_goes_for_a_load_whose_turn_has_not_come(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=3, max_parallel_loads=1) as at:
        for target in ("a.tar.gz", "b.tar.gz", "c.tar.gz"):
            await at.call(target)
        at.triton.held_loads["x.tar.gz"] = asyncio.Event()
        first = asyncio.create_task(at.model_of("x.tar.gz"))
        await until(lambda: at.triton.count("load", "x.tar.gz") == 1)
        queued = [asyncio.create_task(at.model_of(target)) for target in ("y.tar.gz", "z.tar.gz")]
        await until(lambda: all(at.fleet().store.path(target).is_dir() for target in ("y.tar.gz", "z.tar.gz")))
        assert [await at.model_of(target) for target in ("b.tar.gz", "c.tar.gz")] == ["b.tar.gz", "c.tar.gz"]
        assert [target for kind, target in at.triton.calls if kind == "unload"] == ["a.tar.gz"]
        assert at.fleet().models.loaded_count == 3
        at.triton.held_loads["x.tar.gz"].set()
        assert await asyncio.gather(first, *queued) == ["x.tar.gz", "y.tar.gz", "z.tar.gz"]
        assert [target for kind, target in at.triton.calls if kind == "unload"] == ["a.tar.gz", "b.tar.gz", "c.tar.gz"]


@asynchronous
async def test_507_evicts_one_model_and_the_load_is_tried_again(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.capacity = 2
        for target in ("a.tar.gz", "b.tar.gz", "c.tar.gz"):
            assert await at.model_of(target) == target
        assert [call for call in at.triton.calls if call[0] != "invoke"] == [
            ("load", "a.tar.gz"),
            ("load", "b.tar.gz"),
            ("load", "c.tar.gz"),
            ("unload", "a.tar.gz"),
            ("load", "c.tar.gz"),
        ]


@asynchronous
async def test_507_with_nothing_to_evict_is_the_models_error_and_two_such_loads_do_not_deadlock(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config(), max_parallel_loads=2) as at:
        at.triton.failing |= {"x.tar.gz": 507, "y.tar.gz": 507}
        await at.call("a.tar.gz")
        found = await asyncio.gather(at.call("x.tar.gz"), at.call("y.tar.gz"), return_exceptions=True)
        errors = [(one.code, one.members["OriginalStatusCode"]) for one in found if isinstance(one, InvokeError)]
        assert errors == [("ModelError", 507)] * 2
        assert at.triton.count("unload", "a.tar.gz") == 1
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_507_to_an_inference_is_reported_and_evicts_the_least_recently_used_other_model(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        for target in ("full.tar.gz", "old.tar.gz", "new.tar.gz"):
            await at.call(target)
        at.triton.statuses["full.tar.gz"] = 507
        full = ["full.tar.gz"]
        for evicted, kept in ((["old.tar.gz"], [*full, "new.tar.gz"]), (["old.tar.gz", "new.tar.gz"], full)):
            with pytest.raises(InvokeError) as caught:
                await at.call("full.tar.gz")
            assert (caught.value.code, caught.value.members["OriginalStatusCode"]) == ("ModelError", 507)
            await until(functools.partial(lambda left: list(at.fleet().models.models) == left, kept))
            assert [target for kind, target in at.triton.calls if kind == "unload"] == evicted


@asynchronous
async def test_a_model_with_a_request_in_flight_is_not_unloaded_and_long_waits_end_with_not_ready(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config(), max_models=1, victim_patience_seconds=0.02) as at:
        await at.call("a.tar.gz")
        at.triton.held["a.tar.gz"] = asyncio.Event()
        busy = asyncio.create_task(at.model_of("a.tar.gz"))
        await until(lambda: at.triton.in_flight.get("a.tar.gz") == 1)
        at.fleet().invoke_seconds = 0.1
        with pytest.raises(InvokeError) as caught:
            await at.call("b.tar.gz")
        assert (caught.value.code, caught.value.status) == ("ModelNotReadyException", 429)
        assert at.triton.count("unload") == 0
        at.fleet().invoke_seconds = 10.0
        at.triton.held["a.tar.gz"].set()
        assert await busy == "a.tar.gz"
        assert await at.model_of("b.tar.gz") == "b.tar.gz"
        assert at.triton.unloaded_in_flight == []


@asynchronous
async def test_a_model_whose_next_request_comes_as_one_ends_makes_room_after_the_patience(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=1) as at:
        await at.call("a.tar.gz")
        models = at.fleet().models
        model = models.claim_loaded("a.tar.gz")
        waiting = asyncio.create_task(at.model_of("b.tar.gz"))
        while model is not None and not waiting.done():  # never idle for the one that waits, and often about to be
            await asyncio.sleep(0.005)
            models.release(model)
            model = models.claim_loaded("a.tar.gz")
        assert await waiting == "b.tar.gz"


@asynchronous
async def test_loading_goes_on_after_its_caller_gave_up(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.fleet().invoke_seconds = 0.05
        at.triton.held_loads["a.tar.gz"] = asyncio.Event()
        with pytest.raises(InvokeError) as caught:
            await at.call("a.tar.gz")
        assert caught.value.code == "ModelNotReadyException"
        at.triton.held_loads["a.tar.gz"].set()
        await until(lambda: bool(at.triton.loaded))
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        assert at.triton.count("load") == 1


@asynchronous
async def test_a_failed_load_is_reported_to_every_caller_and_tried_again_by_the_next(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.failing["a.tar.gz"] = 400
        found = await asyncio.gather(*(at.call("a.tar.gz") for _ in range(3)), return_exceptions=True)
        assert [one.members["OriginalStatusCode"] for one in found if isinstance(one, InvokeError)] == [400] * 3
        del at.triton.failing["a.tar.gz"]
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@pytest.mark.parametrize("error", [RecursionError("too deep"), MemoryError(), KeyError("unlisted")])
@asynchronous
async def test_a_failed_load_fails_its_waiting_requests_at_once_and_is_tried_again_by_the_next(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(tmp_path, config()) as at:
        at.objects.errors["bad.tar.gz"] = error
        failed = await asyncio.gather(*(at.call("bad.tar.gz") for _ in range(5)), return_exceptions=True)
        assert {one.code if isinstance(one, InvokeError) else one for one in failed} == {"InternalFailure"}
        assert "bad.tar.gz: its load failed inside the local runtime" in caplog.text
        assert "bad.tar.gz" not in at.fleet().models.models
        del at.objects.errors["bad.tar.gz"]
        assert await at.model_of("bad.tar.gz") == "bad.tar.gz"


@asynchronous
async def test_an_unload_that_fails_for_any_reason_keeps_neither_its_model_nor_the_next_one_waiting(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config(), max_models=1) as at:
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(at.fleet().models, "unload", fails_with(RuntimeError("unlisted")))
            assert await at.model_of("b.tar.gz") == "b.tar.gz"
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_a_model_being_evicted_is_unloaded_even_if_the_load_that_needs_its_place_is_cancelled(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config(), max_models=1, load_seconds=0.2) as at:
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        removing, go_on = threading.Event(), threading.Event()

        def slowly(_target: str) -> None:
            removing.set()
            go_on.wait(30)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(at.fleet().store, "remove", slowly)
            given_up = asyncio.create_task(at.call("b.tar.gz"))
            await until(removing.is_set)
            await until(lambda: at.fleet().models.models["b.tar.gz"].state is ModelState.LOADING)
            await until(lambda: "a.tar.gz" not in at.fleet().models.models)
            go_on.set()
        with pytest.raises(InvokeError):
            await given_up
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_a_missing_archive_is_a_validation_error_and_evicts_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=1) as at:
        at.objects.missing.add("none.tar.gz")
        await at.call("a.tar.gz")
        with pytest.raises(InvokeError, match=r"bucket: models, key: prefix/none\.tar\.gz") as caught:
            await at.call("none.tar.gz")
        assert caught.value.status == 400
        assert at.triton.count("unload") == 0


@asynchronous
async def test_an_archive_that_would_write_outside_its_folder_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.objects.contents["evil.tar.gz"] = archive("gotcha", name="../../../../escaped.txt")
        with pytest.raises(InvokeError, match="is no path inside the archive"):
            await at.call("evil.tar.gz")
        assert not await asyncio.to_thread(lambda: list(tmp_path.rglob("escaped.txt")))


@asynchronous
async def test_with_the_cache_disabled_each_request_unloads_and_none_in_flight_loses_its_model(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config(cache_enabled=False)) as at:
        for _ in range(3):
            await at.call("a.tar.gz")
            await until(lambda: not at.fleet().models.models)
            assert not at.fleet().store.path("a.tar.gz").parent.exists()
        assert at.triton.count("load") == at.triton.count("unload") == 3
        found = await asyncio.gather(*(at.model_of("a.tar.gz") for _ in range(30)))
        assert set(found) == {"a.tar.gz"}
        assert at.triton.unloaded_in_flight == []


@pytest.mark.parametrize("limited_by", ["the tag", "507"])
@asynchronous
async def test_many_models_in_few_places_respond_correctly_in_any_order(tmp_path: Path, limited_by: str) -> None:
    order, limit = random.Random(4), 8 if limited_by == "the tag" else None
    async with stage(tmp_path, config(), max_models=limit, max_parallel_loads=2) as at:
        at.triton.capacity = None if limit else 6

        async def caller() -> None:
            for _ in range(40):
                target = f"m{order.randrange(40)}.tar.gz"
                assert await at.model_of(target) == target

        await asyncio.gather(*(caller() for _ in range(8 if limit else 4)))
        assert at.triton.largest <= (limit or 6)
        assert at.triton.unloaded_in_flight == []
        assert at.fleet().models.loaded_count == len(at.triton.loaded)
