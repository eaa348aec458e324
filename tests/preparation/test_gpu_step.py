"""The GPU step: its result, read with distrust, and timing caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.fake_aws import FakeAws, unreachable
from tests.preparation.prepare_way import A10G, IMAGE
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.engines.engine_builds import builder_for
from tritonstack.errors import WorkFailedError
from tritonstack.preparation.gpu_step import EngineFailedError, build_engine
from tritonstack.preparation.step_result import read_result
from tritonstack.preparation.timing_cache import fetch_timing_cache, keep_timing_cache

RECORD = {"bytes": 4, "sha256": "0" * 64}
GOOD: dict[str, Any] = {
    "outcome": "built",
    "status": 0,
    "release": "24.09",
    "trtexec": {"program": "trtexec", "tensorrt": "10.4.0", "stand_in": False, "host_data": True},
    "gpu": {"name": "NVIDIA A10G", "compute_capability": "8.6", "driver": "550.127.05"},
    "image": {},
    "durations": {"build_seconds": 1.5},
    "files": {"model.plan": RECORD, "outputs.json": RECORD},
}


@cases("changes")
def test_a_result_that_is_not_the_steps_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    result = tmp_path / "result.json"
    result.write_text(json.dumps(GOOD))
    assert read_result(tmp_path, what="engine of m").files["model.plan"].bytes == 4
    result.write_text(json.dumps({**GOOD, **changes}))
    with pytest.raises(WorkFailedError, match=r"^engine of m: .*not as the engine step"):
        read_result(tmp_path, what="engine of m")


KEY = "timing-caches/a10g/10.4.0/timing.cache"


def bucket(aws: FakeAws) -> ArtifactBucket:
    return ArtifactBucket(environment="dev", session=aws)


def job(folder: Path, *, cache: bool = True, tensorrt: tuple[str, ...] = ("10.4",)) -> Path:
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"timing_cache": cache, "tensorrt": list(tensorrt)}))
    return folder


def write_output(folder: Path, content: bytes | None, *, tensorrt: str = "10.4.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / "timing.cache").write_bytes(content)
    (folder / "result.json").write_text(json.dumps({"outcome": "built", "trtexec": {"tensorrt": tensorrt}}))
    return folder


def keep(aws: FakeAws, folder: Path, *, before: str | None = None) -> list[str]:
    """Keep what a step left; what was reported."""
    lines: list[str] = []
    keep_timing_cache(bucket(aws), folder, gpu="A10G", before=before, report=lines.append)
    return lines


def fetch(aws: FakeAws, folder: Path) -> tuple[str | None, list[str]]:
    """Fetch for a job; its digest, and what was reported."""
    lines: list[str] = []
    return fetch_timing_cache(bucket(aws), folder, gpu="A10G", report=lines.append), lines


def test_the_next_build_starts_from_what_the_last_one_timed(aws: FakeAws, tmp_path: Path) -> None:
    assert keep(aws, write_output(tmp_path / "output", b"tactics")) == []
    assert list(aws.artifacts) == [KEY]
    digest, lines = fetch(aws, job(tmp_path / "job"))
    assert (tmp_path / "job/timing.cache").read_bytes() == b"tactics"
    assert (digest is not None, lines) == (True, [])
    keep(aws, tmp_path / "output", before=digest)
    assert aws.writes == [KEY], "it did not change, and is not written again"
    assert fetch(aws, job(tmp_path / "none", cache=False)) == (None, [])


def test_a_cache_of_another_tensorrt_or_gpu_is_not_taken(aws: FakeAws, tmp_path: Path) -> None:
    keep(aws, write_output(tmp_path / "output", b"tactics", tensorrt="10.13.2"))
    assert fetch(aws, job(tmp_path / "one", tensorrt=("10.1",)))[0] is None, "10.1 is not the beginning of 10.13"
    assert fetch(aws, job(tmp_path / "two", tensorrt=("10.9", "10.13")))[0] is not None
    other = fetch_timing_cache(bucket(aws), job(tmp_path / "three", tensorrt=("10.13",)), gpu="T4", report=print)
    assert other is None


def test_a_bucket_that_refuses_costs_the_cache_alone(aws: FakeAws, tmp_path: Path) -> None:
    kept = bucket(aws)
    kept.s3 = unreachable("s3")
    lines: list[str] = []
    assert fetch_timing_cache(kept, job(tmp_path / "job"), gpu="A10G", report=lines.append) is None
    keep_timing_cache(kept, write_output(tmp_path / "output", b"tactics"), gpu="A10G", before=None, report=lines.append)
    assert len(lines) == 2
    assert all("Could not connect" in line for line in lines)


class Refusing:
    """A runner whose TensorRT does not read its cache, in the given words."""

    def __init__(self, *, printed: str) -> None:
        self.says, self.caches = printed, list[bool]()

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        report(name)
        self.caches.append((job / "timing.cache").exists())
        if self.caches[-1]:
            raise EngineFailedError(reason="trtexec ends with status 1", log_tail=[self.says])
        write_output(output, b"new tactics")


def build(aws: FakeAws, folder: Path, runner: Refusing) -> None:
    """Build an engine with a cache from an earlier build."""
    keep(aws, write_output(folder / "before", b"old tactics"))
    build_engine(
        job(folder / "job"),
        folder / "output",
        model="tiny",
        environment="dev",
        builder=builder_for(A10G, "us-east-1", image=IMAGE),
        runner=runner,
        bucket=bucket(aws),
        report=lambda _text: None,
    )


def test_an_engine_whose_tensorrt_refuses_the_cache_is_built_without_it(aws: FakeAws, tmp_path: Path) -> None:
    runner = Refusing(printed="[E] Error[4]: createTimingCache failed: timing cache is of another version")
    build(aws, tmp_path, runner)
    assert runner.caches == [True, False]
    assert aws.artifacts[KEY] == b"new tactics"


def test_an_engine_that_fails_for_another_reason_is_not_built_again(aws: FakeAws, tmp_path: Path) -> None:
    runner = Refusing(printed="[I] timing cache loaded")
    with pytest.raises(EngineFailedError):
        build(aws, tmp_path, runner)
    assert runner.caches == [True]
